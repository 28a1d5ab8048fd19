//! The flow table: one entry for each bidirectional (protocol, address and port, address and port).

/// What a flow amounts to. All zero is a flow without packets, so that a new entry needs no special case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// The complement of the least time, of which the largest is kept.
    not_first: u64,
    last: u64,
}

impl Flow {
    #[inline(always)]
    pub(crate) fn add(&mut self, time_ns: u64, wire_len: u32) {
        self.packets += 1;
        self.bytes += u64::from(wire_len);
        self.not_first = self.not_first.max(!time_ns);
        self.last = self.last.max(time_ns);
    }

    /// The least and the largest time of its packets.
    #[cfg(test)]
    pub(crate) fn times(&self) -> (u64, u64) {
        (!self.not_first, self.last)
    }
}
