//! Ctrl-C: the first one ends the work early, and the report is still written. The second one ends the process. And the
//! signals by which a service is asked for something.

use crate::exit::Exit;
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGQUIT, SIGUSR1};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the user or the system has ended the run. Clones see the same signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// The number of the last signal, 0 if there was none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Installs the handlers of the signals: the second one ends the process.
    pub(crate) fn install() -> Self {
        let interrupt = Interrupt::default();
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The handlers run in this order, so only the second signal finds the flag set. If the system refuses one,
            // the signal ends the process as before.
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again));
            let _ = flag::register(signal, Arc::clone(&again));
            let _ = flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize);
        }
        interrupt
    }

    /// The same for a run that has to give a terminal back: no signal ends the process before that.
    pub(crate) fn install_gently() -> Self {
        let interrupt = Interrupt::default();
        #[cfg(unix)]
        let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        #[cfg(not(unix))]
        let signals = [SIGINT, SIGTERM];
        for signal in signals {
            let _ = flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize);
        }
        interrupt
    }

    /// Whether there was a signal. The check is cheap enough for a thousand calls a second.
    pub(crate) fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// Ends the run as a signal would.
    pub(crate) fn end(&self) {
        let _ = self.signal.compare_exchange(0, SIGTERM as usize, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The exit of a run that a signal ended.
    pub(crate) fn exit(&self) -> Exit {
        match self.signal.load(Ordering::Relaxed) {
            0 => Exit::Done,
            number => Exit::Signal(u8::try_from(number).unwrap_or(0)),
        }
    }
}

/// What a live run is asked for by signals: SIGHUP to open its outputs again, SIGUSR1 to report. Clones see the same
/// requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    reopen: Request,
    report: Request,
}

impl Requests {
    /// Installs the handlers of the signals, which would end the process otherwise. For live runs only: a terminal that
    /// closes ends other runs by SIGHUP.
    ///
    /// # Errors
    ///
    /// Those of `sigaction`; then the signals end the process as before.
    #[cfg(unix)]
    pub(crate) fn install() -> std::io::Result<Self> {
        let requests = Requests::default();
        flag::register(SIGHUP, Arc::clone(&requests.reopen.is_new))?;
        flag::register(SIGUSR1, Arc::clone(&requests.report.is_new))?;
        Ok(requests)
    }

    /// How often the outputs were to be opened again. Each stream compares the number with the one it has seen.
    /// Requests between two calls count as one. The check is cheap enough for a thousand calls a second.
    pub(crate) fn reopens(&self) -> usize {
        self.reopen.count()
    }

    /// How often a report was wanted, likewise.
    pub(crate) fn reports(&self) -> usize {
        self.report.count()
    }
}

/// One of the requests.
#[derive(Clone, Debug, Default)]
struct Request {
    /// Set by the handler, which the library makes, and which can do no more.
    is_new: Arc<AtomicBool>,
    seen: Arc<AtomicUsize>,
}

impl Request {
    fn count(&self) -> usize {
        // Most calls only read. Of two threads that find the flag one takes it, and the other sees the new number in a
        // later call.
        if self.is_new.load(Ordering::Relaxed) && self.is_new.swap(false, Ordering::Relaxed) {
            self.seen.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            self.seen.load(Ordering::Relaxed)
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use signal_hook::low_level::raise;

    #[test]
    fn signals_are_counted_apart_and_end_nothing() {
        let requests = Requests::install().expect("handlers");
        let clone = requests.clone();
        assert_eq!((requests.reopens(), requests.reports()), (0, 0));
        // The signal is handled before this returns.
        raise(SIGHUP).unwrap();
        assert_eq!((clone.reopens(), clone.reports()), (1, 0));
        assert_eq!((requests.reopens(), requests.reports()), (1, 0), "the number stays, for every stream");
        raise(SIGUSR1).unwrap();
        raise(SIGHUP).unwrap();
        raise(SIGHUP).unwrap();
        assert_eq!((requests.reopens(), requests.reports()), (2, 1), "two between calls are one");
        assert_eq!((clone.reopens(), clone.reports()), (2, 1));
    }
}
