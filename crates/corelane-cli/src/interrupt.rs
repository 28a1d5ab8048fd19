//! Ctrl-C: the first one ends the work early and lets the report be written, the second one ends the process.

use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the user, or the system, wants an end. Clones look at the same signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// The number of the last signal, 0 if there was none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Takes the signals over.
    pub(crate) fn install() -> Self {
        let interrupt = Interrupt::default();
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // They run in this order, so only the second signal finds the flag set. A system that refuses leaves the
            // signal as it was: it ends the process.
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again));
            let _ = flag::register(signal, Arc::clone(&again));
            let _ = flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize);
        }
        interrupt
    }

    /// Whether there was a signal. Cheap enough to ask a thousand times a second.
    pub(crate) fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// How a run ends that was ended by it.
    pub(crate) fn exit(&self) -> Exit {
        match self.signal.load(Ordering::Relaxed) {
            0 => Exit::Done,
            number => Exit::Signal(u8::try_from(number).unwrap_or(0)),
        }
    }
}
