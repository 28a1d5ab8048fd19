//! The designs of `corelane::spsc` and of `corelane::mpmc`, a line each: what every suite over them runs over.

/// Calls `$suite!(module, Type, [flags])` for each design. The flags, in this order:
/// - `bounded`, or `unbounded` if it is never full and its constructors take no capacity;
/// - `goes_on`, or `blocks` if `try_` calls may wait for a thread that is stopped in the middle of one;
/// - `slices(name)` if items lie side by side, with the name of the suite of that.
///
/// What one suite alone has for one design, such as options, is an arm of that suite's macro.
#[allow(unused_macros, reason = "not every suite is about these")]
macro_rules! designs {
    ($suite:ident) => {
        $suite!(lane, Lane, [bounded goes_on]);
        $suite!(lamport, Lamport, [bounded goes_on slices(lamport_in_slices)]);
        $suite!(mcring, McRing, [bounded goes_on slices(mcring_in_slices)]);
        $suite!(bqueue, BQueue, [bounded goes_on]);
        $suite!(locked, Locked, [bounded blocks slices(locked_in_slices)]);
        $suite!(fastforward, FastForward, [bounded goes_on]);
        $suite!(multiline, MultiLine, [bounded goes_on slices(multiline_in_slices)]);
        $suite!(linked, Linked, [unbounded goes_on]);
    };
}

/// Calls `$suite!(module, Type, [flags])` for each design of `corelane::mpmc`. The flags, in this order:
/// - `bounded`, or `unbounded` if it is never full;
/// - `sleeps`, or `spins` if its waits do not park;
/// - `whole`, or `by_places` if others may push and pop between the items of a batch;
/// - `lock_free`, or `busy` if `try_` calls say so beside a thread that is stopped in the middle of one, or `blocks` if
///   they wait for it.
#[allow(unused_macros, reason = "not every suite is about these")]
macro_rules! shared_designs {
    ($suite:ident) => {
        $suite!(ticket, Ticket, [bounded sleeps whole busy]);
        $suite!(scq, Scq, [bounded sleeps by_places busy]);
        $suite!(michael_scott, MichaelScott, [unbounded sleeps whole lock_free]);
        $suite!(two_lock, TwoLock, [unbounded sleeps whole blocks]);
        $suite!(condvar, Condvar, [bounded sleeps whole busy]);
        $suite!(busy_wait, BusyWait, [bounded spins whole busy]);
    };
}

/// Whether a flag says yes: `bounded`, `goes_on`, `sleeps`, `by_places`, `lock_free`.
#[allow(unused_macros, reason = "not every suite asks")]
macro_rules! says {
    (bounded) => {
        true
    };
    (goes_on) => {
        true
    };
    (sleeps) => {
        true
    };
    (by_places) => {
        true
    };
    (lock_free) => {
        true
    };
    (@blocks blocks) => {
        true
    };
    (@blocks $other:ident) => {
        false
    };
    ($other:ident) => {
        false
    };
}
