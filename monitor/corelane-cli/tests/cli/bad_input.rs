//! Bad input: one clear line, the right exit code, and everything that was whole is in the report.

use crate::support::{
    Folder, Pcap, WAYS, block, captures, corelane, generated, gzip, monitor, run_with_stdin, section, skipped, syn,
};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Nothing can be read of it: no report, one line that names it, exit code 2; beside a good file a report of that one
/// and exit code 1.
#[track_caller]
fn unreadable(path: &Path, says: &str) {
    let folder = Folder::new();
    let good = folder.file("good.pcap", &generated(1000).0);
    let alone = monitor(&[&good], &[]).code(0).stdout;
    let name = path.display().to_string();
    for options in WAYS {
        let outcome = monitor(&[path], options).code(2).one_line(&[&name, says]);
        assert_eq!(outcome.stdout, "");
        for files in [[path, &good], [&good, path]] {
            let outcome = monitor(&files, options).code(1).one_line(&[&name, says]);
            assert_eq!(outcome.stdout, alone);
        }
    }
}

/// The first `packets` are whole and reported, one line says where the damage is, exit code 1.
#[track_caller]
fn damaged(bytes: &[u8], packets: u64, says: &[&str]) {
    let folder = Folder::new();
    let path = folder.file("damaged", bytes);
    let good = folder.file("good.pcap", &generated(1000).0);
    let parts = [&["damaged: "], says].concat();
    for options in WAYS {
        assert_eq!(monitor(&[&path], options).code(1).one_line(&parts).packets(), packets);
        for files in [[&path, &good], [&good, &path]] {
            let outcome = monitor(&files.map(AsRef::as_ref), options).code(1).one_line(&parts);
            assert_eq!(outcome.packets(), packets + 1000);
        }
    }
    let mut command = corelane(["monitor", "--format", "json", "-"]);
    let outcome = run_with_stdin(&mut command, bytes).code(1).one_line(&[&["standard input: "], says].concat());
    assert_eq!(outcome.packets(), packets);
}

/// Three SYNs, and where each record starts.
fn three() -> (Pcap, [usize; 3]) {
    let pcap = Pcap::new(100, 101).record(1, 40, &syn(1)).record(2, 40, &syn(2)).record(3, 40, &syn(3));
    (pcap, [24, 80, 136])
}

#[test]
fn what_is_no_network_is_refused_with_what_it_should_be() {
    for option in ["--ignore-source", "--ignore-target"] {
        for (wrong, says) in [
            ("10.0.0.0/33", "'33' is not a prefix length; give 0 to 32"),
            ("2001:db8::/129", "give 0 to 128"),
            ("10.0.0", "'10.0.0' is not an IP address"),
            ("example.org", "'example.org' is not an IP address"),
            ("", "is not an IP address"),
        ] {
            let outcome = monitor(&[Path::new("missing.pcap")], &[option, wrong]).code(2);
            assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(says), "{outcome:?}");
            assert!(outcome.stdout.is_empty() && outcome.stderr.contains(option), "{outcome:?}");
        }
    }
}

#[test]
fn no_such_file() {
    unreadable(&Folder::new().path("missing.pcap"), "no such file");
}

#[test]
fn a_directory() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder")).unwrap();
    unreadable(&folder.path("folder"), "is a directory");
}

#[test]
fn an_empty_file() {
    let folder = Folder::new();
    unreadable(&folder.file("empty.pcap", b""), "is empty");
    run_with_stdin(&mut corelane(["monitor", "-"]), b"").code(2).one_line(&["standard input", "is empty"]);
}

#[test]
fn not_a_capture() {
    let folder = Folder::new();
    unreadable(&folder.file("notes.txt", b"dear diary, today"), "is not a pcap or pcapng capture");
    unreadable(&folder.file("short", b"ab"), "is not a pcap or pcapng capture");
    unreadable(&folder.file("packed", gzip(b"dear diary")), "is not a pcap or pcapng capture");
    unreadable(&folder.file("header", &Pcap::new(100, 1).0[..20]), "20 of 24 bytes");
}

#[test]
fn an_unknown_link_type() {
    let folder = Folder::new();
    let bytes = Pcap::new(100, 147).record(1, 40, &syn(1)).0;
    unreadable(&folder.file("usb.pcap", &bytes), "link type 147");
    let interface = block(1, &[147, 0, 0, 0, 0, 0, 0, 0]);
    unreadable(&folder.file("usb.pcapng", [section(), interface].concat()), "link type 147");
}

#[test]
fn an_unknown_link_type_beside_a_known_one_is_told_and_nothing_is_lost() {
    let folder = Folder::new();
    let (known, unknown) = ([101, 0, 0, 0, 0, 0, 0, 0], [147, 0, 0, 0, 0, 0, 0, 0]);
    let packet = |interface: u32| {
        let words = [interface, 0, 0, 40, 40].into_iter().flat_map(u32::to_le_bytes);
        block(6, &words.chain(syn(1)).collect::<Vec<u8>>())
    };
    let bytes = [section(), block(1, &known), block(1, &unknown), packet(0), packet(1)].concat();
    let outcome = monitor(&[&folder.file("two.pcapng", &bytes)], &[]).code(0).one_line(&["interface 1", "147"]);
    let report = outcome.json();
    assert_eq!((report["packets"].as_u64(), report["undecoded"].as_u64()), (Some(2), Some(1)));
}

#[test]
fn a_cut_record() {
    let (pcap, starts) = three();
    // In its header, in its data, and one byte short.
    for (end, says) in [(starts[2] + 7, "7 of 16 bytes"), (starts[2] + 30, "30 of 56 bytes"), (191, "55 of 56 bytes")] {
        damaged(&pcap.0[..end], 2, &["record 3 at byte 136", says]);
    }
    damaged(&pcap.0[..30], 0, &["record 1 at byte 24"]);
    let (capture, _) = generated(5000);
    damaged(&capture[..capture.len() - 1], 4999, &["record 5000"]);
}

#[test]
fn a_real_cut_capture() {
    let Some(folder) = captures() else { return };
    let outcome = monitor(&[&folder.join("file-cut-http.pcap")], &[]).code(1);
    assert_eq!(outcome.one_line(&["file-cut-http.pcap: record 26 at byte"]).packets(), 25);
}

#[test]
fn a_record_longer_than_its_snaplen_is_read() {
    let folder = Folder::new();
    let long = [syn(2), vec![0; 5000]].concat();
    let bytes = Pcap::new(60, 101).record(1, 40, &syn(1)).record(2, 5040, &long).record(3, 40, &syn(3)).0;
    let file = folder.file("long.pcap", &bytes);
    for options in WAYS {
        let report = monitor(&[&file], options).code(0).silent().json();
        assert_eq!((report["packets"].as_u64(), report["flows"].as_u64()), (Some(3), Some(3)));
    }
}

#[test]
fn an_absurd_record_length() {
    let (mut pcap, starts) = three();
    for length in [u32::MAX, 1 << 31, 0x2000_0000] {
        pcap.0[starts[1] + 8..starts[1] + 12].copy_from_slice(&length.to_le_bytes());
        damaged(&pcap.0, 1, &["record 2 at byte 80", &length.to_string()]);
    }
}

#[test]
fn a_pcapng_without_an_interface() {
    let packet = |interface: u32| {
        let words = [interface, 0, 0, 40, 40].into_iter().flat_map(u32::to_le_bytes);
        block(6, &words.chain(syn(1)).collect::<Vec<u8>>())
    };
    // None at all.
    damaged(&[section(), packet(0)].concat(), 0, &["record 1", "no interface 0"]);
    // One, and packets of another: all the others are there. The second message counts the skipped ones.
    let interface = block(1, &[101, 0, 0, 0, 0, 0, 0, 0]);
    damaged(&[section(), interface.clone(), packet(0), packet(7), packet(0)].concat(), 2, &["record 2", "interface 7"]);
    let folder = Folder::new();
    // However many there are, in however many sections.
    let part = [section(), interface, packet(7), packet(0), packet(7)].concat();
    let outcome = monitor(&[&folder.file("many", part.repeat(5))], &[]).code(1);
    assert_eq!(outcome.packets(), 5);
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains("10 records were skipped"), "{lines:?}");
}

#[test]
fn a_cut_gzip() {
    let packed = gzip(&generated(20_000).0);
    let folder = Folder::new();
    let file = folder.file("cut.pcap.gz", &packed[..packed.len() / 2]);
    let mut reported = Vec::new();
    for options in WAYS {
        let outcome = monitor(&[&file], options).code(1).one_line(&["cut.pcap.gz: record ", "gzip data end early"]);
        reported.push(outcome.packets());
    }
    assert!(reported[0] > 1000 && reported.iter().all(|&packets| packets == reported[0]), "{reported:?}");
    unreadable(&folder.file("stump.gz", &packed[..12]), "gzip data end early");
}

#[test]
fn a_damaged_gzip() {
    let mut packed = gzip(&generated(20_000).0);
    let at = packed.len() / 2;
    packed[at..at + 100].fill(0xff);
    let folder = Folder::new();
    let file = folder.file("damaged.pcap.gz", &packed);
    for options in WAYS {
        let outcome = monitor(&[&file], options).code(1);
        assert!(outcome.packets() > 1000 && outcome.stderr.starts_with("corelane: "), "{outcome:?}");
    }
}

#[test]
fn an_unreadable_file() {
    let folder = Folder::new();
    let path = folder.file("secret.pcap", &generated(100).0);
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    if File::open(&path).is_err() {
        unreadable(&path, "permission denied");
    } else {
        skipped("a file without permissions: this user may read everything");
    }
    // It opens, and reading fails for every user.
    let memory = Path::new("/proc/self/mem");
    if File::open(memory).is_ok_and(|mut file| file.read(&mut [0]).is_err()) {
        unreadable(memory, "cannot be read");
    } else {
        skipped("a file that opens but cannot be read: there is no /proc/self/mem");
    }
}

#[test]
fn two_bad_files_are_both_told() {
    let folder = Folder::new();
    let (missing, empty) = (folder.path("missing"), folder.file("empty", b""));
    let outcome = monitor(&[&missing, &empty], &[]).code(2);
    assert_eq!(outcome.stderr.lines().count(), 2, "{outcome:?}");
    assert!(outcome.stdout.is_empty());
}

#[test]
fn a_name_cannot_break_the_line_or_reach_the_terminal() {
    let name = "no\nsuch\x1b[31m.pcap";
    monitor(&[Path::new(name)], &[]).code(2).one_line(&[r"no\nsuch\u{1b}[31m.pcap: no such file"]);
}

#[test]
fn nothing_but_a_header_is_a_capture_without_packets() {
    let folder = Folder::new();
    for options in WAYS {
        let outcome = monitor(&[&folder.file("nothing.pcap", &Pcap::new(100, 1).0)], options).code(0).silent();
        assert_eq!(outcome.packets(), 0);
    }
}

#[test]
fn cuts_everywhere_end_well() {
    let (capture, _) = generated(12);
    let folder = Folder::new();
    for end in (0..capture.len()).step_by(37) {
        let outcome = monitor(&[&folder.file("cut", &capture[..end])], &["--analyzers", "1"]);
        assert!(matches!(outcome.code, Some(0..=2)), "{end}: {outcome:?}");
        assert_eq!(outcome.stderr.is_empty(), outcome.code == Some(0), "{end}: {outcome:?}");
    }
}
