//! Lines of events, compared.

/// Fails at the first line that differs, and shows no others.
#[track_caller]
pub(crate) fn assert_same(found: &[String], expected: &[String], what: &str) {
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let lengths = (found.len(), expected.len());
    let at = differs.or_else(|| (lengths.0 != lengths.1).then(|| lengths.0.min(lengths.1)));
    if let Some(at) = at {
        let (found, expected) = (found.get(at), expected.get(at));
        panic!("{what}: {lengths:?} lines, number {at} differs:\n{found:?}\n{expected:?}");
    }
}
