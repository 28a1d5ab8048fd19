//! The checks of a release: each crate can be packaged, the oldest supported compiler builds it, and we may ship under
//! every licence in it.

use crate::tool;
use crate::workspace::{Result, root};
use std::process::Command;

/// The allowed licences of dependencies.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    // Of data alone: a list of certificates.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The files that each package must contain beside its sources.
const NEEDED: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

pub(crate) fn run() -> Result<()> {
    let root = root();
    let output = Command::new("cargo").args(["metadata", "--format-version=1", "--locked"]).current_dir(&root).output();
    let output = output.map_err(|error| format!("cargo metadata cannot be started: {error}"))?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata has not written JSON: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let text = |package: &serde_json::Value, field: &str| package[field].as_str().unwrap_or_default().to_owned();

    for package in packages {
        let license = text(package, "license");
        if !is_allowed(&license) {
            let (name, version) = (text(package, "name"), text(package, "version"));
            return Err(format!("{name} {version} is under `{license}`, which ALLOWED does not hold; replace it"));
        }
    }
    println!("licences: {} packages, all under one of {}", packages.len(), ALLOWED.join(", "));

    let ours = packages.iter().filter(|package| package["source"].is_null());
    let published: Vec<_> =
        ours.filter(|package| package["publish"].is_null()).map(|package| text(package, "name")).collect();
    // The packages are not built: the workspace is built from the same files, and a missing file shows in the package's
    // list.
    let mut arguments = vec!["package", "--quiet", "--no-verify", "--allow-dirty"];
    arguments.extend(published.iter().flat_map(|name| ["--package", name.as_str()]));
    tool::call("cargo", &arguments)?;
    for name in &published {
        let list =
            Command::new("cargo").args(["package", "--list", "--allow-dirty", "-p", name]).current_dir(&root).output();
        let list = list.map_err(|error| format!("cargo package cannot be started: {error}"))?;
        let list = String::from_utf8_lossy(&list.stdout);
        if let Some(missing) = NEEDED.iter().find(|file| !list.lines().any(|line| line == **file)) {
            return Err(format!("the package of {name} has no {missing}; add it to the crate"));
        }
        // The tests need captures, and files of other crates.
        let is_wanted = |line: &&str| line.starts_with("src/") || line.starts_with("examples/") || !line.contains('/');
        if let Some(other) = list.lines().find(|line| !is_wanted(line)) {
            return Err(format!(
                "the package of {name} has {other}, which no user needs; exclude it in its Cargo.toml"
            ));
        }
    }
    println!("packaged, each with its README and licences, sources and examples only: {}", published.join(", "));
    // cargo-semver-checks compares with the published version, and cargo-deny reads a registry of advisories. Neither
    // has anything to report yet that is worth minutes of building it.
    println!("versions: nothing is published yet to compare with");

    let oldest =
        packages.iter().find(|package| package["name"] == "corelane").map(|package| text(package, "rust_version"));
    let oldest = oldest
        .filter(|version| !version.is_empty())
        .ok_or("corelane names no oldest compiler; set its rust-version")?;
    let installed = Command::new("rustup").args(["run", &oldest, "rustc", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success())
        && let Err(error) =
            tool::call("rustup", &["toolchain", "install", &oldest, "--profile", "minimal", "--no-self-update"])
    {
        println!("oldest compiler: SKIPPED, as {error}");
        return Ok(());
    }
    // The oldest compiler's lints are not today's.
    let check = [
        "run",
        &oldest,
        "cargo",
        "check",
        "--quiet",
        "--target-dir",
        "target/oldest",
        "-p",
        "corelane",
        "-p",
        "corelane-pool",
    ];
    tool::succeed(Command::new("rustup").args(check).env("RUSTFLAGS", "-A warnings"))?;
    println!("oldest compiler: {oldest} takes corelane and corelane-pool");
    Ok(())
}

/// Whether the allowed licences satisfy a licence expression.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    alternatives(&mut expression.replace('(', " ( ").replace(')', " ) ").split_whitespace().peekable())
}

type Words<'a, 'b> = &'a mut std::iter::Peekable<std::str::SplitWhitespace<'b>>;

/// Terms joined by OR.
fn alternatives(words: Words<'_, '_>) -> bool {
    let mut allowed = together(words);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= together(words);
    }
    allowed
}

/// Licences joined by AND.
fn together(words: Words<'_, '_>) -> bool {
    let mut allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words);
    }
    allowed
}

fn one(words: Words<'_, '_>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let allowed = alternatives(words);
        return words.next_if_eq(&")").is_some() && allowed;
    }
    let mut name = words.next().unwrap_or_default().to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", words.next().unwrap_or_default());
    }
    ALLOWED.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn licences_are_expressions() {
        for allowed in
            ["MIT", "MIT/Apache-2.0", "GPL-2.0 OR MIT", "(MIT OR GPL-2.0) AND ISC", "Apache-2.0 WITH LLVM-exception"]
        {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in ["", "GPL-2.0", "MIT AND GPL-2.0", "(MIT OR ISC) AND GPL-2.0", "(MIT"] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }
}
