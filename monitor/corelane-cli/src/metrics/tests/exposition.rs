//! A strict reader of Prometheus' text format, also for the tests of the program in `tests/live`.

use std::collections::{BTreeMap, BTreeSet};

/// Samples by name and labels.
pub(crate) type Samples = BTreeMap<(String, Vec<(String, String)>), f64>;

/// Samples by name and labels, in a text that keeps all rules of the format.
#[track_caller]
pub(crate) fn parse_metrics(text: &str) -> Samples {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    assert!(text.ends_with('\n'));
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut help, mut family) = (None, None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help_text) = rest.split_once(' ').expect("a name and a text");
            assert!(is_name(name) && !help_text.is_empty(), "{line}");
            assert!(families.insert(name.to_owned()), "twice: {line}");
            help = Some(name.to_owned());
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(help.as_deref(), Some(name), "HELP comes first");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            family = help.take();
            continue;
        }
        let (name, mut rest) = line.split_at(line.find(['{', ' ']).expect("a value"));
        assert_eq!(family.as_deref(), Some(name), "of the family above: {line}");
        assert!(name.starts_with("corelane_"));
        let mut labels = Vec::new();
        if let Some(mut inside) = rest.strip_prefix('{') {
            loop {
                let (label, value) = inside.split_once("=\"").expect("a label");
                assert!(is_name(label), "{line}");
                let (mut plain, mut characters) = (String::new(), value.char_indices());
                let end = loop {
                    match characters.next().expect("a closing quote") {
                        (at, '"') => break at + 1,
                        (_, '\\') => plain.push(match characters.next().unwrap().1 {
                            'n' => '\n',
                            same @ ('"' | '\\') => same,
                            other => panic!("\\{other} in {line}"),
                        }),
                        (_, character) => plain.push(character),
                    }
                };
                labels.push((label.to_owned(), plain));
                inside = &value[end..];
                match inside.strip_prefix(',') {
                    Some(more) => inside = more,
                    None => break rest = inside.strip_prefix('}').expect("a closing brace"),
                }
            }
        }
        let value = rest.strip_prefix(' ').expect("a space");
        assert!(!value.contains(' '), "no time: {line}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(samples.insert((name.to_owned(), labels), value).is_none(), "twice: {line}");
    }
    assert_eq!(help, None);
    let with_samples: BTreeSet<_> = samples.keys().map(|(name, _)| name.clone()).collect();
    assert_eq!(with_samples, families, "no family is empty");
    samples
}
