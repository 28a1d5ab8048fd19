//! Steps: whole seconds of the capture's time, at whose ends alone anything expires.

/// Nanoseconds of a step.
pub const STEP_NS: u64 = 1_000_000_000;

/// How far ahead of the current step a packet's time is not believed alone, and how far behind it tells of a clock that
/// was set back.
const FAR_NS: u64 = 60 * STEP_NS;

/// So many packets in a row that are far behind show that the clock was set back.
const SET_BACK: u32 = 8;

/// The clock of a run in which time passes in steps: see [`Continuous`](crate::Continuous).
///
/// The largest time so far says which step it is. A packet of a later step ends the earlier ones; so does the clock of
/// an interface, while no packets come. A packet of a step that has ended counts in the current one.
///
/// One packet with a wrong time does not move it:
///
/// - A packet that is more than a minute ahead, and the first of all, [waits](Steps::packet) for the next one. Time
///   passes up to the lesser of both, and if the packet that waited is still far ahead it counts in the step of the
///   other.
/// - Eight packets in a row that are more than a minute behind show that the clock was set back. From then on time
///   passes as they say, from the step that was reached: a shift is added to all times, until they have caught up.
///
/// ```
/// use corelane_monitor::Steps;
///
/// let mut steps = Steps::new();
/// let taken = [5, 6, 3_600, 7].map(|second| steps.packet(second * 1_000_000_000));
/// assert_eq!(taken, [false, true, false, true]);
/// assert_eq!(steps.begun_ns(), 7_000_000_000);
/// assert_eq!(steps.jumps().ahead, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The time at which the current step began, or 0 before the first packet.
    begun_ns: u64,
    /// The time at which the next one begins.
    end_ns: u64,
    /// The time of the packet that waits, if one does.
    waiting_ns: Option<u64>,
    /// Packets in a row that are far behind.
    behind: u32,
    jumps: Jumps,
}

/// Times that were not believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// Packets that were far ahead of those around them.
    pub ahead: u64,
    /// How often the clock was set back.
    pub set_back: u64,
    /// What is added to the times of packets, in nanoseconds, as the clock was set back.
    pub shift_ns: u64,
}

impl Steps {
    /// A clock that has seen no packet.
    pub const fn new() -> Self {
        Steps {
            begun_ns: 0,
            end_ns: 0,
            waiting_ns: None,
            behind: 0,
            jumps: Jumps { ahead: 0, set_back: 0, shift_ns: 0 },
        }
    }

    /// The clock of a run without steps: it believes all times, and no step ends.
    pub(crate) const fn none() -> Self {
        Steps { end_ns: u64::MAX, ..Steps::new() }
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Steps::none()
    }

    /// Time passes up to that of a packet. With `false` the packet waits: it is to be taken behind the next call of
    /// [`packet`](Steps::packet), or of [`pass`](Steps::pass) up to its time or later, before what that call is about.
    #[inline(always)]
    pub fn packet(&mut self, time_ns: u64) -> bool {
        self.settle(time_ns);
        let time_ns = time_ns.saturating_add(self.jumps.shift_ns);
        if self.begun_ns <= time_ns && time_ns < self.end_ns {
            self.behind = 0;
            return true;
        }
        self.other_step(time_ns)
    }

    /// Before a packet of this time, the one that waits is taken: time passes up to the lesser of both.
    #[inline(always)]
    pub(crate) fn settle(&mut self, next_ns: u64) {
        if let Some(waiting_ns) = self.waiting_ns.take() {
            self.take_waiting(waiting_ns, next_ns);
        }
    }

    #[cold]
    fn take_waiting(&mut self, waiting_ns: u64, next_ns: u64) {
        let least_ns = waiting_ns.min(next_ns);
        if least_ns.saturating_add(self.jumps.shift_ns).saturating_sub(self.begun_ns) > FAR_NS {
            // A clock that was set back has caught up, or was set right.
            self.jumps.shift_ns = self.jumps.shift_ns.min(self.begun_ns.saturating_sub(least_ns));
        }
        self.pass_to(least_ns.saturating_add(self.jumps.shift_ns));
        let time_ns = waiting_ns.saturating_add(self.jumps.shift_ns);
        if time_ns.saturating_sub(self.begun_ns) <= FAR_NS {
            self.pass_to(time_ns);
        } else {
            self.jumps.ahead += 1;
        }
    }

    #[cold]
    fn other_step(&mut self, time_ns: u64) -> bool {
        if self.is_none() {
            return true;
        }
        if time_ns >= self.end_ns {
            self.behind = 0;
            if self.end_ns == 0 || time_ns - self.begun_ns > FAR_NS {
                self.waiting_ns = Some(time_ns.saturating_sub(self.jumps.shift_ns));
                return false;
            }
            self.pass_to(time_ns);
        } else if self.begun_ns - time_ns <= FAR_NS {
            self.behind = 0;
        } else {
            self.behind += 1;
            if self.behind == SET_BACK {
                self.behind = 0;
                self.jumps.set_back += 1;
                self.jumps.shift_ns += self.begun_ns - time_ns;
            }
        }
        true
    }

    /// Time passes up to this, as a clock says; says whether a step has ended.
    pub fn pass(&mut self, time_ns: u64) -> bool {
        let begun_ns = self.begun_ns;
        if let Some(waiting_ns) = self.waiting_ns.take_if(|waiting_ns| *waiting_ns <= time_ns) {
            self.take_waiting(waiting_ns, time_ns);
        }
        self.pass_to(time_ns.saturating_add(self.jumps.shift_ns));
        begun_ns != self.begun_ns
    }

    fn pass_to(&mut self, time_ns: u64) {
        if time_ns >= self.end_ns && !self.is_none() {
            self.begun_ns = begin_of(step_of(time_ns));
            self.end_ns = self.begun_ns.saturating_add(STEP_NS);
        }
    }

    /// No packet follows: one that waits is believed, and is to be taken.
    pub fn finish(&mut self) {
        self.settle(u64::MAX);
    }

    /// As late as both, with the jumps of both.
    pub(crate) fn join(&mut self, other: &Steps) {
        if !other.is_none() {
            self.pass_to(other.begun_ns);
        }
        self.jumps.ahead += other.jumps.ahead;
        self.jumps.set_back += other.jumps.set_back;
        self.jumps.shift_ns = self.jumps.shift_ns.max(other.jumps.shift_ns);
    }

    /// The time at which the current step began, in nanoseconds since the epoch: all before it is over.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// The time of a packet that is taken: in the current step, or its own where there are no steps.
    #[inline(always)]
    pub(crate) fn time(&self, time_ns: u64) -> u64 {
        if self.is_none() {
            return time_ns;
        }
        time_ns.saturating_add(self.jumps.shift_ns).clamp(self.begun_ns, self.begun_ns.saturating_add(STEP_NS - 1))
    }

    /// Times that were not believed so far.
    pub fn jumps(&self) -> Jumps {
        self.jumps
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

    /// Offers packets; the result has of each whether it was taken at once, and the step, less that of the first.
    fn offer(steps: &mut Steps, seconds: &[u64]) -> Vec<(bool, u64)> {
        let offer = |&second| (steps.packet(begin_of(second)), step_of(steps.begun_ns()));
        seconds.iter().map(offer).collect()
    }

    #[test]
    fn a_clock_goes_from_the_first_second_to_the_last() {
        let mut steps = Steps::new();
        assert!(!steps.packet(0) && steps.packet(0));
        assert!(!steps.pass(STEP_NS - 1), "the first step is not over");
        assert!(steps.pass(STEP_NS));
        assert_eq!((steps.time(0), steps.begun_ns()), (STEP_NS, STEP_NS));
        assert!(steps.pass(LAST + 1));
        assert_eq!((steps.time(LAST - 1), steps.begun_ns()), (LAST, LAST));
        // The last step does not end.
        assert!(!steps.pass(u64::MAX));
        assert!(steps.packet(u64::MAX) && steps.packet(5));
        assert_eq!((steps.time(u64::MAX), steps.time(5), steps.begun_ns()), (u64::MAX, LAST, LAST));
    }

    #[test]
    fn before_the_first_packet_any_time_may_pass() {
        for (time_ns, begun_ns) in [(0, 0), (STEP_NS - 1, 0), (STEP_NS, STEP_NS), (u64::MAX, LAST)] {
            let mut steps = Steps::new();
            assert_eq!(steps.pass(time_ns), begun_ns > 0, "{time_ns}");
            assert!(steps.packet(0));
            assert_eq!((steps.begun_ns(), steps.time(0)), (begun_ns, begun_ns), "{time_ns}");
        }
    }

    #[test]
    fn without_steps_no_time_changes() {
        let mut steps = Steps::none();
        for time_ns in [7, u64::MAX, 3, LAST, 0] {
            assert!(steps.packet(time_ns) && !steps.pass(time_ns) && steps == Steps::none());
        }
    }

    #[test]
    fn a_packet_far_ahead_waits_for_the_next_one() {
        let mut steps = Steps::new();
        assert_eq!(offer(&mut steps, &[9_000, 100]), [(false, 0), (true, 100)], "the first one of all");
        assert_eq!(offer(&mut steps, &[160, 9_000, 161]), [(true, 160), (false, 160), (true, 161)]);
        assert_eq!(steps.jumps(), Jumps { ahead: 2, ..Jumps::default() });
        // Each is as far from the one before.
        assert_eq!(offer(&mut steps, &[300, 500, 700, 701]), [(false, 161), (false, 300), (false, 500), (true, 701)]);
        // Nothing follows, or the clock says the same.
        assert_eq!(offer(&mut steps, &[900]), [(false, 701)]);
        steps.finish();
        assert_eq!((steps.waiting_ns, step_of(steps.begun_ns())), (None, 900));
        assert_eq!(offer(&mut steps, &[1_100]), [(false, 900)]);
        assert!(steps.pass(begin_of(1_099)) && steps.waiting_ns.is_some());
        assert!(steps.pass(begin_of(1_101)) && steps.waiting_ns.is_none());
        assert_eq!(steps.jumps().ahead, 2);
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on() {
        let mut steps = Steps::new();
        offer(&mut steps, &[9_000, 9_000]);
        assert!(offer(&mut steps, &[100; 7]).iter().all(|&taken| taken == (true, 9_000)), "they may be late");
        assert_eq!(offer(&mut steps, &[9_001, 8_941])[1], (true, 9_001));
        offer(&mut steps, &[100; 8]);
        assert_eq!(steps.jumps(), Jumps { set_back: 1, shift_ns: begin_of(8_901), ahead: 0 });
        assert_eq!(offer(&mut steps, &[101, 150]), [(true, 9_002), (true, 9_051)]);
        assert!(steps.pass(begin_of(151)) && step_of(steps.begun_ns()) == 9_052);
        // It is set right, by less, and by more than it was wrong.
        assert_eq!(offer(&mut steps, &[1_000, 1_001]), [(false, 9_052), (true, 9_053)]);
        assert_eq!(offer(&mut steps, &[9_900, 9_901]), [(false, 9_053), (true, 9_901)]);
        assert_eq!(steps.jumps().shift_ns, 0);
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
