//! The series of conversations that facts tell apart: by protocol.

use corelane_net::protocol::Protocol;

/// The names of the series of conversations in a [`Bin`](super::Bin): the protocols, payload of none of them, no
/// payload.
pub const SERIES: [&str; Protocol::ALL.len() + 2] = {
    let mut names = ["unknown"; Protocol::ALL.len() + 2];
    let mut place = 0;
    while place < Protocol::ALL.len() {
        names[place] = Protocol::ALL[place].name();
        place += 1;
    }
    names[Protocol::ALL.len() + 1] = "no payload";
    names
};

/// The place of a protocol among the [series](SERIES).
pub fn series_of(protocol: Protocol) -> usize {
    // Their order is that of the type, and a test says so.
    protocol as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_place() {
        for (place, protocol) in Protocol::ALL.iter().enumerate() {
            assert_eq!((series_of(*protocol), SERIES[place]), (place, protocol.name()));
        }
        assert_eq!(SERIES[Protocol::ALL.len()..], ["unknown", "no payload"]);
    }
}
