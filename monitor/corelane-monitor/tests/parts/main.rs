//! One capture in parts, of rings or of sensors: the parts together find what one monitor finds.

#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
#[path = "../continuous/choices.rs"]
mod choices;
#[allow(dead_code, reason = "shared with the tests of whole captures, which need more of it")]
#[path = "../it/packets.rs"]
mod packets;
#[path = "../support/records.rs"]
mod records;
mod rings;
mod sensors;
#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "../support/traffic.rs"]
mod traffic;
