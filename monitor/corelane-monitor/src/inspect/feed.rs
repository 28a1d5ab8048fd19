//! The Dispatcher's side of the second analysis: turns packets into items and bytes into chunks, and sets marks.
//!
//! 1. Bytes in memory that a reader shares, a block of a file or a whole capture, stay where they are. Bytes that it
//!    lends only until it reads on are copied to the end of the current chunk. The items of that chunk are kept until
//!    it is full or no more records are at hand, and are sent behind it.
//! 2. Items are gathered for each stage, as slots are in [`share`](crate::share).
//! 3. When nothing more may come for a while, every stage is told how far the others can be, and all gathered items are
//!    sent.
//! 4. A mark goes to every stage. At every [`STRIDE`]th packet all gathered items are sent, and the Dispatcher waits
//!    until the output stage is at most [`AHEAD`] strides behind. It also waits before it begins a chunk, copied or
//!    shared, with which more than [`MOST_HELD`] bytes would be held: packets may be long, and a stride of them may
//!    exceed the memory.
//! 5. A stage releases a chunk when it gets the next one, and when it is told that nothing more may come for a while.
//!    Only after that does it report that it is done with the last packet in it. So a chunk is given back once no stage
//!    can look at it.

use super::item::{Chunk, Item};
use crate::dispatch::Place;
use crate::lending::Lent;
use crate::slot::analyzer_of;
use crate::source::Progress;
use corelane::error::ChannelError;
use corelane::spsc::{self, Consumer, Linked, Producer};
use corelane_net::capture::{Memory, Record};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most packets between two marks.
pub(super) const STRIDE: u64 = 4096;
/// The most strides that the Dispatcher is ahead of the output stage.
pub(super) const AHEAD: u64 = 8;
/// The longest time between two marks, in nanoseconds of the capture's time.
const MARK_NS: u64 = 1_000_000_000;
/// Bytes of a copied chunk, unless a record is longer.
const CHUNK: usize = 1 << 20;
/// The most bytes of chunks that the output stage is not done with; or one chunk, if that alone is larger.
pub(super) const MOST_HELD: usize = 16 << 20;
/// Items that are pushed together.
const GATHER: usize = 64;

/// The times at which marks are due.
#[derive(Debug, Default)]
pub(super) struct Marks {
    clock: u64,
    next: u64,
}

impl Marks {
    /// The time of the mark before this packet, if one is due.
    #[inline]
    pub(super) fn before(&mut self, number: u64, time_ns: u64) -> Option<u64> {
        self.clock = self.clock.max(time_ns);
        if self.clock < self.next && !number.is_multiple_of(STRIDE) {
            return None;
        }
        self.next = self.clock.saturating_add(MARK_NS);
        Some(self.clock)
    }
}

/// The queue to one stage, with its gathered items.
struct Outlet {
    items: Producer<Item>,
    gathered: Vec<Item>,
    /// Whether the stage has the memory that packets lie in now.
    has_memory: bool,
}

impl Outlet {
    /// Sends the gathered items, behind their chunk.
    fn send(&mut self, chunk: Option<&Chunk>) {
        if self.gathered.is_empty() {
            return;
        }
        if let Some(chunk) = chunk.filter(|_| !self.has_memory) {
            self.has_memory |= matches!(chunk, Chunk::Memory(_));
            push_all(&mut self.items, &mut vec![Item::Chunk(chunk.clone())]);
        }
        push_all(&mut self.items, &mut self.gathered);
    }

    /// How full the queue is, from 0 to 1.
    fn fill(&self) -> f64 {
        self.items.len() as f64 / self.items.capacity() as f64
    }
}

/// Pushes all items, waiting for room, and leaves the vector empty. A closed queue takes none: see
/// [`Feed::is_broken`].
fn push_all(queue: &mut Producer<Item>, items: &mut Vec<Item>) {
    loop {
        // The queue may be full or closed; the wait below tells which.
        let _ = queue.try_push_batch(items);
        if items.is_empty() || queue.wait_for_room(queue.capacity().div_ceil(2)).is_err() {
            return items.clear();
        }
    }
}

/// The queues to all stages, and the state that they share.
pub(super) struct Feed {
    outlets: Vec<Outlet>,
    /// The memory that packets lie in, if they are not copied.
    memory: Option<Memory>,
    copied: Vec<u8>,
    marks: Marks,
    /// The number of the last mark.
    marked: u64,
    /// Whether the next mark asks for all numbers.
    snapshot: bool,
    /// What is lent from the next mark on.
    lent: Option<Arc<Lent>>,
    /// The number of the current packet, or of the next one.
    next: u64,
    /// The stages know that no packets of lesser numbers follow.
    passed: u64,
    /// Complete chunks that may still be held: their bytes, and the least number of a packet behind each.
    held: VecDeque<(usize, u64)>,
    /// The sum of those bytes.
    held_bytes: usize,
    credits: Credits,
    broken: bool,
}

/// The progress of the output stage, as the Dispatcher knows it.
pub(super) struct Credits {
    passed_numbers: Consumer<u64, Linked>,
    passed: u64,
}

/// The output stage's end of the [`Credits`].
pub(super) struct Creditor {
    /// Without a bound, as the output stage must wait for no other stage. It holds at most one number for each packet
    /// on its way.
    passed_numbers: Producer<u64, Linked>,
    passed: u64,
}

impl Credits {
    pub(super) fn new() -> Result<(Creditor, Credits), ChannelError> {
        let (creditor, credits) = spsc::linked::try_channel()?;
        Ok((Creditor { passed_numbers: creditor, passed: 0 }, Credits { passed_numbers: credits, passed: 0 }))
    }

    /// Waits until packets of lesser numbers than this cause no more output. False if the output stage is gone.
    fn wait_for(&mut self, number: u64) -> bool {
        while self.passed < number {
            match self.passed_numbers.pop() {
                Ok(passed) => self.passed = passed,
                Err(_) => return false,
            }
        }
        true
    }
}

impl Creditor {
    /// Tells the Dispatcher that packets of lesser numbers cause no more output.
    pub(super) fn grant(&mut self, passed: u64) {
        if passed > self.passed {
            self.passed = passed;
            // If the queue is closed the Dispatcher is gone and needs no credit.
            let _ = self.passed_numbers.try_push(passed);
        }
    }
}

impl Feed {
    pub(super) fn new(outlets: Vec<Producer<Item>>, credits: Credits) -> Self {
        let outlet = |items| Outlet { items, gathered: Vec::with_capacity(GATHER), has_memory: false };
        Feed {
            outlets: outlets.into_iter().map(outlet).collect(),
            memory: None,
            copied: Vec::new(),
            marks: Marks::default(),
            marked: 0,
            snapshot: false,
            lent: None,
            next: 0,
            passed: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            credits,
            broken: false,
        }
    }

    /// Whether another stage has panicked.
    pub(super) fn is_broken(&self) -> bool {
        self.broken || self.outlets.iter().any(|outlet| outlet.items.is_closed())
    }

    /// Tells that the next records lie in this memory, or in none that stays.
    pub(super) fn records_in(&mut self, memory: Option<&Memory>) {
        let is_same = match (&self.memory, memory) {
            (Some(before), Some(memory)) => before.is(memory),
            (before, memory) => before.is_none() && memory.is_none(),
        };
        if is_same {
            return;
        }
        self.send();
        if let Some(before) = self.memory.take() {
            self.holds(before.len());
        }
        self.outlets.iter_mut().for_each(|outlet| outlet.has_memory = false);
        if let Some(memory) = memory {
            self.wait_for_room(memory.len());
            self.memory = Some(memory.clone());
        }
    }

    /// The next mark asks for all numbers so far, and the queues are looked at.
    pub(super) fn ask(&mut self, progress: &Progress) {
        self.snapshot = true;
        let fullest = self.outlets.iter().map(Outlet::fill).reduce(f64::max);
        fullest.into_iter().for_each(|fill| progress.queue_fill(fill));
    }

    /// Partitions have this room from the next mark on, if it is another one.
    pub(super) fn lend(&mut self, lent: Option<Arc<Lent>>) {
        self.lent = lent.or(self.lent.take());
    }

    /// Time passes though no packet came; the next one has this number.
    pub(super) fn pass(&mut self, number: u64, time_ns: u64) {
        if let Some(time_ns) = self.marks.before(number, time_ns) {
            self.mark(number, time_ns);
        }
        self.send();
    }

    /// Takes the next record; the first one has the number 1.
    #[inline]
    pub(super) fn record(&mut self, number: u64, place: Option<(Place, Record<'_>)>, time_ns: u64) {
        self.next = number;
        if let Some(time_ns) = self.marks.before(number, time_ns) {
            self.mark(number, time_ns);
        }
        let Some((place, record)) = place else { return };
        let at = self.memory.as_ref().and_then(|memory| memory.place(record.data));
        let at = at.unwrap_or_else(|| self.copy(record.data));
        let Some(item) = Item::packet(&record, at, number - self.marked, place) else { return };
        let number = analyzer_of(place.partition, self.outlets.len());
        let outlet = &mut self.outlets[number];
        outlet.gathered.push(item);
        if outlet.gathered.len() >= GATHER
            && let Some(memory) = &self.memory
        {
            outlet.send(Some(&Chunk::Memory(memory.clone())));
        }
    }

    /// Copies bytes to the current chunk; returns where they begin.
    fn copy(&mut self, data: &[u8]) -> usize {
        // The source has gone on to other memory.
        self.records_in(None);
        if self.copied.len() + data.len() > CHUNK {
            self.send();
        }
        if self.copied.is_empty() {
            self.wait_for_room(data.len().max(CHUNK));
        }
        let at = self.copied.len();
        self.copied.extend_from_slice(data);
        at
    }

    #[cold]
    fn mark(&mut self, number: u64, time_ns: u64) {
        let is_stride = number.is_multiple_of(STRIDE);
        if is_stride {
            self.pause(number);
        }
        self.marked = number;
        let snapshot = std::mem::take(&mut self.snapshot);
        for outlet in &mut self.outlets {
            outlet.gathered.push(Item::Mark { number, time_ns, snapshot });
            outlet.gathered.extend(self.lent.clone().map(Item::Lent));
        }
        self.lent = None;
        if !is_stride {
            return;
        }
        self.send();
        self.wait_for((number / STRIDE).saturating_sub(AHEAD) * STRIDE);
    }

    fn wait_for(&mut self, number: u64) {
        self.broken = self.broken || !self.credits.wait_for(number);
    }

    /// Records that a chunk of so many bytes is complete: the next packets lie in another one.
    fn holds(&mut self, bytes: usize) {
        self.held_bytes += bytes;
        self.held.push_back((bytes, self.next));
    }

    /// Waits until so many bytes more may be held.
    #[cold]
    fn wait_for_room(&mut self, more: usize) {
        while let Some(&(bytes, behind)) = self.held.front()
            && !self.broken
        {
            if behind <= self.credits.passed {
                self.held_bytes -= bytes;
                self.held.pop_front();
            } else if self.held_bytes + more > MOST_HELD {
                // Makes every stage release the chunks before, and report that.
                self.pause(self.next);
                self.wait_for(behind);
            } else {
                return;
            }
        }
    }

    /// Tells every stage that the next packet has at least this number, and sends all gathered items: nothing more may
    /// come for a while. Otherwise a stage whose partitions are quiet would hold back the lines of the others until the
    /// next mark.
    pub(super) fn pause(&mut self, number: u64) {
        self.next = number;
        if number > self.passed {
            self.passed = number;
            self.outlets.iter_mut().for_each(|outlet| outlet.gathered.push(Item::Passed { number }));
        }
        self.send();
        // The stages have released the memory.
        self.outlets.iter_mut().for_each(|outlet| outlet.has_memory = false);
    }

    /// Sends all gathered items.
    fn send(&mut self) {
        let chunk = match &self.memory {
            Some(memory) => Some(Chunk::Memory(memory.clone())),
            None if self.copied.is_empty() => None,
            None => {
                let next = Vec::with_capacity(self.copied.len().min(CHUNK));
                self.holds(self.copied.len());
                Some(Chunk::Copied(Arc::new(std::mem::replace(&mut self.copied, next))))
            }
        };
        self.outlets.iter_mut().for_each(|outlet| outlet.send(chunk.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_tells_how_full_it_is() {
        let (items, mut consumer) = spsc::channel(32);
        let mut outlet = Outlet { items, gathered: Vec::new(), has_memory: false };
        assert_eq!(outlet.fill(), 0.0);
        push_all(&mut outlet.items, &mut (0..8).map(|number| Item::Passed { number }).collect());
        assert_eq!(outlet.fill(), 0.25);
        consumer.pop_batch(&mut Vec::new(), 8).unwrap();
        assert_eq!(outlet.fill(), 0.0);
    }
}
