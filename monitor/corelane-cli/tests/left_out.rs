//! What a build leaves out says so where it is asked for, and in the help. What this build has is not looked at, so
//! with all features there is only `--filter`.

#[path = "support/program.rs"]
#[allow(dead_code, reason = "shared with the tests of the program, which need more of it")]
mod program;

use program::{Folder, corelane, run};

/// Features, and whether this build has them.
const FEATURES: [(&str, bool); 6] = [
    ("libpcap", cfg!(feature = "libpcap")),
    ("manual", cfg!(feature = "manual")),
    ("metrics", cfg!(feature = "metrics")),
    ("nats", cfg!(feature = "nats")),
    ("top", cfg!(feature = "top")),
    ("zstd", cfg!(feature = "zstd")),
];

/// The words of a text, wherever its lines are broken.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_left_out_says_how_to_get_it() {
    let folder = Folder::new();
    let packed = folder.file("capture.zst", [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]);
    let packed = packed.to_str().unwrap();
    let place = format!("file:{}", folder.path("").display());
    let publish = ["monitor", "--continuous", "--sensor", "a", packed, "--publish"];
    let refusals: [(&str, &[&str]); 12] = [
        ("libpcap", &["monitor", "--filter", "tcp", packed]),
        ("libpcap", &["top", "--filter", "tcp", packed]),
        ("manual", &["completions", "bash"]),
        ("manual", &["man"]),
        ("manual", &["man", "monitor"]),
        ("metrics", &["aggregate", "--from", &place, "--metrics", "9477"]),
        ("nats", &["aggregate", "--from", "nats://127.0.0.1:1"]),
        ("nats", &[&publish[..], &["nats://127.0.0.1:1"]].concat()),
        ("nats", &[&publish[..], &["tls://127.0.0.1:1"]].concat()),
        ("top", &["top", "--demo"]),
        ("top", &["top", "--from", "nats://127.0.0.1:1"]),
        ("zstd", &["monitor", packed]),
    ];
    for (feature, arguments) in refusals {
        if FEATURES.contains(&(feature, true)) {
            continue;
        }
        let outcome = run(&mut corelane(arguments)).code(2);
        let errors =
            outcome.stderr.lines().filter(|line| line.starts_with("corelane: ") || line.starts_with("error: "));
        assert!(errors.count() == 1 && outcome.stdout.is_empty(), "{arguments:?}: {outcome:?}");
        let said = flat(&outcome.stderr);
        let features = match feature == "libpcap" || cfg!(feature = "libpcap") {
            true => "full,libpcap",
            false => "full",
        };
        for part in [
            "this program was built without ",
            &format!("the feature `{feature}`; in a checkout of corelane"),
            &format!("`cargo run --release --features {features} -- ...`"),
            &format!("`cargo install --path monitor/corelane-cli --locked --profile dist --features {features}`"),
        ] {
            assert!(said.contains(part), "{part:?} is not in {outcome:?}");
        }
    }
}

#[test]
fn the_help_says_what_is_left_out() {
    let helps: [(&[&str], &[&str]); 6] = [
        (&["--help"], &["manual", "top"]),
        (&["monitor", "--help"], &["libpcap", "metrics", "nats", "zstd"]),
        (&["top", "--help"], &["libpcap", "nats", "top", "zstd"]),
        (&["aggregate", "--help"], &["metrics", "nats"]),
        (&["completions", "--help"], &["manual"]),
        (&["man", "--help"], &["manual"]),
    ];
    for (arguments, features) in helps {
        let outcome = run(&mut corelane(arguments)).code(0).silent();
        let help = flat(&outcome.stdout);
        for (feature, is_on) in FEATURES {
            let says = help.contains(&format!("in this build: feature `{feature}`)"));
            assert_eq!(says, !is_on && features.contains(&feature), "{feature}: {arguments:?}: {help}");
        }
    }
}
