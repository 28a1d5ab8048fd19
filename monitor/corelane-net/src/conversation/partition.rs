//! The TCP/IP stack of one partition: from IP datagrams to the bytes of conversations.

use super::application::Application;
use super::entry::Conversation;
use super::limits::Limits;
use super::observer::Observer;
use super::table::Conversations;
use crate::decode::{Datagram, NoPacket, packet};
use crate::defrag::{self, Defragmenter, Whole};

/// The fragments and the conversations of one partition. All packets of its address pairs come here.
///
/// Its results and its memory are functions of its packets and marks, in their order, and of nothing else.
#[derive(Debug)]
pub struct Partition<A: Application> {
    fragments: Defragmenter,
    conversations: Conversations<A>,
    others: u64,
    malformed: u64,
}

impl<A: Application> Partition<A> {
    /// Makes a partition without state, which reserves no memory yet.
    ///
    /// # Panics
    ///
    /// As [`Conversations::new`] and [`Defragmenter::new`].
    pub fn new(limits: &Limits, fragments: &defrag::Limits) -> Self {
        Self {
            fragments: Defragmenter::new(fragments),
            conversations: Conversations::new(limits),
            others: 0,
            malformed: 0,
        }
    }

    /// Takes a datagram or a fragment that came in a frame of `wire_len` bytes. `buffer` holds a datagram reassembled
    /// from fragments; all partitions of a thread share one buffer.
    #[inline]
    pub fn datagram(
        &mut self,
        time_ns: u64,
        wire_len: u32,
        datagram: &Datagram<'_>,
        buffer: &mut Vec<u8>,
        observer: &mut impl Observer<A>,
    ) {
        if datagram.fragment.is_none() {
            self.whole([time_ns; 2], wire_len, 1, datagram, observer);
        } else if let Some(whole) = self.fragment(time_ns, wire_len, datagram, buffer) {
            self.whole([time_ns; 2], whole.wire_len, whole.frames, &whole.datagram, observer);
        }
    }

    /// Takes a fragment alone. The datagram that it completes, if it does, is to be [taken](Partition::whole) next.
    ///
    /// # Panics
    ///
    /// As [`Defragmenter::fragment`].
    #[cold]
    pub fn fragment<'a>(
        &mut self,
        time_ns: u64,
        wire_len: u32,
        datagram: &Datagram<'a>,
        buffer: &'a mut Vec<u8>,
    ) -> Option<Whole<'a>> {
        self.fragments.fragment(time_ns, wire_len, datagram, buffer)
    }

    /// Takes a datagram that is no fragment, and came in so many frames of `wire_len` bytes together. The times are how
    /// much has passed, and that of the datagram, as [`Conversations::packet_at`] needs them.
    #[inline]
    pub fn whole(
        &mut self,
        [now_ns, time_ns]: [u64; 2],
        wire_len: u32,
        frames: u32,
        datagram: &Datagram<'_>,
        observer: &mut impl Observer<A>,
    ) {
        match packet(time_ns, wire_len, datagram) {
            Ok(mut packet) => {
                packet.frames = frames;
                self.conversations.packet_at(now_ns, &packet, observer);
            }
            Err(NoPacket::Other) => self.others += 1,
            Err(NoPacket::Malformed) => self.malformed += 1,
        }
    }

    /// Makes time pass up to `mark_ns`. See [`Conversations::expire`].
    pub fn expire(&mut self, mark_ns: u64, observer: &mut impl Observer<A>) {
        self.fragments.expire(mark_ns);
        self.conversations.expire(mark_ns, observer);
    }

    /// The least mark at which [`expire`](Partition::expire) would give something up.
    pub fn next_due(&self) -> Option<u64> {
        self.fragments.next_due().into_iter().chain(self.conversations.next_due()).min()
    }

    /// Calls `act` with each conversation that had a packet since a time. See [`Conversations::active_since`].
    pub fn active_since(&mut self, since_ns: u64, act: impl FnMut(&Conversation, Option<&mut A>)) {
        self.conversations.active_since(since_ns, act);
    }

    /// Ends the capture. See [`Conversations::finish`].
    pub fn finish(&mut self, observer: &mut impl Observer<A>) {
        self.fragments.finish();
        self.conversations.finish(observer);
    }

    /// The fragments.
    pub fn fragments(&self) -> &Defragmenter {
        &self.fragments
    }

    /// The conversations.
    pub fn conversations(&self) -> &Conversations<A> {
        &self.conversations
    }

    /// Datagrams of other protocols than TCP and UDP.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Datagrams whose TCP or UDP header is wrong or cut.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Bytes reserved for fragments and conversations.
    pub fn reserved_bytes(&self) -> usize {
        self.fragments.reserved_bytes() + self.conversations.reserved_bytes()
    }
}
