//! The picture of a terminal in the documents, from a real run.
//!
//! The monitor's demo runs with colours. The lines of its report become an SVG, which follows the page's light or dark.

use crate::tool::call;
use crate::tree;
use crate::workspace::{Result, root};
use std::fmt::Write;
use std::process::Command;

const DEMO: &str = "docs/pictures/demo.svg";
/// The first words of the report's sections that the picture leaves out, because it has to fit a page.
const LEFT_OUT: [&str; 5] = ["Analysis", "Vertical FIN", "Horizontal NULL", "Vertical Xmas", "Top "];
/// The size of a character in pixels.
const WIDTH: f64 = 8.43;
const HEIGHT: f64 = 19.0;
const MARGIN: f64 = 16.0;
const STYLE: &str = "svg { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2328; --soft: #5b6570; }
@media (prefers-color-scheme: dark) { svg { --paper: #15181c; --ink: #e4e7eb; --soft: #a0a9b4; } }
rect { fill: var(--paper); stroke: var(--soft); }
text { fill: var(--ink); font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre; }
.b { font-weight: bold; } .d { fill: var(--soft); }";

/// Runs the demo, and writes its picture.
pub(crate) fn run() -> Result<()> {
    call("cargo", &["build", "--release", "-p", "corelane-cli"])?;
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
    let screen = screen("corelane monitor --demo", &report);
    tree::write(&root.join(DEMO), svg(&screen).as_bytes())?;
    println!("{DEMO}: {} lines", screen.len());
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

fn svg(lines: &[String]) -> String {
    let columns = lines.iter().map(|line| spans(line).map(|(_, text)| text.chars().count()).sum::<usize>()).max();
    let width = columns.unwrap_or(0) as f64 * WIDTH + 2.0 * MARGIN;
    let height = lines.len() as f64 * HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" \
         aria-label=\"A terminal: the report of corelane monitor --demo\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <style>\n{STYLE}\n</style>\n<rect x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"6\"/>\n",
        width - 1.0,
        height - 1.0,
    );
    for (i, line) in lines.iter().enumerate() {
        let y = MARGIN + HEIGHT * (i as f64 + 0.75);
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

/// Pieces of a line, each bold, dim or plain, by its escape sequences.
fn spans(line: &str) -> impl Iterator<Item = (&'static str, &str)> {
    line.split("\x1b[").enumerate().filter_map(|(i, piece)| {
        let (class, text) = match piece.split_once('m') {
            Some(("1", text)) if i > 0 => ("b", text),
            Some(("2", text)) if i > 0 => ("d", text),
            Some((_, text)) if i > 0 => ("", text),
            _ => ("", piece),
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
        let svg = svg(&screen);
        assert!(svg.contains("<tspan class=\"b\">Capture</tspan></text>"), "{svg}");
        assert!(svg.contains("Demo: &lt;done&gt; &amp; over.</text>"), "{svg}");
    }
}
