//! The limits of a partition, and its counts.

/// The limits of the conversations of one partition, in bytes and time.
///
/// Bytes are reserved bytes, with the slack of tables and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All bytes: conversations, their index, applications, and bytes out of order.
    pub bytes: usize,
    /// Bytes out of order of one side of a conversation; each piece costs [`PIECE_OVERHEAD`] more.
    pub held_per_side: usize,
    /// The same of both sides.
    pub held_per_conversation: usize,
    /// The same of all conversations.
    pub held: usize,
    /// How long bytes wait for missing ones, if no acknowledgments of the other end are seen. Then the hole is given
    /// up.
    pub hole_timeout_ns: u64,
    /// How long a conversation lasts after its last packet, if only one end was seen to send.
    pub unconfirmed_timeout_ns: u64,
    /// The same for UDP, if both ends were seen to send.
    pub udp_timeout_ns: u64,
    /// The same for TCP, if both ends were seen to send.
    pub tcp_timeout_ns: u64,
    /// The same for a closed TCP connection: for that long its ports take stragglers.
    pub closed_timeout_ns: u64,
}

/// The cost of a piece out of order beside its bytes: its place in a list, and the overhead of an allocation.
pub const PIECE_OVERHEAD: usize = 40;

/// The least budget of a partition.
pub const LEAST_BYTES: usize = 64 << 10;

/// The largest budget, so that the numbers of conversations fit 32 bits.
const MOST_BYTES: usize = 256 << 30;

impl Limits {
    /// The usual limits for `bytes` in all, which is raised to [`LEAST_BYTES`] if it is less. Bytes out of order may
    /// take half of it; those of one conversation a quarter and at most 1 MiB, and those of one side half of that.
    /// Holes are given up after 10 s. One-sided conversations last 30 s, UDP 60 s, TCP 5 minutes, closed ones 5 s.
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
        /// Counts of the packets and conversations of a partition.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Adds the counts of `other`.
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
    /// Of these, TCP connections picked up in the middle: neither their SYN nor their SYN-ACK is known.
    midstream,
    /// SYNs that belong to no conversation and begin none.
    bare_syns,
    /// Other TCP segments that belong to no conversation and begin none: without payload, with RST, or with flags that
    /// no sender sets together.
    strays,
    /// Conversations that both ends closed.
    finished,
    /// Conversations that were reset.
    reset,
    /// Conversations that a new connection of the same ports replaced before they were closed.
    replaced,
    /// Conversations without packets for too long.
    timed_out,
    /// Conversations evicted for the memory that others need.
    evicted,
    /// Conversations that were open at the end of the capture.
    open_at_end,
    /// Applications begun.
    applications,
    /// Segments that were held back, since an earlier one was missing.
    held_back,
    /// Segments, or parts of them, whose bytes were there already.
    retransmitted,
    /// Segments that overlap bytes held back and differ from them. The earlier bytes stay.
    conflicts,
    /// Segments of at most one byte right before the next one expected: an end asks whether the other is there.
    keep_alives,
    /// Gaps: how often bytes were given up.
    gaps,
    /// The bytes given up.
    gap_bytes,
    /// Holes given up because the other end had acknowledged bytes behind them: the capture missed them.
    holes_acknowledged,
    /// Holes given up because too many bytes were waiting for them.
    holes_over_limit,
    /// Holes given up because bytes were waiting for them too long.
    holes_timed_out,
    /// Segments that were left out, as their sequence number is too far off to be of the connection.
    implausible,
    /// How often four such segments in a row made the stream go on at their sequence number.
    resynchronised,
    /// Segments with payload behind the FIN of their side.
    behind_end,
}
