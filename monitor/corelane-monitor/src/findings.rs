//! The results of the second analysis, in numbers.

mod summary;

use crate::eve::Seen;
use crate::facts::Facts;
use crate::talkers::Volume;
use corelane_net::conversation::{Conversation, Counts, Side, State};
use corelane_net::defrag;
use corelane_net::protocol::Protocol;
use std::collections::BTreeMap;

/// The results of the second analysis, in numbers. They depend only on the packets, the settings and the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// Conversations by protocol, over TCP and over UDP.
    pub protocols: BTreeMap<(Protocol, bool), Volume>,
    /// Conversations with payload whose protocol was not identified, over UDP and over TCP.
    pub unidentified: [Volume; 2],
    /// Conversations without payload, over UDP and over TCP.
    pub silent: [Volume; 2],
    /// The number of conversations that ended as new, established and closed.
    pub ended: [u64; 3],
    /// The messages that were read in them.
    pub seen: Seen,
    /// Counts of packets and conversations.
    pub conversations: Counts,
    /// Counts of fragments.
    pub fragments: defrag::Counts,
    /// Datagrams of other protocols than TCP and UDP.
    pub others: u64,
    /// Datagrams whose TCP or UDP header is wrong or cut.
    pub malformed: u64,
    /// The most bytes that conversations had reserved: the maximum of each partition over all marks, added up.
    pub conversation_bytes: u64,
    /// The same for fragments.
    pub fragment_bytes: u64,
    /// Facts for people, if they were [gathered](crate::Inspection::facts): of a whole capture, or, where [time passes
    /// in steps](crate::Continuous), of the time since the last [snapshot](crate::Found::Snapshot), in the end too. All
    /// other numbers are of the time since the start.
    pub facts: Option<Box<Facts>>,
}

impl Findings {
    /// Counts a conversation that is over. `payload` says whether it had any.
    pub(crate) fn over(&mut self, conversation: &Conversation, protocol: Option<Protocol>, payload: bool) {
        let is_tcp = conversation.is_tcp();
        let volume = match protocol {
            Some(protocol) => self.protocols.entry((protocol, is_tcp)).or_default(),
            None if payload => &mut self.unidentified[usize::from(is_tcp)],
            None => &mut self.silent[usize::from(is_tcp)],
        };
        let both =
            |count: fn(&Conversation, Side) -> u64| Side::BOTH.map(|side| count(conversation, side)).iter().sum();
        volume.add(&Volume { flows: 1, packets: both(Conversation::packets), bytes: both(Conversation::bytes) });
        self.ended[match conversation.state() {
            State::New => 0,
            State::Established => 1,
            State::Closed => 2,
        }] += 1;
    }

    /// Adds the results of another stage.
    pub(crate) fn add(&mut self, other: &Findings) {
        for (key, volume) in &other.protocols {
            self.protocols.entry(*key).or_default().add(volume);
        }
        for (sum, volume) in
            self.unidentified.iter_mut().chain(&mut self.silent).zip(other.unidentified.iter().chain(&other.silent))
        {
            sum.add(volume);
        }
        self.ended.iter_mut().zip(other.ended).for_each(|(sum, count)| *sum += count);
        self.seen.add(&other.seen);
        self.conversations.add(&other.conversations);
        self.fragments.add(&other.fragments);
        self.others += other.others;
        self.malformed += other.malformed;
        self.conversation_bytes += other.conversation_bytes;
        self.fragment_bytes += other.fragment_bytes;
    }

    /// The conversations over UDP and over TCP.
    pub(crate) fn flows(&self) -> [u64; 2] {
        let mut flows = [0, 1].map(|carrier| self.unidentified[carrier].flows + self.silent[carrier].flows);
        for ((_, is_tcp), volume) in &self.protocols {
            flows[usize::from(*is_tcp)] += volume.flows;
        }
        flows
    }
}
