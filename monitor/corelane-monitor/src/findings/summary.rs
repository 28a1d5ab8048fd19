//! The findings for people, as tables below those of the report.

use super::Findings;
use crate::eve::Seen;
use crate::summary::{Page, Style, bytes, left, number, plural, right, row};
use crate::talkers::Volume;
use corelane_net::protocol::Protocol;
use std::collections::BTreeMap;
use std::io::{self, Write};

impl Findings {
    /// Writes the findings for people to read, below a report.
    pub fn write_summary(&self, style: Style, mut out: impl Write) -> io::Result<()> {
        let mut page = Page { out: &mut out, style, begun: true };
        page.heading("Protocols")?;
        let mut protocols = BTreeMap::<Protocol, Volume>::new();
        for (&(protocol, _), volume) in &self.protocols {
            protocols.entry(protocol).or_default().add(volume);
        }
        let mut volumes: Vec<_> = protocols.into_iter().collect();
        volumes.sort_by_key(|&(protocol, volume)| (std::cmp::Reverse(volume.bytes), protocol));
        let mut rows: Vec<_> = (volumes.into_iter())
            .map(|(protocol, volume)| line(protocol.name(), &volume, &self.seen.of(protocol)))
            .collect();
        for (name, volumes, what) in
            [("-", &self.unidentified, "payload of no known protocol"), ("-", &self.silent, "no payload")]
        {
            let mut sum = volumes[0];
            sum.add(&volumes[1]);
            if sum.flows > 0 {
                rows.push(line(name, &sum, what));
            }
        }
        if rows.is_empty() {
            return writeln!(page.out, "  no conversations");
        }
        let head = row([left("protocol"), right("conversations"), right("packets"), right("bytes"), left("of them")]);
        page.table(Some(head), &rows)?;
        self.write_losses(&mut page)
    }

    /// Writes the losses of conversations, if there are any.
    fn write_losses<W: Write>(&self, page: &mut Page<'_, W>) -> io::Result<()> {
        let counts = &self.conversations;
        let rows: Vec<_> = [
            ("gaps", counts.gaps, format!("{} that the capture lacks", bytes(counts.gap_bytes))),
            ("midstream", counts.midstream, "conversations that began before the capture".to_owned()),
            ("evicted", counts.evicted, "conversations given up for the memory that others needed".to_owned()),
            (
                "fragments lost",
                self.fragments.evicted,
                "datagrams given up for the memory that others needed".to_owned(),
            ),
        ]
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(name, count, what)| row([left(name), number(count), left(what)]))
        .collect();
        if rows.is_empty() {
            return Ok(());
        }
        page.heading("Not seen")?;
        page.table(None, &rows)
    }
}

fn line(name: &str, volume: &Volume, what: &str) -> Vec<crate::summary::Cell> {
    row([left(name), number(volume.flows), number(volume.packets), right(bytes(volume.bytes)), left(what)])
}

impl Seen {
    /// The counts of messages of one protocol.
    fn of(&self, protocol: Protocol) -> String {
        let two = |a: u64, one: &str, b: u64, other: &str| format!("{}, {}", plural(a, one), plural(b, other));
        match protocol {
            Protocol::Http1 => two(self.http_requests, "request", self.http_responses, "response"),
            Protocol::Tls => two(self.client_hellos, "ClientHello", self.server_hellos, "ServerHello"),
            Protocol::Quic => two(self.quic_client_hellos, "ClientHello", self.quic_server_hellos, "ServerHello"),
            Protocol::Dtls => two(self.dtls_client_hellos, "ClientHello", self.dtls_server_hellos, "ServerHello"),
            Protocol::Dns => {
                let sum = |counts: [u64; 2]| counts.iter().sum();
                two(sum(self.dns_queries), "query", sum(self.dns_responses), "response")
            }
            _ => {
                let unit = if protocol == Protocol::Ssh { "handshake" } else { "message" };
                let count = self.by_type().find(|(name, _)| *name == protocol.name());
                count.map_or(String::new(), |(_, count)| plural(count, unit))
            }
        }
    }
}
