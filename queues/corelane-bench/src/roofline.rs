//! The bare machine at its best, without queues. Every plot has these lines if they mean something there.

use crate::item::Item;
use crate::measure::{Outcome, Reading};
use crate::rig::{self, Side, Stop, Work};
use crate::setting::Setting;
use corelane::spsc::linked;
use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex};

/// The name of [`ping_pong`] in tables and plots.
pub(crate) const PING_PONG: &str = "raw ping-pong";
/// The name of [`streaming`] in tables and plots.
pub(crate) const STREAMING: &str = "raw streaming";
/// The name of [`boxes`] in tables and plots.
pub(crate) const BOXES: &str = "a box a task";

/// A word alone on its cache lines, including the line that a prefetcher fetches with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU64);

impl Word {
    fn await_least(&self, least: u64, side: &Side) -> Result<(), Stop> {
        side.until(&mut 0, least, spin_loop, || (self.0.load(Acquire) >= least).then_some(()))
    }
}

/// Two words, each written by one thread and watched by the other: the lower limit of every round trip.
pub(crate) fn ping_pong(setting: &Setting) -> Outcome {
    let warm = setting.warm(1000);
    let words = Arc::new((Word::default(), Word::default()));
    let theirs = words.clone();
    let count = setting.count.max(1);
    let here: Work<()> = Box::new(move |side| {
        for trip in 1..=warm + count {
            if trip == warm + 1 {
                side.start()?;
            }
            words.0.0.store(trip, Release);
            words.1.await_least(trip, side)?;
        }
        side.stop();
        Ok(())
    });
    let there: Work<()> = Box::new(move |side| {
        for trip in 1..=warm + count {
            if trip == warm + 1 {
                side.start()?;
            }
            theirs.0.await_least(trip, side)?;
            theirs.1.0.store(trip, Release);
        }
        side.stop();
        Ok(())
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], here), (setting.cpus[1], there)])?;
    Ok(Reading::new(count, took))
}

/// The number of blocks in the ring, and the bytes of a block: the best of those tried.
const BLOCKS: u64 = 4;
const BLOCK_BYTES: usize = 16 << 10;

/// Items that one thread copies into a ring and another copies out of it, 16 KiB at a time. Handing over costs almost
/// nothing here. No item can be taken before its whole block is written, so this is not a queue.
pub(crate) fn streaming<T: Item>(setting: &Setting) -> Outcome {
    let block = BLOCK_BYTES / T::BYTES;
    struct Ring<T> {
        /// Blocks written, and blocks read.
        written: Word,
        read: Word,
        /// The two counts say which thread may use a block, so no lock is ever contended. The locks let the compiler
        /// copy whole blocks.
        blocks: Vec<Mutex<Vec<T>>>,
    }
    let blocks = (0..BLOCKS).map(|_| Mutex::new(vec![T::default(); block])).collect();
    let ring = Arc::new(Ring { written: Word::default(), read: Word::default(), blocks });
    let theirs = ring.clone();
    let lock = |ring: &Ring<T>, number: u64, f: &mut dyn FnMut(&mut [T])| {
        f(&mut ring.blocks[(number % BLOCKS) as usize].lock().expect("no thread panics with a block"));
    };
    let warm = setting.warm(2 * BLOCKS);
    let count = setting.count.div_ceil(block as u64).max(1);
    let write: Work<()> = Box::new(move |side| {
        let stock = T::stock();
        let source: Vec<T> = (0..block as u64).map(|number| T::numbered(&stock, number)).collect();
        for number in 0..warm + count {
            if number == warm {
                side.start()?;
            }
            ring.read.await_least((number + 1).saturating_sub(BLOCKS), side)?;
            lock(&ring, number, &mut |block| block.copy_from_slice(&source));
            ring.written.0.store(number + 1, Release);
        }
        side.stop();
        Ok(())
    });
    let read: Work<()> = Box::new(move |side| {
        let mut target = vec![T::default(); block];
        for number in 0..warm + count {
            if number == warm {
                side.start()?;
            }
            theirs.written.await_least(number + 1, side)?;
            lock(&theirs, number, &mut |block| target.copy_from_slice(block));
            theirs.read.0.store(number + 1, Release);
            let different = (0..).zip(&target).fold(0, |different, (i, item)| different | item.says() ^ T::due(i));
            side.check(different, 0)?;
        }
        side.stop();
        Ok(())
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], write), (setting.cpus[1], read)])?;
    Ok(Reading::new(count * block as u64, took))
}

/// Boxed closures that one thread makes and another calls and frees. Both threads only spin, so this measures the
/// allocator's work and the lines that move.
pub(crate) fn boxes(setting: &Setting) -> Outcome {
    type Task = Box<dyn FnOnce() -> u64 + Send>;
    let (tx, rx) = linked::channel::<Task>();
    // As many as the most tasks of a pool's sample.
    let count = setting.count.clamp(1, 1_000_000);
    let make: Work<()> = Box::new(move |side| {
        let mut tx = tx;
        side.start()?;
        for number in 0..count {
            if tx.try_push(Box::new(move || number)).is_err() {
                return Err(Stop::Elsewhere);
            }
        }
        side.stop();
        Ok(())
    });
    let call: Work<()> = Box::new(move |side| {
        let mut rx = rx;
        side.start()?;
        let mut tries = 0_u64;
        for number in 0..count {
            let task = side.until(&mut tries, number, spin_loop, || rx.try_pop().ok())?;
            side.check(task(), number)?;
        }
        side.stop();
        Ok(())
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], make), (setting.cpus[1], call)])?;
    Ok(Reading::new(count, took))
}
