//! The demo, the generator, and what the binary says of itself.

use crate::support::{Folder, compact, corelane, gzip, monitor, run, run_with_stdin, skipped};
use std::fs;
use std::path::Path;
use std::process::Stdio;

#[test]
fn the_demo_finds_exactly_the_planted_scans() {
    let outcome = run(&mut corelane(["monitor", "--demo"])).code(0).silent();
    assert!(outcome.stdout.ends_with("Demo: found exactly the 16 planted scans.\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("2,000,000"));
    for heading in
        ["Vertical FIN scans (1)", "Horizontal NULL scans (1)", "Vertical Xmas scans (1)", "Horizontal UDP scans (1)"]
    {
        assert!(outcome.stdout.contains(heading), "{}", outcome.stdout);
    }
    let alone = run(&mut corelane(["monitor", "--demo", "--analyzers", "0", "--format", "json"])).code(0);
    let many = run(&mut corelane(["monitor", "--demo", "--analyzers", "5", "--format", "json"]));
    let many = many.code(0).one_line(&["found exactly the 12 planted scans"]);
    assert_eq!((many.packets(), many.stdout), (2_000_000, alone.stdout));
    let probes = run(&mut corelane(["monitor", "--demo", "--format", "json", "--probes"])).code(0);
    let probes = probes.one_line(&["found exactly the 16 planted scans"]);
    assert_eq!(probes.json()["probe_scans"].as_array().map(Vec::len), Some(4));
}

#[test]
fn the_demo_with_other_thresholds_does_not_claim_to_be_right() {
    let outcome = run(&mut corelane(["monitor", "--demo", "--vertical-threshold", "5000"])).code(0).silent();
    assert!(outcome.stdout.contains("not compared") && !outcome.stdout.contains("exactly"), "{}", outcome.stdout);
}

#[test]
fn generated_captures_go_round() {
    let folder = Folder::new();
    let (out, truth) = (folder.path("trace.pcap"), folder.path("truth.json"));
    let options = ["--packets", "60k", "--hosts", "2000", "--seed", "9"];
    run(corelane(["gen"]).arg(&out).args(options).arg("--truth").arg(&truth)).code(0).silent();
    let truth = compact(&fs::read_to_string(&truth).unwrap());
    let found = monitor(&[&out], &[]).code(0).silent();
    assert_eq!(found.packets(), 60_000);
    assert!(truth.len() > 2 && found.stdout.ends_with(&format!("\"alerts\":{truth}}}\n")), "{truth}\n{found:?}");

    // The same through a pipe and packed, without a file of its own.
    let capture = fs::read(&out).unwrap();
    let piped = corelane(["gen", "-"]).args(options).spawn().unwrap().wait_with_output().unwrap();
    assert!(piped.status.success() && piped.stdout == capture);
    for bytes in [capture.clone(), gzip(&capture)] {
        let outcome = run_with_stdin(&mut corelane(["monitor", "--format", "json", "-"]), &bytes).code(0).silent();
        assert_eq!(outcome.stdout, found.stdout);
    }

    // The seed decides, and what was there is overwritten.
    let bytes_of = |seed: &str| {
        run(corelane(["gen"]).arg(&out).args(["--packets", "60k", "--hosts", "2000", "--seed", seed])).code(0).silent();
        fs::read(&out).unwrap()
    };
    assert!(bytes_of("10") != capture);
    assert!(bytes_of("9") == capture);
}

#[test]
fn the_other_options_of_the_generator_are_heard() {
    let folder = Folder::new();
    let out = folder.path("trace.pcap");
    let size = |options: &[&str]| {
        run(corelane(["gen", "-n", "20_000"]).arg(&out).args(options)).code(0).silent();
        (fs::metadata(&out).unwrap().len(), monitor(&[&out], &[]).code(0).json())
    };
    let (headers, plain) = size(&[]);
    let (whole, same) = size(&["--snaplen", "65535"]);
    assert!(whole > 2 * headers && plain == same, "{whole} {headers}");
    let (_, quiet) = size(&["--vertical-scans", "0", "--horizontal-scans", "0"]);
    assert_eq!(quiet["alerts"].as_array().map(Vec::len), Some(0));
    let truth = folder.path("truth.json");
    size(&[
        "--vertical-scans",
        "0",
        "--horizontal-scans",
        "0",
        "--probe-scans",
        "12",
        "--truth",
        truth.to_str().unwrap(),
    ]);
    let truth = compact(&fs::read_to_string(&truth).unwrap());
    let found = monitor(&[&out], &["--probes"]).code(0).silent().stdout;
    assert!(found.ends_with(&format!("\"alerts\":[],\"probe_scans\":{truth}}}\n")), "{truth}\n{found}");
    for probe in ["fin", "null", "xmas", "udp", "synfin", "odd"] {
        assert_eq!(truth.matches(&format!("{{\"probe\":\"{probe}\"")).count(), 2, "{truth}");
    }
    let summary = |rate: &str| {
        run(corelane(["gen", "-n", "20k", "--rate", rate]).arg(&out)).code(0);
        run(corelane(["monitor"]).arg(&out)).code(0).stdout
    };
    assert!(summary("2k").contains("10.000 s") || summary("2k").contains("9.99"), "{}", summary("2k"));
}

#[test]
fn wrong_usage_of_the_generator_is_refused_and_touches_nothing() {
    let folder = Folder::new();
    let (out, nowhere) = (folder.path("trace.pcap"), folder.path("no/such/folder/x"));
    for options in [["--hosts", "1"], ["--snaplen", "10"], ["--rate", "1"], ["--vertical-scans", "999999999"]] {
        run(corelane(["gen"]).arg(&out).args(options)).code(2).one_line(&["must be"]);
        assert!(!out.exists());
    }
    run(corelane(["gen"]).arg(&nowhere)).code(2).one_line(&["no/such/folder/x: cannot be"]);
    run(corelane(["gen"]).arg(&out).arg("--truth").arg(&nowhere)).code(2).one_line(&["no/such/folder/x: cannot be"]);
    assert!(!out.exists());
    run(corelane(["gen"]).arg(&out).arg("--truth").arg(&out)).code(2).one_line(&["both"]);
    run(&mut corelane(["gen", "-", "--truth", "-"])).code(2).one_line(&["both"]);
    assert!(!out.exists());
}

#[test]
fn help_version_and_completions() {
    for arguments in
        [&["--help"][..], &["monitor", "--help"], &["gen", "--help"], &["completions", "--help"], &["man", "--help"]]
    {
        let help = run(&mut corelane(arguments)).code(0).silent().stdout;
        assert!(help.contains("Usage: corelane"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    let help = run(&mut corelane(["monitor", "--help"])).stdout;
    for part in ["Examples:", "--demo", "130"] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
    let version = run(&mut corelane(["--version"])).code(0).stdout;
    assert_eq!(version, format!("corelane {}\n", env!("CARGO_PKG_VERSION")));
    let nothing = run(&mut corelane([] as [&str; 0])).code(2);
    assert!(nothing.stderr.contains("Usage: corelane"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&mut corelane(["completions", shell])).code(0).silent().stdout;
        assert!(script.contains("syn-timeout"), "{shell}");
    }
}

#[test]
fn the_program_and_each_command_have_a_man_page() {
    let page = |arguments: &[&str]| {
        let page = run(&mut corelane(arguments)).code(0).silent().stdout;
        assert!(page.starts_with(".ie") || page.starts_with(".TH"), "{page}");
        // Hyphens are escaped.
        page.replace('\\', "")
    };
    let program = page(&["man"]);
    assert!(program.contains(".TH corelane 1"), "{program}");
    for command in ["monitor", "top", "aggregate", "gen", "completions", "man"] {
        assert!(program.contains(&format!("corelane-{command}(1)")), "{program}");
        let page = page(&["man", command]);
        assert!(page.contains(&format!(".TH corelane-{command} 1")), "{page}");
    }
    // A page for each command that is named, and for no other.
    assert_eq!(program.matches("(1)").count(), 6, "{program}");
    let monitor = page(&["man", "monitor"]);
    assert!(monitor.contains("--syn-timeout"));
    // Examples have their lines, and quotes of their shell.
    let (_, examples) = monitor.split_once(".SH EXAMPLES\n.nf\n").expect("examples");
    let (examples, _) = examples.split_once("\n.fi\n").expect("their end");
    assert!(
        examples.lines().any(|line| line == "&corelane monitor -i eth0                    an interface, until Ctrl-C")
    );
    assert!(
        examples.contains("&corelane monitor --eve - capture.pcap | jq 'select(.event_type == \"http\").http'"),
        "{examples}"
    );
    assert!(monitor.contains(".SH EXIT CODES\n.nf\n") && !monitor.contains("EXTRA"), "{monitor}");
    for command in ["top", "aggregate", "gen", "completions", "man"] {
        let page = page(&["man", command]);
        let has_lines = page.split_once(".SH EXAMPLE").is_some_and(|(_, behind)| behind.contains(".nf\n&corelane "));
        assert!(has_lines, "{page}");
    }
    assert_eq!(run(&mut corelane(["man", "nothing"])).code, Some(2));
}

#[test]
fn bash_understands_its_completions() {
    let script = run(&mut corelane(["completions", "bash"])).code(0).stdout;
    let mut bash = std::process::Command::new("bash");
    // It warns of a locale that is not installed.
    bash.args(["-n"]).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if bash.spawn().map(|mut child| child.kill()).is_err() {
        return skipped("there is no bash");
    }
    run_with_stdin(&mut bash, script.as_bytes()).code(0).silent();
}

/// With `--help` behind it the program does nothing, unless it does not know what is before.
#[test]
fn every_command_of_the_documents_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("monitor/corelane-cli/README.md")];
    pages.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut commands = 0;
    for page in pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for begin in ["corelane monitor ", "corelane gen ", "corelane completions ", "corelane man "] {
            for (at, _) in text.match_indices(begin) {
                let command = text[at..].split(['\n', '`', '|', '>', '#', '"', ')']).next().unwrap();
                let words: Vec<&str> = command.split_whitespace().skip(1).collect();
                let outcome = run(&mut corelane(words.iter().copied().chain(["--help"])));
                assert_eq!(outcome.code, Some(0), "{}: {command}: {}", page.display(), outcome.stderr);
                commands += 1;
            }
        }
    }
    assert!(commands > 20, "{commands}");
}
