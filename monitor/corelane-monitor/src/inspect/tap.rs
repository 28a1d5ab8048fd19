//! Where records come from: all of the pipeline that is compiled for the type of a source. The rest is compiled once.

use super::pipeline::{Alone, Clock, Fed};
use super::share::Shares;
use super::stage::Harvest;
use crate::dispatch::Dispatcher;
use crate::source::{Silence, Source, read_ahead};

/// Records that are read at a time.
pub(super) const READ: usize = 4096;

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Records, or a source that is over, or damage, which was reported.
    Records,
    /// None: this is the time.
    Time(u64),
    /// None, nor will more come.
    End,
}

/// The sources of a Dispatcher, one after the other. Each call reads some records.
pub(super) trait Tap {
    /// For stages that decode them.
    fn items(&mut self, clock: &mut Clock, fed: &mut Fed<'_, '_>) -> Came;

    /// For stages that get them decoded.
    fn slots(&mut self, dispatcher: &mut Dispatcher, shares: &mut Shares, out: &mut dyn FnMut(Harvest)) -> Came;

    /// For all stages in one thread.
    fn alone(&mut self, clock: &mut Clock, alone: &mut Alone<'_, '_>) -> Came;
}

/// The sources of one Dispatcher, as they go to its thread: an iterator of sources may be at home in one.
pub(super) type Ring<'a> = Box<dyn FnOnce(&mut dyn FnMut(&mut dyn Tap)) + Send + 'a>;

/// The ring of these sources. `damage` gets errors, with the number of the source.
pub(super) fn ring<'a, I, S>(sources: I, damage: &'a (dyn Fn(usize, S::Error) + Sync)) -> Ring<'a>
where
    I: IntoIterator<Item = S> + Send + 'a,
    S: Source,
{
    Box::new(move |work| work(&mut Sources { rest: sources.into_iter().enumerate(), source: None, damage }))
}

struct Sources<'a, I, S: Source> {
    rest: std::iter::Enumerate<I>,
    /// The present one, with its number.
    source: Option<(usize, S)>,
    damage: &'a (dyn Fn(usize, S::Error) + Sync),
}

impl<I: Iterator<Item = S>, S: Source> Sources<'_, I, S> {
    /// Reads from the present source, or the next one.
    #[inline(always)]
    fn read(&mut self, read: impl FnOnce(&mut S) -> Result<usize, S::Error>) -> Came {
        if self.source.is_none() {
            self.source = self.rest.next();
        }
        let Some((number, source)) = &mut self.source else { return Came::End };
        match read(source) {
            Ok(0) => match source.silence() {
                Silence::Pause { time_ns } => Came::Time(time_ns),
                Silence::End { time_ns } => {
                    self.source = None;
                    time_ns.map_or(Came::Records, Came::Time)
                }
            },
            Ok(_) => Came::Records,
            Err(error) => {
                (self.damage)(*number, error);
                Came::Records
            }
        }
    }
}

impl<I: Iterator<Item = S>, S: Source> Tap for Sources<'_, I, S> {
    fn items(&mut self, clock: &mut Clock, fed: &mut Fed<'_, '_>) -> Came {
        self.read(|source| {
            fed.feed.records_in(source.memory());
            let read = read_ahead(source, READ, |record| clock.offer(&record, fed));
            fed.feed.pause(clock.dispatcher.packets() + 1);
            read
        })
    }

    fn slots(&mut self, dispatcher: &mut Dispatcher, shares: &mut Shares, out: &mut dyn FnMut(Harvest)) -> Came {
        self.read(|source| {
            let read = source.read(shares.read(), |record| {
                dispatcher.record(&record, |partition, slot| shares.push(partition, slot));
            });
            shares.after_read(read.as_ref().map_or(0, |&records| records), out);
            read
        })
    }

    fn alone(&mut self, clock: &mut Clock, alone: &mut Alone<'_, '_>) -> Came {
        self.read(|source| {
            let read = read_ahead(source, READ, |record| clock.offer(&record, alone));
            alone.pause(clock.dispatcher.packets() + 1);
            read
        })
    }
}
