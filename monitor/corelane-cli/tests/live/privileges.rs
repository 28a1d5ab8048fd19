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

/// What the kernel says of a process that has given up its rights.
#[track_caller]
fn is_confined(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    status.contains("\nNoNewPrivs:\t1\n") && status.contains("\nSeccomp:\t2\n")
}

/// Whatever reads what strangers send: also a capture from a file, a pipe or many sensors.
#[test]
fn all_commands_give_up_their_rights() {
    inside("privileges::all_commands_give_up_their_rights", || {
        pair(0);
        let folder = Folder::new();
        let batches = folder.path("batches");
        fs::create_dir(&batches).unwrap();
        let from = format!("file:{}", batches.display());
        // Each of them waits for something.
        let pipe = folder.path("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let pipe = pipe.to_str().unwrap();
        let commands: [&[&str]; 5] = [
            &["monitor", "--quiet", pipe],
            &["monitor", "--quiet", "--continuous", "--sensor", "a", "--publish", &from, pipe],
            &["monitor", "--quiet", "-i", "b0"],
            &["aggregate", "--from", &from],
            &["gen", "--quiet", "-n", "1G", "/dev/null"],
        ];
        for arguments in commands {
            let mut child = corelane(arguments).spawn().unwrap();
            wait_for(&format!("{arguments:?} is confined"), || is_confined(child.id()).then_some(()));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    });
}

/// The bits of rights of all users but the owner, of all that is below.
fn for_others(path: &Path) -> Vec<(PathBuf, u32)> {
    let facts = fs::symlink_metadata(path).unwrap();
    let mut all = vec![(path.to_owned(), facts.permissions().mode() & 0o077)];
    if facts.is_dir() {
        all.extend(fs::read_dir(path).unwrap().flat_map(|entry| for_others(&entry.unwrap().path())));
    }
    all
}

#[test]
fn batches_states_and_locks_are_their_owners_alone() {
    inside("privileges::batches_states_and_locks_are_their_owners_alone", || {
        pair(0);
        let folder = Folder::new();
        let batches = folder.path("batches");
        let from = format!("file:{}", batches.display());
        // One of an earlier version, which others can lock.
        fs::create_dir_all(batches.join("a")).unwrap();
        fs::write(batches.join("a/lock"), "").unwrap();
        open_to_all(&batches.join("a/lock"), 0o644);
        open_to_all(&batches.join("a"), 0o700);
        open_to_all(&batches, 0o700);
        for sensor in ["a", "b"] {
            let live = Live::start(0, ["--publish", &from, "--sensor", sensor, "--stats-interval", "1s"]);
            sending(0, |sender| (0..30).for_each(|number| sender.send(&query(number))));
            live.wait_until_received(30);
            live.stop().code(0);
        }
        // Root's aggregator reads those of all users.
        let sensor = batches.join("a");
        for (path, _) in for_others(&sensor) {
            chown(path, Some(id()), Some(id())).unwrap();
        }
        let eve = folder.path("eve.json");
        let mut command = corelane(["aggregate", "--from", &from, "--expect", "a,b", "--eve"]);
        let mut aggregator = command.arg(&eve).args(["--snapshot-interval", "1s"]).spawn().unwrap();
        wait_for("both sensors", || fs::metadata(sensor.join("trimmed")).is_ok().then_some(()));
        wait_for("a state", || batches.join("aggregators/0-255.snapshot").exists().then_some(()));
        aggregator.kill().unwrap();
        aggregator.wait().unwrap();
        let all = for_others(&batches);
        assert!(all.iter().any(|(path, _)| path.ends_with("lock")) && all.len() > 8, "{all:?}");
        assert_eq!(all.into_iter().filter(|(_, bits)| *bits != 0).collect::<Vec<_>>(), []);
    });
}

#[test]
fn outputs_have_the_rights_that_were_given() {
    inside("privileges::outputs_have_the_rights_that_were_given", || {
        pair(0);
        let folder = Folder::new();
        let paths = ["eve.json", "tee.pcapng", "timing.json"].map(|name| folder.path(name));
        let [eve, tee, timing] = paths.each_ref().map(|path| path.to_str().unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for given in [0o600, 0o640, 0o664] {
            let outputs = ["--eve", eve, "--write", tee, "--timing", timing, "--output-mode", &format!("{given:o}")]
                .map(str::to_owned);
            let live = Live::start(0, outputs.each_ref().map(String::as_str));
            // After a rotation too.
            fs::rename(eve, folder.path("old")).unwrap();
            live.signal(Signal::HUP);
            wait_for("a new file", || paths[0].exists().then_some(()));
            live.stop().code(0);
            assert_eq!(paths.each_ref().map(|path| mode(path)), [given; 3]);
            paths.iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    });
}

#[test]
fn secrets_that_others_can_read_are_said() {
    inside("privileges::secrets_that_others_can_read_are_said", || {
        pair(0);
        let folder = Folder::new();
        let (key, cert) = (folder.file("key.pem", "no key"), folder.file("cert.pem", "no certificate"));
        let spool = folder.path("spool");
        for (mode, is_said) in [(0o644, true), (0o640, false), (0o600, false)] {
            open_to_all(&key, mode);
            let mut command =
                corelane(["monitor", "--quiet", "-i", "b0", "--sensor", "a", "--publish", "tls://127.0.0.1:1"]);
            let mut child = command
                .arg("--spool")
                .arg(&spool)
                .arg("--nats-key")
                .arg(&key)
                .arg("--nats-cert")
                .arg(&cert)
                .spawn()
                .unwrap();
            wait_for("it is confined", || is_confined(child.id()).then_some(()));
            child.kill().unwrap();
            let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
            assert_eq!(
                said.contains("--nats-key ") && said.contains("all users can read it (mode 0644)"),
                is_said,
                "{said}"
            );
        }
    });
}
