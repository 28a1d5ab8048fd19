//! The program by which the kernel chooses the ring of a frame: the sum of its two addresses, so that both directions
//! of an address pair come to one ring. Frames without IP come to the first one.

use crate::capture::filter::Instruction;

/// Offsets from the network header. Offsets from the frame's start do not work here: where they count from depends on
/// the direction of the frame.
const NETWORK: u32 = libc::SKF_NET_OFF as u32;
/// The EtherType by the kernel: of an arriving frame the one behind the first VLAN tag, which the kernel has taken.
const PROTOCOL: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;

const LOAD_WORD: u16 = 0x20;
pub(super) const LOAD_HALF: u16 = 0x28;
pub(super) const LOAD_BYTE: u16 = 0x30;
const TO_X: u16 = 0x07;
const ADD_X: u16 = 0x0c;
const AND: u16 = 0x54;
pub(super) const IF_EQUAL: u16 = 0x15;
pub(super) const RETURN: u16 = 0x06;
const RETURN_SUM: u16 = 0x16;

/// The EtherType, the first half byte of the header, and where its addresses are, in words.
const IPV4: (u32, u32, u32, u32) = (0x0800, 0x40, 3, 2);
const IPV6: (u32, u32, u32, u32) = (0x86dd, 0x60, 2, 8);
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];

/// The program. The kernel takes its result modulo the number of rings; one that reads behind the frame gives 0.
///
/// Behind a tag there may be one or two more, which are stepped over. But if a program of this machine sends a frame
/// with its tags written out, the kernel reports a tag, while its network header is behind all of them already. So what
/// is no header behind a tag is taken for one that is there.
pub(super) fn program() -> Vec<Instruction> {
    let mut program = Vec::new();
    for depth in 0..3 {
        let kind = if depth == 0 { PROTOCOL } else { NETWORK + 4 * depth - 2 };
        for family in [IPV4, IPV6] {
            let sum = header(NETWORK + 4 * depth, family);
            program.extend([instruction(LOAD_HALF, kind), unless(family.0, sum.len())]);
            program.extend(sum);
        }
        let mut otherwise = Vec::new();
        if depth == 1 {
            otherwise.extend([IPV4, IPV6].into_iter().flat_map(|family| header(NETWORK, family)));
        }
        otherwise.push(instruction(RETURN, 0));
        if depth < 2 {
            // Only a tag comes to what follows.
            program.push(instruction(LOAD_HALF, kind));
            for (tests, tag) in (0..3).rev().zip(TAGS) {
                program.push(Instruction { code: IF_EQUAL, jt: (tests + otherwise.len()) as u8, jf: 0, k: tag });
            }
        }
        program.extend(otherwise);
    }
    program
}

pub(super) fn instruction(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

/// Skips `instructions` unless the value is `k`.
fn unless(k: u32, instructions: usize) -> Instruction {
    Instruction { code: IF_EQUAL, jt: 0, jf: instructions as u8, k }
}

/// Returns the sum of the words of both addresses, if a header of the family is at `start`; goes on otherwise.
fn header(start: u32, (_, version, first, words): (u32, u32, u32, u32)) -> Vec<Instruction> {
    let mut sum = vec![instruction(LOAD_WORD, start + 4 * first)];
    for word in first + 1..first + words {
        sum.extend([instruction(TO_X, 0), instruction(LOAD_WORD, start + 4 * word), instruction(ADD_X, 0)]);
    }
    sum.push(instruction(RETURN_SUM, 0));
    let mut program = vec![instruction(LOAD_BYTE, start), instruction(AND, 0xf0), unless(version, sum.len())];
    program.extend(sum);
    program
}
