//! What the documents have to keep: every link and every path leads somewhere, every command names what there is, and
//! nothing is longer than a reader bears.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MOST_COLUMNS: usize = 120;
const MOST_WORDS_OF_A_PARAGRAPH: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace is there")
}

/// A document and where it lies, from the workspace's root.
struct Page {
    path: PathBuf,
    text: String,
}

/// The folders of the two products.
fn products() -> [PathBuf; 2] {
    ["queues", "monitor"].map(|product| root().join(product))
}

/// The directory of every package of the products.
fn packages() -> Vec<PathBuf> {
    products().iter().flat_map(|product| fs::read_dir(product).unwrap()).map(|entry| entry.unwrap().path()).collect()
}

/// Every document of the project.
fn pages() -> Vec<Page> {
    let root = root();
    let mut directories = vec![root.clone(), root.join("docs"), root.join("docs/decisions")];
    directories.extend(packages());
    let mut pages = Vec::new();
    for directory in directories {
        for entry in fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).unwrap();
                pages.push(Page { path: path.strip_prefix(&root).unwrap().to_owned(), text });
            }
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(pages.len() > 10, "README, ARCHITECTURE, CONTRIBUTING, docs/");
    pages
}

fn page(path: &str) -> Page {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    Page { path: path.into(), text }
}

/// Rust files and their text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut directories = Vec::from(products());
    directories.push(root().join("xtask"));
    let mut sources = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                sources.push((path, text));
            }
        }
    }
    sources
}

/// Lines that are comments, and how many lines stand before each.
fn comments_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"))
}

impl Page {
    /// Lines and their numbers, with whether they are code.
    fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        let mut code = false;
        self.text.lines().enumerate().map(move |(i, line)| {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            (i + 1, line, code || fence)
        })
    }

    /// What is between the marks, in prose; line numbers with it.
    fn between(&self, open: &str, close: &str) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        for (number, line, _) in self.lines().filter(|(.., code)| !code) {
            let mut rest = line;
            while let Some((_, after)) = rest.split_once(open) {
                let Some((inside, after)) = after.split_once(close) else { break };
                found.push((number, inside));
                rest = after;
            }
        }
        found
    }

    /// Headings as links name them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.lines().filter(|(_, line, code)| !code && line.starts_with('#'));
        let slug = |line: &str| -> String {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|&c| c.is_alphanumeric() || "-_ ".contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        };
        headings.map(|(_, line, _)| slug(line)).collect()
    }

    /// The rules of tables are none.
    fn words(&self) -> usize {
        self.text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
    }
}

/// Fails with all faults that were found, a line each.
#[track_caller]
fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let (root, pages) = (root(), pages());
    let mut faults = Vec::new();
    let mut links = 0;
    for page in &pages {
        for (number, link) in page.between("](", ")") {
            if link.starts_with("http") {
                continue;
            }
            links += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = page.path.parent().unwrap().join(path);
            let target = if path.is_empty() { root.join(&page.path) } else { root.join(target) };
            let known = pages.iter().find(|page| target.canonicalize().is_ok_and(|at| at == root.join(&page.path)));
            let is_there =
                target.exists() && (anchor.is_empty() || known.is_some_and(|page| page.anchors().contains(anchor)));
            if !is_there {
                faults.push(format!("{}:{number}: {link}", page.path.display()));
            }
        }
    }
    assert!(links > 80, "{links}");
    none(faults);
}

/// Paths in prose begin at the root, at a product, or in a crate or its `src/`.
#[test]
fn every_path_is_there() {
    let root = root();
    let mut bases = vec![root];
    bases.extend(products());
    bases.extend(packages().into_iter().flat_map(|package| [package.join("src"), package]));
    let mut faults = Vec::new();
    let mut paths = 0;
    for page in pages() {
        for (number, span) in page.between("`", "`") {
            let is_path = span.contains('/')
                && span.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
                && [".rs", ".md", ".toml", ".c", ".json", ".sh", "/src", "/tests"]
                    .iter()
                    .any(|end| span.ends_with(end));
            if !is_path {
                continue;
            }
            paths += 1;
            if !bases.iter().any(|base| base.join(span).exists()) {
                faults.push(format!("{}:{number}: {span}", page.path.display()));
            }
        }
    }
    assert!(paths > 50, "{paths}");
    none(faults);
}

#[test]
fn lines_and_paragraphs_are_short() {
    let mut faults = Vec::new();
    for page in pages() {
        let path = page.path.display();
        for (number, line, _) in page.lines() {
            let columns = line.chars().count();
            if columns > MOST_COLUMNS {
                faults.push(format!("{path}:{number}: {columns} columns"));
            }
        }
        let (mut words, mut begun) = (0, 0);
        for (number, line, code) in page.lines().chain([(0, "", false)]) {
            // Items of lists and rows of tables are as many paragraphs.
            let begins = line.trim_start();
            let is_numbered = begins.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
            let is_new = code || begins.is_empty() || begins.starts_with(['-', '|', '#', '*', '>', '[']) || is_numbered;
            if is_new {
                if words > MOST_WORDS_OF_A_PARAGRAPH {
                    faults.push(format!("{path}:{begun}: a paragraph of {words} words"));
                }
                (words, begun) = (0, number);
            }
            words += if code { 0 } else { line.split_whitespace().count() };
        }
    }
    none(faults);
}

/// Code is `cargo fmt`'s, which leaves comments alone.
#[test]
fn comments_are_no_longer_than_code() {
    let mut faults = Vec::new();
    let mut comments = 0;
    for (path, text) in sources() {
        for (i, line) in comments_of(&text) {
            comments += 1;
            if line.chars().count() > MOST_COLUMNS {
                faults.push(format!("{}:{}", path.display(), i + 1));
            }
        }
    }
    assert!(comments > 10_000, "{comments}");
    none(faults);
}

/// A word that this project explains but does not use is one more to learn for nothing.
#[test]
fn every_word_of_the_glossary_is_used() {
    let mut prose = String::new();
    for page in pages().into_iter().filter(|page| !page.path.ends_with("docs/glossary.md")) {
        prose.push_str(&page.text.to_lowercase());
    }
    for (_, text) in sources() {
        prose.push_str(&text.to_lowercase());
    }
    let glossary = page("docs/glossary.md");
    let rows = glossary.lines().filter(|(_, line, _)| line.starts_with("| ")).map(|(_, line, _)| line);
    let mut faults = Vec::new();
    let mut words = 0;
    for row in rows.filter(|row| !row.starts_with("| word ")) {
        let cell = row.trim_start_matches("| ").split(" | ").next().unwrap();
        for word in cell.split(", ") {
            words += 1;
            let word = word.split(" (").next().unwrap().trim_matches('`').to_lowercase();
            if !prose.contains(&word) {
                faults.push(format!("docs/glossary.md: {word} is used nowhere"));
            }
        }
    }
    assert!(words > 60, "{words}");
    none(faults);
}

/// A thread or an end is never a person.
#[test]
fn threads_are_not_persons() {
    let persons = |line: &str| {
        let outside_code = line.split('`').step_by(2).flat_map(|part| part.split(|c: char| !c.is_alphanumeric()));
        outside_code.into_iter().any(|word| matches!(word, "nobody" | "whoever" | "somebody"))
    };
    let mut faults = Vec::new();
    for page in pages() {
        let lines = page.lines().filter(|(_, line, code)| !code && persons(line));
        faults.extend(lines.map(|(number, line, _)| format!("{}:{number}: {line}", page.path.display())));
    }
    for (path, text) in sources() {
        let personal = comments_of(&text).filter(|(_, line)| persons(line));
        faults.extend(personal.map(|(i, line)| format!("{}:{}: {line}", path.display(), i + 1)));
    }
    none(faults);
}

#[test]
fn pages_stay_short() {
    for (path, most) in [("README.md", 1100), ("ARCHITECTURE.md", 1200), ("docs/benchmarks.md", 2500)] {
        let words = page(path).words();
        assert!(words <= most, "{path} has {words} words; at most {most}");
    }
    let words: usize = pages().iter().map(Page::words).sum();
    assert!(words <= 30_000, "the documents have {words} words; at most 30000");
}

/// Packages, targets and scripts of the commands. What the programs do with their options is tested beside them.
#[test]
fn every_command_names_what_there_is() {
    let directory_of = |package: &str| {
        let mut packages = packages().into_iter();
        packages.find(|path| path.ends_with(package)).unwrap_or_else(|| root().join(package))
    };
    let mut faults = Vec::new();
    let mut commands = 0;
    for page in pages() {
        let blocks = page.lines().filter(|(.., code)| *code).map(|(number, line, _)| (number, line));
        let spans = page.between("`", "`");
        for (number, command) in blocks.chain(spans) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let Some(cargo) = words.iter().position(|word| *word == "cargo") else { continue };
            let cargo: Vec<&str> = words[cargo..].iter().copied().take_while(|word| *word != "--").collect();
            commands += 1;
            let after = |flag: &str| -> Vec<&str> {
                cargo.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1]).collect()
            };
            let packages = after("-p");
            for package in &packages {
                if !directory_of(package).exists() {
                    faults.push(format!("{}:{number}: no package {package}", page.path.display()));
                }
            }
            for (flag, directory) in [("--test", "tests"), ("--example", "examples")] {
                for target in after(flag) {
                    let is_in = |package: &&str| {
                        let directory = directory_of(package).join(directory);
                        directory.join(format!("{target}.rs")).exists() || directory.join(target).exists()
                    };
                    if !packages.is_empty() && !packages.iter().any(is_in) {
                        faults.push(format!("{}:{number}: no {directory}/{target}", page.path.display()));
                    }
                }
            }
        }
    }
    assert!(commands > 20, "{commands}");
    none(faults);
}
