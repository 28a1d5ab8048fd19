//! Hand-made faults: their form, and where they are kept.
//!
//! A mutant is a text of a source file and its replacement. `mutants/*.toml` holds the mutants, a file for each queue.
//! A text that does not occur exactly once is an error. A test of this crate checks that, so that mutants keep up with
//! the code.

use crate::cargo::Tests;
use crate::workspace::Result;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A file of mutants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The tests of mutants that name none.
    tests: Vec<String>,
    /// The source file of mutants that name none.
    file: String,
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    /// One sentence that says what is broken.
    fault: String,
    file: Option<String>,
    /// A text that occurs once. `find` is its first occurrence after this text.
    after: Option<String>,
    find: String,
    replace: String,
    tests: Option<Vec<String>>,
}

/// A fault, and the tests that must find it.
pub(crate) struct Mutant {
    /// `queue/id`.
    pub(crate) name: String,
    pub(crate) queue: String,
    pub(crate) fault: String,
    pub(crate) file: String,
    after: Option<String>,
    find: String,
    replace: String,
    pub(crate) tests: Vec<Tests>,
}

impl Mutant {
    /// A digest of this fault, which changes when its text changes. It is stored, so its length and value are the same
    /// everywhere: FNV-1a.
    pub(crate) fn digest(&self) -> String {
        let parts = [Some(&self.file), self.after.as_ref(), Some(&self.find), Some(&self.replace)];
        // No text has a byte 0xff, so that byte ends a part. A part that is missing has another byte in front.
        let bytes = parts.into_iter().flat_map(|part| {
            let text = part.map_or(&[0xff][..], |part| part.as_bytes());
            text.iter().copied().chain([0xff])
        });
        let hash = bytes
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        format!("{hash:016x}")
    }

    /// Returns the source with the fault.
    pub(crate) fn apply(&self, source: &str) -> Result<String> {
        let from = match &self.after {
            None => 0,
            Some(after) => match *source.match_indices(after.as_str()).map(|(at, _)| at).collect::<Vec<_>>() {
                [at] => at + after.len(),
                ref all => {
                    let count = all.len();
                    return Err(format!(
                        "{}: `{after}` is in {} {count} times, not once; correct it",
                        self.name, self.file
                    ));
                }
            },
        };
        let behind = &source[from..];
        let found = behind.matches(self.find.as_str()).count();
        if found == 0 || found > 1 && self.after.is_none() {
            let (name, find, file) = (&self.name, &self.find, &self.file);
            return Err(format!("{name}: `{find}` is in {file} {found} times, not once; correct it, or give `after`"));
        }
        if self.find == self.replace {
            return Err(format!("{}: `replace` is the same as `find`; change one of them", self.name));
        }
        Ok(format!("{}{}", &source[..from], behind.replacen(self.find.as_str(), &self.replace, 1)))
    }
}

/// All mutants of a workspace, by queue.
pub(crate) fn all(root: &Path) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let directory = root.join("xtask/mutants");
    let files =
        fs::read_dir(&directory).map_err(|error| format!("{}: cannot be read: {error}", directory.display()))?;
    let mut paths: Vec<_> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let failed = |error: &dyn std::fmt::Display| format!("{}: cannot be read: {error}", path.display());
        let queue = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let file: File = toml::from_str(&text).map_err(|error| failed(&error))?;
        for entry in file.mutant {
            let tests = entry.tests.as_ref().unwrap_or(&file.tests);
            mutants.push(Mutant {
                name: format!("{queue}/{}", entry.id),
                queue: queue.clone(),
                fault: entry.fault,
                file: entry.file.unwrap_or_else(|| file.file.clone()),
                after: entry.after,
                find: entry.find,
                replace: entry.replace,
                tests: tests.iter().map(|tests| Tests::parse(tests)).collect::<Result<_>>()?,
            });
        }
    }
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::ROWS;
    use crate::workspace::root;

    #[test]
    fn every_mutant_still_finds_its_text() {
        let root = root();
        let mutants = all(&root).unwrap();
        assert!(!mutants.is_empty());
        let apply = |mutant: &Mutant| mutant.apply(&fs::read_to_string(root.join(&mutant.file)).unwrap()).err();
        let errors: Vec<_> = mutants.iter().filter_map(apply).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        for mutant in &mutants {
            assert!(!mutant.tests.is_empty() && !mutant.fault.is_empty(), "{}", mutant.name);
            assert!(ROWS.iter().any(|row| row.name == mutant.queue), "{} is in no row of the table", mutant.name);
        }
    }

    #[test]
    fn mutants_have_different_names() {
        let mut names: Vec<_> = all(&root()).unwrap().into_iter().map(|mutant| mutant.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    fn mutant(after: Option<&str>, find: &str) -> Mutant {
        Mutant {
            name: "q/m".into(),
            queue: "q".into(),
            fault: "a fault".into(),
            file: "file".into(),
            after: after.map(str::to_owned),
            find: find.into(),
            replace: "x".into(),
            tests: Vec::new(),
        }
    }

    #[test]
    fn a_digest_is_of_the_text_and_of_nothing_else() {
        let one = mutant(Some("a"), "b");
        assert_eq!(one.digest(), "d3b045874d084922");
        assert_eq!(
            Mutant { fault: "another".into(), queue: "r".into(), ..mutant(Some("a"), "b") }.digest(),
            one.digest()
        );
        let others = [
            mutant(None, "b"),
            mutant(Some(""), "b"),
            mutant(Some("ab"), ""),
            mutant(Some("a"), "c"),
            Mutant { file: "other".into(), ..mutant(Some("a"), "b") },
            Mutant { replace: "y".into(), ..mutant(Some("a"), "b") },
        ];
        let mut digests: Vec<_> = others.iter().chain([&one]).map(Mutant::digest).collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), others.len() + 1);
    }

    #[test]
    fn a_text_must_be_there_once() {
        let source = "fn a() { b } fn c() { b }";
        assert!(mutant(None, "b").apply(source).is_err());
        assert!(mutant(None, "d").apply(source).is_err());
        assert!(mutant(Some("{"), "b").apply(source).is_err());
        assert_eq!(mutant(Some("c()"), "b").apply(source).unwrap(), "fn a() { b } fn c() { x }");
        assert_eq!(mutant(None, "fn c").apply(source).unwrap(), "fn a() { b } x() { b }");
    }
}
