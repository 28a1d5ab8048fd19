//! The examples of README.md and docs/, as tests of documentation. What else those files have to keep is in `tests/`.
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
    Choosing: "docs/choosing.md",
    Guarantees: "docs/guarantees.md",
    Waiting: "docs/waiting.md",
}
