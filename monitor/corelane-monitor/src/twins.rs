//! Happy eyeballs: clients that try IPv6 first, and IPv4 a moment later (RFC 8305).
//!
//! Where IPv6 is broken such a client fails at as many addresses as a scanner. Its other address, by IPv4, is answered
//! meanwhile: the twin. One address is the twin of another for a port if
//!
//! 1. three quarters of the failures that make the scan, and no less than [`LEAST`], each have an answered attempt of
//!    its own of the twin to that port, which began within [`LONGEST`] after it;
//! 2. these began after equal times, within [`APART`]: the client waits for a timer;
//! 3. the twin began at most [`BUSY`] times as many answered ones meanwhile. Attempts of a busier address match any.
//!
//! Three answers of a twin outweigh four failures. Only IPv6 SYNs to a port of many hosts have one.

use std::collections::HashMap;

/// Fewer matches than this show nothing.
const LEAST: usize = 8;
/// In [ticks](tick), two seconds: the longest delay that RFC 8305 wants.
const LONGEST: u32 = 64;
/// In ticks, an eighth of a second.
const APART: u32 = 4;
/// A twin may begin so many times the attempts that match.
const BUSY: usize = 4;

/// The nanoseconds of a 32nd of a second.
pub(crate) const TICK_NS: u64 = 1_000_000_000 / 32;

/// A time in 32nds of a second, of which those of four years are told apart.
pub(crate) fn tick(time_ns: u64) -> u32 {
    (time_ns / TICK_NS) as u32
}

/// The time from a SYN to what became of it, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lag(pub(crate) u8);

impl Lag {
    /// It is not known, or four seconds and more.
    pub(crate) const UNKNOWN: Lag = Lag(127);

    pub(crate) const BITS: u32 = 7;

    /// That between these times.
    pub(crate) fn between(begun_ns: u64, time_ns: u64) -> Lag {
        let ticks = (time_ns.saturating_sub(begun_ns) + TICK_NS / 2) / TICK_NS;
        u8::try_from(ticks).map_or(Lag::UNKNOWN, |ticks| Lag(ticks.min(Lag::UNKNOWN.0)))
    }

    /// The same where what became of it has another time.
    pub(crate) fn moved(self, from_ns: u64, to_ns: u64) -> Lag {
        if self == Lag::UNKNOWN {
            return self;
        }
        let ticks = i128::from(to_ns) - i128::from(from_ns);
        let ticks = i128::from(self.0) + ticks.div_euclid(TICK_NS.into());
        Lag(ticks.clamp(0, Lag::UNKNOWN.0.into()) as u8)
    }

    /// The time of the SYN, by that of what became of it.
    pub(crate) fn before(self, time_ns: u64) -> Option<u64> {
        (self != Lag::UNKNOWN).then(|| time_ns.saturating_sub(u64::from(self.0) * TICK_NS))
    }
}

/// The twin of a source with failures that began at these ticks, among sources that began answered attempts. Of several
/// it is the least. Both are in any order, and of one port.
pub(crate) fn twin(failures: &[u32], answers: impl Iterator<Item = (u32, u32)>) -> Option<u32> {
    let needed = (failures.len() * 3).div_ceil(4).max(LEAST);
    let base = *failures.first().filter(|_| failures.len() >= needed)?;
    // From now on ticks have an order.
    let since = |tick: u32| i64::from(tick.wrapping_sub(base).cast_signed());
    let mut failures: Vec<_> = failures.iter().map(|&tick| since(tick)).collect();
    failures.sort_unstable();
    let meanwhile = failures[0]..=failures[failures.len() - 1] + i64::from(LONGEST);
    let mut of_sources = HashMap::<u32, Vec<i64>>::new();
    for (tick, source) in answers {
        let since = since(tick);
        if meanwhile.contains(&since) {
            of_sources.entry(source).or_default().push(since);
        }
    }
    let is_twin = |begun: &mut Vec<i64>| {
        if !(needed..=BUSY * failures.len()).contains(&begun.len()) {
            return false;
        }
        begun.sort_unstable();
        let most = (0..=LONGEST - APART).map(|after| matches(&failures, begun, i64::from(after))).max();
        most.is_some_and(|matches| matches >= needed && begun.len() <= BUSY * matches)
    };
    of_sources.into_iter().filter_map(|(source, mut begun)| is_twin(&mut begun).then_some(source)).min()
}

/// The failures that so many answers of a twin outweigh.
pub(crate) fn outweighed(answers: u64) -> u64 {
    answers * 4 / 3
}

/// How many of these failures have an attempt of their own so long after it.
fn matches(failures: &[i64], begun: &[i64], after: i64) -> usize {
    let mut begun = begun.iter().peekable();
    let has_one = |failure: &&i64| {
        let earliest = **failure + after;
        while begun.next_if(|&&at| at < earliest).is_some() {}
        begun.next_if(|&&at| at <= earliest + i64::from(APART)).is_some()
    };
    failures.iter().filter(has_one).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many failures, `apart` ticks each, and an answered attempt so long after each by this rule.
    fn found(count: u32, apart: u32, after: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        // Where ticks begin anew.
        let first = u32::MAX - 50;
        let failures: Vec<_> = (0..count).map(|number| first.wrapping_add(number * apart)).collect();
        let answers =
            (0..count).filter_map(|number| Some((first.wrapping_add(number * apart).wrapping_add(after(number)?), 7)));
        let backwards: Vec<_> = answers.clone().collect::<Vec<_>>().into_iter().rev().collect();
        let twin = super::twin(&failures, answers);
        assert_eq!(twin, super::twin(&failures, backwards.into_iter()));
        twin
    }

    #[test]
    fn a_twin_follows_most_failures_after_equal_times() {
        for apart in [0, 1, 3, 20, 64, 3200] {
            for after in [0, 3, 8, 60] {
                assert_eq!(found(21, apart, |_| Some(after)), Some(7), "{apart} {after}");
                assert_eq!(found(21, apart, |number| (number >= 5).then_some(after)), Some(7), "{apart} {after}");
            }
        }
        // The timer is late by a little.
        assert_eq!(found(21, 64, |number| Some(8 + number % 5)), Some(7));
        assert_eq!(found(21, 64, |number| Some(8 + 3 * (number % 5))), None);
        // Too few, too late, before.
        assert_eq!(found(21, 64, |number| (number >= 6).then_some(8)), None);
        assert_eq!(found(7, 64, |_| Some(8)), None);
        assert_eq!(found(8, 64, |_| Some(8)), Some(7));
        assert_eq!(found(21, 200, |_| Some(65)), None);
        assert_eq!(found(21, 200, |_| Some(0_u32.wrapping_sub(1))), None);
    }

    #[test]
    fn one_attempt_matches_one_failure() {
        // All but ten have none of their own.
        let failures: Vec<_> = (0..21).collect();
        assert_eq!(twin(&failures, (0..10).map(|at| (2 * at, 7))), None);
        assert_eq!(twin(&failures, failures.iter().map(|&at| (at + 8, 7))), Some(7));
    }

    #[test]
    fn a_busy_address_is_no_twin_and_the_least_of_several_is_told() {
        let failures: Vec<_> = (0..21).map(|number| 64 * number).collect();
        let all = |source, every: u32| (0..64 * 21 / every).map(move |number| (8 + number * every, source));
        for (every, expected) in [(64, Some(7)), (32, Some(7)), (16, Some(7)), (15, None), (4, None), (1, None)] {
            assert_eq!(twin(&failures, all(7, every)), expected, "{every}");
        }
        assert_eq!(twin(&failures, all(9, 64).chain(all(7, 64)).chain(all(3, 1))), Some(7));
        // An ordinary client, which is at no equal distance.
        assert_eq!(twin(&failures, (0..21).map(|number| (64 * number + number * 7 % 64, 7))), None);
    }
}
