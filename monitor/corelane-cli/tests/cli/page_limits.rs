//! A page stays within its bounds, whatever kinds of traffic come at once.

use crate::support::{Folder, corelane, finish};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::process::Stdio;
use std::thread;

/// The most bytes of a page.
const PAGE: usize = 3_000_000;
/// The most memory that a page may take, in bytes.
const MEMORY: u64 = 450 << 20;

/// Clients, and so servers, of a name; their sums are the same, so that one partition has all of them.
const CLIENTS: u32 = 8;
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
const DATA: u8 = 0x18;

/// A capture in which everything is different: hosts, names of each kind that some hosts ask for, fingerprints, ports
/// with unknown payload, and scans up and across with answers. Link type 101, raw IP.
struct Mix<W>(W, u32);

impl<W: Write> Mix<W> {
    fn write(names: u32, out: W) -> io::Result<()> {
        let mut mix = Mix(out, 0);
        mix.0.write_all(&[0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 0xffff, 101].map(u32::to_le_bytes).concat())?;
        for number in 0..names {
            let name = format!("{:08x}.", number.wrapping_mul(0x9e37_79b1)).repeat(20);
            for client in 0..CLIENTS {
                mix.asked(number, client, &name[..170])?;
                mix.scanned(number * CLIENTS + client, names)?;
            }
        }
        mix.0.flush()
    }

    /// One client asks for a name in each way, and sends payload of no known protocol.
    fn asked(&mut self, number: u32, client: u32, name: &str) -> io::Result<()> {
        let ends = [0x0a00_0000 + number * CLIENTS + client, 0xc000_0000 + number * CLIENTS + (CLIENTS - client)];
        let labels = name.as_bytes().chunks(60).flat_map(|label| [&[label.len() as u8], label].concat());
        let query: Vec<u8> =
            b"\0\x07\x01\0\0\x01\0\0\0\0\0\0".iter().copied().chain(labels).chain(*b"\0\0\x01\0\x01").collect();
        self.packet(ends, [40_000, 53], None, &query)?;
        self.packet(ends, [40_001, 80], Some(DATA), format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n").as_bytes())?;
        self.packet(ends, [40_002, 443], Some(DATA), &hello(number, name))?;
        let port = (number * CLIENTS + client).wrapping_mul(0x9e37_79b1) >> 16;
        self.packet(ends, [40_003, port as u16], None, b"payload of no known protocol, of some length")
    }

    /// One attempt of one of many scanners: half of them at ports of one host, half of them at one port of hosts.
    fn scanned(&mut self, attempt: u32, names: u32) -> io::Result<()> {
        let scanners = (names / 16).max(40);
        let (scanner, step) = (attempt % scanners, attempt / scanners);
        let source = 0x0b00_0000 + scanner;
        let (target, port) = if scanner % 2 == 0 {
            (0xd000_0000 + scanner, step)
        } else {
            (0xd100_0000 + attempt, 1 + scanner % 60_000)
        };
        self.packet([source, target], [50_000, port as u16], Some(SYN), b"")?;
        if attempt.is_multiple_of(5) {
            self.packet([target, source], [port as u16, 50_000], Some(SYN_ACK), b"")?;
        }
        Ok(())
    }

    fn packet(&mut self, ends: [u32; 2], ports: [u16; 2], flags: Option<u8>, payload: &[u8]) -> io::Result<()> {
        let header = match flags {
            Some(flags) => vec![0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0],
            None => [&(8 + payload.len() as u16).to_be_bytes()[..], &[0, 0]].concat(),
        };
        let length = (24 + header.len() + payload.len()) as u32;
        self.1 += 1;
        let (second, micros) = (self.1 / 10_000, self.1 % 10_000 * 100);
        self.0.write_all(&[1_700_000_000 + second, micros, length, length].map(u32::to_le_bytes).concat())?;
        let protocol = if flags.is_some() { 6 } else { 17 };
        self.0.write_all(&[0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, protocol, 0, 0])?;
        self.0.write_all(&ends.map(u32::to_be_bytes).concat())?;
        self.0.write_all(&ports.map(u16::to_be_bytes).concat())?;
        self.0.write_all(&header)?;
        self.0.write_all(payload)
    }
}

/// A ClientHello with ciphers of its own.
fn hello(number: u32, name: &str) -> Vec<u8> {
    let sized = |body: &[u8]| [&(body.len() as u16).to_be_bytes()[..], body].concat();
    let server = sized(&[&[0], &sized(name.as_bytes())[..]].concat());
    let extensions = [&[0, 0][..], &sized(&server)].concat();
    let ciphers = [0x1301_u16, (number >> 8) as u16 | 0x4000, (number & 0xff) as u16 | 0x5000];
    let ciphers = sized(&ciphers.map(u16::to_be_bytes).concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &ciphers, &[1, 0], &sized(&extensions)].concat();
    let message = [&[1, 0][..], &sized(&body)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

/// The most memory of a run over the traffic with these options, in bytes.
fn peak(folder: &Folder, names: u32, options: &[&str]) -> u64 {
    let timing = folder.path("timing.json");
    let mut command = corelane(["monitor", "-", "--top", "0", "--timing", timing.to_str().expect("UTF-8")]);
    let mut child = command.args(options).stdin(Stdio::piped()).spawn().expect("the binary starts");
    let stdin = BufWriter::new(child.stdin.take().expect("piped"));
    thread::scope(|scope| {
        scope.spawn(move || Mix::write(names, stdin).expect("a pipe"));
        finish(child).code(0)
    });
    let timing: serde_json::Value = serde_json::from_str(&fs::read_to_string(timing).expect("a file")).expect("JSON");
    timing["peak_memory_bytes"].as_u64().expect("the most memory")
}

/// All kinds at once, so many of each.
fn check(names: u32) -> String {
    let folder = Folder::new();
    let page = folder.path("page.html");
    // Conversations are followed in both.
    let without = peak(&folder, names, &["--protocols"]);
    let with = peak(&folder, names, &["--html", page.to_str().expect("UTF-8")]);
    let page = fs::read_to_string(page).expect("a page");
    let _ = writeln!(io::stderr(), "{names} names: {without} and {with} bytes of memory, a page of {}", page.len());
    assert!(page.len() < PAGE, "{} bytes", page.len());
    assert!(with < without + MEMORY, "{without} bytes without a page, {with} with one");
    page
}

#[test]
fn all_kinds_of_traffic_at_once_stay_within_the_page() {
    let page = check(2_000);
    for part in ["id=\"scans\"", "names asked for in DNS", "JA4", "; and 1,700 more", "Unknown payload"] {
        assert!(page.contains(part) || page.contains(&part.replace("names", "Names")), "no {part}");
    }
}

/// Every table is full.
#[test]
#[ignore = "takes minutes without optimization"]
fn all_kinds_of_traffic_at_once_fill_every_table_and_stay_within_the_page() {
    let page = check(125_000);
    let full = "fingerprints, ports with unknown payload, hosts, names in HTTP, names in TLS, names in DNS. So their counts are";
    assert!(page.contains(full));
}
