//! The designs of `corelane::spsc`, a line each: what every suite over them runs over.

/// Calls `$suite!(module, Type, [flags])` for each design. The flags, in this order:
/// - `bounded`, or `unbounded` if it is never full and its constructors take no capacity;
/// - `goes_on`, or `blocks` if `try_` calls may wait for a thread that is stopped in the middle of one;
/// - `slices(name)` if items lie side by side, with the name of the suite of that.
///
/// What one suite alone has for one design, such as options, is an arm of that suite's macro.
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
