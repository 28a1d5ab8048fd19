//! What cannot be done is said in one line before anything is captured.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::net::{inside, ip, skip};
use crate::support::{Folder, corelane, pair, run};

#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    let outcome = run(corelane(["monitor"]).args(arguments)).code(2).one_line(parts);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_missing_interface_names_those_there_are_and_harms_no_file() {
    inside("errors::a_missing_interface_names_those_there_are_and_harms_no_file", || {
        pair(0);
        let folder = Folder::new();
        let (tee, eve) = (folder.file("tee.pcapng", "kept"), folder.file("eve.json", "kept"));
        let files = ["--write", tee.to_str().unwrap(), "--eve", eve.to_str().unwrap()];
        for name in ["c0", "", "a name that is too long for one"] {
            refused(&[&["-i", name], &files[..]].concat(), &["a0", "b0", "lo"]);
        }
        assert_eq!(std::fs::read_to_string(tee).unwrap(), "kept", "a slip of the pen costs no capture");
        assert_eq!(std::fs::read_to_string(eve).unwrap(), "kept");
    });
}

#[test]
fn a_user_without_the_right_is_told_how_to_get_it() {
    inside("errors::a_user_without_the_right_is_told_how_to_get_it", || {
        pair(0);
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-all", "--inh-caps", "-all"]).arg(env!("CARGO_BIN_EXE_corelane"));
        command.args(["monitor", "-i", "b0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        if Command::new("setpriv").arg("--version").output().is_err() {
            return skip("a_user_without_the_right_is_told_how_to_get_it: there is no program `setpriv`");
        }
        run(&mut command).code(2).one_line(&["CAP_NET_RAW", "setcap cap_net_raw+ep", "AmbientCapabilities"]);
    });
}

#[test]
fn options_that_cannot_be_met_are_refused() {
    inside("errors::options_that_cannot_be_met_are_refused", || {
        pair(0);
        let folder = Folder::new();
        let out = folder.path("out");
        let out = out.to_str().unwrap();
        let program = folder.file("filter", "2\n40 0 0 12\n6 0 zero 5\n");
        let program = program.to_str().unwrap();
        refused(&["-i", "b0", "--filter-program", program], &["--filter-program", program, "line 3", "6 0 zero 5"]);
        refused(&["-i", "b0", "--filter-program", "/nowhere"], &["--filter-program", "/nowhere"]);
        refused(&["-i", "b0", "--ring-size", "4G"], &["ring", "4294967296", "smaller"]);
        refused(&["-i", "b0", "--ring-size", "1"], &["--ring-size", "at least 1048576 bytes"]);
        refused(&["-i", "b0", "--ring-size", "1048575"], &["--ring-size", "at least 1048576 bytes"]);
        let small = ["-i", "b0", "--snaplen", "1500", "--ring-size", "1"];
        refused(&small, &["--ring-size", "at least 262144 bytes"]);
        refused(&["-i", "b0", "--snaplen", "63"], &["63", "64 to 262144"]);
        refused(&["-i", "b0", "--eve", out, "--write", out], &[out, "cannot hold both", "choose two files"]);
        refused(&["-i", "b0", "--count-sources", "1M"], &["--count-sources", "--continuous"]);
        refused(&["-i", "b0", "--write", "/nowhere/tee"], &["/nowhere/tee"]);
        refused(&["-i", "b0", "--eve", "/nowhere/eve"], &["/nowhere/eve"]);
        refused(&["-i", "b0", "--metrics", "localhost"], &["--metrics localhost", "127.0.0.1:9100"]);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        refused(&["-i", "b0", "--metrics", &address], &["--metrics", &address, "another port"]);
        refused(&["-i", "b0", "--metrics", "192.0.2.1:9100"], &["--metrics", "192.0.2.1:9100", "ip address"]);
        assert!(!folder.path("out").exists(), "a run that is refused makes no file");
    });
}

#[test]
fn a_refused_address_or_server_harms_no_file() {
    inside("errors::a_refused_address_or_server_harms_no_file", || {
        pair(0);
        let folder = Folder::new();
        let (tee, eve) = (folder.file("tee.pcapng", "kept"), folder.path("eve.json"));
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let outputs = ["-i", "b0", "--write", tee.to_str().unwrap(), "--eve", eve.to_str().unwrap()];
        refused(&[&outputs[..], &["--metrics", &address]].concat(), &["another port"]);
        let log = folder.path("log");
        let server = ["--sensor", "a", "--spool", log.to_str().unwrap(), "--publish", "nats://127.0.0.1:1"];
        refused(&[&outputs[..], &server, &["--nats-credentials", "/nowhere"]].concat(), &["--publish: /nowhere"]);
        assert_eq!(std::fs::read_to_string(tee).unwrap(), "kept");
        assert!(!eve.exists());
    });
}

#[test]
fn options_of_an_interface_need_one() {
    for options in [
        &["--metrics", "9100"][..],
        &["--ring-size", "1M"],
        &["--snaplen", "100"],
        &["--promiscuous=off"],
        &["--user", "nobody"],
        &["--drop-all"],
    ] {
        for (what, part) in [
            (&["capture.pcap"][..], "cannot be used with"),
            (&["--demo"], "cannot be used with"),
            (&[], "--interface <IFACE>"),
        ] {
            let outcome = run(corelane(["monitor"]).args(what).args(options)).code(2);
            assert!(outcome.stderr.contains(part), "{what:?} {options:?}: {outcome:?}");
        }
    }
    for options in [&["capture.pcap"][..], &["--demo"], &["--preload"], &["--mmap"]] {
        let outcome = run(corelane(["monitor", "-i", "lo"]).args(options)).code(2);
        assert!(outcome.stderr.contains("cannot be used with"), "{options:?}: {outcome:?}");
    }
}

#[test]
fn interfaces_are_listed() {
    inside("errors::interfaces_are_listed", || {
        pair(0);
        ip("link set a0 down");
        let outcome = run(&mut corelane(["monitor", "--interfaces"])).code(0).silent();
        let line =
            |name: &str| outcome.stdout.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        assert!(line("lo").contains("up, loopback"), "{outcome:?}");
        assert!(line("a0").contains("down"), "{outcome:?}");
        assert!(line("b0").contains("up") && line("b0").contains("65535"), "{outcome:?}");
        assert_eq!(outcome.stdout.lines().count(), 3, "{outcome:?}");
    });
}
