//! Makes events and numbers of conversations.

use super::lines::{Key, Lines};
use super::stage::ENOUGH;
use super::talk::{Hello, Name, Talk};
use crate::eve::tls::Hellos;
use crate::eve::{self, Events, Message};
use crate::facts::Gather;
use crate::findings::Findings;
use corelane_net::conversation::{Conversation, Ending, Observer, Side};
use corelane_net::decode::Tunnel;
use corelane_net::protocol::{Detail, Event, Identified};

/// The most events for which a partition keeps room.
const KEPT: usize = 8;

/// A conversation, and the tunnel that it came through.
#[derive(Clone, Copy)]
struct Subject<'a> {
    conversation: &'a Conversation,
    tunnel: Option<&'a Tunnel>,
}

/// The observer of the conversations of one partition, for one packet or mark.
pub(super) struct Records<'a> {
    pub(super) key: Key,
    pub(super) partition: u8,
    /// The number of conversations of the partition that have got a name.
    pub(super) named: &'a mut u64,
    /// The events that are written.
    pub(super) wanted: Events,
    /// Whether attempts that led to nothing are flows among them.
    pub(super) attempts: bool,
    pub(super) lines: &'a mut Lines,
    pub(super) findings: &'a mut Findings,
    /// If facts for people are gathered.
    pub(super) facts: Option<Gather<'a>>,
    /// Takes the lines whenever there are [`ENOUGH`], where many conversations may end.
    pub(super) out: Option<&'a mut dyn FnMut(&mut Lines)>,
}

impl Observer<Talk> for Records<'_> {
    fn begin(&mut self, conversation: &Conversation) -> Option<Talk> {
        let gathers = self.facts.is_some();
        let kept = self.facts.as_mut().and_then(|facts| facts.begin(conversation));
        let detail = if self.wanted.has(Events::MESSAGES) || gathers { Detail::Full } else { Detail::Counts };
        let name = self.name(conversation);
        Some(Talk::new(conversation, name, detail, (gathers, kept)))
    }

    fn progress(
        &mut self,
        conversation: &Conversation,
        talk: &mut Talk,
        tunnel: Option<&Tunnel>,
        found: &mut Vec<Event>,
    ) {
        self.events(Subject { conversation, tunnel }, talk, found, self.key.packet_number());
    }

    fn attempted(&mut self, attempt: &Conversation, ending: &Ending) {
        if self.attempts && self.wanted.has(Events::FLOW) {
            let name = self.name(attempt);
            self.flow(attempt, Side::Originator, name.as_ref(), &eve::flow::Flow::without_payload(ending));
        }
    }

    fn over(&mut self, conversation: &Conversation, ending: &Ending, talk: Option<Talk>, found: &mut Vec<Event>) {
        let subject = Subject { conversation, tunnel: ending.tunnel.as_ref() };
        let payload = talk.is_some();
        let mut kept = None;
        let (name, protocol, before, client, transactions) = match talk {
            Some(mut talk) => {
                // The current packet, if there is one, does not cause these events: it is another conversation's, which
                // needs the memory or the ports.
                self.events(subject, &mut talk, found, None);
                self.lone_hello(subject, &mut talk);
                let (protocol, client) = (talk.protocol(), talk.client());
                kept = talk.kept;
                (talk.name, protocol, talk.before, client, talk.transactions)
            }
            None => (self.name(conversation), None, None, Side::Originator, 0),
        };
        self.findings.over(conversation, protocol, payload);
        if let Some(facts) = &mut self.facts {
            facts.count(conversation, protocol, client, (payload, kept.as_deref_mut()), true);
        }
        if self.wanted.has(Events::FLOW) {
            let flow = eve::flow::Flow { protocol, before, payload, transactions, ending };
            self.flow(conversation, client, name.as_ref(), &flow);
        }
        if self.lines.len() >= ENOUGH
            && let Some(out) = &mut self.out
        {
            out(self.lines);
        }
    }
}

impl Records<'_> {
    /// Writes the event of a conversation that is over.
    fn flow(&mut self, conversation: &Conversation, client: Side, name: Option<&Name>, flow: &eve::flow::Flow<'_>) {
        let subject = Subject { conversation, tunnel: flow.ending.tunnel.as_ref() };
        // A group of hosts is no client.
        let client = if conversation.end(client).ip().is_multicast() { client.other() } else { client };
        let header = header(subject, client, name, conversation.last_ns(), None);
        self.lines.push(self.key, |line| eve::flow::write(line, &header, conversation, client, flow));
    }

    /// The name of a conversation, if any event of it is written.
    fn name(&mut self, conversation: &Conversation) -> Option<Name> {
        (self.wanted.has(Events::MESSAGES) || self.wanted.has(Events::FLOW)).then(|| {
            *self.named += 1;
            Name::new(conversation, self.partition, *self.named)
        })
    }

    /// Takes the events of a conversation; `number` is that of the packet that caused them, if one did.
    fn events(&mut self, subject: Subject<'_>, talk: &mut Talk, found: &mut Vec<Event>, number: Option<u64>) {
        for event in found.drain(..) {
            self.event(subject, talk, event, number);
        }
        if talk.is_unasked() {
            self.lone_hello(subject, talk);
        }
        // One packet may bring many events; every partition has a list.
        if found.capacity() > KEPT {
            *found = Vec::new();
        }
    }

    fn event(&mut self, subject: Subject<'_>, talk: &mut Talk, event: Event, number: Option<u64>) {
        if let Some(facts) = &mut self.facts {
            facts.event(subject.conversation, &event, &mut talk.kept);
        }
        let seen = &mut self.findings.seen;
        match event {
            Event::Identified(identified) => {
                talk.before = talk.identified.map(|before| before.protocol).or(talk.before);
                let client = talk.identified.and_then(|before| before.client).or(identified.client);
                talk.identified = Some(Identified { client, ..identified });
            }
            Event::ClientHello(hello) => {
                let count = match hello.quic {
                    Some(_) => &mut seen.quic_client_hellos,
                    None if hello.is_dtls() => &mut seen.dtls_client_hellos,
                    None => &mut seen.client_hellos,
                };
                *count += 1;
                if let Some(identified) = &mut talk.identified {
                    identified.client = Some(hello.client);
                }
                match talk.hello.take() {
                    Some((Hello::Server(answer), _)) if answer.server != hello.client => {
                        let hellos = Hellos { client: Some(&hello), server: Some(&answer) };
                        self.message(subject, talk, &hellos, number);
                    }
                    other => {
                        talk.hello = other;
                        self.lone_hello(subject, talk);
                        talk.hello = Some((Hello::Client(hello), number));
                    }
                }
            }
            Event::ServerHello(hello) => {
                let count = match hello.quic {
                    Some(_) => &mut seen.quic_server_hellos,
                    None if hello.is_dtls() => &mut seen.dtls_server_hellos,
                    None => &mut seen.server_hellos,
                };
                *count += 1;
                match talk.hello.take() {
                    Some((Hello::Client(asked), _)) => {
                        self.message(subject, talk, &Hellos { client: Some(&asked), server: Some(&hello) }, number);
                    }
                    other => {
                        talk.hello = other;
                        self.lone_hello(subject, talk);
                        talk.hello = Some((Hello::Server(hello), number));
                    }
                }
            }
            other => {
                if let Some(message) = eve::message(&other) {
                    if let (Some(client), Some(identified)) = (message.client(), &mut talk.identified) {
                        identified.client = Some(client);
                    }
                    self.message(subject, talk, message, number);
                }
            }
        }
    }

    /// Counts a message and writes its event.
    fn message(&mut self, subject: Subject<'_>, talk: &mut Talk, message: &dyn Message, number: Option<u64>) {
        let (event_type, is_tcp) = (message.event_type(), subject.conversation.is_tcp());
        talk.transactions += u64::from(message.is_transaction());
        self.findings.seen.events[event_type.place()][usize::from(is_tcp)] += 1;
        message.count(&mut self.findings.seen, is_tcp);
        if self.wanted.has(event_type) {
            let header = header(subject, message.from(), talk.name.as_ref(), message.time_ns(), number);
            self.lines.push(self.key, |line| message.write(line, &header));
        }
    }

    /// Records a hello whose counterpart is not awaited any longer.
    fn lone_hello(&mut self, subject: Subject<'_>, talk: &mut Talk) {
        if let Some((hello, number)) = talk.hello.take() {
            let hellos = match &hello {
                Hello::Client(hello) => Hellos { client: Some(hello), server: None },
                Hello::Server(hello) => Hellos { client: None, server: Some(hello) },
            };
            self.message(subject, talk, &hellos, number);
        }
    }
}

/// The common beginning of all events of a conversation, for an event from this side.
fn header<'a>(
    subject: Subject<'_>,
    from: Side,
    name: Option<&'a Name>,
    time_ns: u64,
    number: Option<u64>,
) -> eve::Header<'a> {
    let Subject { conversation, tunnel } = subject;
    eve::Header {
        time_ns,
        flow_id: name.map_or(0, |name| name.flow_id),
        number,
        source: conversation.end(from),
        destination: conversation.end(from.other()),
        is_tcp: conversation.is_tcp(),
        vlans: conversation.vlans(),
        community_id: name.map_or("", |name| name.community_id.as_str()),
        tunnel: tunnel.map(|&tunnel| if from == Side::Originator { tunnel } else { tunnel.turned() }),
    }
}
