//! What a protocol's parser is.

use super::text::Detail;
use super::{Carrier, Event, Protocol};
use crate::conversation::Side;
use std::fmt;

/// What is known of a conversation when its parser begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) carrier: Carrier,
    /// The client's side, or where that is not known the one that was identified.
    pub(super) client: Side,
    pub(super) detail: Detail,
    /// HTTP exchanges before the tunnel that this is in.
    pub(super) exchanges: u64,
}

/// Reads the bytes of a conversation of one protocol, in any pieces, and makes events.
///
/// No bytes make it panic, and the events depend on the bytes, the gaps and the order of the two sides alone: targets
/// for [fuzzing](super::fuzz) check every parser of the list.
pub(super) trait Parser: fmt::Debug + Sized {
    /// What it is read over; the example comes over the first.
    const CARRIERS: &'static [Carrier];
    /// The most that [`heap_bytes`](Parser::heap_bytes) ever is.
    const MOST: usize;
    /// What these bytes are, for a table.
    const HOLDS: &'static str;

    /// A parser before the first byte. The protocol is one whose line in the list names this parser.
    fn new(protocol: Protocol, start: Start) -> Self;

    /// Takes the next bytes of a side, or a datagram. A number says that the conversation goes on with another
    /// protocol, and how many of the bytes came before that.
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Option<usize>;

    /// Takes a gap in a stream. Datagrams have none.
    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>);

    /// What this side has just sent was sent behind bytes of the other side that have not come.
    fn answered_early(&mut self, _side: Side) {}

    /// Takes the end of a side.
    fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>);

    /// Whether more bytes of a side are of use.
    fn wants(&self, side: Side) -> bool;

    /// The bytes that it reserves outside of itself. Called after every packet, so it must be cheap.
    fn heap_bytes(&self) -> usize;

    /// Whether it can be dropped, as nothing further is of interest.
    fn is_over(&self) -> bool {
        false
    }

    /// Whether what follows belongs to another protocol, behind a gap or an end too.
    fn leaves(&self) -> bool {
        false
    }

    /// The bytes of a side that it has kept and that belong to the protocol behind it.
    fn take_rest(&mut self, _side: Side) -> Vec<u8> {
        Vec::new()
    }

    /// HTTP exchanges of the conversation so far.
    fn exchanges(&self) -> u64 {
        0
    }

    /// A short conversation from its first byte on, with an event: it leads tests and fuzzing into the parser.
    fn example(protocol: Protocol) -> Vec<(Side, Vec<u8>)>;
}

/// What comes behind bytes, a gap or an end.
#[derive(Debug)]
pub(super) enum Next {
    /// More for this parser.
    More,
    /// Another protocol, behind this many of the bytes.
    Tunnel(usize),
    /// Nothing of interest, of either side.
    Over,
}

impl Next {
    pub(super) fn of(parser: &impl Parser) -> Self {
        match parser.is_over() {
            true => Self::Over,
            false if parser.leaves() => Self::Tunnel(0),
            false => Self::More,
        }
    }
}

/// What a parser states about itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) carriers: &'static [Carrier],
    pub(super) most: usize,
    pub(super) holds: &'static str,
    pub(super) example: fn(Protocol) -> Vec<(Side, Vec<u8>)>,
}

impl Read {
    pub(super) const fn of<P: Parser>() -> Self {
        Self { carriers: P::CARRIERS, most: P::MOST, holds: P::HOLDS, example: P::example }
    }
}

/// A protocol is a line: its name in lower case, as Suricata's `app_proto` has it where Suricata knows the protocol,
/// and its parser, if it is read. Their order is that of reports.
macro_rules! protocols {
    ($($(#[$doc:meta])* $protocol:ident $name:literal $(read by $parser:ty)?,)*) => {
        /// A protocol that is identified by content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Protocol {
            $($(#[$doc])* $protocol,)*
        }

        impl Protocol {
            /// All protocols, in their order.
            pub const ALL: &'static [Protocol] = &[$(Protocol::$protocol),*];

            /// Its name in lower case, as Suricata's `app_proto` has it where Suricata knows the protocol.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$protocol => $name,)*
                }
            }

            /// What its parser states about itself, if it is read.
            const fn read(self) -> Option<Read> {
                match self {
                    $($(Self::$protocol => Some(Read::of::<$parser>()),)?)*
                    _ => None,
                }
            }
        }

        /// The parser of a conversation.
        #[derive(Debug)]
        enum Reader {
            $($($protocol(Box<$parser>),)?)*
        }

        impl Reader {
            /// A parser for a protocol, if it is read.
            fn new(protocol: Protocol, start: Start) -> Option<Self> {
                match protocol {
                    $($(Protocol::$protocol => Some(Self::$protocol(Box::new(<$parser>::new(protocol, start)))),)?)*
                    _ => None,
                }
            }

            fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Next {
                match self {
                    $($(Self::$protocol(parser) => {
                        let tunnel = <$parser>::data(parser, side, time_ns, bytes, out);
                        tunnel.map_or_else(|| Next::of(&**parser), Next::Tunnel)
                    })?)*
                }
            }

            fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>) -> Next {
                match self {
                    $($(Self::$protocol(parser) => {
                        <$parser>::gap(parser, side, time_ns, missing, out);
                        Next::of(&**parser)
                    })?)*
                }
            }

            fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) -> Next {
                match self {
                    $($(Self::$protocol(parser) => {
                        <$parser>::end(parser, side, time_ns, out);
                        Next::of(&**parser)
                    })?)*
                }
            }

            fn answered_early(&mut self, side: Side) {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::answered_early(parser, side),)?)*
                }
            }

            fn take_rest(&mut self, side: Side) -> Vec<u8> {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::take_rest(parser, side),)?)*
                }
            }

            fn exchanges(&self) -> u64 {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::exchanges(parser),)?)*
                }
            }

            fn wants(&self, side: Side) -> bool {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::wants(parser, side),)?)*
                }
            }

            /// The bytes of the parser, on the heap.
            fn heap_bytes(&self) -> usize {
                match self {
                    $($(Self::$protocol(parser) => size_of::<$parser>() + <$parser>::heap_bytes(parser),)?)*
                }
            }

            /// The most of them.
            fn most(&self) -> usize {
                match self {
                    $($(Self::$protocol(_) => size_of::<$parser>() + <$parser>::MOST,)?)*
                }
            }
        }
    };
}

pub(super) use protocols;
