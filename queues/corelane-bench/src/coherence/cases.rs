//! The cases to count: every queue, in several runs.

use super::guest;
use super::turns::{bare_words, batches_of_vectors, by_ticket, follow_ups_of_puts, follow_ups_of_takes, shared};
use super::{BATCH, CAPACITY, Rounds, laps};
use crate::contenders::messages::{Messages, fastflow_short, stream};
use crate::contenders::{
    self as queues, Kind, PAPER_BATCH, PAPER_TICKS, Queue, crates, designs, these_crates, unbounded,
};
use crate::item::{Block, Item};
use corelane::handoff::{Fairness, TransferQueue};
use corelane::mpmc;
use corelane_papers::fast_forward::Slip;

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

/// Plays a case inside the emulator, with few items if the run only checks that it works. Returns how many items were
/// counted.
type Play = Box<dyn Fn(Amount) -> u64>;

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
    play: Play,
}

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Full,
    /// Only enough to check that the papers' figures run.
    Quick,
}

impl Case {
    /// Whether the counts of this case are kept. They are for our own queues and for the directory's own test.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.part, Part::Table | Part::FollowUps) && self.kind != Kind::Crate
    }
}

/// The run that fills and drains.
pub(crate) const FILL: &str = "filled, drained";
const ONE: &str = "one at a time";
/// These runs, and the items of a turn.
const RUNS: [(usize, &str); 2] = [(CAPACITY, FILL), (1, ONE)];

/// Items a turn in the figures.
pub(crate) const TURNS: [usize; 5] = [1, 10, 50, 200, 2000];
/// The name of the run of a figure that has no turns.
pub(crate) const FREE: &str = "at once";

/// The cases so far.
#[derive(Default)]
struct Cases(Vec<Case>);

impl Cases {
    fn add(&mut self, queue: &str, kind: Kind, run: impl Into<String>, play: impl Fn() -> u64 + 'static) -> &mut Case {
        let (queue, run) = (queue.to_owned(), run.into());
        let case = Case { part: Part::Table, queue, kind, run, bytes: 8, putters: 1, play: Box::new(move |_| play()) };
        self.0.push(case);
        self.0.last_mut().expect("just pushed")
    }

    /// One call an item.
    fn single<T: Item>(&mut self, queue: &Queue<T>, runs: &[(usize, &str)]) {
        for &(a_turn, run) in runs {
            let runs = queue.runs.clone();
            let play = move || runs.in_turns(CAPACITY, a_turn, laps(CAPACITY, a_turn));
            self.add(&queue.name, queue.kind, run, play).bytes = T::BYTES;
        }
    }

    /// A slice a call.
    fn batches(&mut self, queue: &Queue<u64>) {
        if let Ok(slices) = queue.slices.clone() {
            let play = move || slices.in_turns(CAPACITY, laps(CAPACITY, BATCH));
            self.add(&queue.name, queue.kind, format!("batches of {BATCH}"), play);
        }
    }

    /// Larger items of the safe designs.
    fn size<T: Item>(&mut self) {
        // One at a time, a larger item moves at least its own line, apart from the line that announces it.
        let runs = if T::BYTES == 64 { &RUNS[..] } else { &RUNS[..1] };
        designs().iter().chain(&unbounded()).for_each(|queue: &Queue<T>| self.single(queue, runs));
    }

    fn messages(&mut self, queue: Messages) {
        for (a_turn, run) in RUNS {
            let runs = queue.runs.clone();
            self.add(queue.name, queue.kind, run, move || runs.in_turns(a_turn, laps(CAPACITY, a_turn)));
        }
    }

    /// A queue of `mpmc`, or another one: its turns by the number of threads a side and the calls of a turn, and a
    /// batch.
    fn many(&mut self, name: &str, play: impl Fn([usize; 3]) -> u64 + Copy + 'static, batch: fn() -> u64) {
        for (sides, a_turn, run) in [(1, CAPACITY, FILL), (1, 1, ONE), (2, 1, "one at a time, 2 and 2 threads")] {
            self.add(name, Kind::Corelane, run, move || play([sides, sides, a_turn])).putters = sides;
        }
        self.add(name, Kind::Corelane, format!("batches of {BATCH}"), batch);
    }

    fn mpmc<D: mpmc::Design<u64>>(&mut self, name: &str)
    where
        D::Body: 'static,
    {
        fn make<D: mpmc::Design<u64>>() -> mpmc::Queue<u64, D> {
            mpmc::any_queue(CAPACITY, mpmc::Options::new()).expect("there is memory")
        }
        let play = |shape| {
            let push = |queue: &mpmc::Queue<u64, D>| queue.try_push(7).expect("there is room");
            shared(make::<D>, shape, push, |queue| queue.try_pop().is_ok())
        };
        self.many(name, play, || {
            let queue = &guest::made(make::<D>);
            batches_of_vectors(
                |items| queue.try_push_batch(items).expect("there is room"),
                |items| queue.try_pop_batch(items, BATCH).unwrap_or(0),
            )
        });
    }

    /// A queue in a figure of a paper.
    fn figure(&mut self, part: Part, queues: impl IntoIterator<Item = Queue<u64>>) {
        let capacity = if part == Part::Figure11 { 2000 } else { 2048 };
        for queue in queues {
            let mut add = |run: String, play: Play| {
                let case = self.add(&queue.name, queue.kind, run, || 0);
                (case.part, case.play) = (part, play);
            };
            for a_turn in TURNS {
                let queue = queue.clone();
                let play = move |amount| {
                    // Few turns: a switch of threads takes long in the emulator.
                    let a_turn = if amount == Amount::Full { a_turn } else { a_turn.clamp(QUICK / 6, QUICK) };
                    let rounds = rounds(capacity, a_turn, amount);
                    match part {
                        Part::Table3 => queue.words().fan_in_turns(7, capacity, a_turn, rounds),
                        _ => queue.runs.in_turns(capacity, a_turn, rounds),
                    }
                };
                add(a_turn.to_string(), Box::new(play));
            }
            if part != Part::Table3 {
                let queue = queue.clone();
                let items = |amount| if amount == Amount::Full { 20_000 } else { QUICK as u64 };
                add(FREE.to_owned(), Box::new(move |amount| queue.words().at_once(capacity, items(amount))));
            }
        }
    }
}

/// The items of a quick run: more than the largest batch, so that some become visible.
const QUICK: usize = 600;

/// The rounds for a figure's turns.
fn rounds(capacity: usize, a_turn: usize, amount: Amount) -> Rounds {
    let few = QUICK.div_ceil(a_turn) as u64;
    match amount {
        Amount::Full => laps(capacity, a_turn),
        Amount::Quick => Rounds { warm: few, counted: few },
    }
}

/// A lane for each putting thread, with an end of its own for each thread.
fn lanes([sides, _, a_turn]: [usize; 3]) -> u64 {
    let (sender, receiver) = guest::made(|| mpmc::lanes::channel(CAPACITY));
    let (mut senders, mut receivers) = (vec![sender], vec![receiver]);
    for _ in 1..sides {
        senders.push(guest::made(|| senders[0].clone()));
        receivers.push(guest::made(|| receivers[0].clone()));
    }
    let mut actors = Vec::new();
    for mut sender in senders {
        actors.push(guest::puts(move || _ = (0..a_turn).all(|_| sender.try_push(7).is_ok())));
    }
    // One call more, so that a thread that drains a lane learns that it is empty.
    let calls = if a_turn == 1 { 1 } else { a_turn + 1 };
    for mut receiver in receivers {
        actors.push(guest::takes(move || (0..calls).filter(|_| receiver.try_pop().is_ok()).count() as u64));
    }
    guest::in_turns(actors, laps(CAPACITY, sides * a_turn))
}

const HANDOFFS: [(&str, Fairness); 2] = [("handoff, fair", Fairness::Fair), ("handoff, unfair", Fairness::Unfair)];

/// All cases. This program and its copy in the emulator identify a case by its position here.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Cases::default();
    for (words, run) in RUNS {
        cases.add("bare words", Kind::Roofline, run, move || bare_words(words));
    }
    for queue in designs().into_iter().chain(unbounded()) {
        cases.single(&queue, &RUNS);
        cases.batches(&queue);
    }
    cases.size::<Block<2>>();
    cases.size::<Block<3>>();
    cases.size::<Block<4>>();
    cases.size::<Block<5>>();
    cases.size::<Block<6>>();
    cases.size::<Block<8>>();
    cases.size::<Block<16>>();
    cases.size::<Block<32>>();
    cases.size::<Block<64>>();
    cases.size::<Block<128>>();
    cases.messages(stream());
    cases.messages(fastflow_short());

    cases.mpmc::<mpmc::Ticket>("mpmc ticket");
    cases.mpmc::<mpmc::Scq>("mpmc scq");
    cases.mpmc::<mpmc::MichaelScott>("mpmc michael_scott");
    cases.mpmc::<mpmc::TwoLock>("mpmc two_lock");
    cases.mpmc::<mpmc::Condvar>("mpmc condvar");
    cases.mpmc::<mpmc::BusyWait>("mpmc busy_wait");
    cases.many("mpmc lanes", lanes, || {
        let (mut sender, mut receiver) = guest::made(|| mpmc::lanes::channel(CAPACITY));
        batches_of_vectors(
            move |items| sender.try_push_batch(items).expect("there is room"),
            move |items| receiver.try_pop_batch(items, BATCH).unwrap_or(0),
        )
    });

    for (name, fairness) in HANDOFFS {
        for putters in [1, 2] {
            let run = format!("take by ticket, {putters} and {putters} threads");
            cases.add(name, Kind::Corelane, run, move || by_ticket(fairness, putters)).putters = putters;
        }
        for (what, of_these) in [("takes", follow_ups_of_takes as fn(_, _) -> _), ("puts", follow_ups_of_puts)] {
            for shape @ [tickets, attempts] in [[1, 1], [1, 100], [8, 1], [8, 100]] {
                let run = format!("{what} that wait: {tickets}, each asks {attempts} times");
                cases.add(name, Kind::Corelane, run, move || of_these(fairness, shape)).part = Part::FollowUps;
            }
        }
    }
    for (a_turn, run) in RUNS {
        cases.add("TransferQueue", Kind::Corelane, run, move || {
            let push = |queue: &TransferQueue<u64>| queue.push(7).expect("it is open");
            shared(TransferQueue::new, [1, 1, a_turn], push, |queue| queue.try_take().is_ok())
        });
    }

    let adaptive = |batch| queues::b_queue_adaptive(batch, PAPER_TICKS);
    let printed = [
        queues::basic_ring(),
        queues::lock_ring(),
        queues::mc_ring(50),
        queues::fast_forward(),
        queues::b_queue_without(64),
        adaptive(64),
    ];
    for queue in printed.into_iter().chain(crates()) {
        cases.single(&queue, &RUNS);
        cases.batches(&queue);
    }

    let baseline = [queues::basic_ring(), queues::fast_forward(), queues::mc_ring(50)];
    cases.figure(Part::Figure11, baseline.into_iter().chain(designs()).chain(these_crates(&["rtrb"])));
    for part in [Part::Table2, Part::Table3] {
        // Time in the emulator is not a processor's, so the slip is the one that its paper suggests.
        let fast_forward = queues::fast_forward_tuned(Slip::suggested(0, 64));
        let printed = [fast_forward, queues::mc_ring(PAPER_BATCH), adaptive(PAPER_BATCH)];
        cases.figure(part, printed.into_iter().chain(designs()));
    }
    cases.0
}

/// Plays these cases, inside the emulator.
pub(super) fn play(cases: &[Case], chosen: &[usize], amount: Amount) {
    for &case in chosen {
        guest::count(case, || (cases[case].play)(amount));
    }
}
