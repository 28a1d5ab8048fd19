//! Median, least and most.

/// Median, least and most of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Summary {
    /// `None` without samples. The median of an even number is the mean of the middle two.
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + sorted[middle]) / 2.0 } else { sorted[middle] };
        Some(Summary { median, least, most })
    }
}

/// A number with three significant digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if !value.is_finite() => "–".to_owned(),
        0.0 => "0".to_owned(),
        _ if size >= 99.95 => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.9995 => format!("{value:.2}"),
        _ if size >= 0.000_999_5 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let summary = Summary::of([5.0, 1.0, 3.0]).unwrap();
        assert_eq!(summary, Summary { median: 3.0, least: 1.0, most: 5.0 });
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 100.0]).unwrap().median, 3.0);
        assert_eq!(Summary::of([7.0]), Some(Summary { median: 7.0, least: 7.0, most: 7.0 }));
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1234.5, "1234"),
            (99.96, "100"),
            (99.94, "99.9"),
            (9.996, "10.0"),
            (1.0, "1.00"),
            (0.25, "0.250"),
            (0.000_01, "1.0e-5"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
