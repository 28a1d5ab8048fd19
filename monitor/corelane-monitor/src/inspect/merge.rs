//! The output stage's work: the lines of all stages in one order.
//!
//! 1. A stage's lines come with ascending keys, and with them how far it has come: it will bring nothing more for a
//!    packet of a lesser number.
//! 2. What lies before the least of these is complete. Of the stages' first lines the one with the least key goes out,
//!    and with it those behind it that come before every other stage's first.

use super::lines::{Key, Lines, Spares};
use std::collections::VecDeque;

/// The bytes of lines that a stage may bring at a mark before others have come as far.
const MOST_AHEAD: usize = 2 << 20;

/// What one stage has brought.
#[derive(Debug, Default)]
struct Inbox {
    lines: VecDeque<Lines>,
    /// Their bytes.
    bytes: usize,
    /// Lines of the first that are out.
    out: usize,
    /// Nothing more comes before this …
    passed: Key,
    /// … and no more reports before this.
    reported: Key,
}

impl Inbox {
    fn first(&self) -> Option<Key> {
        self.lines.front()?.key(self.out)
    }
}

/// Merges the lines of so many stages.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    inboxes: Vec<Inbox>,
    spares: &'a Spares,
}

impl<'a> Merge<'a> {
    pub(super) fn new(stages: usize, spares: &'a Spares) -> Self {
        Merge { inboxes: (0..stages).map(|_| Inbox::default()).collect(), spares }
    }

    /// Takes lines of a stage that brings nothing more before `passed`, and no more reports before `reported`.
    pub(super) fn add(&mut self, stage: usize, lines: Lines, passed: Key, reported: Key) {
        let inbox = &mut self.inboxes[stage];
        inbox.passed = inbox.passed.max(passed);
        inbox.reported = inbox.reported.max(passed).max(reported);
        if !lines.is_empty() {
            inbox.bytes += lines.len();
            inbox.lines.push_back(lines);
        }
    }

    /// No stage brings anything more before this.
    pub(super) fn passed(&self) -> Key {
        self.inboxes.iter().map(|inbox| inbox.passed).min().unwrap_or(Key::END)
    }

    /// Whether a stage has brought so much at a mark that it is to wait for another one that has not come as far.
    ///
    /// Each stage comes to the end of a mark without more from the Dispatcher, so none waits in a circle, and the last
    /// of all waits for none.
    pub(super) fn is_ahead(&self, stage: usize) -> bool {
        let Inbox { bytes, passed, .. } = self.inboxes[stage];
        let first = self.inboxes[stage].first().filter(|first| bytes > MOST_AHEAD && first.is_of_mark());
        first.is_some_and(|first| self.inboxes.iter().any(|other| other.passed <= first && other.passed < passed))
    }

    /// No stage brings any more reports before this.
    pub(super) fn reported(&self) -> Key {
        self.inboxes.iter().map(|inbox| inbox.reported).min().unwrap_or(Key::END)
    }

    /// Gives `out` all lines before `end`, in runs; they must be complete. Says whether there were any.
    pub(super) fn drain(&mut self, end: Key, mut out: impl FnMut(&[u8])) -> bool {
        let mut any = false;
        let before = |key: Key| key < end;
        loop {
            // The least key and its stage, and the second least.
            let (mut least, mut next) = (None, None);
            for (stage, inbox) in self.inboxes.iter().enumerate() {
                let Some(key) = inbox.first().filter(|&key| before(key)) else { continue };
                match least {
                    Some((before, _)) if before < key => next = Some(next.map_or(key, |next: Key| next.min(key))),
                    _ => (least, next) = (Some((key, stage)), least.map(|(key, _)| key)),
                }
            }
            let Some((_, stage)) = least else { return any };
            any = true;
            let may = |key| before(key) && next.is_none_or(|next| key < next);
            self.inboxes[stage].emit(may, self.spares, &mut out);
        }
    }
}

impl Inbox {
    /// Lets out the first lines for which `may` says yes.
    fn emit(&mut self, may: impl Fn(Key) -> bool, spares: &Spares, out: &mut impl FnMut(&[u8])) {
        while let Some(lines) = self.lines.front() {
            let from = self.out;
            let mut to = from;
            while lines.key(to).is_some_and(&may) {
                to += 1;
            }
            if to > from {
                out(lines.bytes(from, to));
            }
            self.out = to;
            if lines.key(to).is_some() {
                return;
            }
            self.bytes -= lines.len();
            self.lines.pop_front().into_iter().for_each(|lines| spares.put(lines));
            self.out = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stage_waits_at_a_mark_for_those_behind_it_and_the_last_for_none() {
        let spares = Spares::default();
        let mut merge = Merge::new(3, &spares);
        let lines = |key: Key, bytes: usize| {
            let mut lines = Lines::default();
            lines.push(key, |text| text.resize(bytes, b'x'));
            lines
        };
        let mark = |partition| Key::mark(7, 0, partition);
        let ahead = |merge: &Merge<'_>| [0, 1, 2].map(|stage| merge.is_ahead(stage));
        for stage in 0..3 {
            merge.add(stage, lines(mark(80 * stage as u8), MOST_AHEAD + 1), mark(80 * stage as u8), Key::default());
        }
        assert_eq!(ahead(&merge), [false, true, true]);
        merge.add(0, Lines::default(), Key::packet(7, 0), Key::default());
        merge.drain(merge.passed(), |_| {});
        assert_eq!(ahead(&merge), [false, false, true]);
        merge.add(1, Lines::default(), Key::packet(7, 0), Key::default());
        merge.drain(merge.passed(), |_| {});
        assert_eq!(ahead(&merge), [false; 3]);
        // A little is not worth it, and to come to a packet another one may need more from the Dispatcher.
        merge.add(0, lines(Key::mark(8, 0, 9), MOST_AHEAD), Key::mark(8, 0, 9), Key::default());
        merge.add(2, lines(Key::packet(7, 200), 2 * MOST_AHEAD), Key::packet(7, 200), Key::default());
        assert_eq!(ahead(&merge), [false; 3]);
    }

    proptest! {
        /// Lines with keys of their own, dealt out to stages that bring them in pieces of any size, in any order
        /// between stages.
        #[test]
        fn the_order_is_that_of_the_keys(
            numbers in prop::collection::btree_map(0_u64..200, (0_usize..4, 1_usize..3), 0..150),
            turns in prop::collection::vec((0_usize..4, 1_usize..20), 0..100),
        ) {
            let mut expected = Vec::new();
            let mut of_stage: Vec<Vec<u64>> = vec![Vec::new(); 4];
            for (&number, &(stage, count)) in &numbers {
                for _ in 0..count {
                    of_stage[stage].push(number);
                    expected.extend(format!("{number}\n").into_bytes());
                }
            }
            let spares = Spares::default();
            let mut merge = Merge::new(4, &spares);
            let mut found = Vec::new();
            let mut given = [0; 4];
            let all = (0..4).map(|stage| (stage, usize::MAX));
            for (stage, count) in turns.into_iter().chain(all) {
                let mut lines = spares.take();
                let left = &of_stage[stage][given[stage]..];
                let some = &left[..left.len().min(count)];
                for &number in some {
                    lines.push(Key::packet(number, 0), |text| text.extend(format!("{number}\n").into_bytes()));
                }
                given[stage] += some.len();
                // Nothing before the next line; with none left, nothing at all.
                let next = of_stage[stage].get(given[stage]);
                let passed = next.map_or(Key::END, |&number| Key::packet(number, 0));
                merge.add(stage, lines, passed, passed);
                merge.drain(merge.passed(), |bytes| found.extend_from_slice(bytes));
                prop_assert!(expected.starts_with(&found));
            }
            prop_assert_eq!(found, expected);
        }
    }
}
