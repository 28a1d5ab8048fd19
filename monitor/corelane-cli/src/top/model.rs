//! What the screen shows: the facts of each step, added up in bounded tables.
//!
//! The output stage of the run writes it and the screen reads it, both under one lock. Neither holds the lock while it
//! waits for anything, so a terminal that is slow costs the run nothing.

mod site;

#[cfg(test)]
pub(super) use site::batches;
pub(super) use site::{Presence, Site, Source};

use super::filter::Subject;
use super::text;
use corelane_monitor::facts::{Facts, NameKind, Port, SERIES, Service};
use corelane_monitor::sensors::Header;
use corelane_monitor::{Alert, Captured, Probe, Report, ScanEvent, ScanState, StateReport};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

/// Seconds of rates that are kept.
const SECONDS: usize = 600;
/// Alerts and messages that are kept.
const ALERTS: usize = 1000;
const MESSAGES: usize = 100;
/// Seconds for which a message about sensors is shown.
const NEWS: u64 = 60;
/// Entries of a table after which the lighter half goes.
const ENTRIES: usize = 8192;
/// The most services that a host is known to have reached, and other lists of an entry.
const REACHED: usize = 64;
const FEW: usize = 8;
/// Seconds over which rates are averaged.
const WINDOW: u64 = 4;

/// Bytes, or what else is counted, of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    bytes: [u64; WINDOW as usize],
    /// The latest second that was written.
    at: u64,
}

impl Recent {
    pub(super) fn add(&mut self, second: u64, bytes: u64) {
        if second < self.at {
            // Of seconds that are forgotten nothing is kept.
            if self.at - second < WINDOW {
                self.bytes[(second % WINDOW) as usize] += bytes;
            }
            return;
        }
        for stale in (self.at + 1..=second).rev().take(WINDOW as usize) {
            self.bytes[(stale % WINDOW) as usize] = 0;
        }
        self.at = second;
        self.bytes[(second % WINDOW) as usize] += bytes;
    }

    /// Bytes a second, as seen from this second.
    pub(super) fn rate(&self, second: u64) -> u64 {
        let kept = (self.at + 1).saturating_sub(WINDOW)..=self.at;
        let seen = second.saturating_sub(WINDOW - 1).max(*kept.start())..=self.at;
        let sum: u64 = seen.map(|second| self.bytes[(second % WINDOW) as usize]).sum();
        // In the first seconds there are fewer.
        sum / (second + 1).clamp(1, WINDOW)
    }
}

/// What passed in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u64,
}

/// A host.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) out: Recent,
    pub(super) into: Recent,
    pub(super) conversations: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) ports: Vec<Port>,
    pub(super) names: Vec<String>,
    pub(super) protocols: Vec<&'static str>,
    /// Services that answered it.
    pub(super) reached: Vec<Service>,
    /// Whether there were more.
    pub(super) reached_more: bool,
}

/// The client's end, the server's, and whether it is a TCP connection.
pub(super) type Ends = (SocketAddr, SocketAddr, bool);

/// A conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    /// Bytes that the client and the server sent.
    pub(super) bytes: [u64; 2],
    pub(super) recent: Recent,
    pub(super) last_ns: u64,
    pub(super) protocol: &'static str,
    pub(super) name: Option<String>,
}

/// A name that was asked for or served.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    pub(super) count: u64,
    pub(super) answers: u64,
    pub(super) last_ns: u64,
    /// Hosts, and how often each asked: at least so often, if there were more.
    pub(super) clients: Vec<(IpAddr, u64)>,
    pub(super) clients_more: bool,
    pub(super) servers: Vec<IpAddr>,
}

/// How far the run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing can be shown yet.
    #[default]
    Opening,
    /// The analysis runs.
    Running,
    /// It is over.
    Over,
    /// It could not begin.
    Failed,
}

/// All that the screen shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// An interface, captures, or where sensors publish.
    pub(super) what: String,
    pub(super) is_live: bool,
    pub(super) state: State,
    /// Rises with every change.
    pub(super) version: u64,
    /// The last news of each scan, those that were found last first.
    pub(super) scans: VecDeque<ScanEvent>,
    /// Scans that were alerted in all.
    pub(super) alerts: u64,
    pub(super) messages: VecDeque<String>,
    /// What passes here …
    pub(super) wire: Wire,
    /// … or, instead of that, what many sensors report.
    pub(super) site: Option<Site>,
}

/// What passes on an interface, or in captures.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    /// The seconds of the run, and the last of them.
    pub(super) second: u64,
    pub(super) seconds: VecDeque<Second>,
    /// The step of the last packet, as far as time has come.
    step: Option<u64>,
    pub(super) total: Second,
    pub(super) times: Option<(u64, u64)>,
    pub(super) hosts: HashMap<IpAddr, Host>,
    pub(super) conversations: HashMap<Ends, Conversation>,
    pub(super) names: HashMap<(usize, String), Name>,
    /// Whether entries were given up: of hosts, conversations and names.
    pub(super) is_cut: [bool; 3],
}

/// The names of the kinds of names, by their places.
pub(super) const KINDS: [&str; 3] = ["http", "tls", "dns"];
const _: () = assert!(NameKind::Http as usize == 0 && NameKind::Tls as usize == 1 && NameKind::Dns as usize == 2);

impl Model {
    pub(super) fn new(what: String, is_live: bool) -> Self {
        Model { what, is_live, ..Model::default() }
    }

    /// One of many sensors.
    pub(super) fn of_sensors(what: String) -> Self {
        Model { site: Some(Site::default()), ..Model::new(what, true) }
    }

    pub(super) fn set(&mut self, state: State) {
        self.state = state;
        self.version += 1;
    }

    pub(super) fn message(&mut self, text: &str) {
        self.messages.push_back(text::clean(text));
        latest(&mut self.messages, MESSAGES);
        self.site.iter_mut().for_each(|site| site.said = site.now);
        self.version += 1;
    }

    /// The last message. What became of a sensor is news for a while only.
    pub(super) fn said(&self) -> Option<&String> {
        let is_news = self.site.as_ref().is_none_or(|site| site.now - site.said < NEWS);
        self.messages.back().filter(|_| is_news)
    }

    /// Takes news of a scan.
    pub(super) fn scan(&mut self, event: &ScanEvent) {
        self.version += 1;
        if event.state != ScanState::Found {
            let is_it = |scan: &&mut ScanEvent| scan.state == ScanState::Found && scan.is_of(event);
            if let Some(scan) = self.scans.iter_mut().find(is_it) {
                *scan = event.clone();
            }
            return;
        }
        self.alerts += 1;
        self.scans.push_front(event.clone());
        self.scans.truncate(ALERTS);
    }

    /// Takes how far scans are that go on, in the order of the times at which they were found.
    fn go_on(&mut self, events: &[ScanEvent]) {
        for scan in self.scans.iter_mut().filter(|scan| scan.state == ScanState::Found) {
            let found_ns = scan.scan.time_ns();
            let at = events.partition_point(|event| event.scan.time_ns() < found_ns);
            let mut same = events[at..].iter().take_while(|event| event.scan.time_ns() == found_ns);
            if let Some(event) = same.find(|event| event.is_of(scan)) {
                *scan = event.clone();
            }
        }
    }

    /// Takes the reports of a batch of a sensor.
    pub(super) fn reports(&mut self, header: &Header, reports: &[StateReport]) {
        self.version += 1;
        if let Some(site) = &mut self.site {
            site.reports(header, reports);
            site.tidy(&self.scans);
        }
    }

    /// Takes the numbers at the end of a step, and the facts since the last one.
    pub(super) fn step(&mut self, report: &Report, facts: Option<&Facts>, captured: Option<&Captured>) {
        self.version += 1;
        self.wire.step(report, captured);
        if let Some(facts) = facts {
            self.go_on(&facts.going_on);
            // Those that were alerted stay, as what they reached is asked for.
            let scanners = self.scans.iter().map(|event| event.scan.source()).collect();
            self.wire.facts(facts, &scanners);
        }
    }

    /// What answered a scan: ports of its target, or hosts; and whether there may be more.
    pub(super) fn answers(&self, event: &ScanEvent) -> (Vec<Service>, bool) {
        let Some(host) = self.wire.hosts.get(&event.scan.source()) else { return (Vec::new(), false) };
        // As on the page: whatever a probe by odd flags brings back, it does not say that a port is open.
        if !matches!(event.probe, None | Some(Probe::Udp)) {
            return (Vec::new(), false);
        }
        let is_tcp = event.probe != Some(Probe::Udp);
        let mut found: Vec<_> = (host.reached.iter().copied())
            .filter(|service| service.port.is_tcp == is_tcp)
            .filter(|service| match event.scan {
                Alert::Vertical { destination, .. } => service.host == destination,
                Alert::Horizontal { port, .. } => service.port.number == port,
                // What answered of all that the source asked for says little of these.
                Alert::Block { .. } => false,
            })
            .collect();
        found.sort_unstable();
        (found, host.reached_more)
    }

    /// What the filter looks at in a scan. As on the page, what answered is part of it. `text` is that of its row.
    pub(super) fn subject_of(&self, event: &ScanEvent, text: &str) -> Subject {
        let text = text.to_lowercase();
        let mut subject = Subject { hosts: vec![event.scan.source()], text, ..Subject::default() };
        for service in self.answers(event).0 {
            subject.hosts.push(service.host);
            subject.ports.push(service.port.number);
        }
        match event.scan {
            Alert::Vertical { destination, .. } => subject.hosts.push(destination),
            Alert::Horizontal { port, .. } if event.probe.is_none_or(Probe::has_port) => subject.ports.push(port),
            Alert::Horizontal { .. } => {}
            Alert::Block { .. } => {}
        }
        let probe = event.probe.map_or("syn".to_owned(), |probe| probe.to_string().to_lowercase());
        subject.protocols = vec!["scan".to_owned(), event.scan.kind().to_owned(), probe];
        subject
    }
}

impl Wire {
    fn step(&mut self, report: &Report, captured: Option<&Captured>) {
        self.times = report.times;
        let total = Second {
            packets: report.packets,
            bytes: report.bytes,
            drops: captured.map_or(0, |captured| captured.kernel_drops),
        };
        // A wire that is silent has ends of steps too, a second apart. What came after a pause came in its last second.
        let last = report.times.map_or(0, |(_, last_ns)| last_ns / 1_000_000_000);
        let before = self.step.unwrap_or_else(|| last.saturating_sub(1));
        let step = last.max(before + 1);
        self.step = Some(step);
        let pause = step - before - 1;
        self.second += pause + u64::from(!self.seconds.is_empty());
        self.seconds.extend((0..pause.min(SECONDS as u64)).map(|_| Second::default()));
        self.seconds.push_back(Second {
            packets: total.packets.saturating_sub(self.total.packets),
            bytes: total.bytes.saturating_sub(self.total.bytes),
            drops: total.drops.saturating_sub(self.total.drops),
        });
        latest(&mut self.seconds, SECONDS);
        self.total = total;
    }

    /// Takes facts; hosts that are scanners stay.
    fn facts(&mut self, facts: &Facts, scanners: &HashSet<IpAddr>) {
        let now = self.second;
        for (address, counted) in &facts.hosts {
            let host = self.hosts.entry(*address).or_insert_with(|| Host { first_ns: u64::MAX, ..Host::default() });
            host.sent += counted.sent;
            host.received += counted.received;
            host.out.add(now, counted.sent);
            host.into.add(now, counted.received);
            host.conversations += u64::from(counted.conversations);
            host.first_ns = host.first_ns.min(counted.span.0);
            host.last_ns = host.last_ns.max(counted.span.1);
            for port in counted.ports() {
                add(&mut host.ports, FEW, port);
            }
            for name in counted.names().items() {
                add(&mut host.names, FEW, text::clean(name));
            }
            for protocol in counted.protocols() {
                add(&mut host.protocols, FEW, protocol.name());
            }
            for service in counted.reached().items() {
                host.reached_more |= !add(&mut host.reached, REACHED, *service);
            }
            host.reached_more |= counted.reached().has_more();
        }
        for counted in &facts.conversations {
            let ends = (counted.ends[0], counted.ends[1], counted.is_tcp);
            let entry = self.conversations.entry(ends).or_default();
            entry.bytes.iter_mut().zip(counted.bytes).for_each(|(sum, bytes)| *sum += bytes);
            entry.recent.add(now, counted.bytes.iter().sum());
            (_, entry.last_ns) = counted.times;
            entry.protocol = SERIES[counted.series];
            if let Some(name) = &counted.name {
                entry.name = Some(text::clean(name));
            }
        }
        for (kind, names) in facts.names.iter().enumerate() {
            for (name, counted) in names {
                let entry = self.names.entry((kind, text::clean(name))).or_default();
                entry.count += counted.count;
                entry.answers += counted.answers;
                entry.last_ns = entry.last_ns.max(counted.span.1);
                entry.clients_more |= counted.clients.has_more();
                for (host, count) in counted.clients.items() {
                    let has_room = entry.clients.len() < FEW;
                    match entry.clients.iter_mut().find(|(known, _)| *known == host) {
                        Some((_, sum)) => *sum += count,
                        None if has_room => entry.clients.push((host, count)),
                        None => entry.clients_more = true,
                    }
                }
                for host in counted.servers.items() {
                    add(&mut entry.servers, FEW, *host);
                }
            }
        }
        self.is_cut[0] |= halve(&mut self.hosts, |address, host| {
            let rate = host.out.rate(now) + host.into.rate(now);
            (scanners.contains(address), rate, host.sent + host.received)
        });
        self.is_cut[1] |=
            halve(&mut self.conversations, |_, counted| (counted.recent.rate(now), counted.bytes.iter().sum::<u64>()));
        self.is_cut[2] |= halve(&mut self.names, |_, name| (name.last_ns, name.count));
    }

    /// Up to when time has come, in nanoseconds since the epoch: it passes on a silent wire too.
    pub(super) fn now_ns(&self) -> Option<u64> {
        let (_, last_ns) = self.times?;
        Some(last_ns.max(self.step.unwrap_or(0).saturating_mul(1_000_000_000)))
    }
}

/// What the filter looks at.
impl Host {
    pub(super) fn subject(&self, address: IpAddr) -> Subject {
        Subject {
            hosts: vec![address],
            ports: self.ports.iter().map(|port| port.number).collect(),
            names: lower(&self.names),
            protocols: lower(&self.protocols),
            ..Subject::default()
        }
    }
}

impl Conversation {
    pub(super) fn subject(&self, (client, server, is_tcp): Ends) -> Subject {
        Subject {
            hosts: vec![client.ip(), server.ip()],
            ports: vec![client.port(), server.port()],
            names: self.name.iter().map(|name| name.to_lowercase()).collect(),
            protocols: lower(&[self.protocol, if is_tcp { "tcp" } else { "udp" }]),
            ..Subject::default()
        }
    }
}

impl Name {
    pub(super) fn subject(&self, kind: usize, name: &str) -> Subject {
        Subject {
            hosts: self.clients.iter().map(|&(host, _)| host).chain(self.servers.iter().copied()).collect(),
            names: vec![name.to_lowercase()],
            protocols: vec![KINDS[kind].to_owned()],
            ..Subject::default()
        }
    }
}

/// Keeps the last of a list.
fn latest<T>(list: &mut VecDeque<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

fn lower(texts: &[impl AsRef<str>]) -> Vec<String> {
    texts.iter().map(|text| text.as_ref().to_lowercase()).collect()
}

/// Adds an item that is not there, if there is room. Says whether it is there then.
fn add<T: PartialEq>(list: &mut Vec<T>, most: usize, item: T) -> bool {
    let is_known = list.contains(&item);
    if !is_known && list.len() < most {
        list.push(item);
        return true;
    }
    is_known
}

/// Gives up the lighter half of a table that is full. Says whether it did.
fn halve<K: Hash + Eq + Clone, V, W: Ord>(table: &mut HashMap<K, V>, weight: impl Fn(&K, &V) -> W) -> bool {
    if table.len() <= ENTRIES {
        return false;
    }
    let mut order: Vec<_> = table.iter().map(|(key, value)| (weight(key, value), key.clone())).collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let half = order.len() - ENTRIES / 2;
    for (_, key) in order.drain(..half) {
        table.remove(&key);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn report(packets: u64, last_s: u64) -> Report {
        let mut report = Report::default();
        (report.packets, report.bytes, report.times) = (packets, 100 * packets, Some((SECOND, last_s * SECOND)));
        report
    }

    fn packets(model: &Model) -> Vec<u64> {
        model.wire.seconds.iter().map(|second| second.packets).collect()
    }

    #[test]
    fn rates_are_means_of_the_last_seconds() {
        let mut recent = Recent::default();
        recent.add(0, 400);
        assert_eq!(recent.rate(0), 400, "the first second is all there is");
        recent.add(1, 200);
        assert_eq!(recent.rate(1), 300);
        recent.add(3, 200);
        assert_eq!([3, 4, 5, 6, 7].map(|second| recent.rate(second)), [200, 100, 50, 50, 0]);
        recent.add(9, 4);
        assert_eq!((recent.rate(9), recent.bytes.iter().sum::<u64>()), (1, 4));
        // What comes late counts where it belongs.
        recent.add(7, 4);
        recent.add(5, 4000);
        assert_eq!((recent.rate(9), recent.rate(10)), (2, 2));
    }

    #[test]
    fn seconds_follow_each_other_also_through_pauses_and_silence() {
        let mut model = Model::new(String::new(), true);
        model.step(&report(10, 100), None, None);
        model.step(&report(30, 101), None, None);
        // Five seconds later, and only now does that come.
        model.step(&report(31, 106), None, None);
        assert_eq!(packets(&model), [10, 20, 0, 0, 0, 0, 1]);
        // A silent wire ends its steps, and then goes on where time has come to.
        model.step(&report(31, 106), None, None);
        model.step(&report(31, 106), None, None);
        model.step(&report(40, 109), None, None);
        assert_eq!(packets(&model)[6..], [1, 0, 0, 9]);
        assert_eq!(model.wire.second + 1, model.wire.seconds.len() as u64);
        model.step(&report(41, 1 << 30), None, None);
        assert_eq!((model.wire.seconds.len(), model.wire.seconds.back().unwrap().packets), (SECONDS, 1));
    }

    #[test]
    fn drops_are_those_of_each_second() {
        let mut model = Model::new(String::new(), true);
        for (second, drops) in (100..).zip([0, 5, 5, 7]) {
            let captured = Captured { kernel_drops: drops, ..Captured::default() };
            model.step(&report(second, second), None, Some(&captured));
        }
        assert_eq!(model.wire.seconds.iter().map(|second| second.drops).collect::<Vec<_>>(), [0, 5, 0, 2]);
    }

    #[test]
    fn the_lighter_half_of_a_full_table_goes() {
        let mut table: HashMap<u64, u64> = (0..=ENTRIES as u64).map(|key| (key, key)).collect();
        assert!(halve(&mut table, |key, &value| (*key == 7, value)));
        assert_eq!(table.len(), ENTRIES / 2);
        assert!(table.contains_key(&7) && table.contains_key(&(ENTRIES as u64)) && !table.contains_key(&8));
        assert!(!halve(&mut table, |_, &value| value));
    }

    #[test]
    fn the_end_of_a_scan_belongs_to_its_beginning() {
        let (source, destination) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let event = |time_ns, count, state| {
            let scan = Alert::Vertical { source, destination, count, time_ns };
            ScanEvent { probe: None, scan, first_ns: 4, distinct: count, tunnel: None, state }
        };
        let mut model = Model::default();
        model.scan(&event(5, 21, ScanState::Found));
        model.scan(&event(9, 21, ScanState::Found));
        // Of what is not known here nothing is taken.
        model.go_on(
            &[(1, 30), (5, 40), (7, 50), (9, 60)].map(|(time_ns, count)| event(time_ns, count, ScanState::Found)),
        );
        assert_eq!(model.scans.iter().map(|event| event.distinct).collect::<Vec<_>>(), [60, 40]);
        model.scan(&event(5, 800, ScanState::Ended { last_ns: 8 }));
        model.go_on(&[event(5, 40, ScanState::Found)]);
        let scans: Vec<_> = model.scans.iter().map(|event| (event.state, event.scan.count())).collect();
        assert_eq!(scans, [(ScanState::Found, 60), (ScanState::Ended { last_ns: 8 }, 800)]);
        assert_eq!(model.alerts, 2);
        let service = |host, number| Service { host, port: Port { is_tcp: true, number } };
        let reached = vec![service(destination, 443), service(source, 1), service(destination, 22)];
        model.wire.hosts.insert(source, Host { reached, ..Host::default() });
        let answers = |event: &ScanEvent| -> Vec<_> {
            model.answers(event).0.iter().map(|service| service.port.number).collect()
        };
        let mut event = model.scans[0].clone();
        assert_eq!(answers(&event), [22, 443]);
        // What a connection of the same host has reached was not found by its odd flags.
        event.probe = Some(Probe::Xmas);
        assert!(answers(&event).is_empty());
        event.probe = None;
        event.scan = Alert::Horizontal { source, port: 1, count: 21, time_ns: 0 };
        assert_eq!(answers(&event), [1]);
        event.probe = Some(Probe::Udp);
        assert!(answers(&event).is_empty(), "TCP answers no UDP");
    }
}
