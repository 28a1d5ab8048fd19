//! The cases to count: every queue, in several runs.

use super::guest::{self, Rounds, at_once, in_turns, made, puts, takes};
use crate::contender::{Batches, Ends, Kind, Messages, Pair};
use crate::contenders::{
    FastFlowShort, FastForward, FastForwardTuned, Linked, McRingBuffer, PaperBQueue, PaperBQueueAdaptive, Rtrb, Stream,
    each, each_crate, each_crate_with_batches, each_design,
};
use crate::item::{Block, Item};
use corelane::handoff::{Fairness, SynchronousQueue, TakeTicket, TransferQueue};
use corelane::mpmc;
use corelane_papers::b_queue::{Adaptive, NoBacktracking};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many items a queue holds, unless a figure says otherwise.
const CAPACITY: usize = 1024;
/// How many items a batch has.
const BATCH: usize = 64;

/// The purpose of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A row of the table.
    Table,
    /// Waiting requests that ask whether they were met.
    FollowUps,
    /// Figure 11 of the MCRingBuffer paper.
    Figure11,
    /// Table 2 of the B-Queue paper: one queue.
    Table2,
    /// Table 3 of the B-Queue paper: seven queues.
    Table3,
}

/// One run of one queue.
pub(crate) struct Case {
    pub(crate) part: Part,
    pub(crate) queue: String,
    pub(crate) kind: Kind,
    /// The name of the run.
    pub(crate) run: String,
    /// The size of an item.
    pub(crate) bytes: usize,
    /// How many threads put. The others take.
    pub(crate) putters: usize,
    /// Plays the case inside the emulator, with few items if the run only checks that it works. Returns how many items
    /// were counted.
    pub(crate) play: Box<dyn Fn(Amount) -> u64>,
}

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Full,
    /// Only enough to check that the papers' figures run.
    Quick,
}

impl Case {
    fn new(queue: impl Into<String>, kind: Kind, run: impl Into<String>, play: impl Fn() -> u64 + 'static) -> Self {
        let (queue, run) = (queue.into(), run.into());
        Case { part: Part::Table, queue, kind, run, bytes: 8, putters: 1, play: Box::new(move |_| play()) }
    }

    /// Whether the counts of this case are kept. They are for our own queues and for the directory's own test.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.part, Part::Table | Part::FollowUps) && self.kind != Kind::Crate
    }

    fn part(self, part: Part) -> Self {
        Case { part, ..self }
    }

    fn bytes(self, bytes: usize) -> Self {
        Case { bytes, ..self }
    }

    fn putters(self, putters: usize) -> Self {
        Case { putters, ..self }
    }
}

/// The run that fills and drains.
pub(crate) const FILL: &str = "filled, drained";
const ONE: &str = "one at a time";

/// Several laps of a queue, in turns of `a_turn` items.
fn laps(capacity: usize, a_turn: usize) -> Rounds {
    let lap = capacity.div_ceil(a_turn) as u64;
    Rounds { warm: 2 * lap, counted: 2 * lap }
}

/// An end, and the number of its next item.
struct Numbered<E, S> {
    end: E,
    next: u64,
    stock: S,
}

impl<E, S> Numbered<E, S> {
    fn new(end: E, stock: S) -> Self {
        Numbered { end, next: 0, stock }
    }
}

/// The capacity of the one queue whose capacity is a constant.
const CONSTANT: usize = 2048;

fn pair<P: Pair<T>, T: Item>(capacity: usize) -> Ends<P, T> {
    made(|| P::pair(capacity).or_else(|_| P::pair(CONSTANT)))
        .unwrap_or_else(|unable| panic!("{}: {}", P::name(), unable.0))
}

/// Turns of up to `a_turn` calls. A side that cannot put, or finds nothing to take, ends its turn early.
fn one_by_one<P: Pair<T>, T: Item>(capacity: usize, a_turn: usize, rounds: Rounds) -> u64
where
    T::Stock: Send,
{
    let (tx, rx) = pair::<P, T>(capacity);
    let (mut tx, mut rx) = (Numbered::new(tx, T::stock()), Numbered::new(rx, ()));
    let actors = vec![puts(move || put::<P, T>(&mut tx, a_turn)), takes(move || take::<P, T>(&mut rx, a_turn))];
    in_turns(actors, rounds)
}

fn put<P: Pair<T>, T: Item>(tx: &mut Numbered<P::Tx, T::Stock>, most: usize) {
    for _ in 0..most {
        if !P::try_push(&mut tx.end, T::numbered(&tx.stock, tx.next)) {
            break;
        }
        tx.next += 1;
    }
}

fn take<P: Pair<T>, T: Item>(rx: &mut Numbered<P::Rx, ()>, most: usize) -> u64 {
    let first = rx.next;
    // One call more than there may be items, so that a thread that drains a queue learns that it is empty.
    for _ in 0..if most == 1 { 1 } else { most + 1 } {
        let Some(item) = P::try_pop(&mut rx.end) else { break };
        assert_eq!(item.says(), T::due(rx.next), "{}", P::name());
        rx.next += 1;
    }
    rx.next - first
}

/// Turns of a slice of `BATCH` items.
fn in_batches<P: Batches<u64>>() -> u64 {
    let (tx, rx) = pair::<P, u64>(CAPACITY);
    let (mut tx, mut rx) = (Numbered::new(tx, ()), Numbered::new(rx, ()));
    let put = move || {
        let items: [u64; BATCH] = std::array::from_fn(|i| tx.next + i as u64);
        tx.next += P::push_slice(&mut tx.end, &items) as u64;
    };
    let take = move || {
        let mut items = [0; BATCH];
        let popped = P::pop_slice(&mut rx.end, &mut items);
        assert!(items[..popped].iter().copied().eq(rx.next..rx.next + popped as u64), "{}", P::name());
        rx.next += popped as u64;
        popped as u64
    };
    in_turns(vec![puts(put), takes(take)], laps(CAPACITY, BATCH))
}

/// Turns of `a_turn` messages of 8 bytes.
fn messages<M: Messages>(a_turn: usize) -> u64 {
    let (tx, rx) = made(|| M::pair(8)).unwrap_or_else(|unable| panic!("{}: {}", M::name(), unable.0));
    let (mut tx, mut rx) = (Numbered::new(tx, ()), Numbered::new(rx, ()));
    let put = move || {
        for _ in 0..a_turn {
            // The length comes first, because one of the queues expects it there.
            let message = [8, 0, 0, 0, tx.next as u8, (tx.next >> 8) as u8, 0, 0];
            assert!(M::try_push(&mut tx.end, &message), "{}", M::name());
            tx.next += 1;
        }
    };
    let take = move || {
        let first = rx.next;
        while rx.next - first < a_turn as u64 {
            let number = rx.next;
            let right = |message: &[u8]| message[4..6] == [number as u8, (number >> 8) as u8];
            match M::try_pop(&mut rx.end, right) {
                Some(right) => assert!(right, "{}", M::name()),
                None => break,
            }
            rx.next += 1;
        }
        rx.next - first
    };
    in_turns(vec![puts(put), takes(take)], laps(CAPACITY, a_turn))
}

/// A queue that all threads share. Each turn of a thread, whether it puts or takes, is `a_turn` calls.
fn shared<Q: Sync>(
    make: impl FnOnce() -> Q,
    [putters, takers, a_turn]: [usize; 3],
    put: impl Fn(&Q) + Sync,
    take: impl Fn(&Q) -> bool + Sync,
) -> u64 {
    let queue = &made(make);
    let (put, take) = (&put, &take);
    let mut actors = Vec::new();
    actors.extend((0..putters).map(|_| puts(move || (0..a_turn).for_each(|_| put(queue)))));
    actors.extend((0..takers).map(|_| takes(move || (0..a_turn).filter(|_| take(queue)).count() as u64)));
    in_turns(actors, laps(CAPACITY, putters * a_turn))
}

/// Turns of `BATCH` items, out of one vector and into another.
fn batches_of_vectors(
    mut push: impl FnMut(&mut Vec<u64>) -> usize + Send,
    mut pop: impl FnMut(&mut Vec<u64>) -> usize + Send,
) -> u64 {
    let [mut supply, mut taken] = [(); 2].map(|()| made(|| Vec::with_capacity(BATCH)));
    let put = move || {
        supply.extend(0..BATCH as u64);
        assert_eq!(push(&mut supply), BATCH);
    };
    let take = move || {
        taken.clear();
        pop(&mut taken) as u64
    };
    in_turns(vec![puts(put), takes(take)], laps(CAPACITY, BATCH))
}

fn each_shared<D: mpmc::Design<u64>>(cases: &mut Vec<Case>, name: &'static str)
where
    D::Body: 'static,
{
    type Queue<D> = mpmc::Queue<u64, D>;
    fn make<D: mpmc::Design<u64>>() -> Queue<D> {
        mpmc::any_queue(CAPACITY, mpmc::Options::new()).expect("there is memory")
    }
    let single = |shape| {
        shared(
            make::<D>,
            shape,
            |queue: &Queue<D>| queue.try_push(7).expect("there is room"),
            |queue: &Queue<D>| queue.try_pop().is_ok(),
        )
    };
    cases.push(Case::new(name, Kind::Corelane, FILL, move || single([1, 1, CAPACITY])));
    cases.push(Case::new(name, Kind::Corelane, ONE, move || single([1, 1, 1])));
    cases.push(Case::new(name, Kind::Corelane, "one at a time, 2 and 2 threads", move || single([2, 2, 1])).putters(2));
    cases.push(Case::new(name, Kind::Corelane, format!("batches of {BATCH}"), || {
        let queue = &made(make::<D>);
        batches_of_vectors(
            |items| queue.try_push_batch(items).expect("there is room"),
            |items| queue.try_pop_batch(items, BATCH).unwrap_or(0),
        )
    }));
}

/// A lane for each putting thread: the same cases as [`each_shared`], with an end of its own for each thread.
fn lanes(cases: &mut Vec<Case>) {
    let name = "mpmc lanes";
    let play = |sides: usize, a_turn: usize| {
        let (sender, receiver) = made(|| mpmc::lanes::channel(CAPACITY));
        let (mut senders, mut receivers) = (vec![sender], vec![receiver]);
        for _ in 1..sides {
            senders.push(made(|| senders[0].clone()));
            receivers.push(made(|| receivers[0].clone()));
        }
        let mut actors = Vec::new();
        for mut sender in senders {
            actors.push(puts(move || _ = (0..a_turn).all(|_| sender.try_push(7).is_ok())));
        }
        // As in `take`: one call more, so that a thread that drains a lane learns that it is empty.
        let calls = if a_turn == 1 { 1 } else { a_turn + 1 };
        for mut receiver in receivers {
            actors.push(takes(move || (0..calls).filter(|_| receiver.try_pop().is_ok()).count() as u64));
        }
        in_turns(actors, laps(CAPACITY, sides * a_turn))
    };
    cases.push(Case::new(name, Kind::Corelane, FILL, move || play(1, CAPACITY)));
    cases.push(Case::new(name, Kind::Corelane, ONE, move || play(1, 1)));
    cases.push(Case::new(name, Kind::Corelane, "one at a time, 2 and 2 threads", move || play(2, 1)).putters(2));
    cases.push(Case::new(name, Kind::Corelane, format!("batches of {BATCH}"), || {
        let (mut sender, mut receiver) = made(|| mpmc::lanes::channel(CAPACITY));
        batches_of_vectors(
            move |items| sender.try_push_batch(items).expect("there is room"),
            move |items| receiver.try_pop_batch(items, BATCH).unwrap_or(0),
        )
    }));
}

/// A take that waits, as a ticket, and a put that meets it.
fn by_ticket(fairness: Fairness, putters: usize) -> u64 {
    let queue = &made(|| SynchronousQueue::new(fairness));
    let take = || {
        let mut ticket = None::<TakeTicket<'_, u64>>;
        takes(move || {
            let taken = ticket.take().is_some_and(|mut ticket| ticket.try_followup() == Some(Ok(7)));
            ticket = Some(queue.reserve_take());
            taken.into()
        })
    };
    let mut actors = Vec::new();
    // In the first round no thread waits yet.
    actors.extend((0..putters).map(|_| puts(move || _ = queue.try_put(7))));
    actors.extend((0..putters).map(|_| take()));
    in_turns(actors, laps(CAPACITY, putters))
}

/// The most remote accesses that all failed follow-ups to one ticket may make together. In a fair queue the next
/// request is linked to the ticket, once.
pub(crate) const MOST_REMOTE: f64 = 1.0;
/// How many further requests come and go while requests wait.
const COMINGS: u64 = 8;

/// Lets requests wait, each asking `attempts` times between any two events. Returns the number of requests. At an event
/// one more request comes, and a call of the other kind meets one that is not among the waiting requests.
fn follow_ups<T: Send>(
    reserve: impl Fn() -> T + Copy + Send,
    is_met: impl Fn(&mut T) -> bool + Copy + Send,
    meet: impl Fn() + Send,
    [tickets, attempts]: [usize; 2],
) -> u64 {
    let mut others = Vec::new();
    let mut actors = vec![puts(move || {
        if others.is_empty() {
            // A fair queue meets these requests first. An unfair queue meets the ones that come later.
            others.extend((0..COMINGS).map(|_| reserve()));
        } else {
            others.push(reserve());
            meet();
        }
    })];
    actors.extend((0..tickets).map(|_| {
        let mut ticket = None;
        takes(move || {
            match &mut ticket {
                None => ticket = Some(reserve()),
                Some(ticket) => (0..attempts).for_each(|_| assert!(!is_met(ticket))),
            }
            0
        })
    }));
    // In the first round every ticket is made.
    in_turns(actors, Rounds { warm: 1, counted: COMINGS });
    tickets as u64
}

fn follow_ups_of_takes(fairness: Fairness, shape: [usize; 2]) -> u64 {
    let queue = &made(|| SynchronousQueue::new(fairness));
    let meet = || queue.try_put(7).expect("takes wait");
    follow_ups(|| queue.reserve_take(), |ticket| ticket.try_followup().is_some(), meet, shape)
}

fn follow_ups_of_puts(fairness: Fairness, shape: [usize; 2]) -> u64 {
    let queue = &made(|| SynchronousQueue::new(fairness));
    let meet = || assert_eq!(queue.try_take(), Ok(7));
    follow_ups(|| queue.reserve_put(7), |ticket| ticket.try_followup().is_some(), meet, shape)
}

/// Words that one thread writes and another reads, in turns. The directory's counts for them are known in advance.
fn bare_words(words: usize) -> u64 {
    let words: &[AtomicU64] = &made(|| (0..words).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let put = || words.iter().for_each(|word| word.store(7, Relaxed));
    let take = || words.iter().filter(|word| word.load(Relaxed) == 7).count() as u64;
    in_turns(vec![puts(put), takes(take)], laps(CAPACITY, words.len()))
}

/// One thread to several, with a queue to each: turns of `a_turn` items a queue.
fn fan<P: Pair<u64>>(queues: usize, capacity: usize, a_turn: usize, rounds: Rounds) -> u64 {
    let (mut txs, mut actors) = (Vec::new(), Vec::new());
    for _ in 0..queues {
        let (tx, rx) = pair::<P, u64>(capacity);
        txs.push(Numbered::new(tx, ()));
        let mut rx = Numbered::new(rx, ());
        actors.push(takes(move || take::<P, u64>(&mut rx, a_turn)));
    }
    actors.insert(0, puts(move || txs.iter_mut().for_each(|tx| put::<P, u64>(tx, a_turn))));
    in_turns(actors, rounds)
}

/// Both threads run at once, as the papers measure.
fn free<P: Pair<u64>>(capacity: usize, items: u64) -> u64 {
    let (tx, rx) = pair::<P, u64>(capacity);
    let (mut tx, mut rx) = (Numbered::new(tx, ()), Numbered::new(rx, ()));
    let put = || {
        while tx.next < items {
            put::<P, u64>(&mut tx, 1);
        }
    };
    let take = || {
        // A form that publishes only whole batches leaves an incomplete batch invisible.
        while rx.next < items / P::GRAIN * P::GRAIN {
            take::<P, u64>(&mut rx, 1);
        }
        rx.next
    };
    at_once([puts(put), takes(take)])
}

/// Items a turn in the figures.
pub(crate) const TURNS: [usize; 5] = [1, 10, 50, 200, 2000];
/// The name of the run of a figure that has no turns.
pub(crate) const FREE: &str = "at once";

/// The rounds for a figure's turns.
fn rounds(capacity: usize, a_turn: usize, amount: Amount) -> Rounds {
    /// More than the largest batch, so that some items become visible.
    const ITEMS: usize = 600;
    let few = ITEMS.div_ceil(a_turn) as u64;
    match amount {
        Amount::Full => laps(capacity, a_turn),
        Amount::Quick => Rounds { warm: few, counted: few },
    }
}

fn figure<P: Pair<u64>>(cases: &mut Vec<Case>, part: Part) {
    let capacity = if part == Part::Figure11 { 2000 } else { 2048 };
    let mut add = |run: String, play: Box<dyn Fn(Amount) -> u64>| {
        cases.push(Case { play, ..Case::new(P::name(), P::KIND, run, || 0).part(part) });
    };
    for a_turn in TURNS {
        let play = move |amount| {
            let rounds = rounds(capacity, a_turn, amount);
            match part {
                Part::Table3 => fan::<P>(7, capacity, a_turn, rounds),
                _ => one_by_one::<P, u64>(capacity, a_turn, rounds),
            }
        };
        add(a_turn.to_string(), Box::new(play));
    }
    if part != Part::Table3 {
        let items = |amount| if amount == Amount::Full { 20_000 } else { 2000 };
        add(FREE.to_owned(), Box::new(move |amount| free::<P>(capacity, items(amount))));
    }
}

/// All cases. This program and its copy in the emulator identify a case by its position here.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = table();
    for (name, fairness) in [("handoff, fair", Fairness::Fair), ("handoff, unfair", Fairness::Unfair)] {
        for (what, of_these) in [("takes", follow_ups_of_takes as fn(_, _) -> _), ("puts", follow_ups_of_puts)] {
            for shape @ [tickets, attempts] in [[1, 1], [1, 100], [8, 1], [8, 100]] {
                let run = format!("{what} that wait: {tickets}, each asks {attempts} times");
                let play = move || of_these(fairness, shape);
                cases.push(Case::new(name, Kind::Corelane, run, play).part(Part::FollowUps));
            }
        }
    }
    each!([BasicRingBuffer, FastForward] P => figure::<P>(&mut cases, Part::Figure11));
    figure::<McRingBuffer<50>>(&mut cases, Part::Figure11);
    each_design!(P => figure::<P>(&mut cases, Part::Figure11));
    figure::<Rtrb>(&mut cases, Part::Figure11);
    for part in [Part::Table2, Part::Table3] {
        figure::<FastForwardTuned>(&mut cases, part);
        figure::<McRingBuffer<256>>(&mut cases, part);
        figure::<PaperBQueueAdaptive>(&mut cases, part);
        each_design!(P => figure::<P>(&mut cases, part));
    }
    cases
}

/// All cases of the table.
fn table() -> Vec<Case> {
    let mut cases = Vec::new();
    for (words, run) in [(CAPACITY, FILL), (1, ONE)] {
        cases.push(Case::new("bare words", Kind::Roofline, run, move || bare_words(words)));
    }
    each_design!(P => spsc::<P>(&mut cases));
    spsc::<Linked>(&mut cases);
    for (a_turn, run) in [(CAPACITY, FILL), (1, ONE)] {
        cases.push(Case::new(Stream::name(), Kind::Corelane, run, move || messages::<Stream>(a_turn)));
        cases.push(Case::new(FastFlowShort::name(), Kind::Paper, run, move || messages::<FastFlowShort>(a_turn)));
    }

    each_shared::<mpmc::Ticket>(&mut cases, "mpmc ticket");
    each_shared::<mpmc::Scq>(&mut cases, "mpmc scq");
    each_shared::<mpmc::MichaelScott>(&mut cases, "mpmc michael_scott");
    each_shared::<mpmc::TwoLock>(&mut cases, "mpmc two_lock");
    each_shared::<mpmc::Condvar>(&mut cases, "mpmc condvar");
    each_shared::<mpmc::BusyWait>(&mut cases, "mpmc busy_wait");
    lanes(&mut cases);

    for (name, fairness) in [("handoff, fair", Fairness::Fair), ("handoff, unfair", Fairness::Unfair)] {
        for putters in [1, 2] {
            let run = format!("take by ticket, {putters} and {putters} threads");
            cases.push(Case::new(name, Kind::Corelane, run, move || by_ticket(fairness, putters)).putters(putters));
        }
    }
    for (a_turn, run) in [(CAPACITY, FILL), (1, ONE)] {
        cases.push(Case::new("TransferQueue", Kind::Corelane, run, move || {
            let push = |queue: &TransferQueue<u64>| queue.push(7).expect("it is open");
            shared(TransferQueue::new, [1, 1, a_turn], push, |queue| queue.try_take().is_ok())
        }));
    }

    each!([BasicRingBuffer, LockRingBuffer] P => single::<P>(&mut cases));
    single::<McRingBuffer<50>>(&mut cases);
    single::<FastForward>(&mut cases);
    single::<PaperBQueue<NoBacktracking, 64>>(&mut cases);
    single::<PaperBQueue<Adaptive, 64>>(&mut cases);

    each_crate!(P => single::<P>(&mut cases));
    each_crate_with_batches!(P => batches::<P>(&mut cases));
    sizes::<Rtrb>(&mut cases);
    cases
}

/// The cases of a safe design: items of 8 bytes in all runs, larger items in one run.
fn spsc<P>(cases: &mut Vec<Case>)
where
    P: Batches<u64>
        + Pair<Block<2>>
        + Pair<Block<3>>
        + Pair<Block<4>>
        + Pair<Block<5>>
        + Pair<Block<6>>
        + Pair<Block<8>>
        + Pair<Block<16>>
        + Pair<Block<32>>
        + Pair<Block<64>>
        + Pair<Block<128>>,
{
    single::<P>(cases);
    batches::<P>(cases);
    sizes::<P>(cases);
}

fn single<P: Pair<u64>>(cases: &mut Vec<Case>) {
    for (a_turn, run) in [(CAPACITY, FILL), (1, ONE)] {
        cases.push(Case::new(P::name(), P::KIND, run, move || {
            one_by_one::<P, u64>(CAPACITY, a_turn, laps(CAPACITY, a_turn))
        }));
    }
}

fn batches<P: Batches<u64>>(cases: &mut Vec<Case>) {
    cases.push(Case::new(P::name(), P::KIND, format!("batches of {BATCH}"), in_batches::<P>));
}

fn sizes<P>(cases: &mut Vec<Case>)
where
    P: Pair<Block<2>>
        + Pair<Block<3>>
        + Pair<Block<4>>
        + Pair<Block<5>>
        + Pair<Block<6>>
        + Pair<Block<8>>
        + Pair<Block<16>>
        + Pair<Block<32>>
        + Pair<Block<64>>
        + Pair<Block<128>>,
{
    size::<P, 2>(cases);
    size::<P, 3>(cases);
    size::<P, 4>(cases);
    size::<P, 5>(cases);
    size::<P, 6>(cases);
    size::<P, 8>(cases);
    size::<P, 16>(cases);
    size::<P, 32>(cases);
    size::<P, 64>(cases);
    size::<P, 128>(cases);
}

fn size<P: Pair<Block<WORDS>>, const WORDS: usize>(cases: &mut Vec<Case>) {
    // One at a time, a larger item moves at least its own line, apart from the line that announces it.
    let runs: &[_] = if WORDS == 8 { &[(CAPACITY, FILL), (1, ONE)] } else { &[(CAPACITY, FILL)] };
    for &(a_turn, run) in runs {
        let play = move || one_by_one::<P, Block<WORDS>>(CAPACITY, a_turn, laps(CAPACITY, a_turn));
        cases.push(Case::new(P::name(), P::KIND, run, play).bytes(8 * WORDS));
    }
}

/// Plays these cases, inside the emulator.
pub(super) fn play(cases: &[Case], chosen: &[usize], amount: Amount) {
    for &case in chosen {
        guest::count(case, || (cases[case].play)(amount));
    }
}
