//! VLANs: part of what tells conversations apart, and in their events.

use crate::captures_folder::captures;
use crate::records::{Owned, Records, records_of};
use crate::support::{Run, plan, query, with};
use corelane_monitor::{Inspection, Settings};
use corelane_net::capture::{LinkType, Options, Reader};
use corelane_net::decode::locate;
use corelane_net::synth::Conversations;
use serde_json::Value;
use std::collections::BTreeSet;

fn run(frames: &[Owned], analyzers: usize) -> Run {
    let settings = Settings { tunnels: true, ..Settings::default() };
    with(Records(frames.to_vec(), 0), &settings, &Inspection::default(), &plan(analyzers, 64))
}

/// The IP packet of a frame on Ethernet, with tags: of each the kind, and what is in it.
fn tagged(frame: &Owned, tags: &[[u8; 4]]) -> Owned {
    let (time_ns, wire_len, link, data) = frame;
    let located = locate(*link, data).expect("an IP header");
    let kind = if located.is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    let before = [&[2; 12], tags.as_flattened(), &kind].concat();
    let wire_len = wire_len + before.len() as u32 - u32::from(located.at);
    (*time_ns, wire_len, LinkType::ETHERNET, [before, data[usize::from(located.at)..].to_vec()].concat())
}

/// Those of a capture that have a sound IP header.
fn frames(reader: Reader) -> Vec<Owned> {
    let mut frames = records_of(reader);
    frames.retain(|(_, _, link, data)| locate(*link, data).is_ok());
    frames
}

/// The events of conversations, without VLANs and lengths of frames.
fn events(run: &Run) -> Vec<Value> {
    let mut events: Vec<Value> = run.events().collect();
    for event in &mut events {
        event.as_object_mut().expect("an object").remove("vlan");
        if let Some(flow) = event.get_mut("flow").and_then(Value::as_object_mut) {
            flow.remove("bytes_toserver");
            flow.remove("bytes_toclient");
        }
    }
    events
}

#[test]
fn tags_add_their_numbers_and_change_nothing_else() {
    let traffic = Conversations { seed: 5, conversations: 300, trouble: 30, spoofed: 50 };
    let mut all = vec![frames(Reader::from_bytes(traffic.capture()).expect("a capture"))];
    let mixed = captures().map(|folder| Reader::open(&folder.join("http-mixed.pcap"), &Options::default()));
    all.extend(mixed.map(|reader| frames(reader.expect("a capture"))));
    let mut types = BTreeSet::new();
    for bare in &all {
        let with = |tags: &[[u8; 4]]| bare.iter().map(|frame| tagged(frame, tags)).collect::<Vec<_>>();
        let expected = run(&with(&[]), 0);
        assert!(expected.events().all(|event| event["vlan"].is_null()));
        for (analyzers, (tags, vlans)) in [
            (&[[0x81, 0, 0x20, 10]][..], Value::from(vec![10])),
            (&[[0x88, 0xa8, 0, 7], [0x81, 0, 0xef, 0xff]], Value::from(vec![7, 4095])),
            (&[[0x81, 0, 0xa0, 0]], Value::Null),
            (&[[0x91, 0, 0, 1], [0x81, 0, 0, 2], [0x81, 0, 0, 3]], Value::from(vec![1, 2])),
        ]
        .into_iter()
        .enumerate()
        {
            let found = run(&with(tags), analyzers);
            let (left, right) = (events(&found), events(&expected));
            let first = left.iter().zip(&right).find(|(left, right)| left != right);
            assert!(first.is_none() && left.len() == right.len(), "{tags:x?}: {first:?}");
            for event in found.events() {
                assert_eq!(event["vlan"], vlans, "{event}");
                types.insert(event["event_type"].as_str().expect("a type").to_owned());
            }
        }
    }
    assert!(["flow", "http", "tls", "dns"].iter().all(|known| types.contains(*known)), "{types:?}");
}

#[test]
fn the_same_traffic_in_two_vlans_is_twice_the_conversations() {
    let traffic = Conversations { seed: 6, conversations: 200, trouble: 30, spoofed: 0 };
    let bare = frames(Reader::from_bytes(traffic.capture()).expect("a capture"));
    // Only what names the conversation, and what caused an event, are others.
    let said = |run: &Run, vlan: Value| {
        let own = run.events().filter(|event| event["vlan"] == vlan);
        let mut own: Vec<String> = own
            .map(|mut event| {
                let fields = event.as_object_mut().expect("an object");
                ["flow_id", "pcap_cnt", "vlan"].iter().for_each(|field| drop(fields.remove(*field)));
                if let Some(flow) = fields.get_mut("flow").and_then(Value::as_object_mut) {
                    ["bytes_toserver", "bytes_toclient", "reason"].iter().for_each(|field| drop(flow.remove(*field)));
                }
                event.to_string()
            })
            .collect();
        own.sort();
        own
    };
    let expected = said(&run(&bare, 0), Value::Null);
    let tags: [&[[u8; 4]]; 3] = [&[[0x81, 0, 0, 10]], &[[0x81, 0, 0, 20]], &[[0x81, 0, 0, 20], [0x81, 0, 0, 10]]];
    let both: Vec<Owned> = bare.iter().flat_map(|frame| tags.map(|tags| tagged(frame, tags))).collect();
    let alone = run(&both, 0);
    for vlans in [vec![10], vec![20], vec![20, 10]] {
        let found = said(&alone, Value::from(vlans.clone()));
        let first = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert!(first.is_none() && found.len() == expected.len(), "{vlans:?}: {first:?}");
    }
    let ids = |run: &Run| {
        let flows = run.events().filter(|event| event["event_type"] == "flow");
        flows.map(|event| event["flow_id"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    assert_eq!(ids(&alone).into_iter().collect::<BTreeSet<_>>().len(), ids(&alone).len(), "a name twice");
    for analyzers in 1..=3 {
        assert!(run(&both, analyzers).text == alone.text, "{analyzers} analyzers");
    }
}

/// Packets of several interfaces in one capture: tags are where the link type of each has them.
#[test]
fn tags_are_read_by_the_link_type_of_the_packet() {
    let question = query(2);
    let tagged = |link, before: &[u8]| (1, 0, link, [before, &question[..]].concat());
    // The address of the second, and the first address of the third, look like tags.
    let frames = [
        tagged(LinkType::ETHERNET, &[&[0; 12][..], &[0x81, 0, 0, 10, 8, 0]].concat()),
        tagged(LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 0x81, 0, 0, 11, 8, 0]),
        tagged(LinkType::LINUX_SLL2, &[&[8, 0][..], &[0; 10], &[0x81, 0, 0, 12, 8, 0, 0, 0]].concat()),
        tagged(LinkType::LINUX_SLL, &[&[0; 14][..], &[0x81, 0, 0, 13, 8, 0]].concat()),
        tagged(LinkType::RAW, &[]),
    ];
    for analyzers in [0, 2] {
        let found = run(&frames, analyzers);
        let vlans: Vec<Value> =
            found.events().filter(|event| event["event_type"] == "dns").map(|event| event["vlan"].clone()).collect();
        let [ten, thirteen] = [10, 13].map(|number| Value::from(vec![number]));
        assert_eq!(vlans, [ten, Value::Null, Value::Null, thirteen, Value::Null]);
    }
}

/// A tunnel's conversations are in the VLAN of the outermost frame, whose fragments come together in their VLAN.
#[test]
fn the_outermost_frame_says_the_vlan() {
    let inner = [&[0; 12][..], &[0x81, 0, 0, 99, 8, 0], &query(2)].concat();
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat();
    let length = 28 + vxlan.len() as u8;
    let mut packet = vec![0x45, 0, 0, length, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    packet.extend([4, 0, 0x12, 0xb5, 0, length - 20, 0, 0]);
    packet.extend(vxlan);
    let question = query(3);
    let fragment = |more: bool| {
        let (header, payload) = question.split_at(20);
        let payload = if more { &payload[..16] } else { &payload[16..] };
        let mut fragment = [header, payload].concat();
        fragment[3] = fragment.len() as u8;
        (fragment[6], fragment[7]) = if more { (0x20, 0) } else { (0, 2) };
        fragment
    };
    let frame = |vlan: u8, packet: &[u8]| {
        let data = [&[0; 12][..], &[0x81, 0, 0, vlan, 8, 0], packet].concat();
        (1, data.len() as u32, LinkType::ETHERNET, data)
    };
    let frames = [
        frame(1, &packet),
        frame(2, &fragment(true)),
        frame(3, &fragment(true)),
        frame(3, &fragment(false)),
        frame(2, &fragment(false)),
    ];
    for analyzers in [0, 2] {
        let found = run(&frames, analyzers);
        let mut vlans: Vec<String> = found
            .events()
            .filter(|event| event["event_type"] == "dns")
            .map(|event| format!("{} {} {}", event["vlan"], event["dest_ip"], event["tunnel"]["depth"]))
            .collect();
        vlans.sort();
        assert_eq!(vlans, [r#"[1] "10.0.0.2" 1"#, r#"[2] "10.0.0.3" null"#, r#"[3] "10.0.0.3" null"#]);
    }
}
