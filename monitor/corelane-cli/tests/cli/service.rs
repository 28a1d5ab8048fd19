//! What `contrib/` has for running the monitor as a service, by the programs that read it.

use crate::support::{Folder, skipped};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn contrib(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The output of a program, or `None` after saying that the test is skipped.
fn output(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            skipped(&format!("{}: {error}", command.get_program().display()));
            None
        }
    }
}

#[test]
fn systemd_finds_nothing_to_complain_about() {
    let folder = Folder::new();
    let unit = contrib("corelane@.service");
    assert!(unit.contains("\nExecStart=/usr/bin/corelane monitor -i %i "));
    // It looks whether the program is there.
    let unit = unit.replace("/usr/bin/corelane", env!("CARGO_BIN_EXE_corelane"));
    let path = folder.file("corelane@eth0.service", unit.as_bytes());
    let Some(verdict) = output(Command::new("systemd-analyze").arg("verify").arg(&path)) else { return };
    assert!(verdict.status.success() && verdict.stderr.is_empty(), "{verdict:?}");
    // The same with a fault in it.
    let path = folder.file("corelane@eth1.service", unit.replace("Type=notify", "Type=none").as_bytes());
    let verdict = output(Command::new("systemd-analyze").arg("verify").arg(&path)).unwrap();
    assert!(!verdict.stderr.is_empty());
}

#[test]
fn logrotate_takes_the_outputs_away_and_asks_for_new_ones() {
    let folder = Folder::new();
    let logs = folder.path("log/eth0");
    fs::create_dir_all(&logs).unwrap();
    let rules = contrib("corelane.logrotate");
    let command = "systemctl reload 'corelane@*.service' || true";
    assert!(rules.contains(command));
    let (root, reloads) = (folder.path("log"), folder.path("reloads"));
    let rules = rules
        .replace("/var/log/corelane", root.to_str().unwrap())
        .replace(command, &format!("echo reload >> {}", reloads.display()));
    let rules = folder.file("rules", rules.as_bytes());
    let names = || {
        let mut names: Vec<PathBuf> = fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected: [&[&str]; 3] = [
        &["eve.json.1", "tee.pcapng.1"],
        &["eve.json.1", "eve.json.2.gz", "tee.pcapng.1", "tee.pcapng.2.gz"],
        &["eve.json.1", "eve.json.2.gz", "eve.json.3.gz", "tee.pcapng.1", "tee.pcapng.2.gz", "tee.pcapng.3.gz"],
    ];
    for (turn, expected) in expected.into_iter().enumerate() {
        for name in ["eve.json", "tee.pcapng"] {
            fs::write(logs.join(name), format!("{turn}\n")).unwrap();
        }
        let mut logrotate = Command::new("logrotate");
        logrotate.arg("--force").arg("--state").arg(folder.path("state")).arg(&rules);
        let Some(verdict) = output(&mut logrotate) else { return };
        assert!(verdict.status.success() && verdict.stderr.is_empty(), "{verdict:?}");
        // It creates no file in place of the old one: its owner does, and would find it taken.
        assert_eq!(names(), expected);
        assert_eq!(fs::read_to_string(logs.join("eve.json.1")).unwrap(), format!("{turn}\n"));
        assert_eq!(fs::read_to_string(&reloads).unwrap().lines().count(), turn + 1, "one reload for all outputs");
    }
}
