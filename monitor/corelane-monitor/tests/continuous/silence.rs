//! That time passes on a silent wire changes nothing: the next packet would have brought about the same.

use crate::choices::Choices;
use crate::packets::{Capture, Packet, SECOND, START, SYN, tcp, udp};
use crate::reference;
use crate::runs::inspect;
use crate::support::{Act, Case, Paced, Watched, plan, records};
use corelane_monitor::{Found, Observer, Progress, ScanState, Silence, Source};
use corelane_net::capture::{LinkType, Record};
use corelane_net::synth::Conversations;
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::mpsc;
use std::time::Duration;

type Records = Vec<(u64, Vec<u8>)>;

fn frames(packets: &[Packet]) -> Records {
    packets.iter().map(|packet| (packet.time_ns, packet.frame())).collect()
}

fn plain(records: &Records) -> Vec<Act> {
    records.iter().map(|(time_ns, data)| Act::Record(*time_ns, data.clone())).collect()
}

/// The same with up to `most` pauses in each gap between two seconds, from any choice of its times.
fn with_pauses(records: &Records, most: u64, choices: &mut Choices) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut largest = records.first().map_or(0, |&(time_ns, _)| time_ns.saturating_sub(100 * SECOND));
    for (time_ns, data) in records {
        if time_ns / SECOND > largest / SECOND {
            pauses(largest, *time_ns, most, choices, &mut acts);
        }
        largest = largest.max(*time_ns);
        acts.push(Act::Record(*time_ns, data.clone()));
    }
    acts
}

/// Pauses from one time to another. They ascend, as a clock does.
fn pauses(from_ns: u64, to_ns: u64, most: u64, choices: &mut Choices, acts: &mut Vec<Act>) {
    let gap = to_ns - from_ns;
    let mut times: Vec<_> = (0..choices.below(most + 1))
        .map(|_| match choices.below(4) {
            // Near the beginning, where most is due; at the beginning of a second; just before the record; anywhere.
            0 => from_ns + choices.below(gap.min(70 * SECOND) + 1),
            1 => ((from_ns + choices.below(gap + 1)) / SECOND * SECOND).max(from_ns),
            2 => to_ns - choices.below(2).min(gap),
            _ => from_ns + choices.below(gap + 1),
        })
        .collect();
    times.sort_unstable();
    acts.extend(times.into_iter().map(Act::Pause));
}

/// Spreads the records over time: the gaps between some of them get long.
fn spread(records: &mut Records, one_of: u64, choices: &mut Choices) {
    const MINUTE: u64 = 60 * SECOND;
    let gaps = [SECOND, 5 * SECOND, 6 * SECOND, 31 * SECOND, 61 * SECOND, 5 * MINUTE, 20 * MINUTE, 7 * 60 * MINUTE];
    let mut behind = 0;
    for (time_ns, _) in records {
        if choices.below(one_of) == 0 {
            behind += gaps[choices.below(gaps.len() as u64) as usize];
        }
        *time_ns += behind;
    }
}

fn check(case: &Case, records: &Records, link: LinkType, end_ns: Option<u64>, seed: u64) -> Result<Watched, String> {
    let mut choices = Choices(seed);
    let jumps = case.alone(Paced::new(link, plain(records), end_ns));
    for analyzers in [0, 1 + choices.below(3) as usize] {
        let mut acts = with_pauses(records, 1 + choices.below(12), &mut choices);
        let last = records.iter().map(|&(time_ns, _)| time_ns).max();
        if let (Some(last), Some(end_ns)) = (last, end_ns) {
            pauses(last, end_ns.max(last), 5, &mut choices, &mut acts);
        }
        // The end is told, or is a pause like others.
        let told = choices.below(2) == 0;
        acts.extend(end_ns.filter(|_| !told).map(Act::Pause));
        let paced = Paced::new(link, acts, end_ns.filter(|_| told));
        let pauses = case.watch(paced, &plan(analyzers, 64));
        if pauses.snapshots() < jumps.snapshots() {
            return Err(format!("{} snapshots are less than {}", pauses.snapshots(), jumps.snapshots()));
        }
        let (jumps, pauses) = (jumps.clone().without_snapshots(), pauses.without_snapshots());
        if let Some(difference) = jumps.difference(&pauses) {
            return Err(format!("{analyzers} analyzers: {difference}"));
        }
    }
    Ok(jumps)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pauses_among_packets_of_all_kinds_change_nothing(
        packets in reference::packets(), case in reference::cases(), seed in any::<u64>(), ends in any::<bool>(),
    ) {
        let case = Case { inspection: Default::default(), ..case };
        let last = packets.iter().map(|packet| packet.time_ns).max().unwrap_or(START);
        let end_ns = ends.then(|| last + seed % 400 * SECOND / 2);
        check(&case, &frames(&packets), LinkType::RAW, end_ns, seed).map_err(TestCaseError::fail)?;
    }

    /// Holes in streams, fragments and messages that wait have times of their own.
    #[test]
    fn pauses_among_conversations_change_nothing(seed in any::<u64>(), trouble in 0..100_u64, one_of in 5..200_u64) {
        let traffic = Conversations { seed, conversations: 20, trouble, spoofed: 5 };
        let (link, mut records) = records(traffic.capture());
        spread(&mut records, one_of, &mut Choices(seed));
        let end_ns = records.last().map(|(time_ns, _)| time_ns + 100 * SECOND);
        check(&Case::default(), &records, link, end_ns.filter(|_| seed % 2 == 0), seed).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn years_of_silence_cost_nothing_and_change_nothing() {
    const YEAR: u64 = 365 * 24 * 3600 * SECOND;
    let traffic = Conversations { seed: 7, conversations: 60, trouble: 30, spoofed: 10 };
    let (link, mut records) = records(traffic.capture());
    let count = records.len() as u64;
    for (number, (time_ns, _)) in (0..).zip(&mut records) {
        // To the last second that there is, and it stands still there.
        *time_ns = time_ns.saturating_add(number * 10 / count * 60 * YEAR);
    }
    assert_eq!(records.last().map(|&(time_ns, _)| time_ns), Some(u64::MAX));
    let run = check(&Case::default(), &records, link, None, 3).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(run.report.times.is_some_and(|(first, last)| last - first > 400 * YEAR));
    assert!(run.findings.conversations.timed_out > 0, "{:?}", run.findings.conversations);
}

#[test]
fn silence_before_the_first_packet_changes_nothing_even_at_the_beginning_of_time() {
    for first in [0, 1, SECOND - 1, SECOND, 12 * SECOND, START] {
        let packets: Vec<_> =
            (0..30).map(|number| tcp(first + number * SECOND / 2, "10.0.0.1 5", "10.0.0.2 80", SYN)).collect();
        let records = frames(&packets);
        let jumps = Case::default().alone(Paced::new(LinkType::RAW, plain(&records), None));
        for before in [0, 1, first / 2, first] {
            for analyzers in [0, 2] {
                let mut acts = vec![Act::Pause(before.min(first)); 2];
                acts.extend(plain(&records));
                let paced = Paced::new(LinkType::RAW, acts, None);
                let pauses = Case::default().watch(paced, &plan(analyzers, 64));
                // Snapshots too: nothing was there to be counted.
                let difference = jumps.difference(&pauses);
                assert_eq!(difference, None, "{first} {before} {analyzers}");
            }
        }
    }
}

#[test]
fn nothing_but_silence_is_an_empty_report() {
    for acts in
        [vec![], vec![Act::Pause(0)], vec![Act::Pause(START), Act::Pause(START + 20 * SECOND), Act::Pause(u64::MAX)]]
    {
        for end_ns in [None, Some(0), Some(u64::MAX)] {
            for analyzers in [0, 2] {
                let paced = Paced::new(LinkType::RAW, acts.clone(), end_ns);
                let run = Case::default().watch(paced, &plan(analyzers, 64));
                assert_eq!((run.report.packets, run.text.len(), run.news.len()), (0, 0, 0));
                assert_eq!(run.report.times, None);
            }
        }
    }
}

/// An end that is told passes time: what is due until then is judged, the rest fails at the end's step.
#[test]
fn the_end_of_a_run_is_where_its_source_says() {
    let packets: Vec<_> = (0..3)
        .map(|port| tcp(START + port * SECOND / 2, "10.0.0.1 5", &format!("10.0.0.2 {}", 80 + port), SYN))
        .collect();
    let mut case = Case::default();
    case.settings.vertical_threshold = 2;
    // The deadlines are 3 s after the SYNs: the last is in second 4.
    for (after_ms, found_ms) in [(0, 1000), (1500, 1000), (3999, 3000), (4000, 4000), (99_000, 4000)] {
        let end_ns = Some(START + after_ms * 1_000_000);
        let run = case.alone(Paced::new(LinkType::RAW, plain(&frames(&packets)), end_ns));
        let times: Vec<_> = run.scans().iter().map(|event| (event.scan.time_ns() - START) / 1_000_000).collect();
        assert_eq!(times, [found_ms, found_ms], "{after_ms}");
    }
}

/// Gives packets that bring about a line and a scan, and then nothing until both are out.
struct Waiting {
    frames: Records,
    out: mpsc::Receiver<&'static str>,
    /// Seconds of silence.
    silent: u64,
    seen: Vec<&'static str>,
    told: mpsc::Sender<Vec<&'static str>>,
}

impl Source for Waiting {
    type Error = Infallible;

    fn read(&mut self, _: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let frames = std::mem::take(&mut self.frames);
        for (time_ns, data) in &frames {
            sink(Record { time_ns: *time_ns, wire_len: data.len() as u32, link: LinkType::RAW, data });
        }
        // A minute of silence has passed: a scan is due by then, and the end of its conversations.
        while frames.is_empty()
            && self.silent == 100
            && self.seen.len() < 2
            // Only a run that has gone wrong waits for so long.
            && let Ok(what) = self.out.recv_timeout(Duration::from_secs(20))
        {
            if !self.seen.contains(&what) {
                self.seen.push(what);
            }
        }
        Ok(frames.len())
    }

    fn silence(&mut self) -> Silence {
        self.silent += 100;
        if self.silent == 100 {
            return Silence::Pause { time_ns: START + self.silent * SECOND };
        }
        let _ = self.told.send(std::mem::take(&mut self.seen));
        Silence::End { time_ns: None }
    }
}

#[test]
fn what_a_pause_brings_about_is_out_before_anything_else_is_read() {
    for analyzers in [0, 1, 3] {
        let ask = |port: u64| udp(START + port, "10.0.0.1 5000", &format!("10.0.0.2 {port}"));
        let frames = frames(&(1..30).map(ask).collect::<Vec<_>>());
        let ((sender, out), (told, seen)) = (mpsc::channel(), mpsc::channel());
        let source = Waiting { frames, out, silent: 0, seen: Vec::new(), told };
        let case = Case::default();
        let found = &mut move |found: Found<'_>| {
            // What comes at the end is not waited for.
            let _ = match found {
                Found::Scan(scan) if scan.state == ScanState::Found => sender.send("scan"),
                Found::Lines([_, ..]) => sender.send("lines"),
                _ => Ok(()),
            };
        };
        let damage = &|_, never: Infallible| match never {};
        let observer = Observer { progress: &Progress::new(), damage, found };
        case.job(&plan(analyzers, 64)).run([source], observer).expect("a plan");
        let mut seen = seen.recv().expect("the source has ended");
        seen.sort_unstable();
        assert_eq!(seen, ["lines", "scan"], "{analyzers} analyzers");
    }
}

/// In a capture that ends time does not pass in steps, wherever its records are.
#[test]
fn a_capture_that_ends_keeps_its_times() {
    let times = [START, u64::MAX, START + SECOND, u64::MAX - 1, 0];
    let packets = (1..).zip(times).map(|(port, time_ns)| tcp(time_ns, "10.0.0.1 5", &format!("10.0.0.2 {port}"), 0));
    let packets: Vec<_> = packets.collect();
    let case = Case::default();
    let whole = Capture::of(&packets).run(&case.settings);
    for analyzers in [0, 2] {
        let (settings, plan) = (&case.settings, &plan(analyzers, 64));
        let never = |_, never: Infallible| match never {};
        let mut text = Vec::new();
        let out = |lines: &[u8]| text.extend_from_slice(lines);
        let source = Capture::of(&packets);
        let ran = inspect([source], settings, &case.inspection, plan, &Progress::new(), never, out);
        let report = ran.expect("a plan").0;
        assert_eq!(
            (report.times, report.flows, report.probe_scans),
            (whole.times, whole.flows, whole.probe_scans.clone())
        );
        let slow = Paced::new(LinkType::RAW, vec![Act::Record(START, packets[0].frame()), Act::Pause(u64::MAX)], None);
        let ran = inspect([slow], settings, &case.inspection, plan, &Progress::new(), never, |_| {});
        assert_eq!(ran.expect("a plan").0.times, Some((START, START)));
    }
}

/// Where one jump ends many steps, each has its lines first and then its scans.
#[test]
fn scans_stand_behind_the_lines_of_their_step_and_before_those_of_the_next() {
    // Conversations count time in ticks of 2^30 ns, and are over with the step in which their last tick ends.
    const TICK: u64 = 1 << 30;
    // Nothing answers this one: 30 s.
    let due_ns = (START / TICK + 1 + (30 * SECOND).div_ceil(TICK)) * TICK;
    let over_s = (due_ns.div_ceil(SECOND) - 1) - START / SECOND;
    let mut case = Case::default();
    (case.settings.vertical_threshold, case.settings.probes) = (2, false);
    for failed_s in over_s - 2..=over_s + 2 {
        let syn = |port: u64| {
            let opened_ns = START + failed_s * SECOND - 3 * SECOND;
            tcp(opened_ns + port, "10.0.0.1 5", &format!("10.0.0.2 {port}"), SYN)
        };
        let mut packets = vec![udp(START, "10.0.0.3 4000", "10.0.0.4 53")];
        packets.extend((1..4).map(syn));
        packets.push(udp(START + 1000 * SECOND, "10.0.0.5 4000", "10.0.0.6 53"));
        for analyzers in [0, 1, 3] {
            let run = case.watch(Capture::of(&packets), &plan(analyzers, 64)).without_snapshots();
            let lines_before = run.text[..run.news[0].0].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(lines_before, usize::from(over_s <= failed_s), "{failed_s} {over_s} {analyzers}");
        }
    }
}
