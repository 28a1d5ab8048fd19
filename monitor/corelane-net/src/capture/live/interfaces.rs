//! The interfaces of this machine.

use std::fs;
use std::io;
use std::path::Path;

use super::link_type;
use crate::capture::record::LinkType;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, as [`Live::open`](super::Live::open) takes it.
    pub name: String,
    /// Its number. An interface that is deleted and made again gets another one.
    pub index: u32,
    /// Whether it is set up. It may still have no carrier.
    pub is_up: bool,
    /// Whether it leads back to this machine only.
    pub is_loopback: bool,
    /// The longest packet in bytes, without the link header.
    pub mtu: u32,
    /// The link type of its frames; `None` if they cannot be captured here.
    pub link: Option<LinkType>,
}

/// The interfaces of this machine, by index.
///
/// # Errors
///
/// If `/sys/class/net` cannot be listed. That is the list of the network namespace in which `/sys` was mounted.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/class/net")? {
        let entry = entry?;
        // Not every entry is an interface, and one may go away meanwhile.
        if let Some(interface) = interface(&entry.path(), entry.file_name().to_string_lossy().into_owned()) {
            found.push(interface);
        }
    }
    found.sort_by_key(|interface| interface.index);
    Ok(found)
}

fn interface(folder: &Path, name: String) -> Option<Interface> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<u32>().ok();
    let flags = i64::from_str_radix(read("flags")?.trim().trim_start_matches("0x"), 16).ok()?;
    let has = |flag: i32| flags & i64::from(flag) != 0;
    Some(Interface {
        name,
        index: number("ifindex")?,
        is_up: has(libc::IFF_UP),
        is_loopback: has(libc::IFF_LOOPBACK),
        mtu: number("mtu")?,
        link: link_type(number("type")? as u16),
    })
}
