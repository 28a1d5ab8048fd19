//! Ctrl-C: the first one ends the work early, and the report is still written. The second one ends the process.

use crate::exit::Exit;
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
    /// Installs the handlers of the signals.
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

    /// Whether there was a signal. The check is cheap enough for a thousand calls a second.
    pub(crate) fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// The exit of a run that a signal ended.
    pub(crate) fn exit(&self) -> Exit {
        match self.signal.load(Ordering::Relaxed) {
            0 => Exit::Done,
            number => Exit::Signal(u8::try_from(number).unwrap_or(0)),
        }
    }
}
