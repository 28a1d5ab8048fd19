//! Facts for people: the same however the work is spread, right, and bounded.

use crate::captures_folder::captures;
use crate::support::{of_bytes, plan};
use corelane_monitor::eve::Events;
use corelane_monitor::facts::{Facts, NameKind};
use corelane_monitor::{Inspection, Origin, Plan, QueueKind};
use corelane_net::synth::{self, Config, Conversations};
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;

/// The most bytes of a page.
const PAGE: usize = 3_000_000;

fn inspection() -> Inspection {
    Inspection { facts: true, events: Events::NONE, ..Inspection::default() }
}

/// The facts and the page, which do not depend on the number of analyzers.
fn facts(name: &str, capture: &[u8]) -> (Facts, String) {
    let mut first: Option<(Facts, Vec<u8>)> = None;
    for analyzers in 0..=4 {
        let plan = match analyzers {
            0 => Plan { analyzers: 0, ..Plan::default() },
            n => plan(n, QueueKind::ALL[n % QueueKind::ALL.len()], [2, 64, 2048][n % 3]),
        };
        let run = of_bytes(capture, &inspection(), &plan);
        let mut page = Vec::new();
        let origin = Origin { files: vec!["x.pcap".to_owned()], is_demo: false };
        run.findings.write_page(&run.report, &origin, &mut page).expect("memory");
        let facts = *run.findings.facts.expect("facts");
        let packets = facts.timeline.bins().iter().flat_map(|bin| bin.packets).sum::<u64>();
        assert!(
            packets <= run.report.packets
                && packets + run.report.malformed + run.report.undecoded >= run.report.packets
        );
        let begun = facts.timeline.bins().iter().flat_map(|bin| bin.conversations).map(u64::from).sum::<u64>();
        assert_eq!(begun, facts.conversations.len() as u64 + facts.more_conversations, "{name}");
        assert!(page.len() < PAGE, "{name}: {} bytes", page.len());
        match &first {
            None => first = Some((facts, page)),
            Some(first) => {
                // The whole of it would be pages long.
                let of = |facts: &Facts| format!("{facts:#?}");
                let (own, other) = (of(&facts), of(&first.0));
                let different = own.lines().zip(other.lines()).position(|(own, other)| own != other);
                let at = different.map(|at| own.lines().skip(at.saturating_sub(9)).take(10).collect::<Vec<_>>());
                assert_eq!(at, None, "{name}, {plan:?}: {:?}", other.lines().nth(different.unwrap_or(0)));
                assert!(facts == first.0, "{name}, {plan:?}");
                assert!(page == first.1, "{name}, {plan:?}: another page");
            }
        }
    }
    let (facts, page) = first.expect("a run");
    (facts, String::from_utf8(page).expect("UTF-8"))
}

#[test]
fn captures_give_the_same_facts_for_any_number_of_analyzers() {
    let Some(folder) = captures() else { return };
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.contains(".pcap") {
            facts(&name, &fs::read(&path).expect("a file"));
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}

/// The open ports of each host that a scan has found.
fn open(facts: &Facts) -> BTreeMap<String, Vec<u16>> {
    let mut hosts = BTreeMap::<String, Vec<u16>>::new();
    for open in facts.scanners.iter().flat_map(|scanner| &scanner.told.open) {
        hosts.entry(open.host.to_string()).or_default().push(open.port);
    }
    hosts
}

#[test]
fn what_a_scan_found_open_is_what_answered() {
    let Some(folder) = captures() else { return };
    let read = |name: &str| fs::read(folder.join(name)).expect("a file");
    let (connect, page) = facts("connect", &read("scan-connect-retries.pcap"));
    let hosts = [("192.168.1.25".to_owned(), vec![135, 139, 445, 1025, 5000])];
    assert_eq!(open(&connect), BTreeMap::from(hosts));
    let told = &connect.stories[0].told;
    assert_eq!((told.failed, told.answered, told.rejected), (995, 5, 941));
    let over_time = told.attempts.bins().iter().fold([0, 0], |sum, bin| [sum[0] + bin[0], sum[1] + bin[1]]);
    assert_eq!(over_time, [995, 5]);
    assert!(page.contains("1,000 ports") && page.contains("135, 139, 445, 1025, 5000"));
    let (sweep, _) = facts("sweep", &read("scan-network-sweep.pcap"));
    let hosts = [
        ("192.168.10.10", vec![80, 443]),
        ("192.168.10.100", vec![21, 80]),
        ("192.168.10.11", vec![22, 80, 443, 3011]),
    ];
    assert_eq!(open(&sweep), hosts.map(|(host, ports)| (host.to_owned(), ports)).into());
    assert_eq!((sweep.scanners.len(), sweep.scanners[0].rows.len()), (1, 233));
}

#[test]
fn names_have_those_that_asked_for_them() {
    let Some(folder) = captures() else { return };
    let (facts, page) = facts("http", &fs::read(folder.join("http-mixed.pcap")).expect("a file"));
    let names = &facts.names[NameKind::Http as usize];
    // tshark: 338 requests, two of which another host made.
    assert_eq!(names.iter().map(|(_, name)| name.count).sum::<u64>(), 338);
    let clients: std::collections::BTreeSet<IpAddr> =
        names.iter().flat_map(|(_, name)| name.clients.items().to_vec()).collect();
    assert_eq!(clients.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.4", "10.0.0.6"]);
    assert_eq!((&*names[0].0, names[0].1.count), ("images1.ynet.co.il", 166));
    assert_eq!(facts.names[NameKind::Dns as usize].iter().map(|(_, name)| name.count).sum::<u64>(), 69);
    assert_eq!(facts.fingerprints.iter().map(|(_, entry)| entry.count).sum::<u64>(), 2);
    assert!(page.contains("www.ynet.co.il") && page.contains("No scans found"));
}

#[test]
fn planted_scans_have_their_stories() {
    let config = Config { packets: 200_000, probe_scans: 4, ..Config::default() };
    let mut generator = synth::Generator::new(config.clone()).expect("a configuration");
    while generator.next_frame().is_some() {}
    let truth = generator.truth();
    let (facts, _) = facts("planted", &synth::capture(config).expect("a configuration"));
    assert_eq!(facts.stories.len(), truth.len());
    for planted in truth {
        let told = facts.stories.iter().find(|story| {
            (story.scan.source(), story.scan.count(), story.scan.time_ns())
                == (planted.source, planted.count, planted.time_ns)
        });
        let told = &told.unwrap_or_else(|| panic!("no story of {planted}")).told;
        assert_eq!(told.failed, planted.count, "{planted}");
        assert!(told.span.0 <= planted.time_ns && told.span.1 + 3_000_000_000 >= planted.time_ns);
    }
}

#[test]
fn conversations_of_all_kinds_and_many_hosts_stay_within_the_page() {
    let traffic = Conversations { seed: 1, conversations: 20_000, trouble: 20, spoofed: 20_000 };
    let (talked, _) = facts("conversations", &traffic.capture());
    assert!(talked.more_conversations > 10_000, "{}", talked.more_conversations);
    let config =
        Config { packets: 1_000_000, hosts: 400_000, vertical_scans: 200, horizontal_scans: 200, ..Config::default() };
    let (many, _) = facts("hosts", &synth::capture(config).expect("a configuration"));
    assert!(many.more_hosts > 10_000 && many.more_scanners > 100, "{} {}", many.more_hosts, many.more_scanners);
}

#[test]
fn the_longest_names_from_very_many_hosts_stay_within_the_page() {
    let mut file = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 0xffff, 101].map(u32::to_le_bytes).concat();
    for number in 0..150_000_u32 {
        let mut query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0".to_vec();
        for label in 0..3 {
            query.push(63);
            query.extend(
                format!("{:<63}", format!("{}{label}", number.wrapping_mul(0x9e37_79b9))).replace(' ', "<").bytes(),
            );
        }
        query.extend(b"\0\0\x01\0\x01");
        let length = 28 + query.len() as u16;
        file.extend([number / 1000, 0, u32::from(length), u32::from(length)].map(u32::to_le_bytes).concat());
        file.extend([&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0]].concat());
        file.extend([&(0x0a00_0000 + number / 8).to_be_bytes()[..], &[10, 255, 255, 255]].concat());
        file.extend([&[156, 64, 0, 53][..], &(length - 20).to_be_bytes(), &[0, 0], &query].concat());
    }
    let (facts, page) = facts("names", &file);
    assert_eq!(facts.names[NameKind::Dns as usize].len(), 300);
    assert!(facts.more_names[NameKind::Dns as usize] > 100_000 && facts.cut.contains(&"names in DNS"));
    assert!(facts.names.iter().flatten().all(|(name, _)| name.len() <= 128));
    assert!(!page.contains("<<"));
}

#[test]
fn facts_are_gathered_only_where_they_are_asked_for() {
    let capture = Conversations { seed: 1, conversations: 100, trouble: 0, spoofed: 0 }.capture();
    let run = of_bytes(&capture, &Inspection::default(), &Plan::default());
    assert_eq!(run.findings.facts, None);
    let error = run.findings.write_page(&run.report, &Origin::default(), Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
