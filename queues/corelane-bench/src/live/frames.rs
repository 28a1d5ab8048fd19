//! Frames in memory, to be sent again and again.

use super::Traffic;
use corelane_net::capture::Reader;
use corelane_net::capture::live::Options;
use corelane_net::synth::{Config, Conversations, Generator};
use std::io::IoSlice;
use std::ops::Range;

/// How much there is to send before it begins anew, and how much for a check that it can be sent.
const PACKETS: [u64; 2] = [250_000, 2_000];
const CONVERSATIONS: [u64; 2] = [15_000, 100];
/// What generated times are made for: handshakes are as long as they are at this rate.
const RATE: u32 = 100_000;

/// The bytes of a block of a ring of 64 MiB, and about those of the ring's header of a frame.
const BLOCK: u64 = 8 << 20;
const HEADER: usize = 80;
/// The bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// One octet of each address, seen from the IP header: one that is neither the first nor the last of the network.
const OF_IPV4: [usize; 2] = [13, 17];
const OF_IPV6: [usize; 2] = [12, 28];

/// A frame in the bytes.
#[derive(Clone, Debug)]
struct Frame {
    place: Range<usize>,
    /// An octet of the source's and of the destination's address: where it is, and what it is in the first pass.
    octets: [(usize, u8); 2],
}

/// Frames. Each pass over them is between other hosts, so that no conversation comes twice.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    next: usize,
    pass: u8,
}

impl Frames {
    /// Makes the frames. Always the same ones.
    pub(super) fn of(traffic: Traffic, quick: bool) -> Result<Self, String> {
        let mut frames = Frames::default();
        match traffic {
            Traffic::Scans => {
                let packets = PACKETS[usize::from(quick)];
                let snaplen = Config::MAX_SNAPLEN;
                let config = Config { packets, snaplen, packets_per_second: Some(RATE), ..Config::default() };
                let mut generator = Generator::new(config).map_err(|error| error.to_string())?;
                while let Some(record) = generator.next_frame() {
                    frames.add(&record.data[..ETHERNET], &record.data[ETHERNET..]);
                }
            }
            Traffic::Conversations => {
                let conversations = CONVERSATIONS[usize::from(quick)];
                let capture = Conversations { seed: 1, conversations, trouble: 5, spoofed: 0 }.capture();
                let mut reader = Reader::from_bytes(capture).map_err(|error| error.to_string())?;
                let mut add = |packet: &[u8]| frames.add(&link_header(packet), packet);
                while reader.read(4096, |record| add(record.data)).map_err(|error| error.to_string())? > 0 {}
            }
        }
        Ok(frames)
    }

    fn add(&mut self, link: &[u8], packet: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(link);
        let ip = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        let octets = if is_ipv6(packet) { OF_IPV6 } else { OF_IPV4 };
        let octets = octets.map(|octet| (ip + octet, packet[octet]));
        self.frames.push(Frame { place: start..self.bytes.len(), octets });
    }

    /// How many frames a block of the ring holds.
    pub(super) fn in_block(&self, headers_only: bool) -> u64 {
        let most = if headers_only { Options::HEADERS as usize } else { usize::MAX };
        let bytes: usize = self.frames.iter().map(|frame| frame.place.len().min(most)).sum();
        BLOCK / (bytes / self.frames.len().max(1) + HEADER) as u64
    }

    /// Begins with the first frame of the first pass.
    pub(super) fn rewind(&mut self) {
        (self.next, self.pass) = (0, 0);
    }

    /// The next frames: at least one and at most `most`.
    pub(super) fn next(&mut self, most: usize) -> impl Iterator<Item = IoSlice<'_>> {
        if self.next == self.frames.len() {
            (self.next, self.pass) = (0, self.pass.wrapping_add(1));
        }
        let end = self.frames.len().min(self.next + most);
        let frames = &self.frames[self.next..end];
        self.next = end;
        for &(place, octet) in frames.iter().flat_map(|frame| &frame.octets) {
            // The header's checksum is wrong then, and no reader here looks at it.
            self.bytes[place] = octet ^ self.pass;
        }
        frames.iter().map(|frame| IoSlice::new(&self.bytes[frame.place.clone()]))
    }
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6
}

/// An Ethernet header for an IP packet, between two stations that are not here.
fn link_header(packet: &[u8]) -> [u8; ETHERNET] {
    let kind = if is_ipv6(packet) { [0x86, 0xdd] } else { [8, 0] };
    [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, kind[0], kind[1]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The frames of a pass.
    fn pass(frames: &mut Frames) -> Vec<Vec<u8>> {
        let count = frames.frames.len();
        let mut all = Vec::new();
        while all.len() < count {
            all.extend(frames.next(64).map(|frame| frame.to_vec()));
        }
        assert_eq!(all.len(), count);
        all
    }

    /// Source and destination, one behind the other.
    fn pairs(pass: &[Vec<u8>]) -> BTreeSet<&[u8]> {
        let pair = |frame: &'_ Vec<u8>| match frame[12..14] {
            [0x08, 0x00] => 26..34,
            [0x86, 0xdd] => 22..54,
            _ => panic!("not of IP: {frame:x?}"),
        };
        pass.iter().map(|frame| &frame[pair(frame)]).collect()
    }

    #[test]
    fn each_pass_is_between_other_hosts_and_a_rewound_one_is_the_first() {
        for traffic in [Traffic::Scans, Traffic::Conversations] {
            let mut frames = Frames::of(traffic, true).unwrap();
            let (first, second) = (pass(&mut frames), pass(&mut frames));
            assert!(first.len() > 500);
            let (of_first, of_second) = (pairs(&first), pairs(&second));
            assert!(of_first.len() > 50 && of_first.is_disjoint(&of_second));
            assert_eq!(of_first.len(), of_second.len());
            // Two octets of a frame differ, and nothing else.
            let differ = |(a, b): (&Vec<u8>, &Vec<u8>)| a.iter().zip(b).filter(|(a, b)| a != b).count();
            assert!(first.iter().zip(&second).all(|pair| pair.0.len() == pair.1.len() && differ(pair) == 2));
            frames.rewind();
            assert!(pass(&mut frames) == first);
        }
    }
}
