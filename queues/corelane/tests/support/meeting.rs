//! The synchronous queue and the transfer queue, by the same trait.

use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{PutTicket, SynchronousQueue, TakeTicket, TransferQueue, WaitLimit};

/// What both queues can do.
#[allow(dead_code, reason = "not every suite calls all")]
pub(crate) trait Queue<T: Send>: Sync {
    /// Whether items may be left, which come out after a close.
    const DRAINS: bool;

    fn try_put(&self, item: T) -> Result<(), TryPushError<T>>;
    fn try_take(&self) -> Result<T, TryPopError>;
    fn try_take_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;
    fn put_with(&self, item: T, limit: &WaitLimit<'_>) -> Result<(), PushTimeoutError<T>>;
    fn take_with(&self, limit: &WaitLimit<'_>) -> Result<T, PopTimeoutError>;
    fn reserve_put(&self, item: T) -> PutTicket<'_, T>;
    fn reserve_take(&self) -> TakeTicket<'_, T>;
    fn waiting_takes(&self) -> usize;
    fn nodes(&self) -> usize;
    fn close(&self);
    fn is_closed(&self) -> bool;
    /// Items that wait, left or not.
    fn puts(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn try_put_batch(&self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>>;
    /// Leaves the item, or gives it back where none may be left.
    fn leave(&self, item: T) -> Result<(), T>;
}

macro_rules! queue {
    ($queue:ident, $drains:literal, $($more:tt)*) => {
        impl<T: Send> Queue<T> for $queue<T> {
            const DRAINS: bool = $drains;

            queue! { @
                try_put(item: T) -> Result<(), TryPushError<T>>;
                try_take() -> Result<T, TryPopError>;
                try_take_batch(items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;
                put_with(item: T, limit: &WaitLimit<'_>) -> Result<(), PushTimeoutError<T>>;
                take_with(limit: &WaitLimit<'_>) -> Result<T, PopTimeoutError>;
                reserve_put(item: T) -> PutTicket<'_, T>;
                reserve_take() -> TakeTicket<'_, T>;
                waiting_takes() -> usize;
                nodes() -> usize;
                close() -> ();
                is_closed() -> bool;
            }
            $($more)*
        }
    };
    (@ $($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        $(fn $call(&self $(, $argument: $type)*) -> $answer {
            Self::$call(self $(, $argument)*)
        })+
    };
}

queue! {
    SynchronousQueue, false,
    fn puts(&self) -> usize {
        self.waiting_puts()
    }

    fn is_empty(&self) -> bool {
        self.waiting_puts() == 0
    }

    fn try_put_batch(&self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
        self.try_put_batch(items)
    }

    fn leave(&self, item: T) -> Result<(), T> {
        Err(item)
    }
}

queue! {
    TransferQueue, true,
    fn puts(&self) -> usize {
        self.len()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn try_put_batch(&self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
        let all = items.len();
        for count in 0..all {
            let why = match self.try_put(items.remove(0)) {
                Ok(()) => continue,
                Err(TryPushError::Full(item)) => (TryPushError::Full(()), item),
                Err(TryPushError::Closed(item)) => (TryPushError::Closed(()), item),
                Err(error) => panic!("{error}"),
            };
            items.insert(0, why.1);
            return if count == 0 { Err(why.0) } else { Ok(count) };
        }
        Ok(all)
    }

    fn leave(&self, item: T) -> Result<(), T> {
        self.push(item).map_err(|closed| closed.0)
    }
}

/// A ticket of either side.
#[allow(dead_code, reason = "not every suite keeps some")]
pub(crate) enum Ticket<'q, T: Send> {
    Put(PutTicket<'q, T>),
    Take(TakeTicket<'q, T>),
}
