//! The rules of scans without an end once more, as plainly as they can be written. All packets are collected; each rule
//! is then one pass over what the rule before it has left.

use crate::packets::{ACK, Capture, FIN, Key, Packet, RST, SECOND, START, SYN, XMAS, has_outlasted, tcp, udp};
use crate::support::{Case, Watched, plan};
use corelane_monitor::{Alert, Continuous, Job, Observer, Probe, Progress, ScanEvent, ScanState, Settings};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the contract wants of these packets.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    flows: u64,
    rejected: u64,
    unanswered: u64,
    scans: Vec<ScanEvent>,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    // The order of these fields is that in which outcomes count.
    time: u64,
    source: IpAddr,
    destination: IpAddr,
    port: u16,
    probe: Option<Probe>,
    answered: bool,
    /// It was told as answered, which is void.
    refuted: bool,
    /// It failed, and was answered before.
    known: bool,
    /// It failed, and is polled from now on.
    polled: bool,
}

/// The tries of a key that has failed.
#[derive(Default)]
struct Tries {
    last: u64,
    /// The last distance, and how many before it were equal.
    equal: Option<(u64, u64)>,
}

impl Tries {
    fn first(time: u64) -> Self {
        Tries { last: time * 64 / SECOND, equal: None }
    }

    fn is_polled(&self) -> bool {
        self.equal.is_some_and(|(_, count)| count >= 2)
    }

    /// Whether it is polled from now on.
    fn again(&mut self, time: u64) -> bool {
        let (was_polled, now) = (self.is_polled(), time * 64 / SECOND);
        let distance = now.checked_sub(std::mem::replace(&mut self.last, now));
        if was_polled {
            return false;
        }
        // From 1.75 seconds to six minutes, of which six bits are kept.
        self.equal = distance.filter(|distance| (112..=360 * 64).contains(distance)).map(|distance| {
            let kept = distance >> (distance.ilog2() - 5) << (distance.ilog2() - 5);
            match self.equal {
                Some((last, count)) if distance.abs_diff(last) * 8 <= last => (kept, count + 1),
                _ => (kept, 0),
            }
        });
        self.is_polled()
    }
}

fn step(time: u64) -> u64 {
    time / SECOND
}

/// A packet of a step that is over gets the time at which the current one began.
fn clamp(packets: &[Packet]) -> Vec<Packet> {
    let mut begun = 0;
    let clamp = |packet: &Packet| {
        begun = begun.max(step(packet.time_ns) * SECOND);
        Packet { time_ns: packet.time_ns.max(begun), ..*packet }
    };
    packets.iter().map(clamp).collect()
}

/// The packets of each flow, with their numbers.
fn flows(packets: &[Packet]) -> Vec<Vec<(usize, Packet)>> {
    let mut by_ends: BTreeMap<_, Vec<(usize, Packet)>> = BTreeMap::new();
    for (number, packet) in packets.iter().enumerate() {
        by_ends.entry((packet.flags.is_some(), packet.ends())).or_default().push((number, *packet));
    }
    let mut flows = Vec::new();
    for ((is_tcp, ends), packets) in by_ends {
        let mut flow: Vec<(usize, Packet)> = Vec::new();
        let mut closed = [false; 2];
        for (number, packet) in packets {
            let flags = packet.flags.unwrap_or(0);
            let is_closed = closed == [true; 2];
            let lasts = if is_closed {
                5
            } else if is_tcp {
                300
            } else {
                60
            };
            let silent = flow.last().map_or(0, |(_, last)| step(packet.time_ns) - step(last.time_ns));
            let opens_anew = is_closed && flags & (SYN | ACK | RST | FIN) == SYN;
            if silent > lasts || opens_anew {
                flows.push(std::mem::take(&mut flow));
                closed = [false; 2];
            }
            if flags & RST != 0 {
                closed = [true; 2];
            } else if flags & FIN != 0 {
                let sender = (packet.source, packet.source_port);
                closed[usize::from(ends[0] != sender)] = true;
            }
            flow.push((number, packet));
        }
        flows.push(flow);
    }
    flows
}

/// The failures of SYNs, whether an RST brought them about, and the answers.
fn attempts(packets: &[Packet], settings: &Settings, forget: u64, end: u64) -> (Vec<(Outcome, bool)>, Vec<Outcome>) {
    let mut histories: BTreeMap<Key, Vec<(u64, char, u16)>> = BTreeMap::new();
    for packet in packets {
        if let Some((key, what)) = packet.attempt() {
            histories.entry(key).or_default().push((packet.time_ns, what, packet.client_port()));
        }
    }
    let (mut failures, mut answers) = (Vec::new(), Vec::new());
    let window = |time: u64| step(time) / forget.max(1);
    for ((source, destination, port), history) in histories {
        let mut opened: Option<u64> = None;
        let mut failed: Option<u64> = None;
        // The SYN that was answered last.
        let mut answered: Option<u64> = None;
        let (mut first, mut known) = (0, false);
        // Whether that was told in its window.
        let mut told = false;
        let mut fail = |time: u64, rejected: bool, known: bool, told: bool| {
            let (answered, refuted) = (false, told && !known);
            let probe = None;
            let outcome = Outcome { time, source, destination, port, probe, answered, refuted, known, polled: false };
            failures.push((outcome, rejected));
            Some(time)
        };
        let (mut from, mut tries, to) = (0, Tries::default(), port);
        for (time, what, port) in history {
            if let Some(deadline) = opened.map(|opened| opened + settings.syn_timeout_ns)
                && time >= deadline
            {
                (opened, failed) = (None, fail(deadline, false, known, told));
            }
            match what {
                'S' if opened.is_none() && failed.is_none_or(|failed| step(time) - step(failed) > forget) => {
                    match answered.is_some_and(|answered| step(time) - step(answered) <= forget) {
                        true => {
                            known |= has_outlasted(first, time, settings);
                            told &= answered.is_some_and(|answered| window(answered) == window(time));
                        }
                        false => {
                            (first, known, told) = (time, false, false);
                            tries = Tries::first(time);
                        }
                    }
                    (opened, failed, answered, from) = (Some(time), None, None, port);
                }
                'S' if failed.is_some() && port != from => {
                    from = port;
                    let is_new = tries.again(time);
                    if tries.is_polled() {
                        failed = Some(time);
                    }
                    if is_new && !known {
                        let (answered, refuted, polled) = (false, false, true);
                        answers.push(Outcome {
                            time,
                            source,
                            destination,
                            port: to,
                            probe: None,
                            answered,
                            refuted,
                            known,
                            polled,
                        });
                    }
                }
                'A' if opened.is_some() => {
                    (opened, answered) = (None, opened);
                    if !told {
                        let (answered, refuted, known, polled) = (true, false, false, false);
                        answers.push(Outcome {
                            time,
                            source,
                            destination,
                            port,
                            probe: None,
                            answered,
                            refuted,
                            known,
                            polled,
                        });
                    }
                    told = true;
                }
                'R' | 'Z' if opened.is_some() => (opened, failed) = (None, fail(time, true, known, told)),
                'Z' if port == from && answered.is_some_and(|answered| time < answered + settings.syn_timeout_ns) => {
                    (answered, failed) = (None, fail(time, true, known, told));
                }
                _ => {}
            }
        }
        if let Some(opened) = opened {
            fail(end.min(opened + settings.syn_timeout_ns), false, known, told);
        }
    }
    (failures, answers)
}

/// What became of the keys of other probes.
fn probes(flows: &[Vec<(usize, Packet)>], forget: u64, end: u64) -> Vec<Outcome> {
    // Of each key the probes and answers: the packet's number, its time, whether it is an answer.
    type History = Vec<(usize, u64, bool)>;
    let mut histories: BTreeMap<(Probe, IpAddr, IpAddr, u16), History> = BTreeMap::new();
    for flow in flows {
        let (number, first) = flow[0];
        if first.flags.is_some() {
            let mut fails = |probe: Probe, packet: &Packet, number: usize, time_ns: u64| {
                let key = (probe, packet.source, packet.destination, packet.destination_port);
                histories.entry(key).or_default().push((number, time_ns, false));
            };
            let from = (first.source, first.source_port);
            for (number, packet) in flow.iter().filter(|(_, packet)| (packet.source, packet.source_port) == from) {
                packet.probe().into_iter().for_each(|probe| fails(probe, packet, *number, packet.time_ns));
            }
            let back = flow.iter().find(|(_, packet)| (packet.source, packet.source_port) != from);
            if let Some((number, reset)) = back.filter(|(_, reset)| first.is_refused_by(reset)) {
                fails(Probe::Ack, &first, *number, reset.time_ns);
            }
            continue;
        }
        let Some(probe) = first.probe() else { continue };
        let history = histories.entry((probe, first.source, first.destination, first.destination_port)).or_default();
        history.push((number, first.time_ns, false));
        let from = (first.source, first.source_port);
        let answer = flow.iter().find(|(_, packet)| (packet.source, packet.source_port) != from);
        if let Some((number, packet)) = answer {
            history.push((*number, packet.time_ns, true));
        }
    }
    let mut outcomes = Vec::new();
    for ((probe, source, destination, port), mut history) in histories {
        history.sort_unstable();
        let patience = if probe == Probe::Udp { 60 * SECOND } else { 0 };
        // When the key was asked, and whether it was answered in time.
        let mut asked: Option<(u64, bool)> = None;
        // When it was tried last, if it has failed and is polled.
        let (mut tries, mut polled_at) = (Tries::default(), None);
        let mut polls = Vec::new();
        let mut judge = |(time, answered): (u64, bool)| {
            // A datagram counts in its time also if the run has ended by then.
            let time = if patience > 0 { time + patience } else { time.min(end) };
            let (probe, refuted, known, polled) = (Some(probe), false, false, false);
            outcomes.push(Outcome { time, source, destination, port, probe, answered, refuted, known, polled });
        };
        for (_, time, is_answer) in history {
            match &mut asked {
                Some((first, answered)) if is_answer => *answered |= step(time) <= step(*first + patience),
                Some((first, answered))
                    if step(time).saturating_sub(step(polled_at.unwrap_or(*first + patience))) <= forget =>
                {
                    if *answered || probe != Probe::Udp {
                        continue;
                    }
                    let is_new = tries.again(time);
                    if step(time) <= step(*first + patience) {
                        // The earliest one of its second counts.
                        if step(time) == step(*first) {
                            *first = time.min(*first);
                        }
                    } else if tries.is_polled() {
                        polled_at = Some(time);
                        polls.extend(is_new.then_some(time));
                    }
                }
                _ if is_answer => panic!("an answer without a probe"),
                _ => {
                    asked.replace((time, false)).into_iter().for_each(&mut judge);
                    (tries, polled_at) = (Tries::first(time), None);
                }
            }
        }
        asked.into_iter().for_each(&mut judge);
        let (probe, answered, refuted, known, polled) = (Some(probe), false, false, false, true);
        outcomes.extend(polls.into_iter().map(|time| Outcome {
            time,
            source,
            destination,
            port,
            probe,
            answered,
            refuted,
            known,
            polled,
        }));
    }
    outcomes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Host(IpAddr),
    Port(u16),
}

/// One less of this window or, if there is none, of that before it.
fn take_back(counts: &mut BTreeMap<u64, u64>, window: u64) {
    let is_some = counts.get(&window).is_some_and(|&count| count > 0);
    let from = if is_some { Some(window) } else { window.checked_sub(1) };
    if let Some(count) = from.and_then(|window| counts.get_mut(&window)) {
        *count = count.saturating_sub(1);
    }
}

/// The scans of one group: events, each with the step at whose end it is told.
fn scans(
    (source, probe, target): (IpAddr, Option<Probe>, Target),
    outcomes: &[(Outcome, Target)],
    threshold: usize,
    continuous: &Continuous,
    last_step: u64,
) -> Vec<(u64, ScanEvent)> {
    // Failures with their members, the first one first.
    // Events of datagrams have the times at which they were sent.
    let late = if probe == Some(Probe::Udp) { 60 * SECOND } else { 0 };
    let event = |(failed, more): (&[(u64, Target)], u64), found: u64, state: ScanState| {
        let time_ns = found - late;
        let count = failed.len() as u64 + more;
        let scan = match target {
            Target::Host(destination) => Alert::Vertical { source, destination, count, time_ns },
            Target::Port(port) => Alert::Horizontal { source, port, count, time_ns },
        };
        let (first_ns, _) = failed[0];
        let early = failed.iter().filter(|&&(time, _)| step(time) - step(first_ns) <= continuous.forget_s);
        let early: Vec<_> = early.map(|&(_, member)| member).collect();
        let distinct = early.len() as u64;
        assert_eq!(BTreeSet::from_iter(early).len() as u64, distinct, "none of them failed twice");
        ScanEvent { probe, scan, first_ns: first_ns - late, distinct, tunnel: None, state }
    };
    let ended = |(failed, more): (&[(u64, Target)], u64), found: u64| {
        let (last_ns, _) = failed[failed.len() - 1];
        event((failed, more), found, ScanState::Ended { last_ns: last_ns - late })
    };
    let quiet_until = |found: u64| step(found).saturating_add(continuous.suppress_s).min(last_step);
    let mut events = Vec::new();
    let mut failures: Vec<(u64, Target)> = Vec::new();
    // So many members by windows.
    let window = |time: u64| step(time) / continuous.forget_s.max(1);
    let [mut failed_in, mut answered_in, mut known_in] = [const { BTreeMap::<u64, u64>::new() }; 3];
    let sum = |counts: &BTreeMap<u64, u64>, now: u64| {
        let windows = [Some(now), now.checked_sub(1)];
        windows.into_iter().filter_map(|window| counts.get(&window?)).sum::<u64>()
    };
    let most = |counts: &BTreeMap<u64, u64>, now: u64| {
        let of = |window: Option<u64>| window.and_then(|window| counts.get(&window)).copied().unwrap_or(0);
        of(Some(now)).max(of(now.checked_sub(1)))
    };
    // Found when, failures since then and before, and how many more there were.
    type Found = (u64, Vec<(u64, Target)>, u64);
    let mut quiet: Option<Found> = None;
    for same_step in outcomes.chunk_by(|(a, _), (b, _)| step(a.time) == step(b.time)) {
        // Answers count before failures, and those that failures refute do not.
        let in_window = window(same_step[0].0.time);
        let answered = same_step.iter().filter(|(outcome, _)| outcome.answered).count() as u64;
        *answered_in.entry(in_window).or_default() += answered;
        for _ in same_step.iter().filter(|(outcome, _)| outcome.refuted) {
            take_back(&mut answered_in, in_window);
        }
        for (outcome, member) in same_step.iter().filter(|(outcome, _)| !outcome.answered) {
            let now = step(outcome.time);
            let is_over = |&mut (found, ..): &mut Found| now.min(last_step) > quiet_until(found);
            if let Some((found, failed, more)) = quiet.take_if(is_over) {
                events.push((quiet_until(found), ended((&failed, more), found)));
            }
            if let Some((_, failed, _)) = &mut quiet {
                failed.extend((!outcome.polled).then_some((outcome.time, *member)));
                continue;
            }
            if outcome.known {
                *known_in.entry(in_window).or_default() += 1;
                continue;
            }
            failures.retain(|&(time, _)| now - step(time) <= continuous.forget_s);
            if outcome.polled {
                if let Some(place) = failures.iter().position(|(_, known)| known == member) {
                    failures.remove(place);
                    take_back(&mut failed_in, in_window);
                }
                continue;
            }
            assert!(failures.iter().all(|(_, known)| known != member), "a key counts once in a while");
            if failures.is_empty() {
                failed_in.clear();
            }
            *failed_in.entry(in_window).or_default() += 1;
            failures.push((outcome.time, *member));
            failures.drain(..failures.len().saturating_sub(threshold + 1));
            let to_one = if probe.is_none() { 1 } else { 4 };
            let outweighed = most(&failed_in, in_window) <= to_one * most(&answered_in, in_window);
            if failures.len() > threshold && !outweighed {
                let others = sum(&failed_in, in_window).saturating_sub(failures.len() as u64);
                let more = others + sum(&known_in, in_window);
                known_in.clear();
                events.push((now.min(last_step), event((&failures, more), outcome.time, ScanState::Found)));
                quiet = Some((outcome.time, std::mem::take(&mut failures), more));
            }
        }
    }
    if let Some((found, failed, more)) = quiet {
        events.push((quiet_until(found), ended((&failed, more), found)));
    }
    events
}

/// `end_ns` is the time at which the run ended, if that is known.
fn analyse(packets: &[Packet], settings: &Settings, continuous: &Continuous, end_ns: Option<u64>) -> Expected {
    let packets = clamp(packets);
    let end = packets.iter().map(|packet| packet.time_ns).max().unwrap_or(0);
    let end = end.max(step(end_ns.unwrap_or(0)) * SECOND);
    let flows = flows(&packets);
    let (attempts, answers) = attempts(&packets, settings, continuous.forget_s, end);
    let mut outcomes: Vec<_> = attempts.iter().map(|(outcome, _)| *outcome).collect();
    outcomes.extend(answers);
    if settings.probes {
        outcomes.extend(probes(&flows, continuous.forget_s, end));
    }
    // The answers of a step come before its failures.
    outcomes.sort_unstable_by_key(|it| {
        (step(it.time), !it.answered && !it.polled, it.time, it.source, it.destination, it.port, it.probe)
    });
    let mut groups: BTreeMap<_, Vec<(Outcome, Target)>> = BTreeMap::new();
    for outcome in outcomes {
        let (host, port) = (Target::Host(outcome.destination), Target::Port(outcome.port));
        if !outcome.polled {
            groups.entry((outcome.source, outcome.probe, host)).or_default().push((outcome, port));
        }
        if outcome.probe != Some(Probe::Ack) {
            groups.entry((outcome.source, outcome.probe, port)).or_default().push((outcome, host));
        }
    }
    let mut events = Vec::new();
    for (key, outcomes) in groups {
        let threshold = match key.2 {
            Target::Host(_) => settings.vertical_threshold,
            Target::Port(_) => settings.horizontal_threshold,
        };
        events.extend(scans(key, &outcomes, threshold as usize, continuous, step(end)));
    }
    events.sort_by_key(|(step, ScanEvent { probe, scan, state, .. })| {
        let target = match *scan {
            Alert::Horizontal { port, .. } => (0, None, port),
            Alert::Vertical { destination, .. } => (1, Some(destination), 0),
            Alert::Block { .. } => panic!("there are too few hosts and ports"),
        };
        let (kind, destination, port) = target;
        (*step, *state != ScanState::Found, scan.time_ns(), kind, scan.source(), destination, port, *probe)
    });
    let rejected = attempts.iter().filter(|(_, rejected)| *rejected).count() as u64;
    Expected {
        flows: flows.len() as u64,
        rejected,
        unanswered: attempts.len() as u64 - rejected,
        scans: events.into_iter().map(|(_, event)| event).collect(),
    }
}

impl Expected {
    fn of(run: &Watched) -> Self {
        let Watched { report, .. } = run;
        Expected { flows: report.flows, rejected: report.rejected, unanswered: report.unanswered, scans: run.scans() }
    }
}

/// Few hosts and ports, and gaps about all the times that rules know.
pub(crate) fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let flags = prop_oneof![
        5 => Just(Some(SYN)),
        2 => Just(Some(SYN | ACK)),
        1 => Just(Some(RST)),
        1 => Just(Some(RST | ACK)),
        1 => Just(Some(SYN | RST)),
        1 => Just(Some(SYN | ACK | FIN)),
        1 => Just(Some(ACK)),
        1 => Just(Some(FIN | ACK)),
        2 => Just(Some(0)),
        2 => Just(Some(FIN)),
        2 => Just(Some(XMAS)),
        9 => Just(None),
        1 => any::<u8>().prop_map(Some),
    ];
    let gap = prop_oneof![
        8 => 0..300_u64,
        4 => 0..3_000_u64,
        2 => 0..20_000_u64,
        1 => 0..100_000_u64,
        1 => prop::sample::select(&[1_000, 2_000, 5_000, 6_000, 59_000, 60_000, 61_000, 300_000, 301_000][..]),
    ];
    let port = || prop::sample::select(&[53, 80, 1023, 1024, 33_434, 50_000][..]);
    let hops = prop::sample::select(&[30, 31][..]);
    let packet = (prop::bool::weighted(0.2), 0..3_u32, 0..5_u32, port(), port(), (gap, 0..50_u64), flags, hops);
    prop::collection::vec(packet, 0..300).prop_map(|packets| {
        let mut now = START;
        let packet = |(v6, source, destination, source_port, destination_port, (gap, back), flags, hops)| {
            now += gap * 1_000_000;
            let address = |host: u32| -> IpAddr {
                match (v6, host) {
                    (true, 4) => Ipv6Addr::from_bits(0xff02 << 112 | 1).into(),
                    (false, 4) => Ipv4Addr::BROADCAST.into(),
                    (true, host) => Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(host)).into(),
                    (false, host) => Ipv4Addr::from_bits(0x0a00_0000 + host).into(),
                }
            };
            let (source, destination) = (address(source), address(destination));
            // Some go back a little, across the ends of steps too.
            let time_ns = if back < 5 { now - back * 400_000_000 } else { now };
            Packet { time_ns, source, destination, source_port, destination_port, flags, hops }
        };
        packets.into_iter().map(packet).collect()
    })
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let timeouts = prop::sample::select(&[0, 500_000_000, 1_000_000_000, 3_000_000_000, 10_000_000_000][..]);
    (timeouts, 1..5_u64, 1..5_u64, 0..21_u64, 0..31_u64, prop::bool::weighted(0.9)).prop_map(
        |(syn_timeout_ns, vertical_threshold, horizontal_threshold, forget_s, suppress_s, probes)| {
            let case = Case::scans_only();
            Case {
                settings: Settings {
                    syn_timeout_ns,
                    vertical_threshold,
                    horizontal_threshold,
                    probes,
                    ..case.settings
                },
                continuous: Continuous { forget_s, suppress_s, ..case.continuous },
                inspection: case.inspection,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scans_and_counts_are_those_of_the_plain_reference(
        packets in packets(), case in cases(), analyzers in prop_oneof![9 => Just(0_usize), 1 => 1..4_usize],
    ) {
        let run = case.watch(Capture::of(&packets), &plan(analyzers, 64));
        let expected = analyse(&packets, &case.settings, &case.continuous, None);
        prop_assert_eq!(Expected::of(&run), expected);
        let found = |is_probe: bool| {
            let scans = run.scans().into_iter().filter(|scan| scan.state == ScanState::Found);
            scans.filter(|scan| scan.probe.is_some() == is_probe).count() as u64
        };
        prop_assert_eq!(run.report.scans, Some([found(false), found(true)]));
        prop_assert_eq!(run.report.pairs, None);
        prop_assert_eq!(run.report.failed_attempts, run.report.rejected + run.report.unanswered);
        prop_assert_eq!(run.report.packets, packets.len() as u64);
    }
}

/// What the code and the reference say of these packets, which must be the same.
fn both(packets: &[Packet], case: &Case) -> Expected {
    let run = case.alone(Capture::of(packets));
    let expected = analyse(packets, &case.settings, &case.continuous, None);
    assert_eq!(Expected::of(&run), expected);
    expected
}

fn case(threshold: u64, forget_s: u64, suppress_s: u64) -> Case {
    let case = Case::scans_only();
    let (vertical_threshold, horizontal_threshold) = (threshold, threshold);
    Case {
        settings: Settings { vertical_threshold, horizontal_threshold, ..case.settings },
        continuous: Continuous { forget_s, suppress_s, ..case.continuous },
        inspection: case.inspection,
    }
}

#[test]
fn a_reset_with_a_syn_opens_no_attempt_where_an_old_one_was_forgotten() {
    let syn = tcp(START, "10.0.0.2 53", "10.0.0.1 1023", SYN);
    let reset = tcp(START + 30 * SECOND, "10.0.0.1 1023", "10.0.0.2 53", SYN | RST);
    let expected = both(&[syn, reset], &case(1, 2, 10));
    assert_eq!((expected.rejected, expected.unanswered), (0, 1));
}

#[test]
fn a_failure_counts_to_the_end_of_its_last_step() {
    // The failures are rejections, so their times are given. Those of one step are found or not together.
    let pair = |second: u64, port: u64| {
        let (from, to) = ("10.0.0.1 4000", format!("10.0.0.2 {port}"));
        let time_ns = START + second * SECOND + port;
        [tcp(time_ns, from, &to, SYN), tcp(time_ns + 1, &to, from, RST)]
    };
    for (after, found) in [(9, true), (10, true), (11, false)] {
        let packets = [pair(0, 1), pair(after, 2)].concat();
        let scans = both(&packets, &case(1, 10, 5)).scans;
        assert_eq!(scans.len(), 2 * usize::from(found), "{after} {scans:?}");
    }
    // The same key counts again just when its failure does not count any longer.
    for (after, rejected) in [(10, 1), (11, 2)] {
        let packets = [pair(0, 1), pair(after, 1)].concat();
        assert_eq!(both(&packets, &case(1, 10, 5)).rejected, rejected, "{after}");
    }
}

#[test]
fn a_scan_is_quiet_to_the_end_of_its_last_step_and_then_found_anew() {
    let failure =
        |second: u64, port: u16| tcp(START + second * SECOND, "10.0.0.1 4000", &format!("10.0.0.2 {port}"), 0);
    // Found in second 1, quiet up to the end of second 6; the totals are told there.
    let packets: Vec<_> = (0..=8).map(|second| failure(second, 100 + second as u16)).collect();
    let scans = both(&packets, &case(1, 100, 5)).scans;
    let told: Vec<_> = scans.iter().map(|event| (event.state, event.scan.count(), event.scan.time_ns())).collect();
    let at = |second: u64| START + second * SECOND;
    let expected = [
        (ScanState::Found, 2, at(1)),
        (ScanState::Ended { last_ns: at(6) }, 7, at(1)),
        (ScanState::Found, 2, at(8)),
        (ScanState::Ended { last_ns: at(8) }, 2, at(8)),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_scan_that_is_quiet_for_ever_ends_with_the_run() {
    let packets: Vec<_> =
        (1..=5).map(|port| tcp(START + port, "10.0.0.1 4000", &format!("10.0.0.2 {port}"), 0)).collect();
    for (forget_s, suppress_s) in [(u64::MAX, u64::MAX), (10, u64::MAX), (u64::MAX, 10), (u64::MAX, 0), (0, 0)] {
        let scans = both(&packets, &case(2, forget_s, suppress_s)).scans;
        let told: Vec<_> = scans.iter().map(|event| (event.state, event.scan.count())).collect();
        let ended = (ScanState::Ended { last_ns: START + 5 }, 5);
        assert_eq!(told, [(ScanState::Found, 3), ended], "{forget_s} {suppress_s}");
    }
}

#[test]
fn one_answer_of_five_in_a_window_or_that_before_it_is_no_scan() {
    let ask = |second: u64, port: u64| udp(START + second * SECOND, "10.0.0.1 4000", &format!("10.0.0.2 {port}"));
    let answer = |second: u64, port: u64| udp(START + second * SECOND, &format!("10.0.0.2 {port}"), "10.0.0.1 4000");
    let failures = |range: std::ops::Range<u64>| range.map(|port| ask(port, 1000 + port)).collect::<Vec<_>>();
    let answered = |second: u64| vec![ask(second, 2000 + second), answer(second, 2000 + second)];
    let idle = vec![udp(START + 400 * SECOND, "10.0.0.8 4000", "10.0.0.9 53")];
    let found = |parts: &[Vec<Packet>]| {
        let scans = both(&parts.concat(), &case(3, 100, 100)).scans;
        scans.iter().any(|event| event.state == ScanState::Found)
    };
    assert!(found(&[failures(1..5), idle.clone()]));
    assert!(!found(&[failures(1..4), answered(4), failures(5..6), idle.clone()]));
    // Also before the first failure, in the window before, but not in that before the window before.
    assert!(!found(&[answered(0), failures(1..5), idle.clone()]));
    assert!(!found(&[answered(0), failures(101..105), idle.clone()]));
    assert!(found(&[answered(0), failures(201..205), idle.clone()]));
    assert!(found(&[failures(1..2), answered(2), failures(3..7), idle]));
}

#[test]
fn as_many_answered_syns_as_failures_are_no_scan_and_forged_answers_are_none() {
    let packets = |failures: u16, answers: u16, forged: bool| {
        let exchange = |number: u16| {
            let (time_ns, to) = (START + u64::from(number) * 20_000_000, format!("10.0.0.2 {}", 1000 + number));
            let is_answered = forged || number < answers;
            let is_refused = forged || number >= answers;
            let back = |flags: u8, after: u64| tcp(time_ns + after, &to, "10.0.0.1 4000", flags);
            let answer = is_answered.then(|| back(SYN | ACK, 1));
            let refusal = is_refused.then(|| back(RST | ACK, 2));
            std::iter::once(tcp(time_ns, "10.0.0.1 4000", &to, SYN)).chain(answer).chain(refusal)
        };
        (0..answers + failures).flat_map(exchange).collect::<Vec<_>>()
    };
    for (failures, answers, forged, is_found) in [
        (4, 3, false, true),
        (4, 4, false, false),
        (5, 4, false, true),
        (3, 0, false, false),
        (4, 0, true, true),
        (9, 9, true, true),
    ] {
        let scans = both(&packets(failures, answers, forged), &case(3, 100, 100)).scans;
        assert_eq!(!scans.is_empty(), is_found, "{failures} {answers} {forged}");
    }
}

#[test]
fn failures_that_are_forgotten_do_not_count_though_the_run_has_ended() {
    // Each is judged a minute later.
    let ask = |second: u64, port: u64| udp(START + second * SECOND, "10.0.0.1 4000", &format!("10.0.0.2 {port}"));
    let packets = [ask(0, 1), ask(11, 2), ask(11, 3)];
    let scans = both(&packets, &case(1, 10, 0)).scans;
    assert_eq!(scans.iter().map(|it| it.scan.count()).collect::<Vec<_>>(), [2, 2]);
}

/// As a file without steps says.
#[test]
fn a_key_that_was_answered_before_makes_no_scan_but_counts_in_one_whenever_it_fails() {
    let at = |second: u64, port: u16, flags: u8| {
        let (client, server) = ("10.0.0.1 4000", format!("10.0.0.2 {port}"));
        let time_ns = START + second * SECOND + u64::from(port);
        [tcp(time_ns, client, &server, SYN), tcp(time_ns + 100, &server, client, flags)]
    };
    let refused = |second: u64, ports: std::ops::Range<u16>| ports.flat_map(move |port| at(second, port, RST | ACK));
    let answered = (1..4).flat_map(|port| at(0, port, SYN | ACK));
    let (before, scan, after) = (refused(10, 1..3), refused(12, 10..18), refused(14, 3..4));
    let packets: Vec<_> = answered.chain(before).chain(scan).chain(after).collect();
    let case = case(6, 100, 100);
    let counts = |packets: &[Packet]| both(packets, &case).scans.iter().map(|it| it.scan.count()).collect::<Vec<_>>();
    assert_eq!(counts(&packets), [7 + 2, 8 + 3]);
    // Those of the first seconds.
    assert_eq!(counts(&packets[..10]), Vec::<u64>::new());
    let observer = Observer { progress: &Progress::new(), damage: &|_, never| match never {}, found: &mut |_| {} };
    let whole = Job::scans(case.settings, plan(0, 64)).run([Capture::of(&packets)], observer);
    assert_eq!(whole.expect("a good plan").0.alerts.iter().map(Alert::count).collect::<Vec<_>>(), [8 + 3]);
}

/// Each key begins when the one before it is polled, so that they never fail together. Those are of one port.
#[test]
fn what_is_polled_counts_no_longer_until_it_is_tried_at_other_times() {
    #[derive(Clone, Copy, Debug)]
    enum How {
        Silent,
        Refused,
        Datagram,
    }
    let packets = |how: How, distances: &[u64], apart: u64, is_same_port: bool, of_one_host: bool| {
        let mut packets: Vec<_> = (0..6_u64)
            .flat_map(|key| {
                let mut time_ns = START + key * apart * SECOND;
                let to = match of_one_host {
                    true => format!("10.0.0.2 {}", 1000 + key),
                    false => format!("10.0.0.{} 80", 2 + key),
                };
                let tries = std::iter::once(&0).chain(distances).enumerate();
                let tries = tries.map(|(number, distance)| {
                    time_ns += distance * SECOND;
                    let from = format!("10.0.0.1 {}", 4000 + if is_same_port { 0 } else { number });
                    match how {
                        How::Silent => vec![tcp(time_ns, &from, &to, SYN)],
                        How::Refused => vec![tcp(time_ns, &from, &to, SYN), tcp(time_ns + 5, &to, &from, RST | ACK)],
                        How::Datagram => vec![udp(time_ns, &from, &to)],
                    }
                });
                tries.collect::<Vec<_>>().concat()
            })
            .collect();
        packets.push(udp(START + 2000 * SECOND, "10.0.0.8 4000", "10.0.0.9 53"));
        packets.sort_by_key(|packet| packet.time_ns);
        packets
    };
    let found = |how, distances: &[u64], apart, is_same_port| {
        let is_found = |of_one_host| {
            !both(&packets(how, distances, apart, is_same_port, of_one_host), &case(2, 900, 100)).scans.is_empty()
        };
        // Ports of one host are a scan however they are tried.
        assert!(is_found(true), "{how:?} {distances:?}");
        is_found(false)
    };
    for how in [How::Silent, How::Refused, How::Datagram] {
        assert!(!found(how, &[25, 25, 25], 45, false), "{how:?}");
        assert!(!found(how, &[25, 27, 24, 300], 80, false), "{how:?}");
        assert!(!found(how, &[1, 30, 30, 30], 100, false), "{how:?}");
        // Twice is too few, and distances that grow, are short, or are long are no poll.
        assert!(found(how, &[25, 25], 45, false), "{how:?}");
        assert!(found(how, &[10, 20, 40, 80], 45, false), "{how:?}");
        assert!(found(how, &[25, 25, 30, 30], 45, false), "{how:?}");
        assert!(found(how, &[1; 60], 45, false), "{how:?}");
        assert!(found(how, &[400, 400, 400], 45, false), "{how:?}");
        assert!(found(how, &[25, 25, 25], 45, true), "{how:?}");
    }
    // By the same port once its flow is over.
    assert!(!found(How::Datagram, &[100, 100, 100], 250, true));
    // What is polled is not forgotten: it fails once.
    let expected = both(&packets(How::Refused, &[200; 20], 45, false, false), &case(2, 900, 100));
    assert_eq!((expected.rejected, expected.scans.len()), (6, 2), "{expected:?}");
}
