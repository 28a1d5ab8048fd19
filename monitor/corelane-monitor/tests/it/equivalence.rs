//! One answer: for any number of SubAnalyzers, any batches, any interleaving, and the same as the plain reference.

use crate::choices::Choices;
use crate::packets::{ACK, Capture, FIN, Packet, RST, START, SYN, XMAS};
use crate::reference::{self, Findings};
use corelane_monitor::{
    Content, Counting, Dispatcher, Ignored, MainAnalyzer, Network, Report, Run, Settings, Slot, StateReport,
    SubAnalyzer, analyzer_of,
};
use corelane_net::synth::Config;
use proptest::prelude::*;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU64;

/// Runs the stages with `analyzers` SubAnalyzers that take turns at random, in batches of random length.
fn run_split(capture: &Capture, settings: &Settings, analyzers: usize, seed: u64) -> Report {
    run_split_telling(capture, settings, analyzers, seed, |_| {})
}

/// The same, and tells of each state report.
fn run_split_telling(
    capture: &Capture,
    settings: &Settings,
    analyzers: usize,
    seed: u64,
    mut tell: impl FnMut(&StateReport),
) -> Report {
    let mut choices = Choices(seed);
    let run = Run::seeded(settings.seed);
    let mut dispatcher = Dispatcher::new(&run, settings);
    let mut queues: Vec<Vec<Slot>> = vec![Vec::new(); analyzers];
    capture.each(|record| {
        dispatcher.record(&record, |partition, slot| queues[analyzer_of(partition, analyzers)].push(slot));
    });
    let mut stages: Vec<_> = (0..analyzers).map(|_| SubAnalyzer::new(settings, &run)).collect();
    let mut taken = vec![0; analyzers];
    let mut main = MainAnalyzer::new(settings);
    let mut late: Vec<StateReport> = Vec::new();
    while taken.iter().zip(&queues).any(|(&taken, queue)| taken < queue.len()) {
        let turn = choices.below(analyzers as u64) as usize;
        let longest = [1, 3, 64, 65, 200][choices.below(5) as usize];
        let left = &queues[turn][taken[turn]..];
        let batch = &left[..left.len().min(1 + choices.below(longest) as usize)];
        stages[turn].process(batch);
        taken[turn] += batch.len();
        for report in stages[turn].take_reports().inspect(&mut tell) {
            if choices.below(2) == 0 { main.state_report(report) } else { late.push(report) }
        }
    }
    let results: Vec<_> = (stages.iter_mut()).map(|stage| stage.finish(dispatcher.max_time())).collect();
    late.extend(stages.iter_mut().flat_map(|stage| stage.take_reports()).inspect(&mut tell));
    while !late.is_empty() {
        main.state_report(late.swap_remove(choices.below(late.len() as u64) as usize));
    }
    results.into_iter().for_each(|result| main.partial_result(result));
    main.finish(&dispatcher)
}

/// Few hosts, few ports, and times about the time-out, so that packets meet in every way there is.
fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let flags = prop_oneof![
        4 => Just(Some(SYN)),
        2 => Just(Some(SYN | ACK)),
        1 => Just(Some(RST)),
        1 => Just(Some(RST | ACK)),
        1 => Just(Some(SYN | FIN)),
        1 => Just(Some(SYN | ACK | FIN)),
        1 => Just(Some(ACK)),
        1 => Just(Some(0)),
        1 => Just(Some(FIN)),
        1 => Just(Some(XMAS)),
        5 => Just(None),
        1 => any::<u8>().prop_map(Some),
    ];
    let port = || prop::sample::select(&[53, 1023, 1024, 33_433, 33_434, 50_000][..]);
    let hops = prop::sample::select(&[1, 30, 31, 255][..]);
    let packet = (any::<bool>(), 0..5_u32, 0..6_u32, port(), port(), 0..8_u64, flags, hops);
    prop::collection::vec(packet, 0..400).prop_map(|packets| {
        let mut now = START;
        packets
            .into_iter()
            .map(|(v6, source, destination, source_port, destination_port, step, flags, hops)| {
                // Mostly forwards, sometimes back.
                now = now + step * 100 - 250;
                let address = |host: u32| -> IpAddr {
                    if host == 5 {
                        // All hosts.
                        if v6 { Ipv6Addr::from_bits(0xff02 << 112 | 1).into() } else { Ipv4Addr::BROADCAST.into() }
                    } else if v6 {
                        Ipv6Addr::from_bits(u128::from(host) << 64 | 0xfe80 << 112 | u128::from(host % 2)).into()
                    } else {
                        Ipv4Addr::from_bits(0x0a00_0000 + host * 77).into()
                    }
                };
                let (source, destination) = (address(source), address(destination));
                Packet { time_ns: now, source, destination, source_port, destination_port, flags, hops }
            })
            .collect()
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let networks =
        ["10.0.0.77", "10.0.0.0/25", "fe80::/15", "fe80:0:0:1::/64"].map(|text| text.parse::<Network>().unwrap());
    let network = || prop::option::of(prop::sample::select(networks.to_vec()));
    let rule = (network(), network(), prop::option::of(1..4_u16))
        .prop_map(|(source, target, port)| Ignored { source, target, port })
        .prop_filter("it would ignore all", |ignored| *ignored != Ignored::default());
    let ignored = prop::collection::vec(rule, 0..3);
    let counting =
        (1..500_u64, 0..8_usize).prop_map(|(every, top)| NonZeroU64::new(every).map(|every| Counting { every, top }));
    let counting = prop_oneof![Just(None), counting];
    (0..3000_u64, 0..4_u64, 0..4_u64, any::<bool>(), ignored, counting, 0..4_usize, any::<u64>()).prop_map(
        |(syn_timeout_ns, vertical_threshold, horizontal_threshold, probes, ignored, counting, top, seed)| Settings {
            syn_timeout_ns,
            vertical_threshold,
            horizontal_threshold,
            probes,
            tunnels: false,
            ignored,
            counting,
            table_bytes: None,
            top,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_report_of_one_thread(
        packets in packets(), settings in settings(), analyzers in 1..40_usize, seed in any::<u64>(),
    ) {
        let single = Capture::of(&packets).run(&settings);
        let mut split = run_split(&Capture::of(&packets), &settings, analyzers, seed);
        prop_assert_eq!(split.analyzer_packets.len(), analyzers);
        prop_assert_eq!(split.analyzer_packets.iter().sum::<u64>(), single.analyzer_packets[0]);
        split.analyzer_packets.clone_from(&single.analyzer_packets);
        prop_assert_eq!(split, single);
    }

    #[test]
    fn the_report_is_that_of_the_plain_reference(packets in packets(), settings in settings()) {
        let report = Capture::of(&packets).run(&settings);
        let findings = Findings {
            flows: report.flows,
            pairs: report.pairs.unwrap_or_default(),
            rejected: report.rejected,
            unanswered: report.unanswered,
            alerts: report.alerts,
            probe_scans: report.probe_scans,
            sources: report.sources,
        };
        prop_assert_eq!(findings, reference::analyse(&packets, &settings));
        prop_assert_eq!(report.failed_attempts, report.rejected + report.unanswered);
        prop_assert_eq!(report.packets, packets.len() as u64);
        prop_assert_eq!(report.malformed + report.undecoded, 0);
    }
}

#[test]
fn synthetic_traffic_has_its_planted_scans_for_any_number_of_analyzers() {
    let (capture, truth) = Capture::synthetic(Config { packets: 50_000, probe_scans: 8, ..Config::default() });
    let settings = Settings::default();
    let single = capture.clone().run(&settings);
    let truth: Vec<Value> = serde_json::from_str(&truth).expect("JSON");
    let (probes, syns): (Vec<_>, Vec<_>) = truth.into_iter().partition(|scan| scan.get("probe").is_some());
    assert_eq!(serde_json::to_value(&single.alerts).expect("JSON"), Value::Array(syns));
    assert_eq!(serde_json::to_value(&single.probe_scans).expect("JSON"), Value::Array(probes));
    assert!(!single.alerts.is_empty() && single.probe_scans.len() == 8);
    for analyzers in [1, 2, 3, 7, 16] {
        let mut split = run_split(&capture, &settings, analyzers, 3);
        split.analyzer_packets.clone_from(&single.analyzer_packets);
        assert_eq!(split, single, "{analyzers}");
    }
}

#[test]
fn sources_are_reported_up_every_so_many_bytes_and_alike_for_any_split() {
    let (capture, _) = Capture::synthetic(Config { packets: 20_000, hosts: 300, ..Config::default() });
    let flows = capture.clone().run(&Settings::default()).flows;
    let mut number = Vec::new();
    let mut lists = Vec::new();
    for every in [1, 200, 10_000, u64::MAX] {
        let counting = NonZeroU64::new(every).map(|every| Counting { every, top: 1_000_000 });
        let settings = Settings { counting, ..Settings::default() };
        let mut first = None;
        for analyzers in [1, 2, 7, 256] {
            let mut reports = Vec::new();
            let report = run_split_telling(&capture, &settings, analyzers, 5, |report| {
                if let Content::Sent { bytes, connections } = report.content() {
                    reports.push((report.source(), bytes, connections));
                }
            });
            reports.sort_unstable();
            let found = (reports, report.sources.expect("sources"));
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "{analyzers} {every}");
        }
        let (reports, list) = first.expect("a run");
        let bytes: u64 = list.iter().map(|counts| counts.bytes).sum();
        assert_eq!(reports.iter().map(|(_, bytes, _)| bytes).sum::<u64>(), bytes);
        assert_eq!(list.iter().map(|counts| counts.connections).sum::<u64>(), flows);
        number.push(reports.len());
        lists.push(list);
    }
    assert!(number.is_sorted_by(|more, less| more > less), "{number:?}");
    // M says how often, not what.
    assert!(lists.iter().all(|list| *list == lists[0]));
}

#[test]
fn talkers_are_the_same_for_any_split_and_add_up() {
    let packets: Vec<_> = (0..5000_u32)
        .map(|i| Packet {
            time_ns: START,
            source: Ipv4Addr::from_bits(i % 83).into(),
            destination: Ipv4Addr::from_bits(1000 + i % 7).into(),
            source_port: (i % 13) as u16,
            destination_port: 80,
            flags: (i % 3 != 0).then_some(ACK),
            hops: 64,
        })
        .collect();
    let settings = Settings { top: 5, ..Settings::default() };
    let capture = Capture::of(&packets);
    let one = run_split(&capture, &settings, 1, 1);
    assert_eq!((one.conversations.len(), one.hosts.len()), (5, 5));
    let busiest = &one.hosts[0];
    let mine = |packet: &&Packet| packet.source == busiest.id || packet.destination == busiest.id;
    assert_eq!(busiest.volume.packets, packets.iter().filter(mine).count() as u64);
    for analyzers in [2, 3, 7, 16, 256, 300] {
        let split = run_split(&capture, &settings, analyzers, 7);
        assert_eq!((&split.conversations, &split.hosts), (&one.conversations, &one.hosts), "{analyzers}");
    }
}
