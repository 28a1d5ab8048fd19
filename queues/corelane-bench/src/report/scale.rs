//! Axes: they map values to places between 0 and 1, and set the marks.

use crate::plan::Scale;
use crate::stats::short;

/// An axis with its range.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    scale: Scale,
    least: f64,
    most: f64,
}

/// A mark of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Ruler {
    /// Makes an axis for these values. A linear axis starts at 0, and a logarithmic axis spans at least a factor of
    /// two. The axis ignores values that it cannot show: values that are not finite, and on a logarithmic axis values
    /// of 0 or less.
    pub(super) fn new(scale: Scale, values: impl IntoIterator<Item = f64>) -> Self {
        let shown = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let (mut least, mut most) = values
            .into_iter()
            .filter(shown)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        if least > most {
            (least, most) = (1.0, 2.0);
        }
        match scale {
            Scale::Linear => {
                least = least.min(0.0);
                most = if most <= least { least + 1.0 } else { most };
                // Some room above the highest value.
                most += (most - least) * 0.02;
            }
            Scale::Log => {
                if most < 2.0 * least {
                    (least, most) = (least / 1.5, most * 1.5);
                }
                (least, most) = (least / 1.08, most * 1.08);
            }
            // A single x stands in the middle.
            Scale::Log2 | Scale::Nines if least == most => (least, most) = (least / 2.0, most * 2.0),
            Scale::Log2 | Scale::Nines => {}
        }
        Ruler { scale, least, most }
    }

    /// The place of a value: 0 at the beginning of the axis, 1 at its end. `None` if it cannot be shown.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let position = self.linear(value);
        let (first, last) = (self.linear(self.least), self.linear(self.most));
        let place = (position - first) / (last - first);
        place.is_finite().then_some(place)
    }

    /// The value on a scale of equal steps.
    fn linear(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
            Scale::Log2 => value.log2(),
            // 90 becomes 1, 99 becomes 2, and 99.9 becomes 3.
            Scale::Nines => -(1.0 - value / 100.0).max(1e-9).log10(),
        }
    }

    /// Round values within the range, about four to ten of them.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let values = match self.scale {
            Scale::Linear => self.linear_marks(),
            _ => self.log_marks(),
        };
        values.into_iter().map(|value| Mark { value, label: plain(value) }).collect()
    }

    /// Sets marks at these values only, such as the x values of a sweep.
    pub(super) fn marks_at(values: &[f64]) -> Vec<Mark> {
        values.iter().map(|&value| Mark { value, label: plain(value) }).collect()
    }

    fn linear_marks(&self) -> Vec<f64> {
        let step = nice((self.most - self.least) / 6.0);
        let first = (self.least / step).ceil() as i64;
        let last = (self.most / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }

    fn log_marks(&self) -> Vec<f64> {
        let (first, last) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
        let within = |steps: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
                .filter(|value| (self.least..=self.most).contains(value))
                .collect()
        };
        [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]]
            .map(within)
            .into_iter()
            .find(|marks| marks.len() >= 4)
            .unwrap_or_else(|| self.linear_marks().into_iter().filter(|value| *value > 0.0).collect())
    }
}

/// The nearest of 1, 2 and 5 times a power of ten that is at or above the value.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digit = value / power;
    let digit = [1.0, 2.0, 5.0].into_iter().find(|nice| digit <= nice * 1.000_001).unwrap_or(10.0);
    digit * power
}

/// The number with as few digits as it needs.
fn plain(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    let text = if rounded.abs() >= 0.001 || rounded == 0.0 { format!("{rounded}") } else { short(value) };
    // A space separates thousands, from five digits on.
    match text.split_once('.') {
        None if text.len() > 4 && text.bytes().all(|digit| digit.is_ascii_digit()) => {
            let mut spaced = String::new();
            for (i, digit) in text.chars().enumerate() {
                if i > 0 && (text.len() - i).is_multiple_of(3) {
                    spaced.push('\u{202f}');
                }
                spaced.push(digit);
            }
            spaced
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<String> {
        ruler.marks().into_iter().map(|mark| mark.label).collect()
    }

    #[test]
    fn a_linear_axis_starts_at_zero() {
        let ruler = Ruler::new(Scale::Linear, [120.0, 434.0]);
        assert_eq!(ruler.place(0.0), Some(0.0));
        assert_eq!(labels(&ruler), ["0", "100", "200", "300", "400"]);
        assert!(ruler.place(434.0).unwrap() > 0.97 && ruler.place(434.0).unwrap() < 1.0);
        assert!((ruler.place(217.0).unwrap() * 2.0 - ruler.place(434.0).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn a_logarithmic_axis_gives_equal_room_to_equal_factors() {
        let ruler = Ruler::new(Scale::Log, [9.0, 1000.0]);
        let place = |value| ruler.place(value).unwrap();
        assert!((place(100.0) - place(10.0) - (place(1000.0) - place(100.0))).abs() < 1e-9);
        assert_eq!(labels(&ruler), ["10", "30", "100", "300", "1000"]);
        assert!(labels(&Ruler::new(Scale::Log, [20_000.0, 30_000.0])).len() >= 3, "a short axis has marks too");
    }

    #[test]
    fn percentiles_are_placed_by_their_nines() {
        let ruler = Ruler::new(Scale::Nines, [50.0, 90.0, 99.0, 99.9, 99.99]);
        let place = |value| ruler.place(value).unwrap();
        assert_eq!((place(50.0), place(99.99)), (0.0, 1.0));
        assert!((place(99.9) - place(99.0) - (place(99.0) - place(90.0))).abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_shown_has_no_place_and_no_say() {
        let ruler = Ruler::new(Scale::Log, [0.0, f64::NAN, 10.0, 100.0]);
        assert_eq!(ruler.place(0.0), None);
        assert_eq!(ruler.place(f64::NAN), None);
        assert!((0.0..=1.0).contains(&ruler.place(10.0).unwrap()));
        // No values at all still give an axis.
        assert!(!Ruler::new(Scale::Linear, []).marks().is_empty());
    }

    #[test]
    fn one_value_alone_is_inside_the_axis() {
        for scale in [Scale::Linear, Scale::Log, Scale::Log2, Scale::Nines] {
            let place = Ruler::new(scale, [42.0]).place(42.0).unwrap();
            assert!((0.0..=1.0).contains(&place), "{scale:?}: {place}");
        }
    }

    #[test]
    fn labels_are_plain() {
        for (value, text) in [
            (0.1 + 0.2, "0.3"),
            (2048.0, "2048"),
            (20_000.0, "20\u{202f}000"),
            (1_000_000.0, "1\u{202f}000\u{202f}000"),
        ] {
            assert_eq!(plain(value), text);
        }
    }
}
