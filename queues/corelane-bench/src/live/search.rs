//! The search for the highest rate.

use super::Played;

/// How much of a rate has to be sent. A sender that sends less is at its top speed.
const SENT: f64 = 0.95;
/// How often in a row that has to be seen: other work may have kept the sender from its CPU.
const SEEN: usize = 2;
/// The lowest rate that is tried, in frames a second.
const LOWEST: f64 = 1000.0;

/// How a rate is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The first rate, in frames a second.
    pub(crate) first: f64,
    /// The factor from one rate to the next until the highest one lies between two.
    pub(crate) step: f64,
    /// The factor between the two at which the search ends.
    pub(crate) near: f64,
    /// The most rates that are tried.
    pub(crate) most: usize,
}

/// The highest rate that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) played: Played,
    /// Whether the sender was at its top speed, so that the reader may be faster.
    pub(crate) is_senders: bool,
}

/// Tries rates until the highest is known at which a reader keeps up. `None` if it keeps up at none of them.
pub(crate) fn highest<E>(search: &Search, mut play: impl FnMut(f64) -> Result<Played, E>) -> Result<Option<Best>, E> {
    let (mut low, mut high) = (None::<f64>, None::<f64>);
    let mut best = None::<Best>;
    let (mut rate, mut seen) = (search.first, 0);
    for _ in 0..search.most {
        let played = play(rate)?;
        let is_senders = played.offered() < SENT * rate;
        if played.keeps_up() {
            low = Some(rate.min(played.offered()));
            if best.is_none_or(|best| played.offered() > best.played.offered()) {
                best = Some(Best { played, is_senders });
            }
            seen = if is_senders { seen + 1 } else { 0 };
            match seen {
                0 => {}
                SEEN => break,
                _ => continue,
            }
        } else {
            seen = 0;
            high = Some(rate.min(played.offered()));
        }
        rate = match (low, high) {
            (Some(low), None) => low * search.step,
            (None, Some(high)) if high / search.step >= LOWEST => high / search.step,
            (Some(low), Some(high)) if high > low * search.near => (low * high).sqrt(),
            _ => break,
        };
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::time::Duration;

    const SEARCH: Search = Search { first: 100_000.0, step: 2.0, near: 1.05, most: 30 };

    /// A reader that keeps up with `reader` frames a second, behind a sender that sends up to `sender`.
    fn found(search: &Search, reader: f64, sender: f64) -> (Option<Best>, Vec<f64>) {
        let mut tried = Vec::new();
        let best = highest(search, |rate| {
            tried.push(rate);
            let sent = rate.min(sender).round() as u64;
            let dropped = sent.saturating_sub(reader as u64);
            Ok::<_, Infallible>(Played {
                sent,
                read: sent - dropped,
                wall: Duration::from_secs(1),
                cpu: Duration::ZERO,
                behind: 0,
                in_block: 0,
                all_sent: sent,
                received: sent,
                dropped,
            })
        });
        let Ok(best) = best;
        (best, tried)
    }

    #[test]
    fn the_highest_rate_is_found_from_below_and_from_above() {
        for reader in [3_000.0, 99_000.0, 100_000.0, 777_777.0, 5e6] {
            let (best, tried) = found(&SEARCH, reader, f64::INFINITY);
            let best = best.unwrap();
            let rate = best.played.offered();
            assert!(rate <= reader && rate * 1.06 > reader && !best.is_senders, "{reader}: {tried:?}");
            assert!(tried.len() < 15, "{tried:?}");
        }
    }

    #[test]
    fn a_sender_at_its_top_speed_ends_the_search() {
        let (best, tried) = found(&SEARCH, 1e6, 500_000.0);
        let best = best.unwrap();
        assert!(best.is_senders && best.played.offered() == 500_000.0, "{best:?}");
        assert_eq!(tried, [100_000.0, 200_000.0, 400_000.0, 800_000.0, 800_000.0]);
        // A reader that is slower is found below the sender's top speed, not below what was asked for.
        let (best, tried) = found(&SEARCH, 480_000.0, 500_000.0);
        let best = best.unwrap();
        assert!(!best.is_senders && best.played.offered() > 450_000.0, "{best:?}");
        assert!(tried[4..].iter().all(|&rate| rate < 500_000.0), "{tried:?}");
    }

    #[test]
    fn the_search_ends_where_nothing_keeps_up_or_enough_was_tried() {
        let (best, tried) = found(&SEARCH, 10.0, f64::INFINITY);
        assert!(best.is_none() && tried.len() < 10, "{tried:?}");
        let (best, tried) = found(&Search { most: 1, ..SEARCH }, 1e9, f64::INFINITY);
        assert!(best.unwrap().played.offered() == 100_000.0 && tried.len() == 1);
    }
}
