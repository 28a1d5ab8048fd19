//! Counts of messages, which each type of event adds to.

use super::Events;

/// Counts of the messages that were read in conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// HTTP requests.
    pub http_requests: u64,
    /// HTTP responses but for 1xx.
    pub http_responses: u64,
    /// HTTP responses 1xx.
    pub http_interim: u64,
    /// TLS ClientHellos.
    pub client_hellos: u64,
    /// TLS ServerHellos.
    pub server_hellos: u64,
    /// ClientHellos in QUIC.
    pub quic_client_hellos: u64,
    /// ServerHellos in QUIC.
    pub quic_server_hellos: u64,
    /// DTLS ClientHellos.
    pub dtls_client_hellos: u64,
    /// DTLS ServerHellos.
    pub dtls_server_hellos: u64,
    /// DNS queries, over UDP and over TCP.
    pub dns_queries: [u64; 2],
    /// DNS responses, over UDP and over TCP.
    pub dns_responses: [u64; 2],
    /// The events of each type of message, over UDP and over TCP, written or not.
    pub(crate) events: [[u64; 2]; Events::NAMES.len()],
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Seen) {
        self.http_requests += other.http_requests;
        self.http_responses += other.http_responses;
        self.http_interim += other.http_interim;
        self.client_hellos += other.client_hellos;
        self.server_hellos += other.server_hellos;
        self.quic_client_hellos += other.quic_client_hellos;
        self.quic_server_hellos += other.quic_server_hellos;
        self.dtls_client_hellos += other.dtls_client_hellos;
        self.dtls_server_hellos += other.dtls_server_hellos;
        let sums = [&mut self.dns_queries, &mut self.dns_responses].into_iter().chain(&mut self.events);
        let counts = [&other.dns_queries, &other.dns_responses].into_iter().chain(&other.events);
        for (sum, count) in sums.flatten().zip(counts.flatten()) {
            *sum += count;
        }
    }

    /// The events of the messages of one type, over UDP and over TCP, written or not.
    pub(crate) fn events(&self, event_type: Events) -> [u64; 2] {
        self.events[event_type.place()]
    }

    /// The events of each type of message, written or not: HTTP exchanges, TLS, QUIC and SSH handshakes, DNS messages.
    pub fn by_type(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let types = Events::NAMES.into_iter().filter(|(_, event_type)| Events::MESSAGES.has(*event_type));
        types.map(|(name, event_type)| (name, self.events(event_type).iter().sum()))
    }
}
