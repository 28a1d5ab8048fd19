//! The page's colours can be told apart, as WCAG 2.2 demands: text at 4.5 to 1 (1.4.3), pictures at 3 to 1 (1.4.11).

use super::STYLE;
use std::collections::HashMap;

/// The colours of a part of the style, in linear light.
fn colours(part: &str) -> HashMap<&str, [f64; 3]> {
    let linear = |byte: u8| {
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let colour = |text: &str| {
        let digits: Vec<_> = text.chars().map(|digit| digit.to_digit(16).expect("a digit") as u8).collect();
        match digits[..] {
            [r, g, b] => [r, g, b].map(|digit| linear(digit * 17)),
            [a, b, c, d, e, f] => [[a, b], [c, d], [e, f]].map(|[high, low]| linear(high * 16 + low)),
            _ => panic!("#{text}"),
        }
    };
    let lines = part.split(';').filter_map(|line| line.split_once("--")?.1.split_once(": #"));
    lines.map(|(name, text)| (name, colour(text.trim()))).collect()
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let light = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    light(one).max(light(other)) / light(one).min(light(other))
}

#[test]
fn colours_can_be_told_apart_in_light_and_dark() {
    let mut roots = STYLE.split(":root {").skip(1).map(|part| part.split('}').next().unwrap_or_default());
    let light = colours(roots.next().expect("light"));
    let dark = colours(roots.next().expect("dark"));
    assert_eq!((light.len(), roots.next()), (20, None));
    // Every colour has its other.
    let mut names = [&light, &dark].map(|colours| colours.keys().copied().collect::<Vec<_>>());
    names.iter_mut().for_each(|names| names.sort_unstable());
    assert_eq!(names[0], names[1]);
    for (mode, colours) in [("light", light), ("dark", dark)] {
        for back in ["paper", "band"] {
            for text in ["ink", "soft", "link", "bad", "good"] {
                let own = contrast(colours[text], colours[back]);
                assert!(own >= 4.5, "{mode}: {text} on {back}: {own:.2}");
            }
            // The frame of a field is the soft colour, which is checked above.
            for drawn in (0..12).map(|number| format!("c{number}")) {
                let own = contrast(colours[&*drawn], colours[back]);
                assert!(own >= 3.0, "{mode}: {drawn} on {back}: {own:.2}");
            }
        }
    }
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
}
