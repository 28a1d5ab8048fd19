//! Facts for people: what a page about a capture, or a view of what happens now, shows beside the report.
//!
//! They are gathered only where [`Inspection::facts`](crate::Inspection::facts) asks for them. They depend on the
//! packets and the settings alone, as the report does:
//!
//! 1. What is exact, or the first of an order without ties, is gathered by each stage and added up: the timeline, the
//!    largest conversations, the evidence for protocols.
//! 2. What has to be given up when there is too much is gathered by each partition, as its packets come in one order:
//!    hosts, names, fingerprints, unknown payload (`part.rs`). At the end the partitions are joined by their numbers.
//! 3. The story of a scan is told at the end, when it is known which groups of failures are scans. The tables of all
//!    attempts are there until then, and are walked once more (`scanners.rs`). Attempts that were answered have left
//!    them; each partition keeps a list of those (`analyzer/kept.rs`).
//!
//! # In steps
//!
//! Where time passes in [`Steps`](crate::Steps), each [snapshot](crate::Found::Snapshot) takes all that was gathered
//! since the last one. Conversations that go on are counted then too: those with a packet since then are walked, and
//! what was counted of each is kept, so that every byte is given out once (`counted.rs`). In a whole capture nothing
//! was counted before a conversation is over. With several rings the facts of each are moved to where all are joined,
//! and wait there for the next snapshot. Those that wait for several are joined within the bounds of one step.
//!
//! # Memory
//!
//! Some 450 MiB at most for all partitions of a Dispatcher, whatever the traffic is: texts are cut, tables drop their
//! lighter half when they are full, and that something was is said. In steps that is for each step: tables that were
//! taken leave no memory behind. What is gathered while a step's facts are given out is of no more packets than are on
//! their way.

mod bins;
pub(crate) mod bounded;
mod counted;
mod part;
mod scanners;
mod series;
mod stage;

pub use bins::Bins;
pub use bounded::{Few, Tally};
pub use part::{Fingerprint, Host, HostName, Name, NameKind, Port, Service, Span, Unknown};
pub use scanners::{Attempts, Opened, Row, ScanDetails, Scanner, Story, Tries};
pub(crate) use scanners::{COLUMNS, describe_scans};
pub use series::{SERIES, series_of};
pub use stage::{Bin, Evidence, Talked, Wraps};
pub(crate) use stage::{Gather, Gatherer, Kept, StageFacts};

use crate::continuous::ScanEvent;
use std::net::IpAddr;

/// The most bytes that the facts of a run take. With every table full at once it was 401 MiB, joining included.
pub(crate) const MOST: u64 = 448 << 20;

/// How much is listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists {
    conversations: usize,
    hosts: usize,
    /// Whether it is of steps, of which what is not over is counted too.
    in_steps: bool,
}

impl Lists {
    /// For a page about a whole capture.
    pub(crate) const PAGE: Lists = Lists { conversations: 400, hosts: 400, in_steps: false };
    /// For a view that adds up what it gets at each snapshot.
    pub(crate) const STEP: Lists = Lists { conversations: 2048, hosts: 4096, in_steps: true };
}

/// Names of each kind that are listed, and fingerprints: those seen most often, and those seen least often.
const NAMES: (usize, usize) = (200, 100);
/// Ports with unknown payload that are listed.
const UNKNOWN: usize = 60;

/// Facts for people. Lists are bounded; a `more_` says how many there were beside those listed, or how many at least
/// where the table is among [`cut`](Facts::cut).
///
/// They are of a whole capture, or of the time between two [snapshots](crate::Found::Snapshot). Then lists are longer
/// than for a page, so that they can be added up. A conversation is in the facts of each such time in which it has
/// packets, with the bytes and packets of that time, and with the protocol, name and state that are known at its end.
/// Whatever counts conversations counts each once, in the first of these times. One without payload may be told only
/// when it has some or is over, where very many are open. There are no scanners and no stories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Packets with an IP header, and conversations by the time at which they began.
    pub timeline: Bins<Bin, 240>,
    /// The conversations with most bytes, in that order.
    pub conversations: Vec<Talked>,
    /// How many others there were.
    pub more_conversations: u64,
    /// The hosts of conversations with most bytes, in that order.
    pub hosts: Vec<(IpAddr, Host)>,
    /// How many others there were.
    pub more_hosts: u64,
    /// Names by kind: HTTP, TLS or QUIC, DNS. Those asked for most often come first.
    pub names: [Vec<(HostName, Name)>; 3],
    /// How many others there were.
    pub more_names: [u64; 3],
    /// JA4 fingerprints of clients. Those seen most often come first.
    pub fingerprints: Vec<(Box<str>, Fingerprint)>,
    /// How many others there were.
    pub more_fingerprints: u64,
    /// Why conversations were identified.
    pub evidence: Vec<Evidence>,
    /// Payload of no known protocol, so far, by the responder's port. Those with most bytes come first.
    pub unknown: Vec<(Port, Unknown)>,
    /// How many others there were.
    pub more_unknown: u64,
    /// The tables that were full, so that their counts are lower bounds.
    pub cut: Vec<&'static str>,
    /// The sources of scans, of whole captures only. Those with most ports and hosts come first.
    pub scanners: Vec<Scanner>,
    /// How many others there were.
    pub more_scanners: u64,
    /// The stories of scans, of whole captures only. The largest scans come first.
    pub stories: Vec<Story>,
    /// How many others there were.
    pub more_stories: u64,
    /// Whether attempts that were answered may be missing from the stories, as too many were.
    pub may_lack_answers: bool,
    /// Scans that were found and go on, where time passes in steps, with what failed so far.
    pub going_on: Vec<ScanEvent>,
    /// What stood before the IP headers.
    pub wraps: Wraps,
}

impl Facts {
    /// Joins what all stages have gathered.
    pub(crate) fn of(stages: Vec<StageFacts>) -> Self {
        let mut stages = stages.into_iter();
        let Some(mut all) = stages.next() else { return Facts::default() };
        // Those of several rings may have the same partitions.
        let mut parts: Vec<_> = std::mem::take(&mut all.parts).into_iter().collect();
        for mut stage in stages {
            parts.extend(std::mem::take(&mut stage.parts));
            all.merge_sums(stage);
        }
        let StageFacts { mut timeline, conversations, evidence, wraps, lists, .. } = all;
        timeline.settle();
        let (conversations, more_conversations) = conversations.finish();
        let mut facts = Facts { timeline, conversations, more_conversations, wraps, ..Facts::default() };
        facts.evidence = evidence.into_values().collect();
        facts.evidence.sort_by(|a, b| (b.count, a.protocol, a.text).cmp(&(a.count, b.protocol, b.text)));
        parts.sort_by_key(|&(partition, _)| partition);
        part::join(parts.into_iter().map(|(_, part)| part), lists.hosts, &mut facts);
        facts
    }
}

/// The beginning of a text that has at most so many bytes; `…` says that it goes on.
fn cut(text: &str, most: usize) -> Box<str> {
    if text.len() <= most {
        return text.into();
    }
    let end = (0..=most - '…'.len_utf8()).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(&*cut("abc", 3), "abc");
        assert_eq!(&*cut("abcdefg", 6), "abc…");
        assert_eq!(&*cut("äöüäöü", 8), "äö…");
        assert!(cut(&"€".repeat(1000), 100).len() <= 100);
    }
}
