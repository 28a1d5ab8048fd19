//! Packet filters: classic BPF programs, checked as the kernel checks them, and run over the frames of files.
//!
//! A filter is what `tcpdump -ddd EXPRESSION` prints; with the feature `libpcap`, `Filter::compile` makes one of an
//! expression. A program is compiled for one link type and finds nothing, or the wrong thing, in frames of another:
//! `tcpdump -ddd -y EN10MB EXPRESSION` compiles for Ethernet, whatever interfaces the machine has. The program itself
//! does not state which link type it is for.
//!
//! # Files and live interfaces
//!
//! The kernel takes the outer VLAN tag out of a frame before a filter sees it. So a program that looks for the tag in
//! the frame, as those for files do, finds none on an interface; and one that `tcpdump -i IFACE -ddd` compiled asks the
//! kernel for the tag instead. [`Filter::accepts`] gives each the frame that it expects:
//!
//! - A program that asks for the tag gets Ethernet frames without their outer tag (0x8100 or 0x88a8), and the tag where
//!   it asks. So it accepts from a file what it would have accepted from the interface.
//! - Any other program gets the frame as it is, so it accepts what `tcpdump -r FILE EXPRESSION` accepts. On an
//!   interface the same program sees frames without their outer tag: `tcp` finds tagged segments there, `vlan` nothing.
//!
//! Other facts that a program may ask the kernel for, such as whether a packet came in or went out, are in no file:
//! [`Filter::check_files`] reports it. A file may also hold frames that were cut, while the kernel sees them whole.
//!
//! # Where the kernel and libpcap differ
//!
//! Their results differ in two cases, for which no compiler writes programs. Here the kernel's count: a shift by X uses
//! the lowest five bits of X (libpcap: 0 from 32 on), and the sum of X and an offset wraps at 2^32 (libpcap: rejects).

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// One instruction of classic BPF, as the kernel's `struct sock_filter` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip if a condition is true.
    pub jt: u8,
    /// Instructions to skip if it is false.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// The most instructions of a program.
const MOST: usize = 4096;
/// Slots of memory.
const SLOTS: u32 = 16;
/// The most bytes of a program's text: 4,096 of the longest lines, and room for comments.
const MOST_TEXT: u64 = 1 << 20;

/// The lowest three bits of a code: its class.
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC: u16 = 0x07;
const CLASS: u16 = 0x07;

/// Loads: the size and the mode.
const WORD: u16 = 0x00;
const HALF: u16 = 0x08;
const BYTE: u16 = 0x10;
const SIZE: u16 = 0x18;
const IMM: u16 = 0x00;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const MEM: u16 = 0x60;
const LEN: u16 = 0x80;
const MSH: u16 = 0xa0;
const MODE: u16 = 0xe0;

/// Arithmetic and jumps: the operation, and whether its operand is X instead of the constant.
const ADD: u16 = 0x00;
const SUB: u16 = 0x10;
const MUL: u16 = 0x20;
const DIV: u16 = 0x30;
const OR: u16 = 0x40;
const AND: u16 = 0x50;
const LSH: u16 = 0x60;
const RSH: u16 = 0x70;
const NEG: u16 = 0x80;
const MOD: u16 = 0x90;
const XOR: u16 = 0xa0;
const JA: u16 = 0x00;
const JEQ: u16 = 0x10;
const JGT: u16 = 0x20;
const JGE: u16 = 0x30;
const JSET: u16 = 0x40;
const OPERATION: u16 = 0xf0;
const BY_X: u16 = 0x08;

const RET_K: u16 = RET;
const RET_A: u16 = RET | 0x10;
const TAX: u16 = MISC;
const TXA: u16 = MISC | 0x80;

/// Offsets of loads from here on count from the link header, from the network header, or name a fact of the kernel's.
const LINK_OFFSET: u32 = 0xffe0_0000;
const NETWORK_OFFSET: u32 = 0xfff0_0000;
const FACT: u32 = 0xffff_f000;
/// Facts that are answered here.
const FACT_XOR_X: u32 = FACT + 40;
const FACT_VLAN_TAG: u32 = FACT + 44;
const FACT_VLAN_PRESENT: u32 = FACT + 48;
const FACT_VLAN_PROTOCOL: u32 = FACT + 60;

/// Bytes of the Ethernet addresses, behind which the outer VLAN tag is.
const ADDRESSES: usize = 12;
/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// A program that the kernel's rules allow: it ends, and does nothing that is undefined.
///
/// ```
/// use corelane_net::capture::filter::Filter;
///
/// // tcpdump -y EN10MB -ddd arp
/// let filter = Filter::parse("4\n40 0 0 12\n21 0 1 2054\n6 0 0 262144\n6 0 0 0\n")?;
/// let mut frame = [0; 42];
/// assert!(!filter.accepts(&frame, 60));
/// frame[12..14].copy_from_slice(&[0x08, 0x06]);
/// assert!(filter.accepts(&frame, 60));
/// # Ok::<(), corelane_net::capture::filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    instructions: Vec<Instruction>,
    /// Whether the program asks for the outer VLAN tag, so that it expects frames without it.
    asks_for_tag: bool,
}

impl Filter {
    /// Checks a program.
    ///
    /// # Errors
    ///
    /// [`FilterError::Program`] if the kernel would refuse it: no instruction or more than 4,096, an unknown one, a
    /// jump backward or beyond the end, no `ret` at the end, a constant division by zero or shift by more than 31,
    /// memory beyond 16 slots or read before it is written, a fact that no kernel knows.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, FilterError> {
        verify(&instructions).map_err(|(instruction, what)| FilterError::Program { instruction, line: None, what })?;
        let asks_for_tag = instructions.iter().any(|instruction| {
            instruction.is_absolute_load()
                && matches!(instruction.k, FACT_VLAN_TAG | FACT_VLAN_PRESENT | FACT_VLAN_PROTOCOL)
        });
        Ok(Self { instructions, asks_for_tag })
    }

    /// Reads a program as `tcpdump -ddd` prints it: the number of instructions, then each as the four decimal numbers
    /// `code jt jf k`. Instructions are separated by line ends or commas, numbers by spaces or tabs; empty lines, and
    /// what follows a `#`, are ignored.
    ///
    /// # Errors
    ///
    /// [`FilterError::Text`] or [`FilterError::Program`], with the line.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut statements = text.lines().zip(1..).flat_map(|(content, line)| {
            let (content, _) = content.split_once('#').unwrap_or((content, ""));
            content.split(',').map(str::trim).filter(|part| !part.is_empty()).map(move |part| (line, part))
        });
        let Some((first, count)) = statements.next() else {
            return Err(text_error(1, "there is no program; give what `tcpdump -ddd EXPRESSION` prints"));
        };
        let count: usize = count.parse().map_err(|_| not_a_program(first, count))?;
        if count > MOST {
            return Err(text_error(first, format!("{count} instructions are more than a program's {MOST}")));
        }
        let (mut instructions, mut lines) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (line, statement) in statements {
            if instructions.len() == count {
                return Err(text_error(
                    line,
                    format!("more than the {count} instructions that line {first} announces"),
                ));
            }
            instructions.push(instruction(statement).ok_or_else(|| not_an_instruction(line, statement))?);
            lines.push(line);
        }
        if instructions.len() < count {
            let found = instructions.len();
            let what = format!("{count} instructions are announced, but {found} follow; copy the program again");
            return Err(text_error(first, what));
        }
        Self::new(instructions).map_err(|error| match error {
            FilterError::Program { instruction, what, .. } => {
                let line = lines.get(instruction).copied().or(Some(first));
                FilterError::Program { instruction, line, what }
            }
            error => error,
        })
    }

    /// Reads a program from a file, as [`Filter::parse`] does.
    ///
    /// # Errors
    ///
    /// [`FilterError::Read`] for a file that cannot be read, is longer than 1 MiB, or is not text; otherwise those of
    /// [`Filter::parse`].
    pub fn read(path: &Path) -> Result<Self, FilterError> {
        let mut text = String::new();
        let file = File::open(path).map_err(FilterError::Read)?;
        file.take(MOST_TEXT + 1).read_to_string(&mut text).map_err(FilterError::Read)?;
        if text.len() as u64 > MOST_TEXT {
            return Err(FilterError::Read(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is longer than the 1 MiB that any program fits into",
            )));
        }
        Self::parse(&text)
    }

    /// Compiles an expression of tcpdump's language, for files with frames of one link type. An accepted packet is cut
    /// to `snaplen` bytes where the kernel runs the program; 0 stands for 262,144.
    ///
    /// Names in the expression are looked up: hosts by the system's resolver, which may ask the network.
    ///
    /// # Errors
    ///
    /// [`FilterError::Compile`] with the message of libpcap.
    #[cfg(feature = "libpcap")]
    pub fn compile(expression: &str, link: super::LinkType, snaplen: u32) -> Result<Self, FilterError> {
        use super::LinkType;
        use pcap::Linktype;

        // The number in files is the library's own, but for raw IP, whose number there differs from system to system.
        let kind = match link {
            LinkType::RAW | LinkType::RAW_12 | LinkType::RAW_14 => {
                Linktype(if cfg!(target_os = "openbsd") { 14 } else { 12 })
            }
            LinkType(number) => Linktype(
                i32::try_from(number).map_err(|_| FilterError::Compile(format!("no link type {number} is known")))?,
            ),
        };
        pcap::Capture::dead(kind).map_err(compile_error).and_then(|handle| compile_with(&handle, expression, snaplen))
    }

    /// Compiles an expression for the interface of this name, so that it finds the VLAN tags that the kernel takes out
    /// of frames. The interface is opened for that, and closed before the call returns. Otherwise as
    /// [`Filter::compile`].
    ///
    /// # Errors
    ///
    /// [`FilterError::Compile`] with the message of libpcap; also without the right to capture.
    #[cfg(feature = "libpcap")]
    pub fn compile_live(expression: &str, interface: &str, snaplen: u32) -> Result<Self, FilterError> {
        let handle = pcap::Capture::from_device(interface).and_then(pcap::Capture::open).map_err(compile_error)?;
        compile_with(&handle, expression, snaplen)
    }

    /// The program, for the kernel.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Checks that files hold all that the program asks for. To be called once before [`Filter::accepts`], which
    /// rejects a packet where it meets such a question.
    ///
    /// # Errors
    ///
    /// [`FilterError::NotForFiles`] for the first such instruction.
    pub fn check_files(&self) -> Result<(), FilterError> {
        for (at, instruction) in self.instructions.iter().enumerate() {
            let is_network = (NETWORK_OFFSET..FACT).contains(&instruction.k);
            let what = match instruction.k {
                _ if instruction.code == LDX | BYTE | MSH && is_network => NETWORK_HEADER,
                _ if !instruction.is_absolute_load() => continue,
                _ if is_network => NETWORK_HEADER,
                FACT.. => match unanswered(instruction.k - FACT) {
                    Some(what) => what,
                    None => continue,
                },
                _ => continue,
            };
            return Err(FilterError::NotForFiles { instruction: at, what });
        }
        Ok(())
    }

    /// Whether the program accepts this frame of a file: its captured bytes, and its length on the wire. A load beyond
    /// the captured bytes, and a division by zero, reject it.
    ///
    /// Takes time for each instruction at most once, as all jumps go forward.
    pub fn accepts(&self, data: &[u8], wire_len: u32) -> bool {
        let frame = if self.asks_for_tag {
            Frame::without_tag(data, wire_len)
        } else {
            Frame { head: data, tail: &[], tag: None, wire_len }
        };
        self.run(&frame).is_some_and(|most| most > 0)
    }

    /// The most bytes to keep of a frame without a tag; `None` if the program was left early.
    #[cfg(test)]
    pub(super) fn kept(&self, data: &[u8]) -> Option<u32> {
        self.run(&Frame { head: data, tail: &[], tag: None, wire_len: data.len() as u32 })
    }

    /// The most bytes to keep of a frame; `None` if the program was left early.
    fn run(&self, frame: &Frame<'_>) -> Option<u32> {
        let (mut a, mut x) = (0_u32, 0_u32);
        let mut memory = [0_u32; SLOTS as usize];
        let mut at = 0;
        // Ends: `at` grows with each turn, and the last instruction returns.
        loop {
            let &Instruction { code, jt, jf, k } = self.instructions.get(at)?;
            at += 1;
            match code & CLASS {
                LD => {
                    a = match code & MODE {
                        ABS if k < LINK_OFFSET => frame.load(k, code)?,
                        ABS => frame.special(k, code, a, x)?,
                        IND => match k.wrapping_add(x) {
                            // A sum names no fact: it counts from the network header, whose place a file does not
                            // state.
                            NETWORK_OFFSET.. => return None,
                            k @ LINK_OFFSET.. => frame.load(k - LINK_OFFSET, code)?,
                            k => frame.load(k, code)?,
                        },
                        MEM => memory[k as usize],
                        LEN => frame.wire_len,
                        _ => k,
                    }
                }
                LDX => {
                    x = match code & MODE {
                        MSH => {
                            let k = if (LINK_OFFSET..NETWORK_OFFSET).contains(&k) { k - LINK_OFFSET } else { k };
                            (frame.load(k, code)? & 0xf) << 2
                        }
                        MEM => memory[k as usize],
                        LEN => frame.wire_len,
                        _ => k,
                    }
                }
                ST => memory[k as usize] = a,
                STX => memory[k as usize] = x,
                ALU => a = calculate(code, a, if code & BY_X == 0 { k } else { x })?,
                JMP => {
                    let operand = if code & BY_X == 0 { k } else { x };
                    let is_true = match code & OPERATION {
                        JEQ => a == operand,
                        JGT => a > operand,
                        JGE => a >= operand,
                        JSET => a & operand != 0,
                        _ => {
                            at += k as usize;
                            continue;
                        }
                    };
                    at += usize::from(if is_true { jt } else { jf });
                }
                RET => return Some(if code == RET_A { a } else { k }),
                _ if code == TAX => x = a,
                _ => a = x,
            }
        }
    }
}

impl Instruction {
    /// Whether it loads from a constant offset, which may name a fact instead.
    fn is_absolute_load(self) -> bool {
        self.code & (CLASS | MODE) == LD | ABS
    }
}

/// `None` for a division by zero.
#[inline]
fn calculate(code: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match code & OPERATION {
        ADD => a.wrapping_add(operand),
        SUB => a.wrapping_sub(operand),
        MUL => a.wrapping_mul(operand),
        DIV => return a.checked_div(operand),
        MOD => return a.checked_rem(operand),
        OR => a | operand,
        AND => a & operand,
        XOR => a ^ operand,
        LSH => a.wrapping_shl(operand),
        RSH => a.wrapping_shr(operand),
        _ => a.wrapping_neg(),
    })
}

/// A frame as a program sees it.
struct Frame<'a> {
    /// The bytes before an outer VLAN tag that was taken out, or all.
    head: &'a [u8],
    /// The bytes behind it.
    tail: &'a [u8],
    /// The tag that was taken out: its protocol and its control information.
    tag: Option<(u16, u16)>,
    wire_len: u32,
}

impl<'a> Frame<'a> {
    /// An Ethernet frame as the kernel shows it to filters.
    fn without_tag(data: &'a [u8], wire_len: u32) -> Self {
        if let Some((head, rest)) = data.split_at_checked(ADDRESSES)
            && let Some((&[p0, p1, t0, t1], tail)) = rest.split_first_chunk::<TAG>()
            && let protocol @ (0x8100 | 0x88a8) = u16::from_be_bytes([p0, p1])
        {
            let tag = Some((protocol, u16::from_be_bytes([t0, t1])));
            return Self { head, tail, tag, wire_len: wire_len.saturating_sub(TAG as u32) };
        }
        Self { head: data, tail: &[], tag: None, wire_len }
    }

    /// The number at an offset, of the size that the code states.
    #[inline]
    fn load(&self, at: u32, code: u16) -> Option<u32> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.head.get(at..).unwrap_or_default();
        let found = match code & SIZE {
            WORD => bytes.first_chunk().map(|&bytes| u32::from_be_bytes(bytes)),
            HALF => bytes.first_chunk().map(|&bytes| u32::from(u16::from_be_bytes(bytes))),
            _ => bytes.first().map(|&byte| u32::from(byte)),
        };
        if found.is_none() && !self.tail.is_empty() { self.load_behind(at, code) } else { found }
    }

    /// The same for a number that is not in the head as a whole.
    #[cold]
    fn load_behind(&self, at: usize, code: u16) -> Option<u32> {
        let size = match code & SIZE {
            WORD => 4,
            HALF => 2,
            _ => 1,
        };
        let byte = |at: usize| match at.checked_sub(self.head.len()) {
            None => self.head.get(at),
            Some(at) => self.tail.get(at),
        };
        (at..at.checked_add(size)?).try_fold(0, |number, at| Some(number << 8 | u32::from(*byte(at)?)))
    }

    /// An absolute load that counts from another header, or asks for a fact.
    #[cold]
    fn special(&self, k: u32, code: u16, a: u32, x: u32) -> Option<u32> {
        match k {
            LINK_OFFSET..NETWORK_OFFSET => self.load(k - LINK_OFFSET, code),
            FACT_XOR_X => Some(a ^ x),
            FACT_VLAN_TAG => Some(self.tag.map_or(0, |(_, control)| u32::from(control))),
            FACT_VLAN_PRESENT => Some(u32::from(self.tag.is_some())),
            FACT_VLAN_PROTOCOL => Some(self.tag.map_or(0, |(protocol, _)| u32::from(protocol))),
            _ => None,
        }
    }
}

const NETWORK_HEADER: &str = "an offset from the network header";

/// What a fact is that no file can answer.
fn unanswered(fact: u32) -> Option<&'static str> {
    Some(match fact {
        0 => "the protocol that the kernel saw",
        4 => "whether the packet came in or went out",
        8 => "the number of the interface",
        12 | 16 => "an attribute of a netlink message",
        20 => "the mark of the packet",
        24 => "the queue of the interface",
        28 => "the type of the interface",
        32 => "the hash of the packet",
        36 => "the CPU that took the packet",
        52 => "where the payload starts",
        56 => "a random number",
        _ => return None,
    })
}

/// The kernel's rules. The error has the instruction.
fn verify(program: &[Instruction]) -> Result<(), (usize, &'static str)> {
    let (Some(last), 1..=MOST) = (program.len().checked_sub(1), program.len()) else {
        return Err((0, "a program has 1 to 4,096 instructions"));
    };
    for (at, instruction) in program.iter().enumerate() {
        let &Instruction { code, jt, jf, k } = instruction;
        let what = match code & CLASS {
            _ if !is_known(code) => "no such instruction is known",
            LD if instruction.is_absolute_load() && k >= FACT && !is_fact(k - FACT) => "no kernel knows such a fact",
            LD | LDX if code & MODE == MEM && k >= SLOTS => "memory has the slots 0 to 15",
            ST | STX if k >= SLOTS => "memory has the slots 0 to 15",
            ALU if code & BY_X == 0 && matches!(code & OPERATION, DIV | MOD) && k == 0 => "it divides by zero",
            ALU if code & BY_X == 0 && matches!(code & OPERATION, LSH | RSH) && k > 31 => "it shifts by more than 31",
            JMP if code & OPERATION == JA && k as usize >= last - at => "it jumps backward or beyond the end",
            JMP if code & OPERATION != JA && usize::from(jt.max(jf)) >= last - at => {
                "it jumps backward or beyond the end"
            }
            _ => continue,
        };
        return Err((at, what));
    }
    if program[last].code & CLASS != RET {
        return Err((last, "the last instruction has to be `ret`"));
    }
    written_before_read(program)
}

/// Slots that are written on every way to an instruction; the kernel refuses to read others.
fn written_before_read(program: &[Instruction]) -> Result<(), (usize, &'static str)> {
    let mut at_targets = vec![u16::MAX; program.len()];
    let mut written = 0_u16;
    for (at, &Instruction { code, jt, jf, k }) in program.iter().enumerate() {
        written &= at_targets[at];
        match code & CLASS {
            ST | STX => written |= 1 << k,
            LD | LDX if code & MODE == MEM && written & 1 << k == 0 => {
                return Err((at, "it reads memory that may not have been written"));
            }
            JMP => {
                let targets = if code & OPERATION == JA { [k as usize; 2] } else { [usize::from(jt), usize::from(jf)] };
                for target in targets {
                    at_targets[at + 1 + target] &= written;
                }
                // The next instruction is reached by jumps alone.
                written = u16::MAX;
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_known(code: u16) -> bool {
    match code & CLASS {
        LD => match code & !CLASS {
            IMM | MEM | LEN => true,
            other => matches!(other & MODE, ABS | IND) && other & !MODE <= BYTE,
        },
        LDX => matches!(code & !CLASS, IMM | MEM | LEN) || code == LDX | BYTE | MSH,
        ST | STX => code & !CLASS == 0,
        ALU if code & !CLASS == NEG => true,
        ALU => code <= 0xff && code & OPERATION != NEG && code & OPERATION <= XOR,
        JMP => code <= 0xff && code & OPERATION <= JSET && (code & OPERATION != JA || code & BY_X == 0),
        RET => matches!(code, RET_K | RET_A),
        _ => matches!(code, TAX | TXA),
    }
}

fn is_fact(fact: u32) -> bool {
    unanswered(fact).is_some()
        || matches!(FACT + fact, FACT_XOR_X | FACT_VLAN_TAG | FACT_VLAN_PRESENT | FACT_VLAN_PROTOCOL)
}

fn instruction(statement: &str) -> Option<Instruction> {
    let mut numbers = statement.split_ascii_whitespace();
    let instruction = Instruction {
        code: numbers.next()?.parse().ok()?,
        jt: numbers.next()?.parse().ok()?,
        jf: numbers.next()?.parse().ok()?,
        k: numbers.next()?.parse().ok()?,
    };
    numbers.next().is_none().then_some(instruction)
}

#[cold]
fn text_error(line: usize, what: impl Into<String>) -> FilterError {
    FilterError::Text { line, what: what.into() }
}

#[cold]
fn not_a_program(line: usize, found: &str) -> FilterError {
    let what = if found.starts_with(['(', '{']) {
        "this is what `tcpdump -d` or `-dd` prints; give what `-ddd` does".to_owned()
    } else {
        let found = shortened(found);
        format!("{found:?} is not a number of instructions; give what `tcpdump -ddd EXPRESSION` prints")
    };
    text_error(line, what)
}

#[cold]
fn not_an_instruction(line: usize, found: &str) -> FilterError {
    let found = shortened(found);
    text_error(line, format!("{found:?} is not an instruction: four decimal numbers `code jt jf k`, in their ranges"))
}

/// As much of a text as an error message shows.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

#[cfg(feature = "libpcap")]
fn compile_with<T: pcap::Activated + ?Sized>(
    handle: &pcap::Capture<T>,
    expression: &str,
    snaplen: u32,
) -> Result<Filter, FilterError> {
    let snaplen = if snaplen == 0 { 262_144 } else { snaplen };
    let program = handle.compile(expression, true).map_err(compile_error)?;
    // The text is the only way in which that crate shows an instruction.
    let read =
        program.get_instructions().iter().map(|shown| instruction(&shown.to_string())).collect::<Option<Vec<_>>>();
    let Some(mut instructions) = read else {
        return Err(FilterError::Compile("libpcap made an instruction that cannot be read".to_owned()));
    };
    for instruction in &mut instructions {
        if instruction.code == RET_K && instruction.k > 0 {
            instruction.k = snaplen;
        }
    }
    Filter::new(instructions)
}

#[cfg(feature = "libpcap")]
#[cold]
fn compile_error(error: pcap::Error) -> FilterError {
    FilterError::Compile(match error {
        // Without the crate's own words in front.
        pcap::Error::PcapError(said) => said,
        error => error.to_string(),
    })
}

/// Why there is no filter, or none for files.
#[derive(Debug)]
#[non_exhaustive]
pub enum FilterError {
    /// The program's file cannot be read.
    Read(io::Error),
    /// The text is not a program.
    Text {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// The kernel would refuse the program.
    Program {
        /// The instruction, counted from 0, as `tcpdump -d` counts.
        instruction: usize,
        /// Its line, counted from 1, if it comes from a text.
        line: Option<usize>,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The program asks for what is in no file.
    NotForFiles {
        /// The instruction, counted from 0, as `tcpdump -d` counts.
        instruction: usize,
        /// What it asks for.
        what: &'static str,
    },
    /// libpcap does not compile the expression; this is its message.
    Compile(String),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "the filter's program cannot be read: {error}"),
            Self::Text { line, what } => write!(f, "line {line} of the filter's program: {what}"),
            Self::Program { instruction, line, what } => {
                if let Some(line) = line {
                    write!(f, "line {line} of the filter's program, ")?;
                }
                write!(f, "instruction {instruction} (the first is 0): {what}; compile the expression again")
            }
            Self::NotForFiles { instruction, what } => write!(
                f,
                "instruction {instruction} (the first is 0) of the filter's program asks for {what}, which is in no \
                 file; compile an expression that does not ask for it"
            ),
            Self::Compile(said) => write!(f, "the filter's expression cannot be compiled: {said}"),
        }
    }
}

impl std::error::Error for FilterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            _ => None,
        }
    }
}
