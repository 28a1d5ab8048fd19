//! Where results go, and what happens when they cannot.

use crate::support::{Folder, corelane, finish, generated, monitor, run, skipped, wait};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_closed_output_pipe_is_no_error() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(20_000).0);
    for format in ["json", "text"] {
        let (eve, timing) = (folder.path("eve.json"), folder.path("timing.json"));
        let mut command = corelane(["monitor", "--format", format]);
        let mut child = command.arg(&file).arg("--eve").arg(&eve).arg("--timing").arg(&timing).spawn().unwrap();
        drop(child.stdout.take());
        finish(child).code(0).silent();
        // The files are written all the same.
        assert!(fs::metadata(&eve).unwrap().len() > 0 && fs::metadata(&timing).unwrap().len() > 0);
    }
    for arguments in
        [&["monitor", "--demo"][..], &["monitor", "--help"], &["completions", "bash"], &["man"], &["--version"]]
    {
        let mut child = corelane(arguments).spawn().unwrap();
        drop(child.stdout.take());
        finish(child).code(0).silent();
    }
}

#[test]
fn a_generated_capture_may_be_read_in_part() {
    let mut child = corelane(["gen", "-", "--packets", "1M"]).spawn().unwrap();
    let mut start = [0; 1000];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    finish(child).code(0).silent();
    assert_eq!(start[..4], [0x4d, 0x3c, 0xb2, 0xa1]);

    // The scans are told all the same, those of the whole capture.
    let folder = Folder::new();
    let (part, whole) = (folder.path("part.json"), folder.path("whole.json"));
    let mut child = corelane(["gen", "-", "--packets", "1M", "--truth"]).arg(&part).spawn().unwrap();
    drop(child.stdout.take());
    finish(child).code(0).silent();
    run(corelane(["gen", "/dev/null", "--packets", "1M", "--truth"]).arg(&whole)).code(0).silent();
    assert_eq!(fs::read(&part).unwrap(), fs::read(&whole).unwrap());
}

#[test]
fn eve_and_timing_are_json() {
    let folder = Folder::new();
    let (capture, truth) = generated(50_000);
    let file = folder.file("trace.pcap", &capture);
    let (eve, timing) = (folder.path("eve.json"), folder.path("timing.json"));
    let (eve_option, timing_option) = (eve.to_str().unwrap(), timing.to_str().unwrap());
    let options = ["--eve", eve_option, "--eve-types", "alert", "--timing", timing_option, "--analyzers", "3"];
    monitor(&[&file], &options).code(0).silent();
    let scans: Value = serde_json::from_str(&truth).unwrap();
    let scans = scans.as_array().unwrap();
    let alerts = fs::read_to_string(&eve).unwrap();
    assert_eq!(alerts.lines().count(), scans.len());
    for (line, scan) in alerts.lines().zip(scans) {
        let alert: Value = serde_json::from_str(line).unwrap();
        assert_eq!(alert["event_type"], "alert");
        assert_eq!(alert["src_ip"], scan["source"]);
        assert_eq!(alert["scan"]["time_ns"], scan["time_ns"]);
    }
    let timing: Value = serde_json::from_str(&fs::read_to_string(&timing).unwrap()).unwrap();
    let keys: Vec<_> = timing.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 5);
    for key in ["wall_s", "cpu_s", "packets_per_second", "peak_memory_bytes"] {
        assert!(timing[key].as_f64().unwrap() > 0.0, "{timing}");
    }
    let shares = timing["analyzer_packets"].as_array().unwrap();
    assert_eq!(shares.len(), 3);
    assert!(shares.iter().map(|share| share.as_u64().unwrap()).sum::<u64>() <= 50_000);
}

#[test]
fn the_standard_streams_are_used_once() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(100).0);
    monitor(&[&file], &["--eve", "-", "--timing", "-"]).code(2).one_line(&["-: cannot hold both"]);
    run(&mut corelane(["monitor", "-", "-"])).code(2).one_line(&["-: the standard input can be read once only"]);
}

#[test]
fn files_that_cannot_be_created_are_found_before_the_analysis() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(1000).0);
    let nowhere = folder.path("no/such/folder/out.json");
    for option in ["--eve", "--timing"] {
        let options = [option, nowhere.to_str().unwrap()];
        let outcome = monitor(&[&file], &options).code(2).one_line(&["no/such/folder/out.json: "]);
        assert_eq!(outcome.stdout, "");
        // An input is not overwritten.
        let options = [option, file.to_str().unwrap()];
        monitor(&[&file], &options).code(2).one_line(&["trace.pcap: is an input"]);
        assert_eq!(monitor(&[&file], &[]).code(0).packets(), 1000);
    }
}

/// Whatever refuses a run, what the files hold from an earlier one stays.
#[test]
fn a_run_that_is_refused_empties_no_file() {
    let folder = Folder::new();
    let input = folder.file("trace.pcap", &generated(100).0);
    let program = folder.file("filter", b"no program");
    let nowhere = folder.path("no/such/folder/out");
    let outputs = ["eve.json", "timing.json", "copy.pcapng"].map(|name| folder.file(name, b"kept"));
    let [eve, timing, copy] = &outputs;
    let options: [&[&Path]; 7] = [
        &[&folder.path("missing.pcap")],
        &[&nowhere.with_extension("pcap"), Path::new("--continuous")],
        &[&input, Path::new("--timing"), &nowhere],
        &[&input, Path::new("--write"), &nowhere],
        &[&input, Path::new("--filter-program"), &program],
        &[&input, Path::new("--write"), Path::new("-")],
        &[&input, Path::new("--memory-limit"), Path::new("1M")],
    ];
    for options in options {
        let mut command = corelane(["monitor", "--format", "json", "--eve"]);
        command.arg(eve).args(options);
        for (option, path) in [("--timing", timing), ("--write", copy)] {
            if !options.contains(&Path::new(option)) {
                command.arg(option).arg(path);
            }
        }
        run(&mut command).code(2);
        for path in &outputs {
            assert_eq!(fs::read(path).unwrap(), b"kept", "{} {options:?}", path.display());
        }
    }
    // The files of a run that is not refused hold nothing else.
    let mut command = corelane(["monitor", "--format", "json", "--eve"]);
    run(command.arg(eve).arg("--timing").arg(timing).arg("--write").arg(copy).arg(&input)).code(0);
    for path in &outputs {
        assert!(!fs::read(path).unwrap().windows(4).any(|bytes| bytes == b"kept"), "{}", path.display());
    }
}

/// An option that cannot be met makes no file, whatever the order of the options.
#[test]
fn a_run_that_is_refused_makes_no_file() {
    let folder = Folder::new();
    let input = folder.file("trace.pcap", &generated(100).0);
    let (new, log, kept) = (folder.path("new"), folder.path("log"), folder.file("truth.json", b"kept"));
    let [input, new, log, kept] = [&input, &new, &log, &kept].map(|path| path.to_str().unwrap());
    let place = format!("file:{log}");
    let sensor = ["monitor", input, "--eve", new, "--continuous", "--sensor", "a", "--publish"];
    for publish in
        [&[&*place, "--spool", log][..], &["nowhere:"], &["nats://localhost"], &[&*place, "--spool-size", "1"]]
    {
        run(corelane(sensor).args(publish)).code(2).one_line(&["--"]);
        assert!(!Path::new(new).exists(), "{publish:?}");
    }
    let secrets = ["nats://127.0.0.1:1", "--spool", log, "--nats-credentials", "/no/such/file", "--write", kept];
    run(corelane(sensor).args(secrets)).code(2).one_line(&["--publish: /no/such/file"]);
    // Else the log would forget which captures it holds, and take them again.
    let publish = |file: &str| {
        let mut command = corelane(["monitor", file, "--continuous", "--sensor", "a", "--publish", &place]);
        command.args(["--format", "json"]);
        command
    };
    run(&mut publish(input)).code(0);
    let other = folder.file("other.pcap", &generated(50).0);
    let refused = run(publish(other.to_str().unwrap()).args(["--write", "/no/such/folder/copy"]));
    refused.code(2).one_line(&["/no/such/folder/copy"]);
    run(&mut publish(input)).code(0);
    let epochs = fs::read_dir(folder.path("log/a")).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(epochs.count(), 1);
    let aggregate = ["aggregate", "--from", &place, "--eve", new, "--metrics", "localhost"];
    run(&mut corelane(aggregate)).code(2).one_line(&["--metrics localhost"]);
    assert!(!Path::new(new).exists());
    run(&mut corelane(["gen", "/no/such/folder/out", "--truth", kept])).code(2).one_line(&["/no/such/folder/out"]);
    assert_eq!(fs::read(kept).unwrap(), b"kept");
}

#[test]
fn a_file_is_used_once_whatever_its_names_are() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(1000).0);
    let mut names = Vec::new();
    if fs::hard_link(&file, folder.path("hard")).is_ok() {
        names.push(folder.path("hard"));
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&file, folder.path("soft")).unwrap();
        names.push(folder.path("soft"));
    }
    let free = folder.path("free.json");
    for name in &names {
        let name = name.to_str().unwrap();
        let (eve, timing) = (["--eve", name], ["--eve", free.to_str().unwrap(), "--timing", name]);
        for options in [&eve[..], &timing] {
            monitor(&[&file], options).code(2).one_line(&[name, "is an input"]);
            assert!(!free.exists(), "nothing is created before all is known to be right");
            assert_eq!(monitor(&[&file], &[]).code(0).packets(), 1000);
        }
    }
    fs::create_dir(folder.path("side")).unwrap();
    // One that is not there yet would be when its turn comes.
    let later = folder.path("later.pcapng");
    for name in [&later, &folder.path("side/../later.pcapng")] {
        let copy = ["--write", later.to_str().unwrap()];
        monitor(&[&file, name], &copy).code(2).one_line(&["later.pcapng: is an input"]);
        assert!(!later.exists());
    }
    // Neither is there yet, one of them or both are.
    let (plain, around) = (folder.path("z.json"), folder.path("side/../z.json"));
    for there in [false, true] {
        for other in [&plain, &around] {
            let options = ["--eve", plain.to_str().unwrap(), "--timing", other.to_str().unwrap()];
            monitor(&[&file], &options).code(2).one_line(&["z.json: cannot hold both the events and the timing"]);
            assert_eq!(fs::read(&plain).ok(), there.then(|| b"kept".to_vec()));
        }
        fs::write(&plain, "kept").unwrap();
    }
    let apart = ["--eve", plain.to_str().unwrap(), "--timing", free.to_str().unwrap()];
    monitor(&[&file], &apart).code(0).silent();
    if Path::new("/dev/null").exists() {
        monitor(&[&file], &["--eve", "/dev/null", "--timing", "/dev/null"]).code(0).silent();
    }
}

#[test]
fn a_full_disk_is_told_and_costs_only_what_was_to_go_there() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return skipped("there is no /dev/full") };
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(20_000).0);
    let (eve, json) = (folder.path("eve.json"), ["monitor", "--format", "json"]);
    let mut command = corelane(json);
    command.arg(&file).arg("--eve").arg(&eve).stdout(Stdio::from(full.try_clone().unwrap()));
    run(&mut command).code(1).one_line(&["standard output: cannot be written"]);
    assert!(fs::metadata(&eve).unwrap().len() > 0);
    let outcome = monitor(&[&file], &["--eve", "/dev/full"]).code(1).one_line(&["/dev/full: cannot be written"]);
    assert_eq!(outcome.packets(), 20_000);
    run(&mut corelane(["gen", "/dev/full"])).code(1).one_line(&["/dev/full: cannot be written"]);
    assert!(Path::new("/dev/full").exists());
    run(corelane(["gen", "-"]).stdout(Stdio::from(full))).code(1).one_line(&["standard output: cannot be written"]);
}

#[test]
fn a_device_can_be_an_output() {
    if File::create("/dev/null").is_err() {
        return skipped("there is no /dev/null");
    }
    run(&mut corelane(["gen", "/dev/null", "--packets", "1000", "--truth", "/dev/null"])).code(0).silent();
}

#[test]
fn the_summary_has_no_escape_sequences_in_a_pipe_and_no_progress_beside_it() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(50_000).0);
    let outcome = run(corelane(["monitor", "--top", "3"]).arg(&file)).code(0).silent();
    assert!(!outcome.stdout.contains('\x1b'));
    for part in ["50,000", "packets/s", "Vertical scans (", "Horizontal scans (", "Top hosts"] {
        assert!(outcome.stdout.contains(part), "{part} is not in {}", outcome.stdout);
    }
    let hosts = outcome.stdout.split_once("Top hosts").unwrap().1;
    assert_eq!(hosts.trim_end().lines().count(), 1 + 1 + 3, "{hosts}");
    let none = run(corelane(["monitor", "--top", "0"]).arg(&file)).code(0).silent();
    assert!(!none.stdout.contains("Top hosts"));
}

#[test]
fn two_runs_do_not_wait_for_each_other() {
    // A run ends even if its output is never read.
    let mut child = corelane(["monitor", "--demo", "--format", "json"]).stdout(Stdio::null()).spawn().unwrap();
    assert!(wait(&mut child).success());
}

/// Runs it, which has to say that `pipe` has no reader, interrupts it, and gives its end.
#[cfg(target_os = "linux")]
#[track_caller]
fn interrupted_without_a_reader(arguments: &[&str], pipe: &Path) {
    use std::io::{BufRead, BufReader};
    let _ = fs::remove_file(pipe);
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let mut child = corelane(arguments).arg(pipe).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("pipe: nobody reads this pipe; waiting for a reader"), "{arguments:?}: {said:?}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(wait(&mut child).code(), Some(130), "{arguments:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_without_a_reader_is_said_and_waited_for_until_ctrl_c() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(1000).0);
    let file = file.to_str().unwrap();
    let (pipe, batches) = (folder.path("pipe"), folder.path("batches"));
    fs::create_dir(&batches).unwrap();
    let from = format!("file:{}", batches.display());
    for option in ["--eve", "--write", "--timing", "--html"] {
        interrupted_without_a_reader(&["monitor", "--quiet", file, option], &pipe);
    }
    interrupted_without_a_reader(&["monitor", "--demo", "--quiet", "--eve"], &pipe);
    interrupted_without_a_reader(&["gen", "--quiet", "--truth", "/dev/null"], &pipe);
    interrupted_without_a_reader(&["gen", "--quiet", "/dev/null", "--truth"], &pipe);
    interrupted_without_a_reader(&["aggregate", "--from", &from, "--eve"], &pipe);

    // One that comes later gets all.
    let child = corelane(["monitor", "--format", "json", file, "--eve"]).arg(&pipe).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let events = fs::read_to_string(&pipe).unwrap();
    let outcome = finish(child).code(0).one_line(&["waiting for a reader"]);
    assert_eq!(outcome.packets(), 1000);
    assert!(events.lines().count() > 10 && events.ends_with('\n'), "{events}");
}

/// Of captures, too: each of two runs would have half of the other's packets.
#[cfg(unix)]
#[test]
fn two_runs_do_not_write_one_file() {
    use std::process::Command;
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(1000).0);
    for option in ["--write", "--eve", "--timing", "--html"] {
        let out = folder.file("out", "kept");
        // As another run would have it.
        let script = "exec 9<\"$1\"; flock -n 9 && echo locked && exec sleep 60";
        let other = Command::new("sh").args(["-c", script, "sh"]).arg(&out).stdout(Stdio::piped()).spawn();
        let mut other = other.expect("a shell");
        let mut line = [0; 7];
        other.stdout.take().unwrap().read_exact(&mut line).expect("there is `flock`");
        let outcome = monitor(&[&file], &[option, out.to_str().unwrap()]).code(2);
        outcome.one_line(&["out: cannot be written: another run writes it"]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), "kept");
        monitor(&[&file], &[option, out.to_str().unwrap()]).code(0);
    }
}

/// What comes from a pipe is gone when it is written over.
#[test]
fn a_copy_of_the_standard_input_is_not_emptied_by_the_next_run() {
    let folder = Folder::new();
    let (capture, _) = generated(1000);
    let tee = folder.path("tee.pcapng");
    for _ in 0..3 {
        let mut command = corelane(["monitor", "--format", "json", "-", "--write"]);
        crate::support::run_with_stdin(command.arg(&tee), &capture).code(0);
    }
    let entries = fs::read_dir(folder.path("")).unwrap();
    let copies: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(copies.len(), 3, "{copies:?}");
    for copy in &copies {
        assert_eq!(monitor(&[copy], &[]).code(0).packets(), 1000);
    }
}
