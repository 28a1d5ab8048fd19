//! Carries out a plan: rounds in rotated order, every sample kept.

use crate::experiments::Experiment;
use crate::machine::Machine;
use crate::measure::{Failure, Metric, Reading};
use crate::plan::{Panel, Plan};
use crate::record::{AxisRecord, Bare, FORMAT, LeftOut, PanelRecord, Point, Record, Sample, SeriesRecord};
use crate::roofline;
use crate::setting::Setting;
use crate::stats::Summary;
use crate::topology::{self, Cpu};
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

/// The amount of work in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    /// The intended time of a sample.
    pub(crate) sample: Duration,
    /// If nothing moves for this long, the measurement hangs.
    pub(crate) bound: Duration,
}

impl Effort {
    /// The fewest rounds of a run that may be quoted.
    pub(crate) const LEAST_ROUNDS: usize = 7;

    pub(crate) fn full(rounds: usize) -> Self {
        Effort { quick: false, rounds, sample: Duration::from_millis(150), bound: Duration::from_secs(2) }
    }

    /// Enough to check that everything runs.
    pub(crate) fn quick() -> Self {
        Effort { quick: true, rounds: 1, sample: Duration::from_millis(1), bound: Duration::from_millis(200) }
    }
}

/// Receives the progress of a run: the name of the measurement that begins, how many are done of how many, and about
/// how long the rest takes.
pub(crate) trait Watcher: FnMut(&str, usize, usize, Duration) {}

impl<F: FnMut(&str, usize, usize, Duration)> Watcher for F {}

/// The most items of a sample, whatever the rate.
const MOST: u64 = 1_000_000_000;

/// The most items of a sample that only shows that the case runs.
const MOST_QUICK: u64 = 500;

/// The state of a case during a run.
#[derive(Debug, Default)]
struct Track {
    count: u64,
    readings: Vec<Reading>,
    stopped: Option<String>,
    unable: Option<String>,
    /// How long its last sample took in all, with threads and set-up.
    took: Duration,
}

impl Track {
    fn is_over(&self) -> bool {
        self.stopped.is_some() || self.unable.is_some()
    }
}

/// Runs an experiment.
pub(crate) fn run(experiment: &Experiment, effort: &Effort, watcher: &mut impl Watcher) -> Record {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let clock = Instant::now();
    let mut plan = Plan::new(topology::places());
    (experiment.plan)(&mut plan);
    if effort.quick {
        plan.panels.iter_mut().for_each(one_of_each);
    }
    let mut tracks: Vec<Vec<Track>> =
        plan.panels.iter().map(|panel| panel.cases.iter().map(|_| Track::default()).collect()).collect();

    let mut bare = bare_pairs(&plan);

    // Round 0 is not counted, and a quick run does without. It finds how many items a sample takes, warms everything
    // up, and meets the hangs.
    let cases: usize = plan.panels.iter().map(|panel| panel.cases.len()).sum();
    let of = cases * (effort.rounds + 1);
    let mut done = 0;
    for round in usize::from(effort.quick)..=effort.rounds {
        for bare in &mut bare {
            if let Some((trip, running)) = raw_round_trip(bare.cpus, effort) {
                bare.round_trip_ns.push(trip);
                bare.running.push(running);
            }
        }
        for (p, panel) in plan.panels.iter().enumerate() {
            for index in order(panel, round) {
                let case = &panel.cases[index];
                let left = time_left(&tracks, effort, round, of - done);
                watcher(&format!("{}, {}", panel.title, case.series), done, of, left);
                done += 1;
                let track = &mut tracks[p][index];
                if track.is_over() {
                    continue;
                }
                let measure = |count| {
                    let setting = Setting {
                        cpus: panel.cpus,
                        bound: effort.bound,
                        count,
                        counting: panel.counting,
                        quick: effort.quick,
                    };
                    (case.run)(&setting)
                };
                if effort.quick {
                    track.count = case.least.min(MOST_QUICK);
                }
                let begun = Instant::now();
                let outcome = if round == 0 {
                    calibrate(case.least, effort.sample, measure).map(|count| {
                        track.count = count;
                        track.took = begun.elapsed() + effort.sample;
                    })
                } else {
                    measure(track.count).map(|reading| {
                        track.readings.push(reading);
                        track.took = begun.elapsed();
                    })
                };
                match outcome {
                    Ok(()) => {}
                    Err(Failure::Unable(unable)) => track.unable = Some(unable.0),
                    Err(Failure::Stop(stop)) => track.stopped = Some(stop.to_string()),
                }
            }
        }
    }

    let machine = Machine::look();
    let mut panels = Vec::new();
    for (panel, tracks) in plan.panels.iter().zip(&tracks) {
        panels.extend(panel_records(panel, tracks));
    }
    let mut notes = plan.notes;
    notes.append(&mut plan.found.borrow_mut());
    notes.extend(bare.iter().flat_map(|bare| [moved(bare), taken(bare)]).flatten());
    Record {
        format: FORMAT,
        experiment: experiment.name.to_owned(),
        title: experiment.texts.title.clone(),
        repeats: experiment.texts.repeats.clone(),
        about: experiment.texts.about.clone(),
        parameters: experiment.texts.parameters(),
        quick: effort.quick,
        rounds: effort.rounds,
        sample_seconds: effort.sample.as_secs_f64(),
        started,
        seconds: clock.elapsed().as_secs_f64(),
        notes,
        bare,
        machine,
        panels,
    }
}

/// Leaves one case of each contender, that of its first x.
fn one_of_each(panel: &mut Panel) {
    let mut seen = BTreeSet::new();
    panel.cases.retain(|case| seen.insert(case.series.clone()));
}

/// The cases of a panel in the order of this round: x by x. At each x every contender comes once, and each round starts
/// with another one.
fn order(panel: &Panel, round: usize) -> Vec<usize> {
    let mut groups: Vec<(&[f64], Vec<usize>)> = Vec::new();
    for (index, case) in panel.cases.iter().enumerate() {
        match groups.iter_mut().find(|(xs, _)| *xs == case.xs) {
            Some((_, group)) => group.push(index),
            None => groups.push((&case.xs, vec![index])),
        }
    }
    for (_, group) in &mut groups {
        let first = round % group.len();
        group.rotate_left(first);
    }
    groups.into_iter().flat_map(|(_, group)| group).collect()
}

/// Finds how many items a sample takes. A first measurement of few items is mostly the start of the threads, so the
/// measurement is repeated with the number of items that it suggests.
fn calibrate(least: u64, sample: Duration, measure: impl Fn(u64) -> Result<Reading, Failure>) -> Result<u64, Failure> {
    let mut reading = measure(least)?;
    let mut count = enough(&reading, least, sample);
    while reading.wall < sample / 4 && count > 2 * reading.items {
        let longer = measure(count)?;
        if longer.items <= reading.items {
            // The measurement does no more items, however many are asked for.
            break;
        }
        reading = longer;
        count = enough(&reading, least, sample);
    }
    Ok(count)
}

/// The number of items with which a sample takes about the intended time.
fn enough(reading: &Reading, least: u64, sample: Duration) -> u64 {
    let rate = reading.items as f64 / reading.wall.as_secs_f64().max(1e-9);
    ((rate * sample.as_secs_f64()) as u64).clamp(least, MOST.max(least))
}

/// About how long the remaining measurements take.
fn time_left(tracks: &[Vec<Track>], effort: &Effort, round: usize, steps: usize) -> Duration {
    let running: Vec<&Track> = tracks.iter().flatten().filter(|track| !track.is_over()).collect();
    let known: Vec<f64> =
        running.iter().filter(|track| track.count > 0).map(|track| track.took.as_secs_f64()).collect();
    if round == 0 || known.is_empty() {
        return effort.sample.mul_f64(steps as f64 * 1.1);
    }
    // The rest of this round, and the whole rounds after it, without the cases that have stopped.
    let a_round: f64 = known.iter().sum();
    let cases: usize = tracks.iter().map(Vec::len).sum();
    Duration::from_secs_f64(a_round * steps as f64 / cases as f64)
}

/// Why none of several cases can be measured, if all have the same reason.
fn of_all(tracks: &[Track]) -> Option<&str> {
    let first = tracks.first()?.unable.as_deref()?;
    (tracks.len() > 1 && tracks.iter().all(|track| track.unable.as_deref() == Some(first))).then_some(first)
}

/// The records of a panel's views.
fn panel_records(panel: &Panel, tracks: &[Track]) -> Vec<PanelRecord> {
    panel
        .views
        .iter()
        .map(|view| {
            let mut series: Vec<SeriesRecord> = Vec::new();
            let mut left_out: Vec<LeftOut> = panel
                .left_out
                .iter()
                .map(|(name, reason)| LeftOut { name: name.clone(), reason: reason.clone() })
                .collect();
            if let Some(reason) = of_all(tracks) {
                left_out.push(LeftOut { name: "all".to_owned(), reason: reason.to_owned() });
            }
            for (case, track) in panel.cases.iter().zip(tracks) {
                if let Some(reason) = &track.unable {
                    if of_all(tracks).is_some() {
                        continue;
                    }
                    let name = match panel.x {
                        Some(_) if case.xs.len() == 1 => format!("{} at {}", case.series, case.xs[0]),
                        _ => case.series.clone(),
                    };
                    left_out.push(LeftOut { name, reason: reason.clone() });
                    continue;
                }
                if !track.readings.is_empty() && track.readings.iter().all(|reading| view.metric.of(reading).is_empty())
                {
                    let uncounted =
                        LeftOut { name: case.series.clone(), reason: "the machine does not count this".to_owned() };
                    // Once, however many x the contender has.
                    if !left_out.contains(&uncounted) {
                        left_out.push(uncounted);
                    }
                    continue;
                }
                let of_this = match series.iter().position(|series| series.name == case.series) {
                    Some(position) => &mut series[position],
                    None => {
                        series.push(SeriesRecord { name: case.series.clone(), kind: case.kind, points: Vec::new() });
                        series.last_mut().expect("just pushed")
                    }
                };
                for (i, &x) in case.xs.iter().enumerate() {
                    let samples = track.readings.iter().map(|reading| sample(reading, view.metric, i)).collect();
                    of_this.points.push(Point { x, samples, stopped: track.stopped.clone() });
                }
            }
            let id = if view.id.is_empty() { panel.id.clone() } else { format!("{}.{}", panel.id, view.id) };
            PanelRecord {
                id,
                title: panel.title.clone(),
                x: panel.x.map(|axis| AxisRecord { label: axis.label.to_owned(), scale: axis.scale }),
                y: AxisRecord { label: view.label.to_owned(), scale: view.scale },
                higher_is_better: view.higher_is_better,
                cpus: panel.cpus.iter().flatten().map(|cpu| cpu.0).collect(),
                series,
                left_out,
            }
        })
        .collect()
}

fn sample(reading: &Reading, metric: Metric, i: usize) -> Sample {
    Sample {
        value: metric.of(reading).get(i).copied().unwrap_or(f64::NAN),
        items: reading.items,
        wall_s: reading.wall.as_secs_f64(),
        cpu_s: reading.cpu.as_secs_f64(),
        full: reading.full,
        empty: reading.empty,
        counts: reading.counts,
    }
}

/// The pairs of different CPUs that the panels use. Threads that the system places may be on any CPU, and the usual
/// pair stands for all.
fn bare_pairs(plan: &Plan) -> Vec<Bare> {
    let mut pairs: Vec<Bare> = Vec::new();
    for panel in &plan.panels {
        let cpus = match panel.cpus {
            [Some(a), Some(b)] => Some([a, b]),
            _ => plan.usual_place().map(|place| place.cpus),
        };
        if let Some([a, b]) = cpus
            && a != b
            && pairs.iter().all(|bare| bare.cpus != [a.0, b.0])
        {
            pairs.push(Bare { cpus: [a.0, b.0], round_trip_ns: Vec::new(), running: Vec::new() });
        }
    }
    pairs
}

fn raw_round_trip(cpus: [usize; 2], effort: &Effort) -> Option<(f64, f64)> {
    let count = if effort.quick { 100 } else { (effort.sample.as_nanos() / 200).max(1000) as u64 };
    let setting = Setting {
        cpus: cpus.map(|cpu| Some(Cpu(cpu))),
        bound: effort.bound,
        count,
        counting: false,
        quick: effort.quick,
    };
    let reading = roofline::ping_pong(&setting).ok()?;
    let running = reading.cpu.as_secs_f64() / (2.0 * reading.wall.as_secs_f64());
    Some((*Metric::NanosecondsEach.of(&reading).first()?, running))
}

/// A note if the bare machine changed during the run, for example because a hypervisor moved its CPUs.
fn moved(bare: &Bare) -> Option<String> {
    let trips = Summary::of(bare.round_trip_ns.iter().copied())?;
    (trips.most > 1.5 * trips.least).then(|| {
        let [a, b] = bare.cpus;
        let (least, most) = (trips.least, trips.most);
        format!(
            "The bare machine did not stay the same: a raw round trip between CPUs {a} and {b} took {least:.0} to \
             {most:.0} ns from round to round."
        )
    })
}

/// A note if other work used the CPUs during the run.
fn taken(bare: &Bare) -> Option<String> {
    let running = Summary::of(bare.running.iter().copied())?;
    (running.least < 0.95).then(|| {
        let [a, b] = bare.cpus;
        let percent = (1.0 - running.least) * 100.0;
        format!("Other work ran beside this: in one round it took {percent:.0} % of CPUs {a} and {b}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::Kind;
    use crate::experiments::Texts;
    use crate::measure::Outcome;
    use crate::plan::View;
    use crate::topology::{Near, Place};
    use std::cell::RefCell;
    use std::rc::Rc;

    fn reading(setting: &Setting) -> Outcome {
        Ok(Reading {
            items: setting.count,
            wall: Duration::from_nanos(10 * setting.count),
            cpu: Duration::from_nanos(20 * setting.count),
            full: 1,
            empty: 2,
            counts: None,
            values: Vec::new(),
        })
    }

    #[test]
    fn every_contender_comes_first_once_and_each_x_is_compared_in_one_go() {
        let mut plan = Plan::new(Vec::new());
        let panel = plan.panel("p", "p", None, None, View::NANOSECONDS);
        for x in [1.0, 2.0] {
            for series in ["a", "b", "c"] {
                panel.case(series, Kind::Crate, &[x], 1, reading);
            }
        }
        assert_eq!(order(panel, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(order(panel, 1), [1, 2, 0, 4, 5, 3]);
        assert_eq!(order(panel, 5), [2, 0, 1, 5, 3, 4]);
    }

    #[test]
    fn samples_take_the_time_they_should_and_are_never_too_small() {
        let at_10_ns = |count| {
            reading(&Setting { cpus: [None; 2], bound: Duration::ZERO, count, counting: false, quick: true }).unwrap()
        };
        let items = enough(&at_10_ns(1000), 1000, Duration::from_millis(1));
        assert!(items.abs_diff(100_000) <= 1, "{items}");
        assert_eq!(enough(&at_10_ns(1000), 1_000_000, Duration::from_millis(1)), 1_000_000);
    }

    /// A reading with a start of 100 µs and 1 ns an item, and at most a million items.
    #[test]
    fn what_takes_long_to_start_is_not_taken_for_slow() {
        let runs = RefCell::new(Vec::new());
        let starting = &|count: u64| {
            let items = count.min(1_000_000);
            runs.borrow_mut().push(items);
            let wall = Duration::from_nanos(100_000 + items);
            reading(&Setting { cpus: [None; 2], bound: wall, count: items, counting: false, quick: true })
                .map(|reading| Reading { wall, ..reading })
        };
        let count = |sample| calibrate(1000, Duration::from_millis(sample), starting).unwrap();
        let items = count(1);
        assert!((800_000..=1_000_000).contains(&items), "{items}");
        assert!(runs.borrow().len() > 1);
        runs.borrow_mut().clear();
        // The measurement ends where there are no more items.
        assert!(count(100) > 1_000_000 && runs.borrow().len() <= 4, "{runs:?}");
    }

    #[test]
    fn a_machine_that_changes_is_noticed() {
        let bare =
            |trips: &[f64]| Bare { cpus: [0, 1], round_trip_ns: trips.to_vec(), running: vec![1.0; trips.len()] };
        assert_eq!(moved(&bare(&[])), None);
        assert_eq!(moved(&bare(&[100.0, 149.0])), None);
        assert!(moved(&bare(&[100.0, 110.0, 390.0])).unwrap().contains("100 to 390 ns"));

        let busy = |running: &[f64]| Bare { running: running.to_vec(), ..bare(&[100.0]) };
        assert_eq!(taken(&busy(&[0.99, 1.0, 0.96])), None);
        assert!(taken(&busy(&[0.99, 0.5, 1.0])).unwrap().contains("took 50 %"));
    }

    #[test]
    fn the_bare_machine_is_watched_where_threads_are_not_pinned_too() {
        let pairs = |cpus: &[[Option<Cpu>; 2]]| {
            let mut plan = Plan::new(vec![Place { near: Near::L3, cpus: [Cpu(0), Cpu(2)] }]);
            for &cpus in cpus {
                plan.panel_on("p", "p", cpus, None, View::NANOSECONDS);
            }
            bare_pairs(&plan).into_iter().map(|bare| bare.cpus).collect::<Vec<_>>()
        };
        let [one, other] = [[0, 1], [1, 1]].map(|cpus| cpus.map(|cpu| Some(Cpu(cpu))));
        assert_eq!(pairs(&[one, other, one]), [[0, 1]]);
        assert_eq!(pairs(&[[None; 2], one, [None; 2]]), [[0, 2], [0, 1]]);
        assert!(bare_pairs(&Plan::new(Vec::new())).is_empty());
    }

    #[test]
    fn what_all_lack_is_said_once() {
        let experiment = Experiment {
            name: "x",
            texts: Texts::default(),
            plan: |plan| {
                let unable = |_: &Setting| Err(crate::contenders::Unable::because("no files").into());
                let panel = plan.panel("p", "p", None, None, View::NANOSECONDS);
                panel.case("a", Kind::Crate, &[0.0], 1, unable);
                panel.case("b", Kind::Crate, &[0.0], 1, unable);
                let panel = plan.panel("q", "q", None, None, View::NANOSECONDS);
                panel.case("a", Kind::Crate, &[0.0], 1, unable);
                panel.case("b", Kind::Crate, &[0.0], 1, reading);
                let hits = View { metric: Metric::L1HitPercent, ..View::NANOSECONDS };
                let panel = plan.panel("r", "r", None, None, hits);
                panel.case("a", Kind::Crate, &[1.0], 1, reading);
                panel.case("a", Kind::Crate, &[2.0], 1, reading);
            },
        };
        let record =
            run(&experiment, &Effort { quick: false, rounds: 2, ..Effort::quick() }, &mut |_: &str, done, of, _| {
                assert!(done < of);
            });
        let names = |panel: &PanelRecord| -> Vec<String> {
            panel.left_out.iter().map(|left_out| left_out.name.clone()).collect()
        };
        assert_eq!(record.panels.iter().map(names).collect::<Vec<_>>(), [["all"], ["a"], ["a"]]);
    }

    thread_local! {
        static RUNS: Rc<RefCell<Vec<&'static str>>> = Rc::default();
    }

    #[test]
    fn what_hangs_is_recorded_and_not_run_again() {
        let experiment = Experiment {
            name: "x",
            texts: Texts::default(),
            plan: |plan| {
                let panel = plan.panel("p", "p", None, None, View::NANOSECONDS);
                panel.view(View::CPU_NANOSECONDS);
                panel.leave_out("absent", "for a reason");
                panel.case("good", Kind::Crate, &[0.0], 1000, |setting| {
                    RUNS.with(|runs| runs.borrow_mut().push("good"));
                    reading(setting)
                });
                panel.case("bad", Kind::Paper, &[0.0], 1000, |_| {
                    RUNS.with(|runs| runs.borrow_mut().push("bad"));
                    Err(crate::rig::Stop::Hangs(Duration::from_secs(2)).into())
                });
            },
        };
        let record =
            run(&experiment, &Effort { quick: false, rounds: 2, ..Effort::quick() }, &mut |_: &str, done, of, _| {
                assert!(done < of);
            });
        RUNS.with(|runs| assert_eq!(*runs.borrow(), ["good", "good", "bad", "good", "good"]));
        assert_eq!(record.panels.len(), 2);
        let panel = &record.panels[0];
        let median = |panel: &PanelRecord| panel.point("good", 0.0).unwrap().summary().unwrap().median;
        assert_eq!((median(panel).round(), median(&record.panels[1]).round()), (10.0, 20.0));
        let bad = panel.point("bad", 0.0).unwrap();
        assert_eq!((bad.samples.len(), bad.stopped.as_deref()), (0, Some("hangs: nothing moved for 2 s")));
        assert_eq!(panel.left_out[0].reason, "for a reason");
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}
