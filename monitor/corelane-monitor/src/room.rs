//! The room of one table, and counts of refused entries.

use crate::settings::Settings;
use crate::slot::PARTITIONS;
use crate::state_report::StateReport;
use corelane_net::defrag;
use serde::Serialize;

/// The cost of a failure beside its entry, for its group in the MainAnalyzer and its report: so many bytes, and the
/// entry's size times the second number.
const FAILURE: (usize, usize) = (200, 5);
/// The same where groups keep their members, for the tunnels of these.
const MEMBER: usize = 160;
/// The cost of a flow beside its entry: its host, in the list from which the busiest are taken.
const HOST: usize = 350;

/// The most bytes of one table; a table of IPv6 may have half as many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    table: usize,
    flows: usize,
    has_hosts: bool,
    has_members: bool,
}

/// The size of an IPv4 entry.
const V4: usize = 32;

impl Room {
    pub(crate) const UNLIMITED: Room =
        Room { table: usize::MAX, flows: usize::MAX, has_hosts: false, has_members: false };

    /// The room that the settings leave for a partition's tables.
    pub(crate) fn of(settings: &Settings) -> Self {
        let Some(bytes) = settings.table_bytes else { return Room::UNLIMITED };
        let share = usize::try_from(bytes / PARTITIONS as u64).unwrap_or(usize::MAX);
        let kinds = 1 + usize::from(settings.probes) + usize::from(settings.counting.is_some());
        // Two thirds are for IPv4.
        Room {
            table: share / 2 / kinds * 2 / 3,
            flows: share / 3,
            has_hosts: settings.top > 0,
            has_members: settings.tunnels,
        }
    }

    fn has(most: usize, entry: usize, bytes: usize) -> bool {
        bytes <= if entry > V4 { most / 2 } else { most }
    }

    /// Whether there is room for a table of so many entries. Smaller tables before it, half of it and so on, stay with
    /// the pool.
    pub(crate) fn has_table(&self, capacity: usize, entry: usize) -> bool {
        let failure = FAILURE.0 + entry * FAILURE.1 / 2 + if self.has_members { MEMBER } else { 0 };
        self.table == usize::MAX || Room::has(self.table, entry, capacity * 4 * entry + capacity / 16 * 9 * failure)
    }

    /// Whether there is room for an index of so many words, and a flow for every `space` of them.
    pub(crate) fn has_flows(&self, length: usize, space: usize, entry: usize) -> bool {
        let flow = entry + if self.has_hosts { HOST } else { 0 };
        self.flows == usize::MAX || Room::has(self.flows, entry, length * 2 * size_of::<u32>() + length / space * flow)
    }
}

impl Room {
    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.table != usize::MAX
    }

    /// The largest capacity of a table of flows that get old, with so many [doublings](crate::lending) of its share.
    /// Its smaller predecessors stay with the pool.
    pub(crate) fn flows(&self, entry: usize, lent: i8) -> usize {
        Room::capacity(self.flows, entry, lent)
    }

    /// The same of attempts or probes.
    pub(crate) fn failures(&self, entry: usize, lent: i8) -> usize {
        Room::capacity(self.table, entry, lent)
    }

    fn capacity(most: usize, entry: usize, lent: i8) -> usize {
        if most == usize::MAX {
            return 1 << 40;
        }
        let most = if entry > V4 { most / 2 } else { most };
        let entries = (most / (4 * entry)).max(8);
        // At most 2^40, so that shares may be doubled.
        let share = 1 << entries.ilog2().min(40);
        if lent < 0 { (share >> -lent).max(8) } else { share << lent }
    }
}

/// The limits of the fragments of a partition, where conversations are not followed: one for fifteen bytes of tables.
pub(crate) fn fragments(settings: &Settings) -> defrag::Limits {
    let Some(bytes) = settings.table_bytes else { return defrag::Limits::default() };
    let share = usize::try_from(bytes / PARTITIONS as u64).unwrap_or(usize::MAX);
    let bytes = (share / 15).clamp(LEAST_FRAGMENTS, 256 << 10);
    defrag::Limits { bytes, datagrams: (bytes / 256).min(64), ..defrag::Limits::default() }
}

/// So few bytes hold several datagrams of a scan.
const LEAST_FRAGMENTS: usize = 8 << 10;

/// The bytes of a group of failures, with those of its members.
const GROUP: u64 = 400;

/// The most groups of failures: a quarter of what the tables may have is theirs.
pub(crate) fn groups(settings: &Settings) -> usize {
    settings.table_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes / 4 / GROUP).unwrap_or(usize::MAX))
}

/// The most reports that may wait for sensors that are behind, in as much memory as a third of the groups'. A list that
/// grows is there twice for a moment.
pub(crate) fn waiting(settings: &Settings) -> u64 {
    settings.table_bytes.map_or(u64::MAX, |bytes| bytes / 12 / (2 * size_of::<StateReport>() as u64))
}

/// Counts of the packets and attempts that were refused for want of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Packets of flows.
    pub flow_packets: u64,
    /// SYNs of attempts, and other probes.
    pub attempts: u64,
    /// Packets of sources that the settings count.
    pub source_packets: u64,
}

impl Refused {
    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        *self == Refused::default()
    }

    pub(crate) fn add(&mut self, other: &Refused) {
        self.flow_packets += other.flow_packets;
        self.attempts += other.attempts;
        self.source_packets += other.source_packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that all tables of a detector may take: of each family flows, attempts and probes.
    fn bytes(room: &Room, factor: usize) -> usize {
        let [v4, v6] = [V4, 2 * V4];
        let flows = room.flows(v4, 0) * v4 + room.flows(v6, 0) * v6;
        let failures = room.failures(v4, 0) * v4 + room.failures(v6, 0) * v6;
        PARTITIONS * factor * (flows + 2 * failures)
    }

    #[test]
    fn tables_that_get_old_take_their_share_and_not_more() {
        for table_bytes in [39 << 20, 100 << 20, 440 << 20, 3 << 30, 1 << 40] {
            let settings = Settings { table_bytes: Some(table_bytes), ..Settings::default() };
            let room = Room::of(&settings);
            for entry in [V4, 2 * V4] {
                assert!(room.flows(entry, 0).is_power_of_two() && room.failures(entry, 0).is_power_of_two());
            }
            assert!(room.flows(V4, 0) >= 2 * room.flows(2 * V4, 0) && room.flows(V4, 0) >= room.failures(V4, 0));
            // A table, the one that it is rebuilt from, and those that were smaller: at most four times the table.
            assert!(bytes(&room, 4) as u64 <= table_bytes, "{table_bytes}");
            assert!(bytes(&room, 8) as u64 > table_bytes / 2, "{table_bytes}: not much less either");
            let groups = groups(&settings) as u64 * GROUP;
            assert!(groups <= table_bytes / 4);
            let waiting = waiting(&settings) * 2 * size_of::<StateReport>() as u64;
            assert!((waiting * 3).abs_diff(groups) < 2000, "a third of the groups'");
        }
    }

    #[test]
    fn the_least_room_is_a_table_of_the_first_capacity_and_none_is_no_limit() {
        let settings = Settings { table_bytes: Some(0), ..Settings::default() };
        let room = Room::of(&settings);
        assert_eq!([room.flows(V4, 0), room.failures(V4, 0), room.flows(2 * V4, 0), room.failures(2 * V4, 0)], [8; 4]);
        assert_eq!(groups(&settings), 0);
        let room = Room::of(&Settings::default());
        assert_eq!((room.flows(V4, 0), room.failures(2 * V4, 0)), (1 << 40, 1 << 40));
        assert_eq!((groups(&Settings::default()), waiting(&Settings::default())), (usize::MAX, u64::MAX));
    }
}
