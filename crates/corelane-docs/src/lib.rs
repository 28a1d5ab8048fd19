//! The examples of the READMEs and docs/, as tests of documentation. What else those files have to keep is in `tests/`.
//!
//! A new page is a line here.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!(concat!("../../../", $path))]
        struct $name;
    )*};
}

pages! {
    Readme: "README.md",
    Corelane: "crates/corelane/README.md",
    Pool: "crates/corelane-pool/README.md",
    Net: "crates/corelane-net/README.md",
    Monitor: "crates/corelane-monitor/README.md",
    Choosing: "docs/choosing.md",
    Guarantees: "docs/guarantees.md",
    Waiting: "docs/waiting.md",
}
