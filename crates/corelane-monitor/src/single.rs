//! The three stages in one thread: the meaning of `--analyzers 0`, and the baseline of every parallel run.

use crate::analyzer::SubAnalyzer;
use crate::dispatch::Dispatcher;
use crate::main_analyzer::MainAnalyzer;
use crate::report::Report;
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::Slot;
use crate::source::{Progress, Source};
use corelane_net::capture::Record;

/// Slots that are gathered before they are processed. They are 32 kB, which fit into the first cache, and the walk
/// through the capture is then long enough for the processor to fetch it ahead.
const BATCH: usize = 1024;

/// Records between two looks at [`Progress`].
const READ: usize = 4096;

struct Single {
    dispatcher: Dispatcher,
    analyzer: SubAnalyzer,
    main: MainAnalyzer,
    batch: [Slot; BATCH],
    filled: usize,
}

impl Single {
    #[inline(always)]
    fn record(&mut self, record: &Record<'_>) {
        let Single { dispatcher, analyzer, batch, filled, .. } = self;
        dispatcher.record(record, |_, slot| {
            batch[*filled % BATCH] = slot;
            *filled += 1;
            if *filled == BATCH {
                analyzer.process(&batch[..]);
                *filled = 0;
            }
        });
    }

    fn take_reports(&mut self) {
        self.analyzer.take_reports().for_each(|report| self.main.state_report(report));
    }
}

/// Analyses the records of all sources, as one capture in this order, in this thread.
///
/// Returns early, with the results so far, when `progress` says stop. `damage` gets each error and the number of the
/// source it is in; the report covers everything that was whole.
pub fn run_single<S: Source>(
    sources: impl IntoIterator<Item = S>,
    settings: &Settings,
    progress: &Progress,
    mut damage: impl FnMut(usize, S::Error),
) -> Report {
    let run = Run::new();
    let mut single = Single {
        dispatcher: Dispatcher::new(&run, settings),
        analyzer: SubAnalyzer::new(settings, &run),
        main: MainAnalyzer::new(settings),
        batch: [Slot::default(); BATCH],
        filled: 0,
    };
    'sources: for (number, mut source) in sources.into_iter().enumerate() {
        loop {
            if progress.is_stopped() {
                break 'sources;
            }
            match source.read(READ, |record| single.record(&record)) {
                Ok(0) => break,
                Ok(_) => {
                    single.take_reports();
                    progress.set(single.dispatcher.packets(), single.dispatcher.bytes());
                }
                Err(error) => damage(number, error),
            }
        }
    }
    single.analyzer.process(&single.batch[..single.filled]);
    let result = single.analyzer.finish(single.dispatcher.max_time());
    single.take_reports();
    single.main.partial_result(result);
    single.main.finish(&single.dispatcher)
}
