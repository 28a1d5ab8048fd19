//! Cache lines that move from thread to thread, counted in an emulator whose plugin keeps a directory of them.
//!
//! This program starts a copy of itself in the emulator (`emulator.rs`). There, threads take turns at a queue
//! (`guest.rs`, `cases.rs`), and tell the plugin, `coherence/directory.c`, when to look. So only the algorithm and the
//! layout of its memory decide the counts. They repeat exactly, and a queue that touches one more line is found out
//! (`stored.rs`).

mod cases;
mod counts;
mod emulator;
mod figures;
mod guest;
mod stored;
mod turns;

use crate::args::{CoherenceArguments, GuestArguments};
use cases::{Amount, Case, FILL};
use counts::PerItem;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::ExitCode;
use stored::Stored;

pub(crate) use cases::{Part, TURNS};
use counts::Reading;
use emulator::Emulator;
pub(crate) use figures::Figures;
pub(crate) use guest::Rounds;
pub(crate) use turns::{fan, free, in_batches, messages, one_by_one};

/// How many items a queue holds, unless a figure says otherwise.
const CAPACITY: usize = 1024;
/// How many items a batch has.
const BATCH: usize = 64;

/// Several laps of a queue, in turns of `a_turn` items.
fn laps(capacity: usize, a_turn: usize) -> Rounds {
    let lap = capacity.div_ceil(a_turn) as u64;
    Rounds { warm: 2 * lap, counted: 2 * lap }
}

/// The exit code if there is no emulator.
const NO_EMULATOR: u8 = 3;

/// The lines that the lane may move for a line of payload, in either direction, when it is filled and drained with
/// items of this size.
fn lane_may_move(bytes: usize) -> f64 {
    match bytes {
        // These items lie in a line of their own with the block's header, and fill 48 or 40 bytes of it. `Block::ITEMS`
        // says why they stay there.
        16 | 24 | 48 => 1.34,
        40 => 1.61,
        _ => 1.25,
    }
}

/// Counts the chosen cases. Returns the text to print and the exit code.
pub(crate) fn run(arguments: &CoherenceArguments) -> Result<(String, ExitCode), String> {
    let cases = cases::all();
    let wanted = |case: &Case| match case.part {
        Part::Table | Part::FollowUps => {
            let named = arguments.names.is_empty() || arguments.names.contains(&case.queue);
            let kept = !(arguments.check || arguments.write.is_some()) || case.is_kept();
            named && kept
        }
        // The experiment `cache-lines` has these cases.
        Part::Figure11 | Part::Table2 | Part::Table3 => false,
    };
    if let Some(name) = arguments.names.iter().find(|name| cases.iter().all(|case| case.queue != **name)) {
        let mut known: Vec<_> = cases.iter().map(|case| format!("'{}'", case.queue)).collect();
        known.sort();
        known.dedup();
        return Err(format!("no queue is called '{name}'; choose one of {}", known.join(", ")));
    }
    let emulator = match Emulator::prepare() {
        Ok(emulator) => emulator,
        Err(missing) => {
            eprintln!("corelane-bench: no cache lines were counted: {}", missing.0);
            return Ok((String::new(), ExitCode::from(NO_EMULATOR)));
        }
    };
    let chosen: Vec<usize> = (0..cases.len()).filter(|&case| wanted(&cases[case])).collect();
    let readings = emulator.count(&cases, &chosen, Amount::Full)?;
    let counted: Vec<_> = readings.into_iter().map(|(case, reading)| (&cases[case], reading)).collect();
    let per_item: Vec<_> = counted.iter().map(|(case, reading)| (*case, figure(case, reading))).collect();

    if let Some(file) = &arguments.write {
        fs::write(file, Stored::render(&per_item)).map_err(|error| crate::unwritable(file, &error))?;
        Ok((String::new(), ExitCode::SUCCESS))
    } else if arguments.check {
        Ok(check(&per_item))
    } else {
        Ok((table(&counted, arguments.regions), ExitCode::SUCCESS))
    }
}

/// Plays the cases, inside the emulator.
pub(crate) fn guest(arguments: &GuestArguments) -> Result<(), String> {
    let amount = if arguments.quick { Amount::Quick } else { Amount::Full };
    cases::play(&cases::all(), &arguments.cases, amount);
    Ok(())
}

/// The counts of a case as they are shown and kept.
fn figure(case: &Case, reading: &Reading) -> PerItem {
    match case.part {
        Part::FollowUps => reading.worst(case.putters),
        _ => reading.per_item(case.putters),
    }
}

/// Lines moved for a line of payload, for cases where this has a meaning, and how many may move.
fn for_payload(case: &Case, per: &PerItem) -> Option<(f64, f64)> {
    let lines = per.out.max(per.back) * 64.0 / case.bytes as f64;
    (case.part == Part::Table && case.run == FILL).then_some((lines, lane_may_move(case.bytes)))
}

fn check(per_item: &[(&Case, PerItem)]) -> (String, ExitCode) {
    let mut wrong = Stored::load().differences(per_item);
    let mut most: f64 = 0.0;
    for (case, per) in per_item.iter().filter(|(case, _)| case.queue == "lane") {
        if let Some((lines, bound)) = for_payload(case, per) {
            most = most.max(lines);
            if lines > bound {
                wrong.push(format!(
                    "lane, {} bytes: {lines:.3} lines for a line of payload, at most {bound}",
                    case.bytes
                ));
            }
        }
    }
    // The limit holds however often a request asks and however many others wait.
    for (case, per) in per_item.iter().filter(|(case, _)| case.part == Part::FollowUps) {
        if per.out > turns::MOST_REMOTE {
            wrong.push(format!("{}, {}: {} remote accesses", case.queue, case.run, per.out));
        }
    }
    let report = if wrong.is_empty() {
        format!(
            "{} counts of cache lines are as kept; the lane, filled and drained: at most {most:.3} for a line of payload\n",
            per_item.len()
        )
    } else {
        format!("{}\ncounts of cache lines that are not as they were: {}\n", wrong.join("\n"), wrong.len())
    };
    (report, if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A block for each run, with a line for each queue.
fn table(counted: &[(&Case, Reading)], regions: bool) -> String {
    let mut out = "\
Cache lines of 64 bytes that move, an item. out: to the threads that take; back: to those that put; upgrades: writes to a line that the thread
has and others have, too, so that they lose it. In turns; x86-64, emulated; caches without end.
"
    .to_owned();
    let mut blocks: Vec<(Part, &str, usize)> =
        counted.iter().map(|(case, _)| (case.part, &*case.run, case.bytes)).collect();
    let mut known = Vec::new();
    blocks.retain(|block| {
        !known.contains(block) && {
            known.push(*block);
            true
        }
    });
    for block in blocks {
        let (part, run, bytes) = block;
        let what = if part == Part::FollowUps {
            "out: all remote accesses of a request that waits, and asks so many times between any two things that others do"
        } else {
            ""
        };
        let _ =
            writeln!(out, "\n{run}; {bytes} bytes\n  {:28} {:>8} {:>8} {:>8}  {what}", "", "out", "back", "upgrades");
        for (case, reading) in counted.iter().filter(|(case, _)| (case.part, &*case.run, case.bytes) == block) {
            let per = figure(case, reading);
            let _ = write!(out, "  {:28} {:8.4} {:8.4} {:8.4}", case.queue, per.out, per.back, per.upgrades);
            let _ = match for_payload(case, &per) {
                Some((lines, _)) => writeln!(out, "  {lines:.3} for a line of payload"),
                None => writeln!(out),
            };
            if regions {
                by_region(&mut out, case, reading);
            }
        }
    }
    out
}

/// The accesses of each thread by region, and the most moved lines of small regions.
fn by_region(out: &mut String, case: &Case, reading: &Reading) {
    const MOST: usize = 8;
    let name = |region: u64| if region == 0 { "elsewhere".to_owned() } else { format!("{region} bytes") };
    let items = reading.items as f64;
    for count in reading.counts.iter().filter(|count| count.moved() + count.upgrades != 0) {
        let end = if count.thread < case.putters { "puts" } else { "takes" };
        let [reads, writes, upgrades] = [count.reads, count.writes, count.upgrades].map(|n| n as f64 / items);
        let _ = writeln!(
            out,
            "    thread {} ({end:5}) in {:>14}: reads {reads:.4}, writes {writes:.4}, upgrades {upgrades:.4}",
            count.thread,
            name(count.region)
        );
    }
    let mut lines: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    reading.lines.iter().for_each(|line| *lines.entry((line.region, line.offset)).or_default() += line.moved);
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|&(place, moved)| (std::cmp::Reverse(moved), place));
    for ((region, offset), moved) in lines.into_iter().take(MOST) {
        let _ = writeln!(out, "    line {offset:#x} of {}: {:.4}", name(region), moved as f64 / items);
    }
}
