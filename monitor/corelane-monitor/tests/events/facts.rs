//! Facts for people: the same however the work is spread, right, and bounded.

use crate::captures_folder::captures;
use crate::packets::{ACK, Capture, Packet, RST, SYN, udp};
use crate::support::{of_bytes, plan, with};
use corelane_monitor::eve::Events;
use corelane_monitor::facts::{Facts, NameKind};
use corelane_monitor::{Inspection, Origin, Plan, Settings, Source};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config, Conversations};
use std::collections::BTreeMap;
use std::fs;

/// The most bytes of a page.
const PAGE: usize = 3_000_000;

fn inspection() -> Inspection {
    Inspection { facts: true, events: Events::NONE, ..Inspection::default() }
}

/// The facts and the page, which do not depend on the number of analyzers.
fn facts(name: &str, capture: &[u8]) -> (Facts, String) {
    facts_of(name, &Settings::default(), || Reader::from_bytes(capture.to_vec()).expect("a capture"))
}

fn facts_of<S: Source + Send>(name: &str, settings: &Settings, capture: impl Fn() -> S) -> (Facts, String) {
    let mut first: Option<(Facts, Vec<u8>)> = None;
    for analyzers in 0..=4 {
        let plan = match analyzers {
            0 => Plan { analyzers: 0, ..Plan::default() },
            n => plan(n, [2, 64, 2048][n % 3]),
        };
        let run = with(capture(), settings, &inspection(), &plan);
        let mut page = Vec::new();
        let origin = Origin { files: vec!["x.pcap".to_owned()], ..Origin::default() };
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
    for open in facts.scanners.iter().flat_map(|scanner| &scanner.details.open) {
        hosts.entry(open.host.to_string()).or_default().push(open.port.number);
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
    let details = &connect.stories[0].details;
    assert_eq!((details.failed, details.answered, details.rejected), (995, 5, 941));
    // All of them are of the scan, and the page says so in each of its places.
    assert_eq!(page.matches("(941 rejected, 54 unanswered)").count(), 2);
    assert!(text(&page).contains("995 ports941 rejected54 unanswered"));
    let over_time =
        details.attempts.bins().iter().fold([0, 0], |sum, bin| [sum[0] + bin.failed, sum[1] + bin.answered]);
    assert_eq!(over_time, [995, 5]);
    assert!(text(&page).contains(".No HTTP, TLS or DNS seen."), "and why there is no word of them");
    assert!(page.contains("1,000 ports") && page.contains("135, 139, 445, 1025, 5000"));
    let (sweep, _) = facts("sweep", &read("scan-network-sweep.pcap"));
    let hosts = [
        ("192.168.10.10", vec![80, 443]),
        // 1026 refuses at first, and is open later for data of FTP.
        ("192.168.10.100", vec![21, 80, 1026]),
        ("192.168.10.11", vec![22, 80, 443, 3011]),
    ];
    assert_eq!(open(&sweep), hosts.map(|(host, ports)| (host.to_owned(), ports)).into());
    assert_eq!((sweep.scanners.len(), sweep.scanners[0].rows.len()), (1, 233));
}

/// What a reader sees of a page, without commands; a blank stands for `&nbsp;`.
fn text(page: &str) -> String {
    let mut page = page.to_owned();
    while let Some(begin) = page.find("<code popover") {
        let end = begin + page[begin..].find("</code>").expect("an end");
        page.replace_range(begin..end, "");
    }
    page.split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text)
        .collect::<String>()
        .replace("&nbsp;", " ")
}

/// A scanner of several hosts, by TCP and UDP.
#[test]
fn the_numbers_of_a_page_do_not_contradict_each_other() {
    let Some(folder) = captures() else { return };
    let (facts, page) = facts("sweep", &fs::read(folder.join("scan-network-sweep.pcap")).expect("a file"));
    let text = text(&page);
    let details = &facts.scanners[0].details;
    assert_eq!((details.failed, details.probes, details.rejected), (8592 + 241, 3372 + 241, 3996));
    for part in [
        "1 host ran 11 scans; open ports were found on 3 hosts.",
        "Failed TCP attempts5,220 (3,996 rejected, 1,224 unanswered)",
        "5,220 failed TCP attempts (3,996 rejected, 1,224 unanswered); 3,613 failed probes by UDP, ping",
        "OpenMostly fromTookFirstLast",
        "231 hosts3 rejected228 unansweredport 443 of 192.168.10.10",
        "vertical TCP192.168.10.54999 ports999 rejectednone seen13:50:552.484 s364 a second13:50:3413:50:58",
        // Most of it in half a second, but for one port 24 minutes later.
        "vertical UDP192.168.10.531,001 portsno data backnone seen13:51:000.518 s13:51:0014:15:35",
        "369 portsno data backno",
        "and sweeps by ping and by ARP",
        "horizontal pingmany hosts241 hosts15 answerednone seen",
        // The capture has 26 requests, 19 hellos and 7 queries.
        "HTTP: 10.20.0.110 (18 requests) asked for 3 names, ",
        "192.168.10.11 (6); 8 more requests without a name",
        "TLS: 19 hellos, none with a name; most bytes between 10.20.0.110 and 192.168.10.11",
        "version.bind (1); 3 more queries without a name",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("SYN") && !text.contains(" seen.HTTP"), "{text}");
}

#[test]
fn names_have_those_that_asked_for_them() {
    let Some(folder) = captures() else { return };
    let (facts, page) = facts("http", &fs::read(folder.join("http-mixed.pcap")).expect("a file"));
    let names = &facts.names[NameKind::Http as usize];
    // tshark: 338 requests, three of which another host made.
    assert_eq!(names.iter().map(|(_, name)| name.count).sum::<u64>(), 338);
    let mut clients = BTreeMap::<String, u64>::new();
    for (host, count) in names.iter().flat_map(|(_, name)| name.clients.items()) {
        *clients.entry(host.to_string()).or_default() += count;
    }
    assert_eq!(clients, BTreeMap::from([("10.0.0.4".to_owned(), 3), ("10.0.0.6".to_owned(), 335)]));
    // The sentence says whose requests they are, and the row how often each asked.
    let text = text(&page);
    let says = "HTTP: 10.0.0.6 (335 requests) and 10.0.0.4 (3 requests) asked for 26 names, most often \
                images1.ynet.co.il (166 requests), ";
    assert!(text.contains(says) && text.contains("10.0.0.6 (2), 10.0.0.4 (1)"), "{text}");
    assert!(page.contains("<button>Requests</button>") && page.contains("<button>Names served</button>"));
    assert_eq!((&*names[0].0, names[0].1.count), ("images1.ynet.co.il", 166));
    assert_eq!(facts.names[NameKind::Dns as usize].iter().map(|(_, name)| name.count).sum::<u64>(), 69);
    assert_eq!(facts.fingerprints.iter().map(|(_, entry)| entry.count).sum::<u64>(), 2);
    assert!(page.contains("www.ynet.co.il") && page.contains("<p>No scans found; "), "and not in green");
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
        let details = facts.stories.iter().find(|story| {
            (story.scan.source(), story.scan.count(), story.scan.time_ns())
                == (planted.source, planted.count, planted.time_ns)
        });
        let details = &details.unwrap_or_else(|| panic!("no story of {planted}")).details;
        assert_eq!(details.failed, planted.count, "{planted}");
        assert!(details.span.0 <= planted.time_ns && details.span.1 + 3_000_000_000 >= planted.time_ns);
    }
}

#[test]
fn conversations_of_all_kinds_and_many_hosts_stay_within_the_page() {
    let traffic = Conversations { seed: 1, conversations: 20_000, trouble: 20, spoofed: 20_000 };
    let (talked, _) = facts("conversations", &traffic.capture());
    assert!(talked.more_conversations > 10_000, "{}", talked.more_conversations);
    let config =
        Config { packets: 200_000, hosts: 100_000, vertical_scans: 200, horizontal_scans: 200, ..Config::default() };
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
    // More were there, but which came back after they went is not known.
    assert!((50_000..149_700).contains(&facts.more_names[NameKind::Dns as usize]));
    assert!(facts.cut.contains(&"names in DNS") && page.contains("and at least "), "{:?}", facts.cut);
    assert!(facts.names.iter().flatten().all(|(name, _)| name.len() <= 128));
    assert!(!page.contains("<<"));
}

/// A packet of the scanner to a port of its target, or of the target back.
fn packet(port: u16, is_back: bool, flags: Option<u8>) -> Packet {
    let (scanner, target) = ("10.0.0.1 40000", &*format!("10.0.0.2 {port}"));
    let (from, to) = if is_back { (target, scanner) } else { (scanner, target) };
    Packet { flags, ..udp(0, from, to) }
}

const DATAGRAM: Option<u8> = None;

/// Probes of these flags to these ports a millisecond apart, and what comes back, if anything.
fn probes(ports: impl IntoIterator<Item = u16>, flags: Option<u8>, back: Option<Option<u8>>) -> Vec<Packet> {
    let both = |port| [Some(packet(port, false, flags)), back.map(|flags| packet(port, true, flags))];
    ports.into_iter().flat_map(both).flatten().collect()
}

fn facts_of_packets(name: &str, settings: &Settings, packets: Vec<Packet>) -> (Facts, String) {
    let timed = (1_700_000_000_000..).map(|ms: u64| ms * 1_000_000).zip(packets);
    let timed: Vec<_> = timed.map(|(time_ns, packet)| Packet { time_ns, ..packet }).collect();
    facts_of(name, settings, || Capture::of(&timed))
}

/// `top` lists each answer, too.
#[test]
fn a_port_that_answers_after_it_failed_was_open() {
    for back in [Some(Some(RST | ACK)), None] {
        let mut timed: Vec<Packet> = probes(1..401, Some(SYN), back);
        let before = timed.len();
        timed.extend(probes([7, 300], Some(SYN), Some(Some(SYN | ACK))));
        for (ms, packet) in timed.iter_mut().enumerate() {
            // The second time, the first was given up.
            packet.time_ns = (1_700_000_000_000 + ms as u64 + if ms < before { 0 } else { 10_000 }) * 1_000_000;
        }
        let (facts, _) = facts_of("afterwards", &Settings::default(), || Capture::of(&timed));
        let details = &facts.stories[0].details;
        let open: Vec<u16> = details.open.iter().map(|opened| opened.port.number).collect();
        assert_eq!((details.failed, details.answered, open), (400, 2, vec![7, 300]), "{back:?}");
    }
}

/// The ports 1 to 400 fail by TCP and UDP, and these answer: less than one of five, or UDP makes no scan.
fn scan_by_both(answering: std::ops::Range<u16>) -> (Facts, String) {
    let mut frames = probes(1..401, Some(SYN), Some(Some(RST | ACK)));
    frames.extend(probes(1..401, DATAGRAM, None));
    frames.extend(probes(answering.clone(), Some(SYN), Some(Some(SYN | ACK))));
    frames.extend(probes(answering, DATAGRAM, Some(DATAGRAM)));
    facts_of_packets("both", &Settings::default(), frames)
}

#[test]
fn a_port_that_answers_by_tcp_and_udp_is_two_and_no_more() {
    let (facts, page) = scan_by_both(1000..1004);
    let details = &facts.scanners[0].details;
    assert_eq!((details.answered, details.open.len(), details.more_open), (8, 8, false));
    assert!(page.contains("<b>1000–1003, UDP 1000–1003</b>."), "all of them, and no more");
    // 60 of each, of which 64 are kept.
    let (facts, page) = scan_by_both(1000..1060);
    let details = &facts.scanners[0].details;
    assert_eq!((details.answered, details.open.len(), details.more_open), (120, 64, true));
    assert!(page.contains("</b> and 108 more."));
}

#[test]
fn answers_that_had_no_room_are_missing_and_the_page_says_so() {
    let scan = |failing: std::ops::Range<u16>, table_bytes| {
        let mut frames = probes(failing, Some(SYN), Some(Some(RST | ACK)));
        frames.extend(probes(1000..9000, Some(SYN), Some(Some(SYN | ACK))));
        facts_of_packets("answers", &Settings { table_bytes, ..Settings::default() }, frames)
    };
    const SAYS: &str = "what was open may be incomplete";
    let (facts, page) = scan(20_000..28_001, None);
    assert_eq!((facts.scanners[0].details.answered, facts.may_lack_answers), (8000, false));
    assert!(!page.contains(SAYS));
    // So little room that of the answers fewer are left than failures.
    let (facts, page) = scan(1..41, Some(64 << 20));
    assert!((1..40).contains(&facts.scanners[0].details.answered) && facts.may_lack_answers);
    assert!(page.contains(SAYS) && page.contains("were found on at least 1 host"));
}

#[test]
fn the_least_and_the_largest_times_are_times() {
    for times in [[0, 0], [0, u64::MAX], [u64::MAX, u64::MAX]] {
        let mut packets = probes(1..41, Some(SYN), None);
        packets.push(packet(80, false, DATAGRAM));
        let last = packets.len() - 1;
        (0..).zip(&mut packets).for_each(|(at, packet)| packet.time_ns = times[usize::from(at == last)]);
        let (facts, page) = facts_of(&format!("{times:?}"), &Settings::default(), || Capture::of(&packets));
        assert_eq!(facts.timeline.bins().iter().flat_map(|bin| bin.packets).sum::<u64>(), 41);
        assert_eq!((facts.stories.len(), facts.stories[0].details.span.0), (1, times[0]), "{times:?}");
        assert!(page.contains("1970-01-01") || times[0] > 0);
    }
}

/// Attempts at ports from 1 on, with this time after each of them.
fn scan_with_pauses(pauses: impl IntoIterator<Item = u64>) -> (Facts, String) {
    let mut time_ms = 1_700_000_000_000;
    let timed: Vec<_> = (1..)
        .zip(pauses)
        .map(|(port, pause)| {
            let packet = Packet { time_ns: time_ms * 1_000_000, ..packet(port, false, Some(SYN)) };
            time_ms += pause;
            packet
        })
        .collect();
    facts_of("pauses", &Settings::default(), || Capture::of(&timed))
}

#[test]
fn attempts_in_a_moment_are_not_told_as_a_rate() {
    let page = scan_with_pauses([1; 40]).1;
    assert!(text(&page).contains("0.035 s22:13:20.000") && !page.contains("a second"));
    assert!(text(&scan_with_pauses([50; 40]).1).contains("1.750 s20 a second"));
}

#[test]
fn a_scan_has_its_stragglers_beside_its_time() {
    const HOUR: u64 = 3_600_000;
    // Two come long before the others, and two long after.
    let pauses = |of_most: u64| [[HOUR; 2].to_vec(), vec![of_most; 39], [HOUR; 3].to_vec()].concat();
    let (facts, page) = scan_with_pauses(pauses(100));
    let details = &facts.stories[0].details;
    let ns = |ms: u64| (1_700_000_000_000 + ms) * 1_000_000;
    assert_eq!((details.failed, details.span.0, details.span.1), (44, ns(0), ns(4 * HOUR + 3900)));
    let (most, count) = details.most();
    assert_eq!((most.0, most.1, count), (ns(2 * HOUR), ns(2 * HOUR + 3900), 40));
    let text_of = text(&page);
    let says = "(TCP) from 2023-11-14 22:13:20 to 2023-11-15 02:13:23, most of it in 3.900 s from 2023-11-15 00:13:20;";
    assert_eq!(text_of.matches(says).count(), 2, "{text_of}");
    assert!(text_of.contains("none seen2023-11-15 00:13:203.900 s10 a second2023-11-14 22:13:20"), "{text_of}");
    // Of a scan without stragglers there is one time to tell.
    assert!(!text(&scan_with_pauses([1000; 44]).1).contains("most of it"));
}

#[test]
fn tags_labels_and_tunnels_are_noticed() {
    let of = |before: &[u8], inner: Vec<u8>| {
        let frame = [&[2; 12][..], before, &inner].concat();
        let mut file = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 0xffff, 1].map(u32::to_le_bytes).concat();
        file.extend([1, 0, frame.len() as u32, frame.len() as u32].map(u32::to_le_bytes).concat());
        file.extend(frame);
        let settings = Settings { tunnels: true, ..Settings::default() };
        let (facts, page) = facts_of("wraps", &settings, || Reader::from_bytes(file.clone()).expect("a capture"));
        assert_eq!(facts.conversations.len(), 1, "{before:x?}");
        let commands = ["tcpdump -nr x.pcap", "(vlan and ", ".proto =="].map(|part| page.contains(part));
        ((facts.wraps.tags, facts.wraps.others), commands)
    };
    let udp = || packet(80, false, DATAGRAM).frame();
    let (one, two) = ([0x81, 0, 0, 5, 8, 0], [0x88, 0xa8, 0, 5, 0x81, 0, 0, 5, 8, 0]);
    assert_eq!(of(&[8, 0], udp()), ((0, false), [true, false, true]));
    assert_eq!(of(&one, udp()), ((1, false), [true, true, true]));
    assert_eq!(of(&two, udp()), ((2, false), [true, true, true]));
    assert_eq!(of(&[0x91, 0, 0, 5, 0x88, 0xa8, 0, 5, 0x81, 0, 0, 5, 8, 0], udp()).0, (0, true));
    assert_eq!(of(&[0x88, 0x47, 0, 0, 0x11, 64], udp()).0, (0, true), "MPLS");
    assert_eq!(of(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0, 0x21], udp()).0, (0, true), "PPPoE");
    assert_eq!(of(&[0x89, 0x09, 1, 1, 0, 1, 0, 4, 8, 0], udp()).0, (0, true), "Cisco Meta Data");
    assert_eq!(of(&[0x89, 0x26, 0, 1, 0, 2, 8, 0], udp()).0, (0, true), "VN-Tag");
    assert_eq!(of(&[0, 64, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], udp()).0, (0, true), "LLC and SNAP");
    assert_eq!(of(&[0, 64, 6, 6, 3], udp()).0, (0, true), "LLC");
    let inner = udp();
    let mut outer = vec![0x45, 0, 0, 20 + inner.len() as u8, 0, 0, 0, 0, 64, 4, 0, 0, 192, 168, 0, 1, 192, 168, 0, 2];
    outer.extend(inner);
    assert_eq!(of(&[8, 0], outer).0, (0, true), "IP in IP");
}

#[test]
fn facts_are_gathered_only_where_they_are_asked_for() {
    let capture = Conversations { seed: 1, conversations: 100, trouble: 0, spoofed: 0 }.capture();
    let run = of_bytes(&capture, &Inspection::default(), &Plan::default());
    assert_eq!(run.findings.facts, None);
    let error = run.findings.write_page(&run.report, &Origin::default(), Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
