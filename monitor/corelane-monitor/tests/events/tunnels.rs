//! Tunnels: a capture wrapped in them gives the events of the bare one.

use crate::captures_folder::captures;
use crate::records::{Owned, Records, record, records_of};
use crate::support::{Run, plan, query, with};
use corelane_monitor::{Inspection, Progress, Report, Settings};
use corelane_net::capture::{LinkType, Options, Reader};
use corelane_net::decode::locate;
use corelane_net::synth::Tunnel;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const OPENED: fn() -> Settings = || Settings { tunnels: true, ..Settings::default() };

/// The frame in a tunnel, or as it is if it cannot be wrapped.
fn wrapped(frame: &Owned, tunnel: Tunnel, v6: bool) -> Owned {
    let Some(mut data) = tunnel.wrap(&record(frame), v6) else { return frame.clone() };
    let (time_ns, wire_len, _, bare) = frame;
    if v6 && *wire_len as usize == bare.len() {
        // Behind the outer packet, which says where it ends.
        data.extend(b"trailer");
    }
    let longer = data.len() as i64 - bare.len() as i64;
    let wire_len = (i64::from((*wire_len).max(bare.len() as u32)) + longer) as u32;
    (*time_ns, wire_len, LinkType::ETHERNET, data)
}

fn run(frames: &[Owned], settings: &Settings, analyzers: usize) -> Run {
    with(Records(frames.to_vec(), 0), settings, &Inspection::default(), &plan(analyzers, 64))
}

fn frames(file: &Path) -> Vec<Owned> {
    records_of(Reader::open(file, &Options::default()).expect("a capture"))
}

/// The beginning of it, where it has all that the long captures have.
fn begun(file: &Path) -> Vec<Owned> {
    let mut frames = frames(file);
    frames.truncate(5000);
    frames
}

/// All captures, those on the wire among them.
fn files() -> Vec<PathBuf> {
    let Some(folder) = captures() else { return Vec::new() };
    let mut files: Vec<PathBuf> = [folder.clone(), folder.join("wire")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".pcap"))
        .collect();
    files.sort();
    files
}

/// File, field, tshark's word, ours. `docs/protocols.md` has the reasons.
const DIFFERENT: &[(&str, &str, u64, u64)] = &[
    ("ssh-on-port-80.pcap", "ssh", 0, 2),
    ("ssh-server-pre-banner-data.pcap", "ssh", 1, 2),
    ("tunnel-gre-sample.pcap", "dns_messages", 4, 2),
    ("tunnel-gtp7_ipv6.pcap", "dns_messages", 0, 1),
    ("tunnel-gtp_ext_header.pcap", "tcp_streams", 1, 0),
    ("tunnel-gtp_ext_header.pcap", "opened", 1, 0),
    ("tunnel-gtp1_gn_normal_incl_fragmentation.pcap", "opened", 68, 32),
    ("tunnel-gtp1_gn_normal_incl_fragmentation.pcap", "http", 1, 0),
];

/// The names of all layers that tshark has for tunnels, and for the IP headers inside.
fn has_tunnel(layers: &str) -> bool {
    let layers: Vec<&str> = layers.split(':').take_while(|layer| !layer.starts_with("icmp")).collect();
    layers.iter().filter(|layer| matches!(**layer, "ip" | "ipv6")).count() > 1
}

#[test]
fn what_is_on_the_wire_is_what_tshark_said() {
    let Some(folder) = captures().map(|folder| folder.join("wire")) else { return };
    let truth = fs::read_to_string(folder.join("TRUTH.json")).expect("the truth");
    let truth: Vec<Value> = serde_json::from_str(&truth).expect("JSON");
    let (mut wrong, mut explained) = (Vec::new(), 0);
    for theirs in &truth {
        let name = theirs["file"].as_str().expect("a name");
        let found = run(&frames(&folder.join(name)), &OPENED(), 1);
        let events: Vec<Value> = found.events().collect();
        let of = |kind: &str| events.iter().filter(|event| event["event_type"] == kind).collect::<Vec<_>>();
        let mut compare = |field: &'static str, theirs: u64, ours: u64| {
            let known = DIFFERENT.iter().find(|known| known.0 == name && known.1 == field);
            explained += usize::from(known.is_some());
            if (theirs, ours) != known.map_or((theirs, theirs), |known| (known.2, known.3)) {
                wrong.push(format!("{name} {field}: tshark {theirs}, ours {ours}"));
            }
        };
        let streams = of("flow").iter().filter(|flow| flow["proto"] == "TCP").count() as u64;
        compare("tcp_streams", theirs["tcp_streams"].as_u64().expect("a count"), streams);
        compare("dns_messages", theirs["dns_messages"].as_u64().expect("a count"), of("dns").len() as u64);
        // Of frames whose packet inside is no IP, or not read, the count of those that are.
        let inside = match name {
            "tunnel-vxlan.pcap" => &theirs["protocols"]["icmp"],
            "tunnel-gtp1_gn_normal_incl_fragmentation.pcap" | "tunnel-gtp_ext_header.pcap" => {
                &theirs["protocols"]["tcp"]
            }
            _ if has_tunnel(theirs["layers"].as_str().expect("layers")) => &theirs["frames"],
            _ => &Value::from(0),
        };
        compare("opened", inside.as_u64().expect("a count"), found.report.tunnels.expect("counts").opened);
        let request =
            |http: &Value| ["http_method", "hostname", "url"].map(|field| http[field].as_str().unwrap_or("")).join("|");
        let requests: Vec<String> = of("http")
            .iter()
            .map(|event| &event["http"])
            .filter(|http| http["http_method"].is_string())
            .map(request)
            .collect();
        let names = of("tls").iter().filter_map(|event| event["tls"]["sni"].as_str().map(str::to_owned)).collect();
        let line = |side: &Value| {
            let part = |name: &str| side[name].as_str().map(str::to_owned);
            Some(format!("SSH-{}-{}", part("proto_version")?, part("software_version")?))
        };
        let quic_names =
            of("quic").iter().filter_map(|event| event["quic"]["sni"].as_str().map(str::to_owned)).collect();
        let sides = of("ssh").into_iter().flat_map(|event| [&event["ssh"]["client"], &event["ssh"]["server"]]);
        let lines: Vec<String> = sides.filter_map(line).collect();
        for (field, ours) in [("http", requests), ("tls_sni", names), ("quic_sni", quic_names), ("ssh", lines)] {
            let theirs = theirs[field].as_array().expect("a list");
            compare(field, theirs.len() as u64, ours.len() as u64);
            let missing = theirs.iter().filter(|text| !ours.iter().any(|ours| **text == **ours)).count();
            assert!(missing == 0 || ours.len() < theirs.len(), "{name}: {ours:?}");
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(explained, DIFFERENT.len(), "each explained difference is compared");
}

#[test]
fn an_event_has_the_outermost_addresses() {
    let Some(folder) = captures() else { return };
    let found = run(&frames(&folder.join("wire/tunnel-geneve-many-options.pcap")), &OPENED(), 0);
    let events: Vec<Value> = found.events().collect();
    assert_eq!(events.iter().map(|event| event["event_type"].clone()).collect::<Vec<_>>(), ["http", "flow"]);
    for event in events {
        let of = |event: &Value, fields: [&str; 2]| fields.map(|field| event[field].clone());
        assert_eq!(of(&event, ["src_ip", "dest_ip"]), ["10.0.0.226", "95.217.228.176"].map(Value::from));
        let tunnel = &event["tunnel"];
        assert_eq!(of(tunnel, ["src_ip", "dest_ip"]), ["192.168.179.33", "192.168.33.179"].map(Value::from));
        assert_eq!(of(tunnel, ["src_port", "dest_port"]), [6667, 6081].map(Value::from));
        assert_eq!(of(tunnel, ["proto", "depth"]), [Value::from("UDP"), Value::from(1)]);
    }
}

#[test]
fn an_event_names_the_protocol_of_its_tunnel() {
    let question = query(2);
    let bare = (1, question.len() as u32, LinkType::RAW, question);
    for (tunnel, protocol, port) in [
        (Tunnel::Ip, "IPv4", 0),
        (Tunnel::Gre, "GRE", 0),
        (Tunnel::EtherIp, "EtherIP", 0),
        (Tunnel::L2tp3, "L2TP", 0),
        (Tunnel::L2tp, "UDP", 1701),
        (Tunnel::MplsUdp, "UDP", 6635),
    ] {
        let found = run(&[wrapped(&bare, tunnel, false)], &OPENED(), 0);
        let event = found.events().next().expect("an event");
        let told = [&event["tunnel"]["proto"], &event["tunnel"]["dest_port"]];
        assert_eq!(told, [&Value::from(protocol), &Value::from(port)], "{event}");
    }
}

/// Each event's tunnel begins on the side where the event does, whichever packet the tunnel was taken from; its ports
/// stay.
#[test]
fn a_tunnel_is_turned_as_its_event_is() {
    let question = query(2);
    let mut answer = question.clone();
    answer[12..20].rotate_left(4);
    answer[20..24].rotate_left(2);
    answer[30] |= 0x80;
    let frame = |time_ns: u64, packet: &[u8], outer: [u8; 2], ports: [u8; 2]| {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &[2; 12], &[8, 0], packet].concat();
        let length = 28 + vxlan.len() as u8;
        let mut data = vec![0x45, 0, 0, length, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, outer[0], 192, 0, 2, outer[1]];
        data.extend([ports[0], ports[1], 0x12, 0xb5, 0, length - 20, 0, 0]);
        data.extend(vxlan);
        (time_ns, data.len() as u32, LinkType::RAW, data)
    };
    let (asked, answered) = (frame(1, &question, [1, 2], [4, 0]), frame(2, &answer, [2, 1], [5, 0]));
    let bare = (1, question.len() as u32, LinkType::RAW, question);
    let ends = |event: &Value| [&event["src_ip"], &event["dest_ip"]].map(|text| text.as_str().map(str::to_owned));
    // Only the answer of the last came through a tunnel.
    for (frames, ports) in [([asked, answered.clone()], [1024, 4789]), ([bare, answered], [1280, 4789])] {
        let found = run(&frames, &OPENED(), 0);
        let tunnelled: Vec<Value> = found.events().filter(|event| event["tunnel"].is_object()).collect();
        assert_eq!(tunnelled.len(), if ports[0] == 1024 { 3 } else { 2 }, "{tunnelled:?}");
        for event in tunnelled {
            let outside = ["192.0.2.1", "192.0.2.2"].map(|text| Some(text.to_owned()));
            let is_client = event["src_ip"] == "10.0.0.1";
            let [one, other] = outside;
            assert_eq!(ends(&event["tunnel"]), if is_client { [one, other] } else { [other, one] }, "{event}");
            let told = [&event["tunnel"]["src_port"], &event["tunnel"]["dest_port"]];
            assert_eq!(told, [&Value::from(ports[0]), &Value::from(ports[1])], "{event}");
        }
    }
}

/// The events, without what the headers in front of IP change.
fn events(run: &Run) -> Vec<Value> {
    let mut events: Vec<Value> = run.events().collect();
    for event in &mut events {
        event.as_object_mut().expect("an object").retain(|field, _| field != "tunnel" && field != "vlan");
        if let Some(flow) = event.get_mut("flow").and_then(Value::as_object_mut) {
            flow.remove("bytes_toserver");
            flow.remove("bytes_toclient");
        }
    }
    events
}

/// Tells of the first event that is another.
#[track_caller]
fn assert_same(found: &[Value], expected: &[Value], what: &str) {
    let first = found.iter().zip(expected).find(|(found, expected)| found != expected);
    assert!(first.is_none() && found.len() == expected.len(), "{what}: {first:?}");
}

/// The report, without lengths and what counts tunnels.
fn report(run: &Run) -> Report {
    let report = run.report();
    let tunnelled = Default::default();
    Report { bytes: 0, tunnels: None, tunnelled, conversations: Vec::new(), hosts: Vec::new(), ..report }
}

/// A link type, and what is in front of IPv4 and IPv6 there.
type Dress = (LinkType, Vec<u8>, Vec<u8>);

/// Link types and headers in front of IP that are no tunnels.
fn dresses() -> Vec<Dress> {
    let with_types =
        |link: LinkType, before: &[u8]| (link, [before, &[0x08, 0x00]].concat(), [before, &[0x86, 0xdd]].concat());
    let with_ppp = |link: LinkType, before: &[u8]| (link, [before, &[0x21]].concat(), [before, &[0x57]].concat());
    let ethernet = |tags: &[u8]| with_types(LinkType::ETHERNET, &[&[2; 12][..], tags].concat());
    let snap = [0xaa, 0xaa, 3, 0, 0, 0];
    let wifi = [&[0x88, 0x83, 0, 0][..], &[2; 18], &[0x30, 5, 2, 2, 2, 2, 2, 2, 5, 0, 1, 2, 3, 4], &snap].concat();
    let log = |family: u8| vec![family, 0, 0, 0, 8, 0, 1, 0, 8, 0, 1, 0, 255, 255, 9, 0];
    let wire = [&[0x88, 0x47, 0, 0, 0x11, 64, 0, 0, 0, 7][..], &[2; 12]].concat();
    vec![
        with_ppp(LinkType::PPP_HDLC, &[0xff, 3, 0]),
        with_ppp(LinkType::PPPOE, &[0x11, 0, 0, 1, 0, 9]),
        with_ppp(LinkType::PPP_DIRECTION, &[1, 0xff, 3, 0]),
        with_ppp(LinkType::PPP_PPPD, &[0, 3, 0]),
        with_types(LinkType::CISCO_HDLC, &[0x0f, 0]),
        with_types(LinkType::WIFI, &wifi),
        with_types(LinkType::RADIOTAP, &[&[0, 0, 9, 0, 2, 0, 0, 0, 0x10][..], &wifi].concat()),
        with_types(LinkType::PRISM, &[&[7; 144][..], &wifi].concat()),
        (LinkType::NFLOG, log(2), log(10)),
        ethernet(&[&[5, 220], &snap[..]].concat()),
        ethernet(&[0x89, 0x26, 0, 1, 0, 2, 0x92, 0, 0, 7]),
        ethernet(&[0x89, 9, 1, 1, 0, 1, 0, 4, 0x89, 0x3f, 0, 0, 0, 0, 0, 0]),
        ethernet(&wire),
        with_ppp(LinkType::ETHERNET, &[&[2; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 9]].concat()),
    ]
}

/// The frame with other headers in front of its IP packet, or as it is if it has no sound one.
fn dressed(frame: &Owned, (link, v4, v6): &Dress) -> Owned {
    let (time_ns, wire_len, from, data) = frame;
    let Ok(located) = locate(*from, data) else { return frame.clone() };
    let (before, at) = (if located.is_v4 { v4 } else { v6 }, usize::from(located.at));
    let wire_len = (*wire_len).max(data.len() as u32) + before.len() as u32 - at as u32;
    (*time_ns, wire_len, *link, [before, &data[at..]].concat())
}

#[test]
fn a_capture_of_any_link_type_gives_the_same_events() {
    for file in files() {
        let bare = begun(&file);
        let expected = run(&bare, &OPENED(), 0);
        let expected_events = events(&expected);
        for (number, dress) in dresses().iter().enumerate() {
            let found = run(&bare.iter().map(|frame| dressed(frame, dress)).collect::<Vec<_>>(), &OPENED(), number % 3);
            let name = file.display();
            assert_same(&events(&found), &expected_events, &format!("{name} as {dress:x?}"));
            let tunnels = |run: &Run| run.report.tunnels.map(|tunnels| tunnels.opened);
            assert_eq!(tunnels(&found), tunnels(&expected), "{name} as {dress:x?}");
            assert_eq!(report(&found), report(&expected), "{name} as {dress:x?}");
        }
    }
}

/// The frames that were wrapped.
fn wrapped_frames(frames: &[Owned], bare: &[Owned]) -> u64 {
    frames.iter().zip(bare).filter(|(wrapped, bare)| wrapped.3 != bare.3).count() as u64
}

#[test]
fn a_wrapped_capture_gives_the_events_of_the_bare_one() {
    for file in files() {
        let bare = begun(&file);
        let expected = run(&bare, &OPENED(), 0);
        let expected_events = events(&expected);
        let check = |frames: &[Owned], how: &str, depth: u64, analyzers: usize| {
            let found = run(frames, &OPENED(), analyzers);
            let name = file.display();
            assert_same(&events(&found), &expected_events, &format!("{name} in {how}"));
            assert_eq!(report(&found), report(&expected), "{name} in {how}");
            let sources = [Records(frames.to_vec(), 0)];
            let plan = plan(analyzers, 64);
            let scans = crate::runs::run(sources, &OPENED(), &plan, &Progress::new(), |_, _| {}).expect("a report");
            // Headers alone have other limits of fragments.
            let fragments = found.report.fragments;
            assert_eq!(scans.fragments.whole, fragments.whole, "{name} in {how}, headers alone");
            let all = |report: &Report| Report {
                analyzer_packets: vec![],
                dispatcher_packets: 0,
                fragments,
                ..report.clone()
            };
            assert_eq!(all(&scans), all(&found.report), "{name} in {how}, headers alone");
            let wrapped = wrapped_frames(frames, &bare);
            assert!(found.report.tunnels.expect("counts").opened >= wrapped, "{name} in {how}");
            if wrapped == bare.len() as u64 {
                let scans = found.report.alerts.len() + found.report.probe_scans.len();
                assert_eq!(found.report.tunnelled.len(), scans, "{name} in {how}");
                for event in found.events() {
                    assert!(event["tunnel"]["depth"].as_u64() >= Some(depth), "{name} in {how}: {event}");
                }
            }
        };
        for (number, tunnel) in Tunnel::ALL.into_iter().enumerate() {
            let analyzers = number % 3;
            let v6 = number % 2 == 1;
            let once: Vec<Owned> = bare.iter().map(|frame| wrapped(frame, tunnel, v6)).collect();
            check(&once, &format!("{tunnel:?}, {v6}"), 1, analyzers);
            let outer = Tunnel::ALL[(number + 3) % Tunnel::ALL.len()];
            // A frame that could not be wrapped once stays bare.
            let twice = |(frame, bare): (&Owned, &Owned)| match frame.3 == bare.3 {
                true => frame.clone(),
                false => wrapped(frame, outer, !v6),
            };
            let twice: Vec<Owned> = once.iter().zip(&bare).map(twice).collect();
            check(&twice, &format!("{tunnel:?} in {outer:?}, {v6}"), 2, (analyzers + 1) % 3);
        }
    }
}
