//! Whose rights a run has for its outputs, and what of its start it gives up.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::net::inside;
use crate::support::{Folder, Live, corelane, pair, query, run, sending, wait_for};

/// The user that owns nothing.
const USER: &str = "nobody";

fn id() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find_map(|line| line.strip_prefix(USER)?.strip_prefix(':')).expect("a user");
    line.split(':').nth(1).unwrap().parse().unwrap()
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder that all users may enter, and in it one that is the user's.
fn folders() -> (Folder, PathBuf) {
    let folder = Folder::new();
    open_to_all(&folder.path(""), 0o755);
    let own = folder.path("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(id()), Some(id())).unwrap();
    (folder, own)
}

#[test]
fn a_user_that_the_run_cannot_become_costs_no_file() {
    inside("privileges::a_user_that_the_run_cannot_become_costs_no_file", || {
        pair(0);
        let (folder, own) = folders();
        let (eve, tee) = (own.join("eve.json"), own.join("tee.pcapng"));
        fs::write(&tee, "kept").unwrap();
        chown(&tee, Some(id()), None).unwrap();
        // Another user need not reach the folder in which the program was built.
        let program = folder.path("program");
        fs::copy(env!("CARGO_BIN_EXE_corelane"), &program).unwrap();
        for (user, is_root, part) in
            [("no-such-user", true, "there is no such user"), (USER, false, "only root can become another user")]
        {
            let mut command = Command::new(&program);
            command.args(["monitor", "-i", "b0", "--user", user, "--eve"]).arg(&eve).arg("--write").arg(&tee);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            if !is_root {
                command.uid(id());
            }
            run(&mut command).code(2).one_line(&["--user", user, part]);
            assert!(!eve.exists(), "{part}");
            assert_eq!(fs::read(&tee).unwrap(), b"kept", "{part}");
        }
    });
}

#[test]
fn a_link_leads_to_no_file_that_the_user_may_not_write() {
    inside("privileges::a_link_leads_to_no_file_that_the_user_may_not_write", || {
        pair(0);
        let (folder, own) = folders();
        let secret = folder.file("secret", "kept");
        let (link, dangling) = (own.join("link"), own.join("dangling"));
        symlink(&secret, &link).unwrap();
        symlink(folder.path("new"), &dangling).unwrap();
        for option in ["--eve", "--timing", "--write"] {
            for link in [&link, &dangling] {
                let mut command = corelane(["monitor", "-i", "b0", "--user", USER, option]);
                let name = link.to_str().unwrap();
                run(command.arg(link)).code(2).one_line(&["--user nobody", name, "Permission denied"]);
            }
            assert_eq!(fs::read(&secret).unwrap(), b"kept");
            assert!(!folder.path("new").exists());
        }
    });
}

#[test]
fn outputs_are_the_users_own() {
    inside("privileges::outputs_are_the_users_own", || {
        pair(0);
        let (_folder, own) = folders();
        let paths = ["eve.json", "tee.pcapng"].map(|name| own.join(name));
        let [eve, tee] = paths.each_ref().map(|path| path.to_str().unwrap());
        let live = Live::start(0, ["--user", USER, "--eve", eve, "--write", tee]);
        for path in &paths {
            assert_eq!(fs::metadata(path).unwrap().uid(), id(), "{}", path.display());
            fs::rename(path, path.with_extension("old")).unwrap();
        }
        live.signal(Signal::HUP);
        wait_for("new files", || paths.iter().all(|path| path.exists()).then_some(()));
        live.wait_until_health(200);
        live.stop().code(0).silent();
    });
}

#[test]
fn a_folder_in_which_no_file_can_be_created_is_said_at_the_start() {
    inside("privileges::a_folder_in_which_no_file_can_be_created_is_said_at_the_start", || {
        pair(0);
        let (folder, _) = folders();
        let eve = folder.file("eve.json", "");
        chown(&eve, Some(id()), Some(id())).unwrap();
        let live = Live::start(0, ["--user", USER, "--eve", eve.to_str().unwrap()]);
        let root = folder.path("").canonicalize().unwrap();
        live.stop().code(0).one_line(&[root.to_str().unwrap(), "no file can be created there", "Permission denied"]);
        // One that cannot be written now is an error.
        let new = folder.path("new.json");
        let mut command = corelane(["monitor", "-i", "b0", "--user", USER, "--eve"]);
        run(command.arg(&new)).code(2).one_line(&["--user nobody", new.to_str().unwrap(), "Permission denied"]);
    });
}

/// This program by a shell that gives it open files.
fn with(redirections: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$@\" {redirections}"), "sh", env!("CARGO_BIN_EXE_corelane")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn what_the_run_was_started_with_is_used_by_its_number_and_closed() {
    inside("privileges::what_the_run_was_started_with_is_used_by_its_number_and_closed", || {
        pair(0);
        let folder = Folder::new();
        let given = folder.path("given");
        let files = format!("7</etc/passwd 8>{} 9>&1", given.display());
        let mut sent = 0;
        // A file, a pipe, and the pipe under its name; none of which the user could open by itself.
        for (eve, is_file) in [("/dev/fd/8", true), ("/proc/self/fd/9", false), ("/dev/stdout", false)] {
            let arguments = ["--user", USER, "--format", "text", "--eve", eve, "--eve-types", "dns"];
            let live = Live::start_by(&mut with(&files), 0, 0, arguments);
            let lines = || {
                let text = if is_file { fs::read_to_string(&given).unwrap() } else { live.written() };
                text.lines().filter(|line| line.contains("\"event_type\":\"dns\"")).count()
            };
            for open in [7, 8, 9].map(|number| format!("/proc/{}/fd/{number}", live.id())) {
                let target = fs::read_link(&open).unwrap_or_default();
                let is_ours = target == given || target.to_string_lossy().starts_with("pipe:");
                assert!(!is_ours && target != Path::new("/etc/passwd"), "{open}: {}", target.display());
            }
            for lines_before in [0, 5] {
                sending(0, |sender| (sent..sent + 5).for_each(|number| sender.send(&query(number))));
                sent += 5;
                wait_for("events", || (lines() == lines_before + 5).then_some(()));
                // It stays what it is.
                live.signal(Signal::HUP);
            }
            live.wait_until_health(200);
            live.stop().code(0).silent();
        }
    });
}
