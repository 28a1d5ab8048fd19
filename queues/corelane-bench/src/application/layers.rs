//! Section 5.3 of the B-Queue paper: layers 2 to 7 of each packet in one stage.
//!
//! The paper's application stages have a TCP/IP stack (Libnids), a protocol identifier that does not look at ports, and
//! a parser of HTTP. Here these are [`corelane_net::conversation`] and [`corelane_net::protocol`], which also reads TLS
//! and DNS. Elements are words, as FastForward and B-Queue carry them: the number of a record in the trace, which
//! stands for the pointer to a packet, and a result.

use super::{Application, Ring, Trace, rings};
use corelane_net::capture::Record;
use corelane_net::conversation::{Conversation, Ending, Limits, Observer, Partition};
use corelane_net::decode::{Tunnel, datagram, locate};
use corelane_net::defrag;
use corelane_net::protocol::{Carrier, Event, Session};

/// Looks into the conversations of a trace.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) trace: Trace,
}

/// What a result is, by its number. 0 is the end mark.
const CONVERSATION: u64 = 1;
const KINDS: usize = 8;

/// How many results of each kind there are.
pub(crate) type Answer = [u64; KINDS];

/// Sends the results.
struct Results<'a>(&'a mut Vec<u64>);

impl Results<'_> {
    fn take(&mut self, found: &mut Vec<Event>) {
        self.0.extend(found.drain(..).map(|event| match event {
            Event::Identified(_) => 2,
            Event::Http(_) => 3,
            Event::ClientHello(_) => 4,
            Event::ServerHello(_) => 5,
            Event::Dns(_) => 6,
            _ => 7,
        }));
    }
}

impl Observer<Session> for Results<'_> {
    fn begin(&mut self, conversation: &Conversation) -> Option<Session> {
        Some(Session::new(Carrier::of(conversation)))
    }

    fn progress(&mut self, _: &Conversation, _: &mut Session, _: Option<&Tunnel>, found: &mut Vec<Event>) {
        self.take(found);
    }

    fn over(&mut self, _: &Conversation, _: &Ending, _: Option<Session>, found: &mut Vec<Event>) {
        self.0.push(CONVERSATION);
        self.take(found);
    }
}

/// The state of an application stage: the conversations, and a buffer for datagrams put together of fragments.
pub(crate) struct Stage {
    partition: Partition<Session>,
    buffer: Vec<u8>,
}

impl Application for Layers {
    type Packet = u64;
    type Report = u64;
    type Sub = Stage;
    type Local = ();
    type Main = Answer;
    type Answer = Answer;
    /// "Each thread is bound to a dedicated core" (section 5.1).
    const PINNED: bool = true;

    /// Batches of 256 to the application stages and from them.
    fn rings() -> Vec<Ring<u64, u64>> {
        rings([256, 256], (|ring| ring, |ring| ring))
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    #[inline(always)]
    fn dispatch(&self, number: usize, record: &Record<'_>) -> Option<(u128, u64)> {
        let located = locate(record.link, record.data).ok()?;
        Some((located.source.wrapping_add(located.destination), number as u64 + 1))
    }

    /// With so much memory that no conversation is evicted: which one is would depend on the number of stages.
    fn sub_analyzer(&self) -> Stage {
        let fragments = defrag::Limits::default();
        Stage { partition: Partition::new(&Limits::new(1 << 30), &fragments), buffer: Vec::new() }
    }

    fn analyse(&self, stage: &mut Stage, number: u64, results: &mut Vec<u64>) {
        let record = self.trace.record(number as usize - 1);
        if let Ok(datagram) = datagram(&record) {
            let Stage { partition, buffer } = stage;
            partition.datagram(record.time_ns, record.wire_len, &datagram, buffer, &mut Results(results));
        }
    }

    fn finish(&self, mut stage: Stage, results: &mut Vec<u64>) {
        stage.partition.finish(&mut Results(results));
    }

    #[inline(always)]
    fn aggregate(main: &mut Answer, result: u64) {
        main[result as usize % KINDS] += 1;
    }

    fn answer(main: Answer, _: Vec<()>) -> Answer {
        main
    }
}
