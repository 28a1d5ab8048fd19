//! Pictures as SVG. They have no text in them, so that they stretch to any width; labels stand beside them.

use super::html::{Html, html};

/// A series of numbers with the class of its colour.
pub(super) struct Series {
    pub(super) class: &'static str,
    pub(super) values: Vec<u64>,
}

/// The height of a picture of bars in its own units.
const HEIGHT: u64 = 60;

fn length(series: &[Series]) -> usize {
    series.iter().map(|series| series.values.len()).max().unwrap_or(0)
}

/// The height of the highest bar.
pub(super) fn highest(series: &[Series]) -> u64 {
    let mut sums = vec![0_u64; length(series)];
    for one in series {
        sums.iter_mut().zip(&one.values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
    }
    sums.into_iter().max().unwrap_or(0)
}

/// Draws bars, those of one time upon each other.
pub(super) fn bars(page: &mut Html, label: &str, series: &[Series]) {
    let (length, highest) = (length(series), highest(series));
    let scaled = |value: u64| (u128::from(value) * u128::from(HEIGHT * 10)).div_ceil(u128::from(highest.max(1))) as u64;
    html!(page, "<svg class=\"bars\" role=\"img\" preserveAspectRatio=\"none\" "
        "viewBox=\"0 0 " {length.max(1)} " " {HEIGHT}
        "\" aria-label=\"" {label} "\">");
    let mut below = vec![0_u64; length];
    for one in series {
        html!(page, "<path class=\"" {one.class} "\" d=\"");
        for (x, (base, value)) in below.iter_mut().zip(&one.values).enumerate() {
            if *value == 0 {
                continue;
            }
            let bottom = scaled(*base);
            *base = base.saturating_add(*value);
            let top = scaled(*base);
            let tenths = |tenths: u64| format!("{}.{}", tenths / 10, tenths % 10);
            html!(page, "M" {x} " " {tenths(HEIGHT * 10 - top)} "h1v" {tenths(top - bottom)} "h-1z");
        }
        html!(page, "\"/>");
    }
    html!(page, "</svg>");
}

/// The height of a row of cells, as that of the labels beside them.
const ROW: usize = 14;

/// Draws rows of cells. Each set of bits is a row.
pub(super) fn cells(page: &mut Html, label: &str, columns: u32, rows: &[[u128; 2]]) {
    html!(page, "<svg class=\"cells\" role=\"img\" preserveAspectRatio=\"none\" viewBox=\"0 0 " {columns} " "
        {rows.len()} "\" height=\"" {rows.len() * ROW} "\" aria-label=\"" {label} "\">");
    // Of a scan nearly all fails, so what was open is drawn upon it.
    for (layer, class) in [(0, "failed"), (1, "open")] {
        html!(page, "<path class=\"" {class} "\" d=\"");
        for (y, row) in rows.iter().enumerate() {
            let mut set = row[layer];
            let mut x = 0;
            while set != 0 {
                let skipped = set.trailing_zeros();
                set >>= skipped;
                x += skipped;
                let length = set.trailing_ones();
                html!(page, "M" {x} " " {y} "h" {length} "v1h-" {length} "z");
                set = set.checked_shr(length).unwrap_or(0);
                x += length;
            }
        }
        html!(page, "\"/>");
    }
    html!(page, "</svg>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(page: &Html) -> &str {
        str::from_utf8(page.as_bytes()).unwrap()
    }

    #[test]
    fn bars_stand_upon_each_other() {
        let mut page = Html::default();
        let series = [Series { class: "a", values: vec![1, 0] }, Series { class: "b", values: vec![1, 1] }];
        bars(&mut page, "x", &series);
        assert_eq!(highest(&series), 2);
        assert!(text(&page).contains("M0 30.0h1v30.0h-1z\"/>"), "{}", text(&page));
        assert!(text(&page).contains("M0 0.0h1v30.0h-1zM1 30.0h1v30.0h-1z\"/>"), "{}", text(&page));
    }

    #[test]
    fn cells_in_a_row_are_one() {
        let mut page = Html::default();
        cells(&mut page, "x", 128, &[[0b1110, 0b1], [u128::MAX, 0]]);
        assert!(text(&page).contains("d=\"M1 0h3v1h-3zM0 1h128v1h-128z\"/>"), "{}", text(&page));
        assert!(text(&page).contains("d=\"M0 0h1v1h-1z\"/>"), "{}", text(&page));
    }

    #[test]
    fn nothing_and_the_largest_numbers_are_pictures_too() {
        let mut page = Html::default();
        bars(&mut page, "x", &[]);
        assert_eq!(highest(&[]), 0);
        let values = vec![u64::MAX, u64::MAX];
        let series = [Series { class: "a", values: values.clone() }, Series { class: "b", values }];
        bars(&mut page, "x", &series);
        assert_eq!(highest(&series), u64::MAX);
    }
}
