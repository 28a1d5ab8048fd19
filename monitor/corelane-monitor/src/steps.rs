//! Steps: whole seconds of the capture's time, at whose ends alone anything expires.

/// Nanoseconds of a step.
pub const STEP_NS: u64 = 1_000_000_000;

/// The clock of a run in which time passes in steps: see [`Continuous`](crate::Continuous).
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
        self.pass(time_ns);
        time_ns.max(self.begun_ns)
    }

    /// Time passes up to this; says whether a step has ended.
    #[inline(always)]
    pub fn pass(&mut self, time_ns: u64) -> bool {
        time_ns >= self.end_ns && self.begin(time_ns)
    }

    #[cold]
    fn begin(&mut self, time_ns: u64) -> bool {
        if *self == Steps::none() {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u64 = u64::MAX / STEP_NS * STEP_NS;

    #[test]
    fn a_clock_goes_from_the_first_second_to_the_last() {
        let mut steps = Steps::new();
        assert_eq!(steps.packet(0), 0);
        assert!(!steps.pass(STEP_NS - 1), "the first step is not over");
        assert!(steps.pass(STEP_NS));
        assert_eq!((steps.packet(0), steps.begun_ns()), (STEP_NS, STEP_NS));
        assert!(steps.pass(LAST + 1));
        assert_eq!((steps.packet(LAST - 1), steps.begun_ns()), (LAST, LAST));
        // The last step does not end.
        assert!(!steps.pass(u64::MAX));
        assert_eq!((steps.packet(u64::MAX), steps.packet(5), steps.begun_ns()), (u64::MAX, LAST, LAST));
    }

    #[test]
    fn before_the_first_packet_any_time_may_pass() {
        for (time_ns, begun_ns) in [(0, 0), (STEP_NS - 1, 0), (STEP_NS, STEP_NS), (u64::MAX, LAST)] {
            let mut steps = Steps::new();
            assert_eq!(steps.pass(time_ns), begun_ns > 0, "{time_ns}");
            assert_eq!((steps.begun_ns(), steps.packet(0)), (begun_ns, begun_ns), "{time_ns}");
        }
    }

    #[test]
    fn without_steps_no_time_changes() {
        let mut steps = Steps::none();
        for time_ns in [7, u64::MAX, 3, LAST, 0] {
            assert_eq!(steps.packet(time_ns), time_ns);
            assert!(!steps.pass(time_ns) && steps == Steps::none());
        }
    }

    #[test]
    fn a_step_ends_with_what_is_due_in_it_or_as_it_ends() {
        assert_eq!([0, 1, STEP_NS, STEP_NS + 1, 2 * STEP_NS].map(ends_with), [0, 0, 0, 1, 1]);
        assert_eq!(ends_with(u64::MAX), LAST / STEP_NS);
        assert_eq!(
            (step_of(LAST - 1) + 1, begin_of(step_of(LAST)), begin_of(u64::MAX)),
            (step_of(LAST), LAST, u64::MAX)
        );
    }
}
