//! A page about a capture: one file of HTML that a browser shows from disk, without a network.
//!
//! Text from packets is hostile. [`html`] escapes it, and a policy in the page's head lets nothing run but the page's
//! own script, known by its hash, and nothing load. Without the script tables and pictures are there all the same.
//! Lists are bounded where the [facts](crate::facts) are gathered, and so is the page.
//!
//! | file | what |
//! |---|---|
//! | `html.rs` | text as HTML |
//! | `head.rs` | what was captured, and the answer in a sentence |
//! | `scans.rs` | scanners, their scans and pictures |
//! | `timeline.rs`, `picture.rs` | pictures over time; pictures as SVG |
//! | `tables.rs`, `rows.rs` | tables, and those of hosts, names and protocols |
//! | `command.rs`, `format.rs` | commands that show what is behind a number; times and lists of ports |
//! | `page.css`, `page.js` | style; filter, order and brush |
//! | `contrast.rs` | whether colours can be told apart |

mod command;
#[cfg(test)]
mod contrast;
mod format;
mod head;
mod html;
mod picture;
mod rows;
mod scans;
mod tables;
mod timeline;
mod widgets;

use crate::facts::Facts;
use crate::findings::Findings;
use crate::report::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use command::Commands;
use format::Clock;
use html::{Html, html};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// What a page is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The captures, as they stand on the command line.
    pub files: Vec<String>,
    /// Whether it is the made-up traffic of `--demo` instead.
    pub is_demo: bool,
    /// What chose packets of them: the option, and its expression or the file of its program.
    pub filter: Option<(&'static str, String)>,
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// All that the parts of a page look at.
struct Sight<'a> {
    report: &'a Report,
    findings: &'a Findings,
    facts: &'a Facts,
    origin: &'a Origin,
    commands: Commands,
    clock: Clock,
}

impl Findings {
    /// Writes a page for people to look at: less than 3 MB of HTML. It depends on the packets, the settings and the
    /// names of the captures alone.
    ///
    /// # Errors
    /// Those of `out`. Without [facts](Findings::facts) there is nothing to show:
    /// [`InvalidInput`](io::ErrorKind::InvalidInput).
    pub fn write_page(&self, report: &Report, origin: &Origin, mut out: impl Write) -> io::Result<()> {
        let Some(facts) = self.facts.as_deref() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no facts were gathered for the page"));
        };
        let sight = Sight {
            report,
            findings: self,
            facts,
            origin,
            commands: Commands::of(origin, facts.wraps, report.tunnels.is_some()),
            clock: Clock::of(report.times),
        };
        let mut page = Html::default();
        begin(&mut page, &sight);
        head::write(&mut page, &sight);
        scans::write(&mut page, &sight);
        timeline::write(&mut page, &sight);
        scans::write_matrices(&mut page, &sight);
        rows::write(&mut page, &sight);
        page.raw("</main><div id=\"said\" role=\"status\"></div><script>").raw(SCRIPT).raw("</script></body></html>\n");
        out.write_all(page.as_bytes())
    }
}

/// The parts of a page that can be jumped to.
const PARTS: [(&str, &str); 8] = [
    ("scans", "Scans"),
    ("timeline", "Timeline"),
    ("matrix", "Scanners"),
    ("hosts", "Hosts"),
    ("conversations", "Conversations"),
    ("names", "Names"),
    ("protocols", "Protocols"),
    ("unknown", "Unknown payload"),
];

fn begin(page: &mut Html, sight: &Sight<'_>) {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    html!(page, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-" {hash(STYLE)}
        "'; script-src 'sha256-" {hash(SCRIPT)} "'; base-uri 'none'; form-action 'none'\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
        "<meta name=\"referrer\" content=\"no-referrer\">"
        "<title>" {sight.name()} " – corelane</title><style>");
    page.raw(STYLE);
    html!(page, "</style></head><body><main>");
}
