//! Connection attempts: which SYNs were answered, rejected, or left alone.
//!
//! An attempt has the key (source, destination, destination port). A SYN touches the attempt of its own direction; a
//! SYN-ACK or an RST touches that of the opposite direction. No other packet touches an attempt, so it is judged by the
//! times of its own packets, in the order of the file. A SYN from another port tries a key that has failed again, by
//! which it may be [polled](crate::polls). An attempt expires when one of these packets, or the end of the
//! capture, finds the deadline passed. A key fails at most once. One that was answered before is known: when it fails
//! later its service has gone down, which makes no scan, but counts in one.
//!
//! Who scans may forge an answer. By RFC 9293 (3.10.7.1) a closed port answers a SYN by RST and ACK with sequence
//! number 0, and a server that accepted sends its own numbers. So such an RST to the SYN's port before the deadline
//! makes the attempt a failure behind an answer too, and only an answer that has outlasted a time-out makes the key
//! known.

use crate::continuous::Continuous;
use crate::key::Key;
use crate::polls::{Cadence, TICK_NS};
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::Slot;
use crate::state_report::{Failure, Verdict};
use crate::table::Table;
use crate::twins::Lag;
use bytemuck::Zeroable;
use corelane_net::decode::flags::{ACK, FIN, RST, SYN};

/// The effect of a packet on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Syn,
    SynAck,
    Rst,
}

#[inline(always)]
const fn event(flags: u8) -> Option<Event> {
    if flags & RST != 0 {
        Some(Event::Rst)
    } else if flags & (SYN | ACK) == SYN | ACK {
        Some(Event::SynAck)
    } else if flags & (SYN | FIN) == SYN {
        Some(Event::Syn)
    } else {
        None
    }
}

/// Bit n says whether a packet whose lower five flags are n touches an attempt. The test needs no branch.
const TOUCHING: u32 = {
    let mut set = 0;
    let mut flags = 0;
    while flags < 32 {
        if event(flags).is_some() {
            set |= 1 << flags;
        }
        flags += 1;
    }
    set
};

/// 1 if the packet touches an attempt, else 0.
#[inline(always)]
pub(crate) fn touches(slot: &Slot) -> u64 {
    u64::from(TOUCHING >> (slot.flags() & 31) & 1)
}

/// The states of an attempt. An entry that was made this moment is new …
const NEW: u64 = 0;
/// … `time` is that of the SYN that opened it …
const OPEN: u64 = 1;
/// … the same …
const ANSWERED: u64 = 2;
/// … `time` is that of the failure …
const REJECTED: u64 = 3;
/// … the same …
const UNANSWERED: u64 = 4;
/// … and these, of which an answer came afterwards.
const REJECTED_AND_OPEN: u64 = 5;
const UNANSWERED_AND_OPEN: u64 = 6;
/// The bits of these.
const STATE: u64 = 7;
/// The key was answered before.
const KNOWN: u64 = 1 << 3;
/// It was told as answered in the window of `time`.
const TOLD: u64 = 1 << 4;

#[derive(Clone, Copy, Debug, Default, Zeroable)]
pub(crate) struct Attempt {
    time: u64,
    /// [`STATE`], [`KNOWN`], [`TOLD`], and by these shifts: [`FROM`] the source port of the SYN that tried it last,
    /// [`SINCE`] the [tick](tick) of the first SYN of those that were answered or, of a failed one, of the last,
    /// [`LAG`] the time from its SYN to its failure, [`CADENCE`] the distance between tries.
    marks: u64,
}

const FROM: u32 = 5;
const SINCE: u32 = FROM + 16;
const LAG: u32 = SINCE + 24;
const CADENCE: u32 = LAG + Lag::BITS;
const _: () = assert!(CADENCE + Cadence::BITS == u64::BITS);
/// The bits of a tick: those of three days.
const TICKS: u64 = (1 << 24) - 1;

fn tick(time_ns: u64) -> u64 {
    (time_ns / TICK_NS) & TICKS
}

impl Attempt {
    /// The time from which an answer comes too late.
    pub(crate) fn deadline(&self, settings: &Settings) -> u64 {
        self.time.saturating_add(settings.syn_timeout_ns)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state() == OPEN
    }

    fn state(&self) -> u64 {
        self.marks & STATE
    }

    fn set(&mut self, state: u64) {
        self.marks = self.marks & !STATE | state;
    }

    /// Whether it is answered, so far.
    pub(crate) fn is_answered(&self) -> bool {
        self.state() == ANSWERED
    }

    /// An attempt that a SYN opens.
    fn opened(time: u64, from: u16) -> Attempt {
        Attempt { time, marks: OPEN | u64::from(from) << FROM | tick(time) << SINCE }
    }

    /// A SYN opens an answered one again.
    fn open_again(&mut self, settings: &Settings, continuous: Option<&Continuous>, time: u64, from: u16) {
        let since = self.marks >> SINCE & TICKS;
        let timeout = (settings.syn_timeout_ns / TICK_NS).min(TICKS);
        if tick(time).wrapping_sub(since) & TICKS > timeout {
            self.marks |= KNOWN;
        }
        if continuous.is_some_and(|continuous| continuous.window(self.time) != continuous.window(time)) {
            self.marks &= !TOLD;
        }
        self.time = time;
        self.marks = self.marks & !(0xffff << FROM) | u64::from(from) << FROM;
        self.set(OPEN);
    }

    /// Whether the key was answered.
    pub(crate) fn was_answered(&self) -> bool {
        self.is_answered() || self.is_known()
    }

    /// Whether an answer to the key has outlasted a time-out. Then its failure makes no scan.
    pub(crate) fn is_known(&self) -> bool {
        self.marks & KNOWN != 0
    }

    /// The time of its last SYN, or of its failure.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    fn fail(&mut self, failure: Failure, time: u64) -> Step {
        let lag = Lag::between(self.time, time);
        self.marks = self.marks & !(u64::from(Lag::UNKNOWN.0) << LAG) | u64::from(lag.0) << LAG;
        self.time = time;
        self.set(match failure {
            Failure::Rejected => REJECTED,
            Failure::Unanswered => UNANSWERED,
        });
        let verdict = match self.marks & (KNOWN | TOLD) {
            0 => Verdict::Failed(failure),
            TOLD => Verdict::Refuted(failure),
            _ => Verdict::Known(failure),
        };
        Step::Failed(verdict, time, lag)
    }

    /// The failure and its time, if the attempt has failed.
    pub(crate) fn failed(&self) -> Option<(Failure, u64)> {
        match self.state() {
            REJECTED | REJECTED_AND_OPEN => Some((Failure::Rejected, self.time)),
            UNANSWERED | UNANSWERED_AND_OPEN => Some((Failure::Unanswered, self.time)),
            _ => None,
        }
    }

    /// A packet of one that is decided: a SYN tries one again that has failed; an answer is too late to count, but
    /// shows that the port is open.
    fn afterwards(&mut self, event: Event, slot: &Slot, continuous: Option<&Continuous>) -> Step {
        match (event, self.state()) {
            (Event::Syn, _) => return self.try_again(slot.time_ns(), slot.ports().0, continuous),
            (Event::SynAck, REJECTED) => self.set(REJECTED_AND_OPEN),
            (Event::SynAck, UNANSWERED) => self.set(UNANSWERED_AND_OPEN),
            _ => {}
        }
        Step::Nothing
    }

    /// Whether it was answered when it had failed.
    pub(crate) fn was_open_afterwards(&self) -> bool {
        matches!(self.state(), REJECTED_AND_OPEN | UNANSWERED_AND_OPEN)
    }

    /// The time from the SYN of a failed one to its failure.
    pub(crate) fn lag(&self) -> Lag {
        Lag((self.marks >> LAG) as u8 & Lag::UNKNOWN.0)
    }

    fn cadence(&self) -> Cadence {
        Cadence((self.marks >> CADENCE) as u16)
    }

    /// Whether it is [polled](crate::polls). Then its failure makes no scan of its port.
    pub(crate) fn is_polled(&self) -> bool {
        self.cadence().is_polled()
    }

    /// A SYN tries one again that has failed. What is polled is not forgotten meanwhile, where anything is.
    fn try_again(&mut self, time: u64, from: u16, continuous: Option<&Continuous>) -> Step {
        if (self.marks >> FROM) as u16 == from {
            return Step::Nothing;
        }
        let (was_polled, now) = (self.is_polled(), tick(time));
        let cadence = self.cadence().then(now.wrapping_sub(self.marks >> SINCE) & TICKS);
        let others = self.marks & (STATE | KNOWN | TOLD | u64::from(Lag::UNKNOWN.0) << LAG);
        self.marks = others | u64::from(from) << FROM | now << SINCE | u64::from(cadence.0) << CADENCE;
        if !cadence.is_polled() {
            return Step::Nothing;
        }
        if continuous.is_some() {
            self.time = time;
        }
        if was_polled || self.is_known() { Step::Nothing } else { Step::Polled }
    }

    /// The time of the first SYN of one that was answered and has not failed.
    pub(crate) fn since_ns(&self) -> u64 {
        let ticks = tick(self.time).wrapping_sub(self.marks >> SINCE) & TICKS;
        self.time.saturating_sub(ticks * TICK_NS)
    }

    /// No packet before `time` follows: an open attempt fails, by then or at its deadline.
    pub(crate) fn finish(&mut self, settings: &Settings, time: u64) -> Step {
        if self.state() != OPEN {
            return Step::Nothing;
        }
        self.fail(Failure::Unanswered, self.deadline(settings).min(time))
    }
}

/// Whether a packet that [`touches`] an attempt runs from the attempt's destination to its source.
#[inline(always)]
pub(crate) fn is_reply(slot: &Slot) -> bool {
    slot.flags() & (RST | ACK) != 0
}

impl Step {
    /// The failure, if it is one.
    pub(crate) fn failure(self) -> Option<Failure> {
        match self {
            Step::Failed(verdict, ..) => verdict.failure(),
            Step::Nothing | Step::Opened | Step::Answered(_) | Step::Polled => None,
        }
    }
}

/// What a packet changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    Opened,
    /// It is answered, for the first time in this window, so long after its SYN.
    Answered(Lag),
    /// It causes the failure, or finds it overdue: at this time, so long after its SYN.
    Failed(Verdict, u64, Lag),
    /// It has failed, and is polled from now on.
    Polled,
}

/// Takes one packet of the attempt `key`. One that is over counts as new. Where failures are forgotten, an answer
/// is told once in a window of time.
#[inline(always)]
pub(crate) fn step<K: Key, A: Copy + Default + Zeroable>(
    table: &mut Table<K, Attempt, A>,
    run: &Run,
    settings: &Settings,
    key: &K,
    slot: &Slot,
    continuous: Option<&Continuous>,
    is_over: impl Fn(&Attempt) -> bool,
) -> Step {
    let hash = key.hash(&run.keys);
    let time = slot.time_ns();
    let Some(event) = event(slot.flags()) else { return Step::Nothing };
    let attempt = match event {
        Event::Syn => table.entry_among(run, key, hash, Attempt::is_answered),
        Event::SynAck | Event::Rst => {
            let Some(position) = table.find(key, hash) else { return Step::Nothing };
            table.value_at(position)
        }
    };
    if event == Event::Syn && (attempt.state() == NEW || is_over(attempt)) {
        *attempt = Attempt::opened(time, slot.ports().0);
        return Step::Opened;
    }
    if event == Event::Syn && attempt.is_answered() {
        attempt.open_again(settings, continuous, time, slot.ports().0);
        return Step::Opened;
    }
    if event == Event::Rst && attempt.is_answered() && slot.flags() & ACK != 0 && slot.is_at_zero() {
        let is_other = time >= attempt.deadline(settings) || (attempt.marks >> FROM) as u16 != slot.ports().1;
        return if is_other { Step::Nothing } else { attempt.fail(Failure::Rejected, time) };
    }
    if !attempt.is_open() {
        return attempt.afterwards(event, slot, continuous);
    }
    let deadline = attempt.deadline(settings);
    if time >= deadline {
        let failed = attempt.fail(Failure::Unanswered, deadline);
        attempt.afterwards(event, slot, continuous);
        return failed;
    }
    match event {
        Event::Rst => attempt.fail(Failure::Rejected, time),
        Event::SynAck => {
            attempt.set(ANSWERED);
            let is_told = attempt.marks & TOLD != 0;
            attempt.marks |= TOLD;
            if is_told { Step::Nothing } else { Step::Answered(Lag::between(attempt.time, time)) }
        }
        Event::Syn => Step::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_make_events_as_the_contract_says() {
        let psh_urg = 0x28;
        for flags in [SYN, SYN | psh_urg, SYN | 0xc0] {
            assert_eq!(event(flags), Some(Event::Syn), "{flags:#x}");
        }
        for flags in [SYN | ACK, SYN | ACK | FIN, SYN | ACK | 0xe8] {
            assert_eq!(event(flags), Some(Event::SynAck), "{flags:#x}");
        }
        for flags in [RST, RST | ACK, RST | SYN, RST | SYN | ACK, RST | FIN | 0xf8] {
            assert_eq!(event(flags), Some(Event::Rst), "{flags:#x}");
        }
        for flags in [0, FIN, ACK, SYN | FIN, FIN | ACK, psh_urg, 0xe0] {
            assert_eq!(event(flags), None, "{flags:#x}");
        }
    }
}
