//! Interleaved conversations with payload: HTTP, TLS and DNS. Some of their packets are lost, late, repeated or in
//! fragments.

use super::random::Random;
use crate::capture::{LinkType, write::PcapWriter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A configuration of conversations with payload, within half a minute. The same values give the same bytes.
///
/// Half of the conversations are HTTP, a quarter TLS handshakes, and a quarter DNS. Four of five are over IPv4.
/// Checksums are zero, as this project's readers do not check them.
///
/// ```
/// use corelane_net::synth::Conversations;
///
/// let capture = Conversations { seed: 1, conversations: 20, trouble: 0, spoofed: 0 }.capture();
/// assert_eq!(capture, Conversations { seed: 1, conversations: 20, trouble: 0, spoofed: 0 }.capture());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversations {
    /// The seed; another seed gives other conversations.
    pub seed: u64,
    /// The number of conversations.
    pub conversations: u64,
    /// Of a thousand packets this many are lost, this many come 3 ms late, and this many come twice; no SYN is lost.
    pub trouble: u64,
    /// The number of further SYNs and datagrams, whose sources do not exist.
    pub spoofed: u64,
}

/// A conversation's packets in order: the time after its beginning, whether the client sends it, the TCP flags (`None`
/// is UDP) and the payload.
type Script = Vec<(u64, bool, Option<u8>, Vec<u8>)>;

impl Conversations {
    /// A pcap file of raw IP packets, in the order of time.
    pub fn capture(self) -> Vec<u8> {
        let mut random = Random::new(self.seed);
        let mut frames: Vec<(u64, u64, Vec<u8>)> = Vec::new();
        for number in 0..self.conversations {
            let begin = random.below(30_000_000_000);
            let script = match random.below(4) {
                0 => dns(&mut random),
                1 => tls(&mut random),
                _ => http(&mut random),
            };
            let client = address(number % 97, random.below(5) == 0);
            let server = address(1000 + number % 11, client.is_ipv6());
            let ports = (1024 + (number % 60_000) as u16, if script[0].2.is_none() { 53 } else { 8000 });
            let mut next = [random.next() as u32, random.next() as u32];
            for (after, from_client, flags, payload) in script {
                let (from, to) = if from_client { (0, 1) } else { (1, 0) };
                let ends = [(client, ports.0), (server, ports.1)];
                let transport = match flags {
                    Some(flags) => tcp(ends[from].1, ends[to].1, next[from], next[to], flags, &payload),
                    None => udp(ends[from].1, ends[to].1, &payload),
                };
                next[from] = next[from].wrapping_add(payload.len() as u32);
                next[from] = next[from].wrapping_add(flags.map_or(0, |flags| u32::from(flags & (SYN | FIN) != 0)));
                let protocol = if flags.is_some() { 6 } else { 17 };
                let pieces = if flags.is_none() && transport.len() > 100 && !client.is_ipv6() { 2 } else { 1 };
                for frame in ip(ends[from].0, ends[to].0, protocol, number as u16, pieces, &transport) {
                    let trouble = random.below(1000);
                    let late = if trouble < 2 * self.trouble { 3_000_000 } else { 0 };
                    let time = begin + after + late;
                    if trouble < 3 * self.trouble && trouble >= 2 * self.trouble {
                        frames.push((time + 1, random.next(), frame.clone()));
                    }
                    if trouble >= self.trouble || flags.is_some_and(|flags| flags & SYN != 0) {
                        frames.push((time, 0, frame));
                    }
                }
            }
        }
        for _ in 0..self.spoofed {
            let source = IpAddr::V4(Ipv4Addr::from_bits(0x3000_0000 | random.next() as u32 & 0xff_ffff));
            let target = address(1000, false);
            let frame = if random.below(2) == 0 {
                ip(source, target, 6, 0, 1, &tcp(random.next() as u16, 80, random.next() as u32, 0, SYN, &[]))
            } else {
                ip(source, target, 17, 0, 1, &udp(random.next() as u16, 9, &[0xff; 40]))
            };
            frames.push((random.below(30_000_000_000), random.next(), frame.into_iter().next().expect("one")));
        }
        frames.sort();
        let mut writer = PcapWriter::new(Vec::new(), 65_535, LinkType::RAW).expect("memory");
        for (time_ns, _, frame) in frames {
            writer.write(1_700_000_000_000_000_000 + time_ns, frame.len() as u32, &frame).expect("memory");
        }
        writer.finish().expect("memory")
    }
}

fn address(number: u64, v6: bool) -> IpAddr {
    if v6 {
        Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)).into()
    } else {
        Ipv4Addr::from_bits(0x0a00_0000 | number as u32).into()
    }
}

fn connection(exchanges: Vec<(Vec<u8>, Vec<u8>)>) -> Script {
    let mut script =
        vec![(0, true, Some(SYN), vec![]), (1000, false, Some(SYN | ACK), vec![]), (2000, true, Some(ACK), vec![])];
    let mut after = 3000;
    for (question, answer) in exchanges {
        for (from_client, bytes) in [(true, question), (false, answer)] {
            for piece in bytes.chunks(700) {
                after += 1_000_000;
                script.push((after, from_client, Some(ACK), piece.to_vec()));
            }
        }
    }
    script.push((after + 1_000_000, true, Some(FIN | ACK), vec![]));
    script.push((after + 2_000_000, false, Some(FIN | ACK), vec![]));
    script
}

fn http(random: &mut Random) -> Script {
    let exchanges = (0..1 + random.below(4)).map(|number| {
        let host = random.below(20);
        let request =
            format!("GET /{number}/{host} HTTP/1.1\r\nHost: h{host}.example:8000\r\nUser-Agent: test \"\\ü\r\n\r\n");
        let body = "x".repeat(random.below(3000) as usize);
        let length = body.len();
        let response =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\nContent-Length: {length}\r\n\r\n{body}");
        (request.into_bytes(), response.into_bytes())
    });
    connection(exchanges.collect())
}

fn tls(random: &mut Random) -> Script {
    let name = format!("host{}.example", random.below(50));
    let mut names = vec![0];
    prefixed(&mut names, name.as_bytes());
    let mut list = Vec::new();
    prefixed(&mut list, &names);
    let mut extensions = vec![0, 0];
    prefixed(&mut extensions, &list);
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0x13, 0x01, 0xc0, 0x2f, 1, 0]);
    prefixed(&mut hello, &extensions);
    let mut answer = vec![3, 3];
    answer.extend([9; 32]);
    answer.extend([0, 0x13, 0x01, 0, 0, 0]);
    connection(vec![(handshake(1, &hello), handshake(2, &answer))])
}

/// A TLS record with one handshake message.
fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 0];
    prefixed(&mut message, body);
    let mut record = vec![22, 3, 1];
    prefixed(&mut record, &message);
    record
}

fn prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u16).to_be_bytes());
    out.extend(bytes);
}

fn dns(random: &mut Random) -> Script {
    let mut script = Vec::new();
    for number in 0..1 + random.below(3) {
        let label = format!("name{}", random.below(30));
        let mut question = vec![label.len() as u8];
        question.extend(label.as_bytes());
        question.extend([7, b'e', b'x', b'a', b'm', b'p', b'l', b'e', 0, 0, 1, 0, 1]);
        let id = random.next() as u16;
        let answers = random.below(8) as u8;
        let header = |flags: u16, answers: u8| {
            let mut header = id.to_be_bytes().to_vec();
            header.extend(flags.to_be_bytes());
            header.extend([0, 1, 0, answers, 0, 0, 0, 0]);
            header.extend(&question);
            header
        };
        let mut answer = header(0x8180, answers);
        for last in 0..answers {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last]);
        }
        let after = number * 5_000_000;
        script.push((after, true, None, header(0x0100, 0)));
        script.push((after + 2_000_000, false, None, answer));
    }
    script
}

fn tcp(from: u16, to: u16, sequence: u32, acknowledgment: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(from.to_be_bytes());
    segment.extend(to.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledgment.to_be_bytes());
    segment.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    segment.extend(payload);
    segment
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(from.to_be_bytes());
    datagram.extend(to.to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// One datagram, in `pieces` fragments if it is IPv4.
fn ip(source: IpAddr, destination: IpAddr, protocol: u8, id: u16, pieces: usize, payload: &[u8]) -> Vec<Vec<u8>> {
    let size = payload.len().div_ceil(pieces).next_multiple_of(8);
    let mut frames = Vec::new();
    for (number, piece) in payload.chunks(size).enumerate() {
        let mut frame = Vec::new();
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let more = u16::from((number + 1) * size < payload.len()) << 13;
                frame.extend([0x45, 0]);
                frame.extend((20 + piece.len() as u16).to_be_bytes());
                frame.extend(id.to_be_bytes());
                frame.extend((more | (number * size / 8) as u16).to_be_bytes());
                frame.extend([64, protocol, 0, 0]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x60, 0, 0, 0]);
                frame.extend((piece.len() as u16).to_be_bytes());
                frame.extend([protocol, 64]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            _ => panic!("two address families in one packet"),
        }
        frame.extend(piece);
        frames.push(frame);
    }
    frames
}
