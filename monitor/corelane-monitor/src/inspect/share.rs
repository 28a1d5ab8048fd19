//! Which stage analyses which partition, and how partitions move while packets flow.
//!
//! A SubAnalyzer begins with its part of the partitions. If there are fewer SubAnalyzers than the Dispatcher could
//! feed, it would spend its time waiting for full queues. So it takes partitions over and analyses their packets
//! itself. It gives partitions back when it has become the slower stage.
//!
//! 1. Now and then the Dispatcher checks which part of its time it waited. It does so between two reads, when all
//!    gathered slots are sent. If it waited much, it takes some partitions from the SubAnalyzer that it waited for
//!    most. If it hardly waited, it gives some back.
//! 2. To take, it sends an order with a place: the count of slots that it has sent to that SubAnalyzer so far. From
//!    then on it keeps the packets of these partitions for itself.
//! 3. When the SubAnalyzer comes to the place, it takes the state out of its tables and returns it. The Dispatcher puts
//!    the state into its own tables, and then processes the packets that it has kept.
//! 4. To give, the Dispatcher sends the state in the order. The partition's packets follow in the queue of slots,
//!    behind the place.
//!
//! At most one order to take is on its way at any time.
//!
//! # Why moves cannot change the report
//!
//! A partition's state is in one place at a time, and its packets are processed there, in the order of the capture:
//! those before the order's place by one stage, those behind it by the other.
//!
//! # Synchronization
//!
//! The Dispatcher pushes an order before it pushes the slots behind its place. So a SubAnalyzer that has popped one of
//! those slots finds the order. A SubAnalyzer that has popped none of them still has all slots before the place to
//! process. It waits for both queues at once, as an order may come when no slots do.
//!
//! # Why no thread waits in a circle
//!
//! The queue of returned state has room for one answer, and there is never more than one, so a SubAnalyzer never waits
//! to return it. The Dispatcher waits for the answer when it has kept too many packets, and at the end. By then every
//! slot before the place is in the queue, and the SubAnalyzer needs no more than those.

use super::stage::Harvest;
use crate::analyzer::{PartitionState, SubAnalyzer};
use crate::partial_result::PartialResult;
use crate::plan::Sharing;
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::{PARTITIONS, Slot, analyzer_of};
use crate::state_report::TOGETHER;
use corelane::error::{ChannelError, TryPushError};
use corelane::spsc::{self, Consumer, Producer};
use corelane::wait::Select;
use std::time::{Duration, Instant};

/// The Dispatcher takes more partitions when it waited for more than this part of the time, …
const MUCH: f64 = 1.0 / 16.0;
/// … and gives some back when it waited for less than this.
const LITTLE: f64 = 1.0 / 64.0;

/// Slots that are pushed together. A slot pushed alone costs several stores into a line that is still on its way from
/// the other core, and few stores can wait for lines. `docs/benchmarks.md` has the cost.
const GATHER: usize = 64;

/// The most slots that a SubAnalyzer takes at a time: several times as many as hide the memory latency of its tables,
/// because an index queue publishes once for all of them.
const BATCH: usize = 1024;

/// When it has kept this many slots of awaited partitions, the Dispatcher waits for their state.
const KEPT: usize = 1 << 16;

/// Some partitions with their state.
type Moved = Vec<(u8, PartitionState)>;

/// A wish of the Dispatcher, for the SubAnalyzer to fulfil once it has processed `place` slots.
struct Order {
    place: u64,
    wish: Wish,
}

enum Wish {
    Return(Vec<u8>),
    Take(Moved),
}

/// A SubAnalyzer's ends of its queues.
pub(super) struct Inlet {
    slots: Consumer<Slot>,
    orders: Consumer<Order>,
    returns: Producer<Moved>,
}

/// The Dispatcher's ends of the queues of one SubAnalyzer.
pub(super) struct Outlet {
    slots: Producer<Slot>,
    orders: Producer<Order>,
    returns: Consumer<Moved>,
    /// Slots sent so far.
    sent: u64,
    /// Time spent waiting for this SubAnalyzer, for room or for partitions, since the last look.
    waited: Duration,
}

/// The ends of all queues between the Dispatcher and a SubAnalyzer, around their queue of slots.
pub(super) fn ends((slots, slots_in): (Producer<Slot>, Consumer<Slot>)) -> Result<(Outlet, Inlet), ChannelError> {
    // One place is enough: the Dispatcher gives an order only when all before it have been read, see `look`, and awaits
    // one answer at a time.
    let (orders, orders_in) = spsc::try_channel(1)?;
    let (returns_out, returns) = spsc::try_channel(1)?;
    let outlet = Outlet { slots, orders, returns, sent: 0, waited: Duration::ZERO };
    Ok((outlet, Inlet { slots: slots_in, orders: orders_in, returns: returns_out }))
}

impl Outlet {
    fn send(&mut self, slots: &[Slot]) {
        self.sent += slots.len() as u64;
        let mut left = slots;
        loop {
            // The queue may be full or closed; the wait below tells which.
            left = &left[self.slots.try_push_slice(left).unwrap_or(0)..];
            if left.is_empty() {
                return;
            }
            let start = Instant::now();
            let room = self.slots.wait_for_room(self.slots.capacity().div_ceil(2));
            self.waited += start.elapsed();
            // The SubAnalyzer has panicked, see `is_broken`.
            if room.is_err() {
                return;
            }
        }
    }

    /// Sends an order. There is always room: see [`ends`]. A SubAnalyzer that has panicked follows no more orders.
    fn order(&mut self, wish: Wish) {
        let ordered = self.orders.try_push(Order { place: self.sent, wish });
        debug_assert!(!matches!(ordered, Err(TryPushError::Full(_))), "orders are given one at a time");
    }
}

/// Slots that are gathered for one stage.
struct Gathered {
    slots: [Slot; GATHER],
    count: usize,
}

/// The Dispatcher's outlets, and its own share of the analysis.
pub(super) struct Shares {
    sharing: Sharing,
    outlets: Vec<Outlet>,
    /// One for each outlet, and one more, the last, for the Dispatcher itself.
    gathered: Vec<Gathered>,
    /// The owner of each partition, as an index into `gathered`. It gets the partition's packets.
    owners: [u16; PARTITIONS],
    own: SubAnalyzer,
    /// The outlet that is going to return partitions.
    awaited: Option<usize>,
    /// Slots of the Dispatcher's share while it awaits partitions.
    kept: Vec<Slot>,
    looked: Instant,
    records: u64,
    /// The state of the random numbers of [`Sharing::Restless`].
    whims: u64,
}

impl Shares {
    pub(super) fn new(sharing: Sharing, settings: &Settings, run: &Run, outlets: Vec<Outlet>) -> Self {
        let count = outlets.len();
        let gathered = (0..=count).map(|_| Gathered { slots: [Slot::default(); GATHER], count: 0 }).collect();
        Shares {
            sharing,
            outlets,
            gathered,
            owners: std::array::from_fn(|partition| analyzer_of(partition as u8, count) as u16),
            own: SubAnalyzer::new(settings, run),
            awaited: None,
            kept: Vec::new(),
            looked: Instant::now(),
            records: 0,
            whims: 1,
        }
    }

    /// Whether a SubAnalyzer has panicked.
    pub(super) fn is_broken(&self) -> bool {
        self.outlets.iter().any(|outlet| outlet.slots.is_closed())
    }

    /// The most records to read at once.
    pub(super) fn read(&self) -> usize {
        self.sharing.read()
    }

    /// The number of the Dispatcher's own share.
    fn own_number(&self) -> usize {
        self.outlets.len()
    }

    /// Takes a slot to the owner of its partition.
    #[inline(always)]
    pub(super) fn push(&mut self, partition: u8, slot: Slot) {
        let owner = usize::from(self.owners[usize::from(partition)]);
        let gathered = &mut self.gathered[owner];
        gathered.slots[gathered.count % GATHER] = slot;
        gathered.count += 1;
        if gathered.count == GATHER {
            self.send(owner);
        }
    }

    fn send(&mut self, owner: usize) {
        let gathered = &mut self.gathered[owner];
        let slots = &gathered.slots[..std::mem::take(&mut gathered.count)];
        if let Some(outlet) = self.outlets.get_mut(owner) {
            outlet.send(slots);
        } else if self.awaited.is_some() {
            self.kept.extend_from_slice(slots);
            self.receive(self.kept.len() >= KEPT);
        } else {
            self.own.process(slots);
        }
    }

    /// `records` more records have been read, and the next may take long to come.
    pub(super) fn after_read(&mut self, records: usize, out: &mut dyn FnMut(Harvest)) {
        (0..=self.own_number()).for_each(|owner| self.send(owner));
        self.receive(false);
        Harvest::send(self.own.take_reports(), out);
        self.records += records as u64;
        if self.records >= self.sharing.period() {
            self.records = 0;
            let passed = self.looked.elapsed();
            self.look(passed);
            self.outlets.iter_mut().for_each(|outlet| outlet.waited = Duration::ZERO);
            self.looked = Instant::now();
        }
    }

    /// Polls for the state of awaited partitions, or waits for it if `wait`; then processes the slots that were kept.
    fn receive(&mut self, wait: bool) {
        let Some(number) = self.awaited else { return };
        let outlet = &mut self.outlets[number];
        let moved = if wait {
            let start = Instant::now();
            let moved = outlet.returns.pop();
            outlet.waited += start.elapsed();
            moved.ok()
        } else {
            outlet.returns.try_pop().ok()
        };
        match moved {
            Some(moved) => moved.into_iter().for_each(|(partition, state)| self.own.put_partition(partition, state)),
            // The SubAnalyzer has panicked: the state never comes, and no report will ask for it.
            None if wait => {}
            None => return,
        }
        self.awaited = None;
        self.own.process(&self.kept);
        self.kept.clear();
    }

    /// Moves partitions if the stages are not equally busy.
    fn look(&mut self, passed: Duration) {
        if self.awaited.is_some() || self.outlets.iter_mut().any(|outlet| !outlet.orders.is_empty()) {
            return;
        }
        let own = self.owners.iter().filter(|&&owner| usize::from(owner) == self.own_number()).count();
        if self.sharing == Sharing::Restless {
            let whim = self.whim();
            let (number, count) = (whim % self.outlets.len(), 1 + whim / 256 % 100);
            return if (whim / 65_536).is_multiple_of(2) { self.take(number, count) } else { self.give(number, count) };
        }
        let waited: Duration = self.outlets.iter().map(|outlet| outlet.waited).sum();
        let part = waited.as_secs_f64() / passed.as_secs_f64().max(1e-9);
        let by_wait = |(_, outlet): &(usize, &Outlet)| outlet.waited;
        if part > MUCH {
            // A quarter of the partitions that would balance the load: slots on their way keep the Dispatcher waiting
            // for a while.
            let count = (part * PARTITIONS as f64 / 8.0) as usize;
            let most = self.outlets.iter().enumerate().max_by_key(by_wait).map(|(number, _)| number);
            most.into_iter().for_each(|number| self.take(number, count));
        } else if part < LITTLE && own > 0 {
            let least = self.outlets.iter().enumerate().min_by_key(by_wait).map(|(number, _)| number);
            least.into_iter().for_each(|number| self.give(number, own.div_ceil(16)));
        }
    }

    fn whim(&mut self) -> usize {
        self.whims = self.whims.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.whims >> 33) as usize
    }

    /// Changes the owner of at most `count` partitions, and returns their numbers.
    fn change_owner(&mut self, from: usize, to: usize, count: usize) -> Vec<u8> {
        let mut moved = Vec::new();
        for (partition, owner) in (0..=u8::MAX).zip(&mut self.owners) {
            if usize::from(*owner) == from && moved.len() < count {
                *owner = to as u16;
                moved.push(partition);
            }
        }
        moved
    }

    fn take(&mut self, from: usize, count: usize) {
        let partitions = self.change_owner(from, self.own_number(), count);
        if !partitions.is_empty() {
            self.outlets[from].order(Wish::Return(partitions));
            self.awaited = Some(from);
        }
    }

    fn give(&mut self, to: usize, count: usize) {
        let partitions = self.change_owner(self.own_number(), to, count);
        if !partitions.is_empty() {
            let moved = partitions.into_iter().map(|number| (number, self.own.take_partition(number))).collect();
            self.outlets[to].order(Wish::Take(moved));
        }
    }

    /// The capture is over: closes the outlets, and finishes the Dispatcher's own share.
    pub(super) fn finish(mut self, max_time: u64, out: &mut dyn FnMut(Harvest)) -> PartialResult {
        (0..=self.own_number()).for_each(|owner| self.send(owner));
        self.receive(true);
        self.outlets.clear();
        finish(self.own, max_time, out)
    }
}

/// Runs the second stage until its queue is drained.
pub(super) fn sub_analysis(
    settings: &Settings,
    run: &Run,
    inlet: Inlet,
    out: &mut dyn FnMut(Harvest),
    max_time: impl FnOnce() -> u64,
) -> PartialResult {
    let mut inlets = Select::new();
    let (slots_in, orders) = (inlets.add(inlet.slots), inlets.add(inlet.orders));
    let mut returns = inlet.returns;
    let mut analyzer = SubAnalyzer::new(settings, run);
    let mut batch = [Slot::default(); BATCH];
    let mut processed = 0;
    loop {
        inlets.wait();
        let closed = inlets[slots_in].is_closed();
        loop {
            let popped = inlets[slots_in].try_pop_slice(&mut batch).unwrap_or(0);
            let mut slots = &batch[..popped];
            while let Ok(order) = inlets[orders].try_peek()
                && order.place <= processed + slots.len() as u64
            {
                let order = order.pop();
                let (before, behind) = slots.split_at((order.place - processed) as usize);
                analyzer.process(before);
                processed = order.place;
                slots = behind;
                obey(&mut analyzer, order.wish, &mut returns);
            }
            analyzer.process(slots);
            processed += slots.len() as u64;
            if popped == 0 {
                break;
            }
            // A busy stage gathers some, as each harvest is a wake-up for the output stage.
            if analyzer.reports().len() >= TOGETHER {
                Harvest::send(analyzer.take_reports(), out);
            }
        }
        // The queue is empty: sends the reports that are left, even a few.
        Harvest::send(analyzer.take_reports(), out);
        if closed {
            break;
        }
    }
    finish(analyzer, max_time(), out)
}

fn finish(mut analyzer: SubAnalyzer, max_time: u64, out: &mut dyn FnMut(Harvest)) -> PartialResult {
    let result = analyzer.finish_sending(max_time, &mut |reports| Harvest::send(reports, out));
    Harvest::send(analyzer.take_reports(), out);
    result
}

fn obey(analyzer: &mut SubAnalyzer, wish: Wish, returns: &mut Producer<Moved>) {
    match wish {
        Wish::Return(partitions) => {
            let moved =
                partitions.into_iter().map(|partition| (partition, analyzer.take_partition(partition))).collect();
            // There is room, as the Dispatcher awaits one answer at a time. If the queue is closed the Dispatcher has
            // panicked, and its own thread surfaces the panic.
            let _ = returns.try_push(moved);
        }
        Wish::Take(moved) => {
            moved.into_iter().for_each(|(partition, state)| analyzer.put_partition(partition, state));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::queues::HARVESTS;
    use corelane_net::decode::{TCP, Transport};
    use std::thread;

    /// `limit_memory` counts on it.
    #[test]
    fn a_harvest_has_few_reports() {
        const PORTS: u16 = 5000;
        let (mut outlet, inlet) = ends(spsc::channel(64)).unwrap();
        let (mut harvests, mut harvested) = spsc::channel(HARVESTS);
        let (settings, run) = (Settings::default(), Run::new());
        let lengths = thread::scope(|scope| {
            let (settings, run) = (&settings, &run);
            scope.spawn(move || {
                sub_analysis(settings, run, inlet, &mut |harvest| drop(harvests.push(harvest)), || u64::MAX)
            });
            // One partition, whose attempts all fail at the end.
            let syn = |destination_port| Transport {
                source: 9,
                destination: 3,
                source_port: 1000,
                destination_port,
                protocol: TCP,
                flags: 2,
                hops: 64,
                is_at_zero: false,
            };
            (1..=PORTS).for_each(|port| outlet.send(&[Slot::v4(&run.keys, 0, 60, &syn(port))]));
            drop(outlet);
            std::iter::from_fn(|| Some(harvested.pop().ok()?.reports.len())).collect::<Vec<_>>()
        });
        assert_eq!(lengths.iter().sum::<usize>(), usize::from(PORTS));
        assert!(lengths.iter().all(|&length| length <= TOGETHER), "{lengths:?}");
    }

    #[test]
    fn the_wait_for_partitions_is_counted() {
        const NAP: Duration = Duration::from_millis(20);
        // The nap may be half over when the wait begins; not always.
        assert!((0..100).any(|_| wait_for_partitions(NAP) >= NAP));
    }

    /// The time that a Dispatcher counts as waited, for a SubAnalyzer that sleeps for `nap` first.
    fn wait_for_partitions(nap: Duration) -> Duration {
        let (outlet, mut inlet) = ends(spsc::channel(64)).unwrap();
        let (settings, run) = (Settings::default(), Run::new());
        let mut shares = Shares::new(Sharing::Even, &settings, &run, vec![outlet]);
        shares.take(0, 3);
        shares.receive(false);
        assert_eq!(shares.outlets[0].waited, Duration::ZERO);
        thread::scope(|scope| {
            scope.spawn(|| {
                let order = inlet.orders.pop().expect("an order");
                thread::sleep(nap);
                obey(&mut SubAnalyzer::new(&settings, &run), order.wish, &mut inlet.returns);
            });
            shares.receive(true);
        });
        assert_eq!(shares.awaited, None);
        shares.outlets[0].waited
    }
}
