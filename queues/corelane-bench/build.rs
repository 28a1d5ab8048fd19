//! Notes what the binary is made of: compiler, profile, commit.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").expect("cargo sets it");
    let compiler = first_line(Command::new(rustc).arg("--version"));
    println!("cargo::rustc-env=BENCH_COMPILER={}", compiler.unwrap_or_else(|| "an unknown compiler".to_owned()));

    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\x1f', " ");
    let level = env::var("OPT_LEVEL").expect("cargo sets it");
    let profile = profile().expect("a folder of the profile's name");
    println!("cargo::rustc-env=BENCH_BUILD={}", format!("{profile} build, opt-level {level} {flags}").trim_end());

    let commit = first_line(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]));
    let changed = Command::new("git").args(["status", "--porcelain", "--untracked-files=no"]).output();
    let changed = changed.is_ok_and(|output| !output.stdout.is_empty());
    let commit = match commit {
        Some(commit) if changed => format!("{commit} with changes"),
        Some(commit) => commit,
        None => "unknown".to_owned(),
    };
    println!("cargo::rustc-env=BENCH_COMMIT={commit}");

    // Whenever the code under test or the commit may be another one.
    // A path that does not exist would have this crate compiled anew each time.
    for path in ["src", "../corelane/src", "../../monitor/corelane-monitor/src", "../../monitor/corelane-net/src"] {
        println!("cargo::rerun-if-changed={path}");
        assert!(Path::new(path).exists(), "{path} has moved");
    }
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(log) = first_line(Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"]))
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// The profile. `PROFILE` calls all that inherit `release` by that name.
fn profile() -> Option<String> {
    let out = env::var_os("OUT_DIR")?;
    let folder = Path::new(&out).ancestors().find(|folder| folder.ends_with("build"))?.parent()?;
    Some(folder.file_name()?.to_str()?.to_owned())
}

/// The first line of what the command prints, if it succeeds.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.lines().next()?.trim().to_owned())
}
