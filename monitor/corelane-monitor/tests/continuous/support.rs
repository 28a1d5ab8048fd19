//! Runs without an end, and what they gave.

pub(crate) use crate::runs::plan;
use corelane_monitor::{
    Continuous, Findings, Found, Inspection, Job, Observer, Plan, Progress, Report, ScanEvent, Settings, Silence,
    Source,
};
use corelane_net::capture::{LinkType, Reader, Record};
use std::convert::Infallible;

/// What came out between lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Scan(ScanEvent),
    Snapshot(Box<(Report, Findings)>),
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watched {
    /// The report, without what alone depends on the plan.
    pub(crate) report: Report,
    pub(crate) findings: Findings,
    pub(crate) text: Vec<u8>,
    /// News, with the bytes of text before it.
    pub(crate) news: Vec<(usize, News)>,
}

impl Watched {
    pub(crate) fn scans(&self) -> Vec<ScanEvent> {
        let scan = |(_, news): &(usize, News)| match news {
            News::Scan(scan) => Some(scan.clone()),
            News::Snapshot(_) => None,
        };
        self.news.iter().filter_map(scan).collect()
    }

    /// The number of snapshots.
    pub(crate) fn snapshots(&self) -> usize {
        self.news.iter().filter(|(_, news)| matches!(news, News::Snapshot(_))).count()
    }

    /// All but the snapshots: how many there are is a matter of the clock.
    pub(crate) fn without_snapshots(mut self) -> Self {
        self.news.retain(|(_, news)| matches!(news, News::Scan(_)));
        self
    }

    /// The first difference, in few words; `None` if there is none.
    pub(crate) fn difference(&self, other: &Watched) -> Option<String> {
        if self == other {
            return None;
        }
        if self.text != other.text {
            let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
            let (a, b) = (lines(&self.text), lines(&other.text));
            let at = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            return Some(format!("{} and {} lines, line {at}: {:?} and {:?}", a.len(), b.len(), a.get(at), b.get(at)));
        }
        let at = self.news.iter().zip(&other.news).take_while(|(a, b)| a == b).count();
        if (self.news.get(at), other.news.get(at)) != (None, None) {
            return Some(format!("news {at}:\n{:?}\n{:?}", self.news.get(at), other.news.get(at)));
        }
        Some(format!("{:?}\n{:?}\n{:?}\n{:?}", self.report, other.report, self.findings, other.findings))
    }
}

fn comparable(report: &Report) -> Report {
    Report { analyzer_packets: Vec::new(), dispatcher_packets: 0, ..report.clone() }
}

/// All settings of a run but for its plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) settings: Settings,
    pub(crate) continuous: Continuous,
    pub(crate) inspection: Inspection,
}

impl Case {
    /// Scans alone, without events of conversations.
    pub(crate) fn scans_only() -> Self {
        Case { inspection: Inspection { payload: false, ..Inspection::default() }, ..Case::default() }
    }

    pub(crate) fn watch<S: Source + Send>(&self, source: S, plan: &Plan) -> Watched {
        let (mut text, mut news) = (Vec::new(), Vec::new());
        let found = &mut |found: Found<'_>| match found {
            Found::Lines(lines) => text.extend_from_slice(lines),
            Found::Scan(scan) => news.push((text.len(), News::Scan(scan.clone()))),
            Found::Snapshot(report, findings) => {
                let snapshot = (comparable(report), findings.clone());
                news.push((text.len(), News::Snapshot(Box::new(snapshot))));
            }
            Found::Step { .. } => {}
        };
        let observer = Observer { progress: &Progress::new(), damage: &|_, _| {}, found };
        let ran = self.job(plan).run([source], observer);
        let (report, findings) = ran.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
        Watched { report: comparable(&report), findings, text, news }
    }

    pub(crate) fn job(&self, plan: &Plan) -> Job {
        let Case { settings, continuous, inspection } = self.clone();
        Job { settings, plan: plan.clone(), inspection, continuous: Some(continuous) }
    }

    /// In one thread.
    pub(crate) fn alone<S: Source + Send>(&self, source: S) -> Watched {
        self.watch(source, &plan(0, 64))
    }
}

/// Zero to four analyzers, with several capacities.
pub(crate) fn plans() -> Vec<Plan> {
    [(0, 64), (1, 2), (2, 2048), (3, 3), (4, 300), (2, 64), (1, 2048), (4, 2)].map(|(n, c)| plan(n, c)).into()
}

/// What a [`Paced`] does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Record(u64, Vec<u8>),
    /// Says that no record before this time follows.
    Pause(u64),
}

/// Records and pauses in memory.
#[derive(Clone, Debug)]
pub(crate) struct Paced {
    link: LinkType,
    acts: std::vec::IntoIter<Act>,
    /// The time that is told at the end.
    end_ns: Option<u64>,
}

impl Paced {
    pub(crate) fn new(link: LinkType, acts: Vec<Act>, end_ns: Option<u64>) -> Self {
        Paced { link, acts: acts.into_iter(), end_ns }
    }
}

impl Source for Paced {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let mut count = 0;
        while count < max
            && let Some(Act::Record(time_ns, data)) = self.acts.as_slice().first()
        {
            sink(Record { time_ns: *time_ns, wire_len: data.len() as u32, link: self.link, data });
            self.acts.next();
            count += 1;
        }
        Ok(count)
    }

    fn silence(&mut self) -> Silence {
        match self.acts.next() {
            Some(Act::Pause(time_ns)) => Silence::Pause { time_ns },
            Some(Act::Record(..)) => panic!("records are read first"),
            None => Silence::End { time_ns: self.end_ns },
        }
    }
}

/// The records of a capture file in memory.
pub(crate) fn records(capture: Vec<u8>) -> (LinkType, Vec<(u64, Vec<u8>)>) {
    let mut reader = Reader::from_bytes(capture).expect("a capture");
    let (mut link, mut records) = (LinkType::RAW, Vec::new());
    let keep = |record: Record<'_>| {
        link = record.link;
        records.push((record.time_ns, record.data.to_vec()));
    };
    reader.read(usize::MAX, keep).expect("a sound capture");
    (link, records)
}
