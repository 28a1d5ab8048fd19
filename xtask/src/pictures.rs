//! The pictures in the documents, from real runs.
//!
//! The monitor's demo runs with colours, and `corelane top` in a terminal of tmux. Their lines become SVGs, which
//! follow the page's light or dark. A browser makes a picture of the page about a capture.

use crate::tool::call;
use crate::workspace::{Result, root};
use std::fmt::Write;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const DEMO: &str = "docs/pictures/demo.svg";
const TOP: &str = "docs/pictures/top.svg";
const PAGE: &str = "docs/pictures/page.png";
/// The capture of the last two; `a_picture_of_today` in `corelane-cli/tests/cli/top.rs` has the same terminal.
const CAPTURE: &str = "scan-network-sweep.pcap";
const TERMINAL: (u16, u16) = (100, 30);
/// The first words of the report's sections that the picture leaves out, because it has to fit a page.
const LEFT_OUT: [&str; 5] = ["Analysis", "Vertical FIN", "Horizontal NULL", "Vertical Xmas", "Top "];
/// The size of a character in pixels.
const WIDTH: f64 = 8.43;
const HEIGHT: f64 = 19.0;
const MARGIN: f64 = 16.0;
const STYLE: &str = "svg { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2328; --soft: #5b6570; }
@media (prefers-color-scheme: dark) { svg { --paper: #15181c; --ink: #e4e7eb; --soft: #a0a9b4; } }
.p { fill: var(--paper); stroke: var(--soft); } .i { fill: var(--ink); }
text { fill: var(--ink); font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre; }
.b { font-weight: bold; } .d { fill: var(--soft); } .v { fill: var(--paper); }
.a { fill: #cf222e; font-weight: bold; } .w { fill: #9a6700; font-weight: bold; }
@media (prefers-color-scheme: dark) { .a { fill: #ff7b72; } .w { fill: #d29922; } }";

/// Runs the demo, and writes its picture.
pub(crate) fn run() -> Result<()> {
    call("cargo", &["build", "--release", "-p", "corelane-cli", "--features", "full"])?;
    let root = root();
    let output = Command::new(root.join("target/release/corelane"))
        .args(["monitor", "--demo"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .map_err(|error| format!("the demo does not run: {error}"))?;
    let report = String::from_utf8(output.stdout).map_err(|error| format!("the demo's report: {error}"))?;
    if !output.status.success() {
        return Err(format!("the demo ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    write(DEMO, "the report of corelane monitor --demo", &screen("corelane monitor --demo", &report))?;
    let captures = root.join(env::var_os("CORELANE_CAPTURES").unwrap_or_else(|| "../shared/captures".into()));
    let capture = captures.join(CAPTURE);
    if !capture.is_file() {
        return Err(format!("{}: not found; CORELANE_CAPTURES names the folder of captures", capture.display()));
    }
    write(TOP, "rates, alerts, talkers, conversations and names of a capture with scans", &terminal(&capture)?)?;
    page(&captures)
}

fn write(path: &str, label: &str, lines: &[String]) -> Result<()> {
    fs::write(root().join(path), svg(label, lines)).map_err(|error| format!("{path}: {error}"))?;
    println!("{path}: {} lines", lines.len());
    Ok(())
}

/// The screen of `corelane top` at the end of a capture.
fn terminal(capture: &Path) -> Result<Vec<String>> {
    let socket = env::temp_dir().join(format!("corelane-pictures-{}", process::id()));
    let tmux = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&socket).args(["-f", "/dev/null"]).args(arguments).env("LC_ALL", "C.UTF-8");
        let output = command.output().map_err(|error| format!("tmux does not run: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let program = root().join("target/release/corelane");
    let run = format!("'{}' top --speed max '{}'", program.display(), capture.display());
    let (width, height) = (TERMINAL.0.to_string(), TERMINAL.1.to_string());
    tmux(&["new-session", "-d", "-x", &width, "-y", &height, &run])?;
    let start = Instant::now();
    let text = loop {
        let text = tmux(&["capture-pane", "-e", "-p"])?;
        if text.contains("end, ") || start.elapsed() > Duration::from_secs(60) {
            break text;
        }
        thread::sleep(Duration::from_millis(50));
    };
    tmux(&["kill-server"])?;
    match text.contains("end, ") {
        true => Ok(whole(&text)),
        false => Err(format!("corelane top has not come to the end of the capture: {text}")),
    }
}

/// The lines of a terminal, each with the style that it begins with: tmux says only what changes.
fn whole(text: &str) -> Vec<String> {
    let mut style = String::new();
    let line = |line: &str| {
        let whole = format!("{style}{line}");
        for piece in line.split("\x1b[").skip(1) {
            match piece.split_once('m') {
                Some(("0", _)) => style.clear(),
                Some((codes, _)) => style = format!("{style}\x1b[{codes}m"),
                None => {}
            }
        }
        whole
    };
    text.lines().map(line).collect()
}

/// The page about a capture, as a browser shows it.
fn page(captures: &Path) -> Result<()> {
    let folder = env::temp_dir().join(format!("corelane-page-{}", process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("page.html");
    let program = root().join("target/release/corelane").display().to_string();
    let file = file.display().to_string();
    // From the folder of captures, as the page names its file.
    let made = Command::new(&program)
        .args(["monitor", "--quiet", "--format", "json", "--html", &file, CAPTURE])
        .current_dir(captures)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !made.status.success() {
        return Err(format!("the page is not made: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let picture = root().join(PAGE);
    let screenshot = format!("--screenshot={}", picture.display());
    let page = format!("file://{file}");
    let browser = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,1000", &screenshot, &page];
    let shown = call("chromium", &browser);
    let _ = fs::remove_dir_all(&folder);
    shown?;
    println!("{PAGE}");
    Ok(())
}

/// The command and the sections of its report that the picture shows.
fn screen(command: &str, report: &str) -> Vec<String> {
    let mut lines = vec![format!("\x1b[1m$ {command}\x1b[0m")];
    for section in report.split("\n\n") {
        let heading = section.trim_start_matches("\x1b[1m");
        if LEFT_OUT.iter().any(|left_out| heading.starts_with(left_out)) {
            if lines.iter().nth_back(1).is_none_or(|line| line != "…") {
                lines.extend(["…".to_owned(), String::new()]);
            }
            continue;
        }
        lines.extend(section.lines().map(str::to_owned));
        lines.push(String::new());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn svg(label: &str, lines: &[String]) -> String {
    let columns = lines.iter().map(|line| spans(line).map(|(_, text)| text.chars().count()).sum::<usize>()).max();
    let width = columns.unwrap_or(0) as f64 * WIDTH + 2.0 * MARGIN;
    let height = lines.len() as f64 * HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" \
         aria-label=\"A terminal: {label}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <style>\n{STYLE}\n</style>\n<rect class=\"p\" x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"6\"/>\n",
        width - 1.0,
        height - 1.0,
    );
    for (i, line) in lines.iter().enumerate() {
        let y = MARGIN + HEIGHT * (i as f64 + 0.75);
        let mut column = 0;
        for (class, text) in spans(line) {
            if class == "v" {
                let (x, width) = (MARGIN + column as f64 * WIDTH, text.chars().count() as f64 * WIDTH);
                let top = MARGIN + HEIGHT * i as f64;
                let _ = writeln!(
                    svg,
                    "<rect class=\"i\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\"/>"
                );
            }
            column += text.chars().count();
        }
        let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"{y:.1}\">");
        for (class, text) in spans(line) {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = match class {
                "" => write!(svg, "{text}"),
                class => write!(svg, "<tspan class=\"{class}\">{text}</tspan>"),
            };
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Pieces of a line, each with its class, by its escape sequences: bold, dim, inverse, alarm, warning or plain.
fn spans(line: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let (mut is_bold, mut is_dim, mut is_inverse, mut color) = (false, false, false, None);
    line.split("\x1b[").enumerate().filter_map(move |(i, piece)| {
        let (codes, text) = match piece.split_once('m') {
            Some((codes, text)) if i > 0 => (codes, text),
            _ => ("", piece),
        };
        let mut codes = codes.split(';');
        while let Some(code) = codes.next() {
            match code {
                "0" => (is_bold, is_dim, is_inverse, color) = (false, false, false, None),
                "1" => is_bold = true,
                "2" => is_dim = true,
                "7" => is_inverse = true,
                "22" => (is_bold, is_dim) = (false, false),
                "27" => is_inverse = false,
                "39" => color = None,
                // Of the palette.
                "38" => color = codes.nth(1),
                "31" | "33" | "90" => color = Some(&code[1..]),
                _ => {}
            }
        }
        let class = match color {
            _ if is_inverse => "v",
            Some("1") => "a",
            Some("3") => "w",
            Some("8" | "0") => "d",
            _ if is_bold => "b",
            _ if is_dim => "d",
            _ => "",
        };
        (!text.is_empty()).then_some((class, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_becomes_lines_of_its_styles() {
        let report = "\x1b[1mCapture\x1b[0m\n  packets  2\n\n\x1b[1mTop hosts\x1b[0m\n  a\n\nDemo: <done> & over.\n";
        let screen = screen("corelane x", report);
        let plain: Vec<String> = screen.iter().map(|line| spans(line).map(|(_, text)| text).collect()).collect();
        assert_eq!(plain, ["$ corelane x", "Capture", "  packets  2", "", "…", "", "Demo: <done> & over."]);
        let svg = svg("a report", &screen);
        assert!(svg.contains("<tspan class=\"b\">Capture</tspan></text>"), "{svg}");
        assert!(svg.contains("Demo: &lt;done&gt; &amp; over.</text>"), "{svg}");
    }
    #[test]
    fn a_line_begins_in_the_style_of_the_one_before() {
        let lines = whole("a\x1b[2mb\nc\x1b[0md\ne");
        let found: Vec<Vec<_>> = lines.iter().map(|line| spans(line).collect()).collect();
        assert_eq!(found, [vec![("", "a"), ("d", "b")], vec![("d", "c"), ("", "d")], vec![("", "e")]]);
    }

    #[test]
    fn colours_of_a_terminal_become_classes() {
        let line = concat!(
            "\x1b[1mtop \x1b[0m\x1b[39m\x1b[49meth0 \x1b[38;5;8mdim ",
            "\x1b[1m\x1b[38;5;1mred\x1b[0m \x1b[7minverse\x1b[27m"
        );
        let found: Vec<_> = spans(line).collect();
        assert_eq!(found, [("b", "top "), ("", "eth0 "), ("d", "dim "), ("a", "red"), ("", " "), ("v", "inverse")]);
        assert!(svg("x", &[line.to_owned()]).contains("<rect class=\"i\" x=\"159.3\""));
    }
}
