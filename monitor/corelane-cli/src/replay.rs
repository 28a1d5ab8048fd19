//! Captures played as fast as they were recorded, or so many times as fast.
//!
//! Records come when they are due. Between them time passes as on a wire, so that scans are alerted when they would
//! have been. What is found is the same as at any other speed: no record's time is changed, and none is left out.

use crate::args::SPEEDS;
use crate::input::{Fault, Inputs, Watch};
use corelane_monitor::{Silence, Source};
use corelane_net::capture::{LinkType, Record};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest sleep, after which the interrupt and the keys are looked at.
const PATIENCE: Duration = Duration::from_millis(20);

/// The clock of a replay, which the keys change. Clones are the same clock.
#[derive(Clone, Debug)]
pub(crate) struct Pace(Arc<Mutex<Clock>>);

#[derive(Debug)]
struct Clock {
    speed: f64,
    is_paused: bool,
    /// Up to when the capture is due at an instant; `None` before the first record.
    set: Option<(u64, Instant)>,
    /// The time of the record that is waited for.
    waits_for: Option<u64>,
}

impl Clock {
    fn due(&self, now: Instant) -> Option<u64> {
        let (time_ns, at) = self.set?;
        if self.is_paused {
            return Some(time_ns);
        }
        // Beyond all times where the product is too large.
        let passed = now.saturating_duration_since(at).as_secs_f64() * self.speed * 1e9;
        Some(time_ns.saturating_add(passed as u64))
    }

    /// Changes the clock from now on.
    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        let now = Instant::now();
        self.set = self.due(now).map(|due| (due, now));
        change(self);
    }
}

impl Pace {
    pub(crate) fn new(speed: f64) -> Self {
        Pace(Arc::new(Mutex::new(Clock { speed, is_paused: false, set: None, waits_for: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Clock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn multiply(&self, factor: f64) {
        self.lock().change(|clock| clock.speed = (clock.speed * factor).clamp(SPEEDS.0, SPEEDS.1));
    }

    pub(crate) fn pause(&self, is_paused: bool) {
        self.lock().change(|clock| clock.is_paused = is_paused);
    }

    /// Goes to the next record, if one is waited for.
    pub(crate) fn skip(&self) {
        self.lock().change(|clock| {
            if let (Some(next), Some((time_ns, _))) = (clock.waits_for, &mut clock.set) {
                *time_ns = next.max(*time_ns);
            }
        });
    }

    /// The speed, the time at which the capture is, and that of the record that is waited for.
    pub(crate) fn state(&self) -> (f64, Option<u64>, Option<u64>) {
        let clock = self.lock();
        (clock.speed, clock.due(Instant::now()), clock.waits_for)
    }

    /// The time up to which records are due, for one of this time. The first one is due.
    fn due(&self, time_ns: u64) -> u64 {
        let mut clock = self.lock();
        let now = Instant::now();
        let due = clock.due(now).unwrap_or_else(|| clock.set.insert((time_ns, now)).0);
        clock.waits_for = (time_ns > due).then_some(time_ns);
        due
    }
}

/// A record that is not due yet.
#[derive(Debug)]
struct Held {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    data: Vec<u8>,
}

/// Captures, played.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) inputs: Inputs,
    pace: Pace,
    watch: Watch,
    held: Option<Held>,
    /// Up to here records are known to be due: the clock is looked at for none of them.
    due_ns: u64,
}

impl Replay {
    pub(crate) fn new(inputs: Inputs, pace: Pace, watch: &Watch) -> Self {
        Replay { inputs, pace, watch: watch.clone(), held: None, due_ns: 0 }
    }
}

impl Source for Replay {
    type Error = Fault;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Fault> {
        let Replay { inputs, pace, watch, held, due_ns } = self;
        let mut is_due = |time_ns: u64| {
            if time_ns > *due_ns {
                *due_ns = pace.due(time_ns);
            }
            time_ns <= *due_ns
        };
        let mut read = 0;
        if let Some(waiting) = held {
            // After the interrupt the inputs say that they were cut short.
            if !watch.interrupt.is_set() && !is_due(waiting.time_ns) {
                thread::sleep(PATIENCE);
                return Ok(0);
            }
            if !watch.interrupt.is_set() {
                let Held { time_ns, wire_len, link, data } = &*waiting;
                sink(Record { time_ns: *time_ns, wire_len: *wire_len, link: *link, data });
                read = 1;
            }
            *held = None;
        }
        while read < max && held.is_none() {
            let one = inputs.read(1, |record| {
                if is_due(record.time_ns) {
                    read += 1;
                    return sink(record);
                }
                let Record { time_ns, wire_len, link, data } = record;
                *held = Some(Held { time_ns, wire_len, link, data: data.to_vec() });
            });
            if one? == 0 {
                break;
            }
        }
        Ok(read)
    }

    fn silence(&mut self) -> Silence {
        let Some(held) = &self.held else { return self.inputs.silence() };
        // Up to the record that is waited for.
        let due_ns = self.pace.state().1.unwrap_or(0);
        Silence::Pause { time_ns: due_ns.min(held.time_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::progress::Gauge;
    use corelane_net::capture::Reader;
    use corelane_net::capture::write::PcapWriter;

    const SECOND: u64 = 1_000_000_000;

    fn replay(seconds: &[u64], speed: f64) -> (Replay, Pace) {
        let mut writer = PcapWriter::new(Vec::new(), 65535, LinkType::RAW).unwrap();
        for &second in seconds {
            writer.write(second * SECOND, 20, &[second as u8; 20]).unwrap();
        }
        let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        let watch = Watch { interrupt: Interrupt::default(), gauge: Arc::new(Gauge::default()) };
        let pace = Pace::new(speed);
        (Replay::new(Inputs::of("test", reader, &watch), pace.clone(), &watch), pace)
    }

    /// What one read brings: the first byte of each record.
    fn read(replay: &mut Replay) -> Vec<u8> {
        let mut bytes = Vec::new();
        replay.read(100, |record| bytes.push(record.data[0])).unwrap();
        bytes
    }

    #[test]
    fn records_wait_until_they_are_due_and_keep_their_bytes() {
        let (mut replay, pace) = replay(&[1, 1, 50, 51, 90], 0.001);
        assert_eq!(read(&mut replay), [1, 1], "the first are due at once");
        assert!(read(&mut replay).is_empty());
        assert!(matches!(replay.silence(), Silence::Pause { time_ns } if (SECOND..2 * SECOND).contains(&time_ns)));
        pace.skip();
        assert_eq!(read(&mut replay), [50]);
        pace.skip();
        assert_eq!(read(&mut replay), [51]);
        assert!(read(&mut replay).is_empty());
        pace.multiply(1e9);
        thread::sleep(Duration::from_millis(1));
        assert_eq!(read(&mut replay), [90]);
        assert!(read(&mut replay).is_empty());
        assert_eq!(replay.silence(), Silence::End { time_ns: None });
    }

    #[test]
    fn nothing_is_due_while_the_replay_is_paused() {
        let (mut replay, pace) = replay(&[1, 2, 3], 1e5);
        // A thread that is slow by then finds the others due as well.
        let mut all = read(&mut replay);
        assert_eq!(all[0], 1);
        pace.pause(true);
        let before = pace.state().1;
        thread::sleep(Duration::from_millis(2));
        assert_eq!(pace.state().1, before);
        pace.pause(false);
        thread::sleep(Duration::from_millis(1));
        all.extend(read(&mut replay));
        assert_eq!(all, [1, 2, 3]);
    }

    #[test]
    fn times_that_go_back_hold_nothing_up() {
        let (mut replay, _) = replay(&[100, 3, 99, 100], 0.001);
        assert_eq!(read(&mut replay), [100, 3, 99, 100]);
    }
}
