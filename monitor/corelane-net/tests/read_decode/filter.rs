//! Packet filters: the programs of tcpdump, over frames of files; the kernel's and tcpdump's own answers where they can
//! be asked.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use corelane_net::capture::filter::{Filter, FilterError, Instruction};
use corelane_net::capture::write::PcapWriter;
use corelane_net::capture::{LinkType, Reader};
use proptest::prelude::*;

use crate::captures_folder::captures;
use crate::support::{Owned, is_installed, read_all};

/// A program that tcpdump printed.
struct Program {
    /// What tcpdump calls the link type, or `LIVE`.
    link: &'static str,
    expression: &'static str,
    filter: Filter,
}

fn programs() -> Vec<Program> {
    let sections = include_str!("programs.txt").split("\n## ").skip(1);
    let programs = sections.map(|section| {
        let (title, text) = section.split_once('\n').unwrap();
        let (link, expression) = title.split_once(' ').unwrap();
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{title}: {error}"));
        Program { link, expression, filter }
    });
    programs.collect()
}

fn program(link: &str, expression: &str) -> Filter {
    let found = programs().into_iter().find(|program| (program.link, program.expression) == (link, expression));
    found.expect("a program of the file").filter
}

/// Frames of every kind that the expressions tell apart.
fn frames() -> Vec<Vec<u8>> {
    let payload = |length: usize| (0..length).map(|at| at as u8).collect::<Vec<_>>();
    let ipv4 = |protocol: u8, ttl: u8, fragment: u16, rest: &[u8]| {
        let mut ip = vec![0x45, 0];
        ip.extend((20 + rest.len() as u16).to_be_bytes());
        ip.extend([0, 7]);
        ip.extend(fragment.to_be_bytes());
        ip.extend([ttl, protocol, 0, 0, 10, 0, 0, 1, 192, 168, 0, 2]);
        ip.extend(rest);
        ip
    };
    let ipv6 = |next: u8, rest: &[u8]| {
        let mut ip = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
        ip.extend([0x20; 16]);
        ip.extend([0x21; 16]);
        ip.extend(rest);
        ip
    };
    let tcp = |source: u16, destination: u16, flags: u8, length: usize| {
        let mut tcp = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        tcp.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0, 9, 0, 0, 0, 0]);
        tcp.extend(payload(length));
        tcp
    };
    let udp = |source: u16, destination: u16, length: usize| {
        let mut udp = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        udp.extend((8 + length as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(payload(length));
        udp
    };
    let ethernet = |types: &[u8], rest: &[u8]| {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        frame.extend(types);
        frame.extend(rest);
        frame
    };
    const IP: [u8; 2] = [8, 0];
    const IP6: [u8; 2] = [0x86, 0xdd];
    let datagrams = [
        (IP, ipv4(6, 64, 0, &tcp(1234, 80, 2, 0))),
        (IP, ipv4(6, 63, 0, &tcp(80, 1234, 0x12, 0))),
        (IP, ipv4(6, 63, 0, &tcp(80, 1234, 0x18, 500))),
        (IP, ipv4(6, 2, 0x2000, &tcp(7, 443, 0x11, 9))),
        (IP, ipv4(6, 64, 185, &tcp(7, 443, 4, 9))),
        (IP, ipv4(17, 64, 0, &udp(53, 3000, 30))),
        (IP, ipv4(17, 1, 0, &udp(1999, 2001, 1))),
        (IP, ipv4(1, 8, 0, &[8, 0, 0, 0, 1, 2, 3, 4])),
        (IP, ipv4(47, 128, 0, &payload(4))),
        (IP6, ipv6(6, &tcp(2000, 443, 2, 0))),
        (IP6, ipv6(44, &[&[6, 0, 0, 0, 0, 0, 0, 1][..], &tcp(80, 443, 2, 0)].concat())),
        (IP6, ipv6(17, &udp(53, 443, 20))),
        (IP6, ipv6(58, &[128, 0, 0, 0, 1, 2, 3, 4])),
    ];
    let mut frames = Vec::new();
    for (kind, datagram) in &datagrams {
        frames.push(ethernet(kind, datagram));
        for tags in [
            &[0x81, 0, 0, 105][..],
            &[0x81, 0, 0x60, 7],
            &[0x88, 0xa8, 0xf0, 105],
            &[0x91, 0, 0, 105],
            &[0x88, 0xa8, 0, 105, 0x81, 0, 0, 7],
            &[0x81, 0, 0, 105, 0x81, 0, 0, 7],
        ] {
            frames.push(ethernet(&[tags, &kind[..]].concat(), datagram));
        }
        frames.push(ethernet(&[0x88, 0x47, 0, 1, 0xd1, 0xff], datagram));
        frames.push(ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0, if *kind == IP { 0x21 } else { 0x57 }], datagram));
    }
    frames.push(ethernet(&[8, 6], &[0, 1, 8, 0, 6, 4, 0, 1]));
    frames.push(ethernet(&[0x81, 0, 0, 105, 8, 6], &[0, 1, 8, 0, 6, 4, 0, 1]));
    let mut broadcast = ethernet(&IP, &datagrams[0].1);
    broadcast[..6].fill(0xff);
    frames.push(broadcast);
    // Frames that end everywhere.
    for whole in [ethernet(&IP, &datagrams[0].1), ethernet(&[0x81, 0, 0, 105, 8, 0], &datagrams[5].1)] {
        frames.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
    }
    frames
}

fn accepted(filter: &Filter, frames: &[Vec<u8>]) -> usize {
    frames.iter().filter(|frame| filter.accepts(frame, frame.len() as u32)).count()
}

/// How many of the made frames tcpdump accepted, measured with the versions that the programs come from.
const ACCEPTED: &[(&str, usize)] = &[
    ("ip", 50),
    ("ip6", 4),
    ("arp", 1),
    ("tcp", 38),
    ("udp", 3),
    ("icmp", 1),
    ("icmp6", 1),
    ("tcp port 80", 20),
    ("port 53", 2),
    ("host 10.0.0.1", 34),
    ("src net 10.0.0.0/8 and not dst net 10.0.0.0/8", 30),
    ("ip6 and dst port 443", 2),
    ("portrange 1000-2000", 24),
    ("tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn", 8),
    ("tcp[tcpflags] & (tcp-rst|tcp-fin) != 0", 1),
    ("ip[6:2] & 0x1fff != 0", 1),
    ("tcp and ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0", 3),
    ("ip[8] / (ip[9] - 6) > 1", 2),
    ("ip[8] % (ip[9] - 17) == 8", 2),
    ("ip[2:2] * 3 ^ 0x55 | 4 > 200", 46),
    ("less 60", 157),
    ("greater 400", 9),
    ("len - 14 == ip[2:2]", 10),
    ("vlan", 141),
    ("vlan 105", 126),
    ("vlan and tcp", 28),
    ("vlan 105 and vlan 7 and udp", 6),
    ("mpls", 13),
    ("pppoes", 13),
    ("ether[12:2] == 0x8100 or ether multicast", 103),
    ("ether src 02:00:00:00:00:01", 226),
];

#[test]
fn tcpdumps_programs_accept_as_many_frames_as_tcpdump_did() {
    let frames = frames();
    let found: Vec<_> = programs()
        .iter()
        .filter(|program| program.link == "EN10MB")
        .map(|program| (program.expression, accepted(&program.filter, &frames)))
        .collect();
    assert_eq!(found, ACCEPTED);
}

/// A program for an interface gets a frame as the kernel would have shown it, and so accepts what one for files does.
#[test]
fn programs_for_an_interface_find_the_tags_that_files_hold() {
    let frames = frames();
    // A frame that ends in its tag, or right behind it, never comes out of the kernel.
    let whole: Vec<_> = frames.into_iter().filter(|frame| frame.len() > 18).collect();
    let mut compared = 0;
    for program in programs().iter().filter(|program| program.link == "LIVE" && program.expression.contains("vlan")) {
        let Some(of_files) = programs()
            .into_iter()
            .find(|of_files| (of_files.link, of_files.expression) == ("EN10MB", program.expression))
        else {
            continue;
        };
        for frame in &whole {
            let answers = [&program.filter, &of_files.filter].map(|filter| filter.accepts(frame, frame.len() as u32));
            assert_eq!(answers[0], answers[1], "{}: {frame:02x?}", program.expression);
        }
        program.filter.check_files().unwrap();
        compared += 1;
    }
    assert_eq!(compared, 4);
}

/// The kernel takes out tags of two protocols, and leaves the third in the frame.
#[test]
fn the_third_protocol_of_tags_stays_in_the_frame() {
    // ld [vlanp]; ret a
    let filter = Filter::new(instructions(&[(0x20, 0, 0, 0xffff_f030), (0x16, 0, 0, 0)])).unwrap();
    for (protocol, is_taken) in [([0x81, 0], true), ([0x88, 0xa8], true), ([0x91, 0], false), ([8, 0], false)] {
        let frame = [&[0; 12], &protocol[..], &[0, 7, 8, 0]].concat();
        assert_eq!(filter.accepts(&frame, 18), is_taken, "{protocol:02x?}");
        assert!(!filter.accepts(&frame[..15], 18), "a tag that is cut stays");
    }
}

/// A load of a word that the tag was in the middle of, and the length without the tag.
#[test]
fn a_program_that_asks_for_the_tag_sees_the_frame_without_it() {
    let fact = |number: u32| 0xffff_f000 + number;
    let frame: Vec<u8> = [&[1; 10][..], &[2, 3, 0x88, 0xa8, 0x61, 0x23, 8, 0, 0x45, 7]].concat();
    for (load, code, expected) in [
        (10, 0x20, 0x0203_0800),
        (11, 0x28, 0x0308),
        (12, 0x20, 0x0800_4507),
        (13, 0x20, 0),
        (15, 0x30, 7),
        (16, 0x30, 0),
        (0xffe0_000c, 0x28, 0x0800),
        (0, 0x80, 60),
        (fact(44), 0x30, 0x6123),
        (fact(48), 0x20, 1),
        (fact(60), 0x28, 0x88a8),
    ] {
        // ld [vlanp]; the load; jeq #expected; ret
        let program = [(0x20, 0, 0, fact(48)), (code, 0, 0, load), (0x15, 0, 1, expected), (6, 0, 0, 1), (6, 0, 0, 0)];
        let filter = Filter::new(instructions(&program)).unwrap();
        // What lies beyond the frame rejects it, whatever is expected.
        assert_eq!(filter.accepts(&frame, 64), expected != 0, "{load} {code:#x}");
    }
    let untagged = program("LIVE", "vlan");
    assert!(!untagged.accepts(&[0; 60], 60));
}

fn instructions(program: &[(u16, u8, u8, u32)]) -> Vec<Instruction> {
    program.iter().map(|&(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect()
}

#[test]
fn what_no_file_holds_is_said() {
    let inbound = program("LIVE", "inbound");
    let error = inbound.check_files().unwrap_err();
    assert!(matches!(error, FilterError::NotForFiles { instruction: 0, .. }));
    assert!(error.to_string().contains("came in or went out"), "{error}");
    assert!(!inbound.accepts(&[0; 60], 60));
    // Of the network header, by each load that can name it.
    for code in [0x20, 0x28, 0x30, 0xb1] {
        let filter = Filter::new(instructions(&[(code, 0, 0, 0xfff0_0009), (6, 0, 0, 1)])).unwrap();
        let error = filter.check_files().unwrap_err();
        assert!(error.to_string().contains("network header"), "{error}");
        assert!(!filter.accepts(&[0; 60], 60));
    }
    for program in programs().iter().filter(|program| program.link != "LIVE") {
        program.filter.check_files().unwrap();
    }
}

#[test]
fn arithmetic_and_jumps() {
    // ld #a; ldx #x; the instruction; ret a
    let calculate = |a, x, code, k, expected| {
        let program =
            [(0x00, 0, 0, a), (0x01, 0, 0, x), (code, 0, 0, k), (0x15, 0, 1, expected), (6, 0, 0, 1), (6, 0, 0, 0)];
        Filter::new(instructions(&program)).unwrap().accepts(&[], 0)
    };
    for (a, x, code, k) in [
        (70, 0, 0x04, 7),
        (u32::MAX, 78, 0x0c, 0),
        (3, 0, 0x14, 3_u32.wrapping_sub(77)),
        (7, 11, 0x2c, 0),
        (771, 10, 0x3c, 0),
        (177, 100, 0x9c, 0),
        (177, 0, 0x94, 100),
        (0x40, 0, 0x44, 13),
        (0xf4d, 0, 0x54, 0xff),
        (77 << 3, 35, 0x7c, 0),
        (77 << 5, 0, 0x74, 5),
        (77_u32.wrapping_neg(), 0, 0x84, 0),
        (5, 72, 0xac, 0),
        (0, 77, 0x87, 0),
    ] {
        let found = [76, 77, 78].map(|expected| calculate(a, x, code, k, expected));
        assert_eq!(found, [false, true, false], "{a} {x} {code:#x} {k}");
    }
    // A division by X = 0 rejects, although what follows would accept.
    for code in [0x3c, 0x9c] {
        let program = |x| instructions(&[(0, 0, 0, 9), (1, 0, 0, x), (code, 0, 0, 0), (6, 0, 0, 1)]);
        assert!(!Filter::new(program(0)).unwrap().accepts(&[], 0));
        assert!(Filter::new(program(4)).unwrap().accepts(&[], 0));
    }
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let ret = (6, 0, 0, 1);
    for (program, at, what) in [
        (vec![], 0, "1 to 4,096"),
        (vec![ret; 4097], 0, "1 to 4,096"),
        (vec![(0x18, 0, 0, 0), ret], 0, "no such instruction"),
        (vec![ret, (0x0d, 0, 0, 0), ret], 1, "no such instruction"),
        (vec![(0x16, 0, 0, 0), (0x0e, 0, 0, 0)], 1, "no such instruction"),
        (vec![(0x106, 0, 0, 0)], 0, "no such instruction"),
        (vec![(0x20, 0, 0, 0xffff_f040), ret], 0, "fact"),
        (vec![(0x60, 0, 0, 16), ret], 0, "slots"),
        (vec![(0x02, 0, 0, 16), ret], 0, "slots"),
        (vec![(0x34, 0, 0, 0), ret], 0, "divides"),
        (vec![(0x94, 0, 0, 0), ret], 0, "divides"),
        (vec![(0x64, 0, 0, 32), ret], 0, "shifts"),
        (vec![(0x05, 0, 0, 1), ret], 0, "jumps"),
        (vec![(0x05, 0, 0, u32::MAX), ret], 0, "jumps"),
        (vec![(0x15, 0, 1, 0), ret], 0, "jumps"),
        (vec![(0x15, 1, 0, 0), ret], 0, "jumps"),
        (vec![ret, (0x05, 0, 0, 0)], 1, "jumps"),
        (vec![ret, (0x04, 0, 0, 0)], 1, "`ret`"),
        (vec![(0x60, 0, 0, 3), ret], 0, "not have been written"),
        // One way to the third instruction writes, the other does not.
        (vec![(0x15, 1, 0, 0), (0x02, 0, 0, 3), (0x61, 0, 0, 3), ret], 2, "not have been written"),
    ] {
        match Filter::new(instructions(&program)) {
            Err(FilterError::Program { instruction, line: None, what: said }) => {
                assert!(instruction == at && said.contains(what), "{instruction}: {said}; {what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    Filter::new(instructions(&vec![ret; 4096])).unwrap();
    Filter::new(instructions(&[(0x02, 0, 0, 15), (0x15, 0, 0, 0), (0x61, 0, 0, 15), (0x05, 0, 0, 0), ret])).unwrap();
}

#[test]
fn texts_in_other_shapes_are_the_same_program() {
    let expected = program("EN10MB", "arp");
    for text in [
        "4\n40 0 0 12\n21 0 1 2054\n6 0 0 262144\n6 0 0 0",
        "# arp\r\n\r\n4 # as many\r\n40 0 0 12\r\n21\t0  1 2054\r\n  6 0 0 262144\r\n6 0 0 0 # rejected\r\n\r\n",
        "4,40 0 0 12,21 0 1 2054,6 0 0 262144,6 0 0 0,\n",
    ] {
        assert_eq!(Filter::parse(text).unwrap(), expected);
    }
    assert_eq!(expected.instructions()[1], Instruction { code: 21, jt: 0, jf: 1, k: 2054 });
}

#[test]
fn a_text_that_is_no_program_names_the_line() {
    for (text, line, what) in [
        ("", 1, "there is no program"),
        ("# nothing\n\n", 1, "there is no program"),
        ("tcpdump: syntax error\n", 1, "is not a number of instructions"),
        ("\n(000) ret      #0\n", 2, "`-ddd`"),
        ("{ 0x6, 0, 0, 0x00000000 },\n", 1, "`-ddd`"),
        ("5000\n6 0 0 0\n", 1, "4096"),
        ("2\n6 0 0 0\n", 1, "but 1 follow"),
        ("1\n6 0 0 0\n\n6 0 0 0\n", 4, "more than the 1"),
        ("1\n6 0 0\n", 2, "four decimal numbers"),
        ("1\n6 0 0 0 0\n", 2, "four decimal numbers"),
        ("1\n6 0 256 0\n", 2, "four decimal numbers"),
        ("1\n6 0 0 4294967296\n", 2, "four decimal numbers"),
        ("1\n6 0 0 -1\n", 2, "four decimal numbers"),
        ("0\n", 1, "1 to 4,096"),
        ("2\n# skipped\n6 0 0 0\n4 0 0 0\n", 4, "`ret`"),
    ] {
        let error = Filter::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line} ")) && error.contains(what), "{text:?}: {error}");
        assert!(!error.contains('\n'));
    }
    let long = format!("1\n{}\n", "ä".repeat(1000));
    assert!(Filter::parse(&long).unwrap_err().to_string().len() < 300);
}

#[test]
fn a_programs_file_is_read_and_its_faults_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    assert!(matches!(Filter::read(&path), Err(FilterError::Read(_))));
    std::fs::write(&path, "1\n6 0 0 1\n").unwrap();
    assert!(Filter::read(&path).unwrap().accepts(&[], 0));
    std::fs::write(&path, [0xff; 9]).unwrap();
    assert!(matches!(Filter::read(&path), Err(FilterError::Read(_))));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(Filter::read(&path).unwrap_err().to_string().contains("1 MiB"));
}

/// The packets that tcpdump accepts, or `None` for a capture that it cannot read.
fn of_tcpdump(file: &Path, expression: &str) -> Option<Vec<Owned>> {
    let output = Command::new("tcpdump").arg("-r").arg(file).args(["-w", "-", expression]).output().unwrap();
    let reader = Reader::from_bytes(output.stdout).ok()?;
    Some(read_all(reader).0)
}

#[test]
fn tcpdump_accepts_the_same_made_frames() {
    if !is_installed("tcpdump") {
        return;
    }
    let frames = frames();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.pcap");
    let mut writer = PcapWriter::new(std::fs::File::create(&file).unwrap(), 65_535, LinkType::ETHERNET).unwrap();
    for (second, frame) in frames.iter().enumerate() {
        writer.write(second as u64 * 1_000_000_000, frame.len() as u32, frame).unwrap();
    }
    writer.finish().unwrap();
    for program in programs().iter().filter(|program| program.link == "EN10MB") {
        let theirs: Vec<_> =
            of_tcpdump(&file, program.expression).unwrap().into_iter().map(|record| record.data).collect();
        let ours: Vec<_> =
            frames.iter().filter(|frame| program.filter.accepts(frame, frame.len() as u32)).cloned().collect();
        assert_eq!(ours, theirs, "{}", program.expression);
    }
}

#[test]
fn tcpdump_accepts_the_same_packets_of_real_captures() {
    let Some(folder) = captures() else { return };
    if !is_installed("tcpdump") {
        return;
    }
    let folders = [folder.clone(), folder.join("wire")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let (mut compared, mut accepted) = (0, 0);
    for path in files.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|end| end != "pcap") {
            continue;
        }
        let (records, _) = read_all(Reader::open(&path, &Default::default()).unwrap());
        for program in programs() {
            let link = match program.link {
                "EN10MB" => 1,
                "RAW" => 101,
                _ => continue,
            };
            if records.is_empty() || records[0].link != link {
                continue;
            }
            let ours: Vec<_> =
                records.iter().filter(|record| program.filter.accepts(&record.data, record.wire_len)).collect();
            let theirs = of_tcpdump(&path, program.expression).unwrap();
            assert_eq!(ours.len(), theirs.len(), "{} {}", path.display(), program.expression);
            // Not by time: tcpdump writes microseconds.
            assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| ours.data == theirs.data));
            compared += 1;
            accepted += ours.len();
        }
    }
    assert!(compared > 500 && accepted > 10_000, "{compared} {accepted}");
}

/// Programs that are mostly right: known instructions, jumps that mostly stay inside, slots that may be written.
fn any_program() -> impl Strategy<Value = Vec<Instruction>> {
    let code = prop::sample::select(vec![
        0x00, 0x01, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x61, 0x80, 0x81, 0xb1, 0x02, 0x03, 0x04, 0x0c, 0x14,
        0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac,
        0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16, 0x07, 0x87,
    ]);
    let k = prop_oneof![
        8 => 0..20_u32,
        2 => any::<u32>(),
        1 => prop::sample::select(vec![40, 44, 48, 60]).prop_map(|fact| 0xffff_f000 + fact),
        1 => (0..9_u32).prop_map(|k| k.wrapping_neg()),
    ];
    let instruction = (prop_oneof![60 => code, 1 => any::<u16>()], 0..4_u8, 0..4_u8, k);
    (prop::collection::vec(instruction, 1..40), 0..3_u32, any::<bool>()).prop_map(|(body, most, is_a)| {
        let mut program = instructions(&body);
        // All slots are written first in most programs.
        program.splice(0..0, instructions(&[(0x00, 0, 0, 7), (0x02, 0, 0, 1), (0x02, 0, 0, 2), (0x02, 0, 0, 3)]));
        let length = program.len();
        for (at, instruction) in program.iter_mut().enumerate() {
            let behind = (length - at) as u32;
            match instruction.code {
                // A few still jump beyond the end.
                0x05 => instruction.k %= behind + 1,
                0x60 | 0x61 if !is_a => instruction.k = instruction.k % 3 + 1,
                0x02 | 0x03 => instruction.k %= 17,
                0x64 | 0x74 => instruction.k %= 33,
                _ => {}
            }
        }
        program.push(Instruction { code: if is_a { 0x16 } else { 0x06 }, jt: 0, jf: 0, k: most });
        program
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_program_and_frame_end(
        program in any_program(),
        mut frame in prop::collection::vec(any::<u8>(), 0..80),
        is_tagged in any::<bool>(),
        wire_len in any::<u32>(),
    ) {
        if is_tagged && frame.len() > 14 {
            frame[12..14].copy_from_slice(&[0x81, 0]);
        }
        if let Ok(filter) = Filter::new(program.clone()) {
            filter.accepts(&frame, wire_len);
            let _ = filter.check_files();
            // It reads back from its text.
            let lines = program.iter().map(|Instruction { code, jt, jf, k }| format!("{code} {jt} {jf} {k}\n"));
            let text = format!("{}\n{}", program.len(), lines.collect::<String>());
            prop_assert_eq!(Filter::parse(&text).unwrap(), filter);
        }
    }

    #[test]
    fn any_instructions_are_no_panic(program in prop::collection::vec(any::<(u16, u8, u8, u32)>(), 0..9)) {
        let _ = Filter::new(instructions(&program)).map(|filter| filter.accepts(&[0; 30], 30));
    }

    #[test]
    fn any_text_is_no_panic(text in "([0-9]{1,4}[ \n,#]){0,30}|\\PC{0,60}") {
        let _ = Filter::parse(&text);
    }
}

/// The kernel itself: a filter of a socket of datagrams decides which ones come through.
#[cfg(target_os = "linux")]
mod kernel {
    use std::cell::Cell;
    use std::io::{ErrorKind, Read as _};

    use proptest::test_runner::{Config, TestRunner};
    use socket2::{Domain, SockFilter, Socket, Type};

    use super::*;

    fn attached(program: &[Instruction]) -> std::io::Result<[Socket; 2]> {
        let (sender, receiver) = Socket::pair(Domain::UNIX, Type::DGRAM, None)?;
        receiver.set_nonblocking(true)?;
        sender.set_nonblocking(true)?;
        let program: Vec<_> = program.iter().map(|i| SockFilter::new(i.code, i.jt, i.jf, i.k)).collect();
        receiver.attach_filter(&program)?;
        Ok([sender, receiver])
    }

    fn comes_through([sender, receiver]: &mut [Socket; 2], frame: &[u8]) -> bool {
        sender.write_all(frame).unwrap();
        // Of a datagram without bytes the length says nothing, so none is sent.
        match receiver.read(&mut [0; 256]) {
            Ok(length) => length > 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Offsets from headers that a datagram of this socket does not have.
    fn asks_for_headers(program: &[Instruction]) -> bool {
        program.iter().any(|i| {
            i.code & 7 <= 1 && matches!(i.code & 0xe0, 0x20 | 0x40 | 0xa0) && {
                let answered = i.code & 0xe7 == 0x20 && [40, 44, 48, 60].contains(&i.k.wrapping_sub(0xffff_f000));
                i.k >= 0x7fff_ff00 && i.k < 0xffff_ff00 && !answered
            }
        })
    }

    /// The same with X below 32 wherever it is added to an offset, which could otherwise become one from a header.
    fn with_small_sums(program: &[Instruction]) -> Vec<Instruction> {
        // txa; and #31; tax. The load that follows writes A anyway.
        let small = instructions(&[(0x87, 0, 0, 0), (0x54, 0, 0, 31), (0x07, 0, 0, 0)]);
        let with_small = |&i: &Instruction| {
            let before = if matches!(i.code, 0x40 | 0x48 | 0x50) { &small[..] } else { &[] };
            before.iter().copied().chain([i]).collect::<Vec<_>>()
        };
        program.iter().flat_map(with_small).collect()
    }

    #[test]
    fn the_kernel_takes_the_same_programs_and_accepts_the_same_frames() {
        if let Err(error) = attached(&instructions(&[(6, 0, 0, 1)])) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no filter can be attached to a socket here: {error}");
            return;
        }
        let frames = prop::collection::vec(prop::collection::vec(0..20_u8, 1..80), 4);
        let [refused, through, stopped] = [const { Cell::new(0) }; 3];
        let config = Config { cases: 6_000, failure_persistence: None, ..Config::default() };
        TestRunner::new(config)
            .run(&(any_program(), frames), |(program, frames)| {
                let program = with_small_sums(&program);
                let ours = Filter::new(program.clone());
                let mut sockets = match attached(&program) {
                    Ok(sockets) => sockets,
                    Err(error) => {
                        prop_assert_eq!(error.kind(), ErrorKind::InvalidInput);
                        prop_assert!(ours.is_err(), "the kernel refuses it");
                        refused.set(refused.get() + 1);
                        return Ok(());
                    }
                };
                let Ok(ours) = ours else { panic!("the kernel takes it: {ours:?}") };
                if asks_for_headers(&program) {
                    return Ok(());
                }
                for frame in &frames {
                    let is_through = comes_through(&mut sockets, frame);
                    prop_assert_eq!(ours.accepts(frame, frame.len() as u32), is_through, "{:02x?}", frame);
                    let count = if is_through { &through } else { &stopped };
                    count.set(count.get() + 1);
                }
                Ok(())
            })
            .unwrap();
        let counts = [refused.get(), through.get(), stopped.get()];
        assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
    }

    /// Programs of tcpdump over whole frames.
    #[test]
    fn the_kernel_accepts_the_same_frames_by_tcpdumps_programs() {
        if attached(&instructions(&[(6, 0, 0, 1)])).is_err() {
            return;
        }
        for program in programs().iter().filter(|program| program.link != "LIVE") {
            let mut sockets = attached(program.filter.instructions()).unwrap();
            for frame in frames().iter().filter(|frame| !frame.is_empty()) {
                let expected = comes_through(&mut sockets, frame);
                let expression = program.expression;
                assert_eq!(program.filter.accepts(frame, frame.len() as u32), expected, "{expression}: {frame:02x?}");
            }
        }
    }
}

#[cfg(feature = "libpcap")]
mod compiled {
    use super::*;

    #[test]
    fn expressions_become_the_programs_of_tcpdump() {
        for program in programs() {
            let link = match program.link {
                "EN10MB" => LinkType::ETHERNET,
                "RAW" => LinkType::RAW,
                "LINUX_SLL" => LinkType::LINUX_SLL,
                "LINUX_SLL2" => LinkType::LINUX_SLL2,
                "NULL" => LinkType::NULL,
                _ => continue,
            };
            let filter = Filter::compile(program.expression, link, 0).unwrap();
            assert_eq!(filter, program.filter, "{} {}", program.link, program.expression);
        }
    }

    #[test]
    fn the_snaplen_is_what_an_accepted_packet_is_cut_to() {
        let filter = Filter::compile("arp", LinkType::ETHERNET, 96).unwrap();
        let returns: Vec<_> = filter.instructions().iter().filter(|i| i.code == 6).map(|i| i.k).collect();
        assert_eq!(returns, [96, 0]);
    }

    #[test]
    fn what_libpcap_says_is_said() {
        for (expression, link, said) in [
            ("tcp prot 80", 1, "syntax error"),
            ("host 1.2.3.400", 1, "1.2.3.400"),
            ("port 70000", 1, "70000"),
            ("tcp\0", 1, "nul"),
            ("tcp", 0x3ff_fffe, "type"),
            ("tcp", u32::MAX, "4294967295"),
            // Its program loops.
            ("ip protochain 6", 1, "jumps"),
        ] {
            let error = Filter::compile(expression, LinkType(link), 0).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{expression:?}: {error}");
        }
        let error = Filter::compile_live("tcp", "no-such-interface", 0).unwrap_err();
        assert!(matches!(error, FilterError::Compile(_)), "{error:?}");
    }

    #[test]
    fn a_program_for_an_interface_asks_the_kernel_for_the_tag() {
        match Filter::compile_live("vlan", "lo", 0) {
            Ok(filter) => assert_eq!(filter, program("LIVE", "vlan")),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
            }
        }
    }
}
