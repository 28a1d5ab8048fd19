//! What a partition may hold, and what happened in it.

/// What the conversations of one partition may hold, and for how long.
///
/// Bytes are reserved ones, with the slack of tables and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All of it: conversations, their index, applications, bytes out of order.
    pub bytes: usize,
    /// Bytes out of order of one side of a conversation, each piece with [`PIECE_OVERHEAD`] on top.
    pub held_per_side: usize,
    /// The same of both sides.
    pub held_per_conversation: usize,
    /// The same of all conversations.
    pub held: usize,
    /// How long bytes wait for a missing one before it is given up, if the other end's acknowledgments are not seen.
    pub hole_timeout_ns: u64,
    /// How long a conversation lasts after its last packet while only one end was seen to send.
    pub unconfirmed_timeout_ns: u64,
    /// The same of UDP, when both were.
    pub udp_timeout_ns: u64,
    /// The same of TCP.
    pub tcp_timeout_ns: u64,
    /// The same of TCP when it is closed: that long its ports take stragglers.
    pub closed_timeout_ns: u64,
}

/// What a piece out of order costs beside its bytes: its place in a list, and what an allocation takes.
pub const PIECE_OVERHEAD: usize = 40;

/// The least budget of a partition.
pub const LEAST_BYTES: usize = 64 << 10;

/// The most, so that numbers of conversations fit 32 bits.
const MOST_BYTES: usize = 256 << 30;

impl Limits {
    /// The usual limits with so many bytes in all, at least [`LEAST_BYTES`]: half of them for bytes out of order, a
    /// quarter and at most 1 MiB for a conversation, half of that for a side. Holes 10 s, one-sided conversations 30 s,
    /// UDP 60 s, TCP 5 minutes, closed 5 s.
    pub fn new(bytes: usize) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let bytes = bytes.clamp(LEAST_BYTES, MOST_BYTES);
        let held_per_conversation = (bytes / 4).min(1 << 20);
        Self {
            bytes,
            held_per_side: held_per_conversation / 2,
            held_per_conversation,
            held: bytes / 2,
            hole_timeout_ns: 10 * SECOND,
            unconfirmed_timeout_ns: 30 * SECOND,
            udp_timeout_ns: 60 * SECOND,
            tcp_timeout_ns: 300 * SECOND,
            closed_timeout_ns: 5 * SECOND,
        }
    }
}

impl Default for Limits {
    /// 1 MiB: 256 MiB for the 256 partitions of the monitor.
    fn default() -> Self {
        Self::new(1 << 20)
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened in a partition.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Adds what another one counted.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// All counts with their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

counts! {
    /// TCP segments taken.
    tcp_packets,
    /// UDP datagrams taken.
    udp_packets,
    /// Conversations begun.
    conversations,
    /// Of these, TCP picked up in the middle: neither their SYN nor their SYN-ACK is known.
    midstream,
    /// SYNs of no conversation, for which none is kept.
    bare_syns,
    /// Other TCP segments of no conversation that begin none: no payload, or RST, or flags that no sender sets
    /// together.
    strays,
    /// Conversations that both ends closed.
    finished,
    /// Conversations that were reset.
    reset,
    /// Conversations that a new connection of the same ports replaced before they were closed.
    replaced,
    /// Conversations without packets for too long.
    timed_out,
    /// Conversations given up for the memory that others need.
    evicted,
    /// Conversations that were open at the end of the capture.
    open_at_end,
    /// Applications begun.
    applications,
    /// Segments that came before one in front of them, and were held back.
    held_back,
    /// Segments, or parts of them, whose bytes were there already.
    retransmitted,
    /// Segments that overlap bytes held back, as far as these differ from theirs. What came first stays.
    conflicts,
    /// Segments of at most one byte right before the next one expected, with which an end asks whether the other is
    /// there.
    keep_alives,
    /// Times that bytes were given up.
    gaps,
    /// The bytes given up.
    gap_bytes,
    /// Holes given up because the other end had acknowledged what is behind: the capture missed them.
    holes_acknowledged,
    /// Holes given up because too many bytes were waiting for them.
    holes_over_limit,
    /// Holes given up because bytes were waiting for them too long.
    holes_timed_out,
    /// Segments with a sequence number too far off to be of the connection, which were not taken.
    implausible,
    /// Times that such segments in a row made their sequence numbers the ones to go on with.
    resynchronised,
    /// Segments with payload behind the end of their side.
    behind_end,
}
