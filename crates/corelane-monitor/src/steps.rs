//! Steps: whole seconds of the capture's time, at whose ends alone anything expires.

/// Nanoseconds of a step.
pub const STEP_NS: u64 = 1_000_000_000;

/// The clock of a run in which time passes in steps: see [`watch`](crate::watch()).
///
/// The largest time so far says which step it is. A packet of a later step ends the earlier ones; so does the clock of
/// an interface, while no packets come. A packet of a step that has ended gets the time at which the current one began.
///
/// ```
/// use corelane_monitor::Steps;
///
/// let mut steps = Steps::new();
/// assert_eq!(steps.packet(5_900_000_000), 5_900_000_000);
/// assert_eq!(steps.packet(5_100_000_000), 5_100_000_000);
/// assert_eq!(steps.packet(6_000_000_000), 6_000_000_000);
/// assert_eq!(steps.packet(5_200_000_000), 6_000_000_000);
/// assert_eq!(steps.begun_ns(), 6_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The time at which the current step began, or 0 before the first packet.
    begun_ns: u64,
    /// The time at which the next one begins.
    end_ns: u64,
}

impl Steps {
    /// A clock that has seen no packet.
    pub const fn new() -> Self {
        Steps { begun_ns: 0, end_ns: 0 }
    }

    /// The clock of a run without steps: it changes no time.
    pub(crate) const fn none() -> Self {
        Steps { begun_ns: 0, end_ns: u64::MAX }
    }

    /// The time of a packet, and time passes up to it.
    #[inline(always)]
    pub fn packet(&mut self, time_ns: u64) -> u64 {
        if time_ns >= self.end_ns {
            self.pass(time_ns);
        }
        time_ns.max(self.begun_ns)
    }

    /// Time passes up to this; says whether a step has ended.
    #[cold]
    pub fn pass(&mut self, time_ns: u64) -> bool {
        if time_ns < self.end_ns {
            return false;
        }
        let before = std::mem::replace(&mut self.begun_ns, begin_of(step_of(time_ns)));
        self.end_ns = self.begun_ns.saturating_add(STEP_NS);
        before != self.begun_ns
    }

    /// The time at which the current step began, in nanoseconds since the epoch: all before it is over.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }
}

impl Default for Steps {
    fn default() -> Self {
        Steps::new()
    }
}

/// The step that a time is in.
pub(crate) const fn step_of(time_ns: u64) -> u64 {
    time_ns / STEP_NS
}

/// The time at which a step begins.
pub(crate) const fn begin_of(step: u64) -> u64 {
    step.saturating_mul(STEP_NS)
}

/// The step at whose end something is over that is due at this time.
pub(crate) const fn ends_with(due_ns: u64) -> u64 {
    due_ns.div_ceil(STEP_NS).saturating_sub(1)
}
