//! The checks of a release: each crate can be packaged, the oldest supported compiler builds it, and we may ship under
//! every licence in it.

use crate::workspace::{Result, root};
use crate::{tool, tree};
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
    let cargo = |arguments: &[&str]| tree::output(Command::new("cargo").args(arguments).current_dir(&root));
    let metadata: serde_json::Value = serde_json::from_str(&cargo(&["metadata", "--format-version=1", "--locked"])?)
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
        let list = cargo(&["package", "--list", "--allow-dirty", "-p", name])?;
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
    let check = "cargo check --quiet --target-dir target/oldest -p corelane -p corelane-pool";
    let mut command = Command::new("rustup");
    command.args(["run", &oldest]).args(check.split(' ')).env("RUSTFLAGS", "-A warnings");
    tool::succeed(&mut command)?;
    println!("oldest compiler: {oldest} takes corelane and corelane-pool");
    Ok(())
}

/// Whether the allowed licences satisfy a licence expression.
fn is_allowed(expression: &str) -> bool {
    spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX)
        .is_ok_and(|expression| expression.evaluate(|licence| ALLOWED.contains(&licence.to_string().as_str())))
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
