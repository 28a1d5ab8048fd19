//! `corelane-bench scale`: a model of queues between more threads than there are CPUs.

use crate::args::ScaleArguments;
use crate::coherence::{self, Counted, Emulator, NO_EMULATOR, SHAPES};
use crate::experiments::spinning::{ALONE, EXPERIMENT, PAIR, PAUSE};
use crate::progress::Meter;
use crate::raw::directory::Costs;
use crate::record::Record;
use crate::runner::{self, Effort};
use crate::stats::{Summary, short};
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Picoseconds in a nanosecond.
const NANOSECOND: f64 = 1000.0;
/// How many transfers a round trip of two bare words makes. Each thread's store takes the line away from the other
/// thread, and that thread's next load brings it back.
const OF_A_ROUND_TRIP: f64 = 4.0;

/// The costs where none are measured.
const QUICK: Costs = Costs { access: 250, transfer: 25_000, pause: 25_000 };

/// Width of the first column.
const NAMES: usize = 34;

/// Runs the model. Returns the text to print and the exit code.
pub(crate) fn run(arguments: &ScaleArguments) -> Result<(String, ExitCode), String> {
    let emulator = match Emulator::prepare() {
        Ok(emulator) => emulator,
        Err(missing) => {
            eprintln!("corelane-bench: nothing was counted: {}", missing.0);
            return Ok((String::new(), ExitCode::from(NO_EMULATOR)));
        }
    };
    if arguments.quick {
        let counted = coherence::count(&emulator, true, |_| Some(QUICK))?;
        return Ok((times(&counted, None, false) + &lines(&counted), ExitCode::SUCCESS));
    }
    let accesses = coherence::accesses(&emulator)?;
    // Measured first, before other work keeps the CPUs busy.
    let effort = Effort { sample: Duration::from_millis(20), ..Effort::full(Effort::LEAST_ROUNDS) };
    let mut meter = Meter::new("scale");
    let record = runner::run(&EXPERIMENT, &effort, &mut meter);
    drop(meter);
    let round_trip = Summary::of(record.bare.iter().flat_map(|bare| bare.round_trip_ns.iter().copied()));
    let transfer = match (arguments.transfer, round_trip) {
        (Some(transfer), _) => transfer,
        (None, Some(round_trip)) => round_trip.median / OF_A_ROUND_TRIP,
        (None, None) => return Err("a transfer cannot be measured without two CPUs; give --transfer".to_owned()),
    };
    let pause = median(&record, ALONE, PAUSE)
        .ok_or("the time of a pause could not be measured; run it again on an idle machine")?;
    let picoseconds = |nanoseconds: f64| (nanoseconds * NANOSECOND).round() as u64;
    let costs = |queue: &str| {
        let access = median(&record, ALONE, queue)? / accesses.get(queue)?;
        Some(Costs { access: picoseconds(access), transfer: picoseconds(transfer), pause: picoseconds(pause) })
    };
    eprintln!("corelane-bench: now all queues in the emulator, about a minute");
    let counted = coherence::count(&emulator, false, costs)?;
    let is_measured = arguments.transfer.is_none();
    let mut out = format!(
        "\
A model, not a measurement. Threads of an emulator take turns on clocks: an access costs what makes one thread alone as
quick as it is here, a line that moves {} ns more ({}), a pause {} ns. Every
thread has a core of its own, each core is as far from each other one, nothing is fetched ahead, and nothing overlaps:
figures are to be compared with each other.
",
        short(transfer),
        if is_measured { "a quarter of a bare round trip here" } else { "as --transfer says" },
        short(pause)
    );
    out += &times(&counted, Some(&record), is_measured);
    out += &lines(&counted);
    Ok((out, ExitCode::SUCCESS))
}

/// The median of a series in the first panel whose id begins with `panel`.
fn median(record: &Record, panel: &str, series: &str) -> Option<f64> {
    let panel = record.panels.iter().find(|it| it.id.starts_with(panel))?;
    let series = panel.series.iter().find(|it| it.name == series)?;
    series.points.first()?.summary().map(|summary| summary.median)
}

/// Nanoseconds an item: the median over the seeds.
fn modelled(counted: &Counted, shape: usize) -> f64 {
    let times = counted.plays[shape].iter().map(|reading| reading.time as f64 / reading.items as f64 / NANOSECOND);
    Summary::of(times).map_or(f64::NAN, |summary| summary.median)
}

fn heading(out: &mut String, title: &str, before: &[&str], shapes: usize) {
    let _ = write!(out, "\n{title:NAMES$}");
    before.iter().for_each(|column| _ = write!(out, " {column:>9}"));
    for shape in &SHAPES[..shapes] {
        let _ = write!(out, " {:>7}", format!("{}:{}", shape.putters, shape.takers));
    }
    out.push('\n');
}

/// The modelled time of an item, and the measured time at one to one.
fn times(counted: &[Counted], record: Option<&Record>, is_checked: bool) -> String {
    let mut out = String::new();
    let shapes = counted.first().map_or(0, |queue| queue.plays.len());
    heading(&mut out, "ns an item, modelled", &["alone", "1:1 here", "model/it"], shapes);
    let mut errors = Vec::new();
    for queue in counted {
        let of = |panel| record.and_then(|record| median(record, panel, &queue.name)).unwrap_or(f64::NAN);
        let (alone, here) = (of(ALONE), of(PAIR));
        let error = modelled(queue, 0) / here;
        let _ = write!(out, "{:NAMES$} {:>9} {:>9}", format!("  {}", queue.name), short(alone), short(here));
        let shown = if is_checked && error.is_finite() { format!("{error:.2}") } else { "-".to_owned() };
        let _ = write!(out, " {shown:>9}");
        (0..queue.plays.len()).for_each(|shape| _ = write!(out, " {:>7}", short(modelled(queue, shape))));
        out.push('\n');
        errors.extend(error.is_finite().then(|| error.max(1.0 / error)));
    }
    if let (true, Some(error)) = (is_checked, Summary::of(errors)) {
        let _ = writeln!(
            out,
            "The model is off by a factor of {:.2} at 1:1 (median of these queues), at most {:.2}.",
            error.median, error.most
        );
    }
    out
}

/// Lines that move, and compare-and-swaps that fail.
fn lines(counted: &[Counted]) -> String {
    let mut out = String::new();
    let shapes = counted.first().map_or(0, |queue| queue.plays.len());
    let mut table = |title: &str, of: &dyn Fn(&coherence::Reading) -> u64| {
        heading(&mut out, title, &[], shapes);
        for queue in counted {
            let _ = write!(out, "{:NAMES$}", format!("  {}", queue.name));
            for seeds in &queue.plays {
                let (count, items) = seeds.iter().fold((0, 0), |sum, it| (sum.0 + of(it), sum.1 + it.items));
                let _ = write!(out, " {:7.2}", count as f64 / items as f64);
            }
            out.push('\n');
        }
    };
    table("lines moved an item", &|reading| reading.moved() + reading.upgrades());
    table("failed compare-and-swaps", &|reading| reading.failed);
    out
}
