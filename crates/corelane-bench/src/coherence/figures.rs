//! The papers' figures that a directory can repeat, beside what they print.

use super::cases::{Case, FREE, Part, TURNS};
use super::counts::Reading;
use crate::published::{Number, Published};
use crate::stats::short;
use std::fmt::Write;

/// What is true of all of them.
pub(crate) const LIMITS: &str = "\
  The caches of the directory have no end and no levels: it says which lines other threads took, and nothing of L1 against L2 and L3, of what
  falls out for want of room, or of prefetching. The papers' counters saw all of that, with both threads at once on their machines. Here the
  threads take turns of so many items; 'at once' is both together in the emulator, whose time is not a processor's, and does not repeat exactly.";

type Counted<'a> = [(&'a Case, Reading)];

/// All three.
pub(crate) fn render(counted: &Counted<'_>) -> String {
    let published = Published::load();
    let mut out = String::new();
    figure_11(&mut out, counted, &published);
    hits(&mut out, counted, &published, Part::Table2);
    hits(&mut out, counted, &published, Part::Table3);
    let _ = writeln!(out, "\n{LIMITS}");
    out
}

fn columns(part: Part) -> Vec<String> {
    let turns = TURNS.iter().map(usize::to_string);
    if part == Part::Table3 { turns.collect() } else { turns.chain([FREE.to_owned()]).collect() }
}

fn find<'a>(counted: &'a Counted<'_>, part: Part, queue: &str, run: &str) -> Option<&'a Reading> {
    let is = |case: &Case| case.part == part && case.queue == queue && case.run == run;
    counted.iter().find(|(case, _)| is(case)).map(|(_, reading)| reading)
}

/// The queues of a part, each once.
fn queues<'a>(counted: &'a Counted<'_>, part: Part) -> Vec<&'a str> {
    let mut queues: Vec<&str> =
        counted.iter().filter(|(case, _)| case.part == part).map(|(case, _)| &*case.queue).collect();
    queues.dedup();
    queues
}

fn head(out: &mut String, part: Part, title: &str) {
    let _ = write!(out, "\n{title}\n  {:28}", "items a turn");
    for column in columns(part) {
        let _ = write!(out, "  {column:>7}");
    }
    out.push('\n');
}

/// One line: a value a column, then what the paper has.
fn row(out: &mut String, part: Part, name: &str, value: impl Fn(&str) -> Option<f64>, printed: &str) {
    let _ = write!(out, "  {name:28}");
    for column in columns(part) {
        let _ = write!(out, "  {:>7}", value(&column).map_or("–".to_owned(), digits));
    }
    let _ = writeln!(out, "  {printed}");
}

/// Percentages near 100 differ behind the point.
fn digits(value: f64) -> String {
    if value > 90.0 { format!("{value:.2}") } else { short(value) }
}

fn printed(published: &Published, place: &str, says: &str) -> String {
    let is = |number: &&Number| number.place.contains(place) && number.says.contains(says);
    published.numbers.iter().find(is).map_or("–".to_owned(), |number| number.printed.clone())
}

fn figure_11(out: &mut String, counted: &Counted<'_>, published: &Published) {
    const PART: Part = Part::Figure11;
    const OURS: &str = "MCRingBuffer, batch 50";
    head(
        out,
        PART,
        "MCRingBuffer, Figure 11: lines that moved an item, upgrades included; capacity 2000, items of 8 bytes",
    );
    let lines = |queue: &str, run: &str| {
        let per = find(counted, PART, queue, run)?.per_item(1);
        Some(per.out + per.back + per.upgrades)
    };
    for queue in queues(counted, PART) {
        row(out, PART, queue, |run| lines(queue, run), "");
    }
    let fewer = |run: &str, than: &str| Some((1.0 - lines(OURS, run)? / lines(than, run)?) * 100.0);
    for (than, says) in
        [("BasicRingBuffer", "fewer L2 cache misses than BasicRingBuffer"), ("FastForward", "fewer than FastForward")]
    {
        let print = format!("printed, L2 misses: {}", printed(published, "Figure 11", says));
        row(out, PART, &format!("% fewer than {than}"), |run| fewer(run, than), &print);
    }
}

fn hits(out: &mut String, counted: &Counted<'_>, published: &Published, part: Part) {
    let (table, title) = match part {
        Part::Table3 => (
            "Table 3",
            "B-Queue, Table 3: % of accesses to lines that the thread had; seven queues, one thread that puts, seven that take",
        ),
        _ => ("Table 2(a)", "B-Queue, Table 2: % of accesses to lines that the thread had; capacity 2048, batch 256"),
    };
    head(out, part, title);
    for queue in queues(counted, part) {
        let hit = |run: &str| {
            let reading = find(counted, part, queue, run)?;
            Some(100.0 * (1.0 - reading.moved() as f64 / reading.accesses() as f64))
        };
        let name = queue.split(',').next().unwrap_or(queue);
        let of = |what: &str| printed(published, table, &format!("{what} of {name}"));
        let print = match name {
            "FastForward" | "MCRingBuffer" | "B-Queue" => {
                format!("printed: L1 {}, a sibling's cache {}", of("L1 hits"), of("served by a sibling's cache"))
            }
            _ => String::new(),
        };
        row(out, part, queue, hit, &print);
    }
    let _ = writeln!(
        out,
        "  Of all accesses the compiler left in both loops{}: how many those are is the compiler's and the paper's testbed's affair.",
        if cfg!(debug_assertions) { " (this is no release build: there are several times as many)" } else { "" }
    );
}
