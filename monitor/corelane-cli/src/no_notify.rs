//! In place of `notify.rs` where there is no systemd: no run there is a service of it.

use std::io;
use std::time::Instant;

/// There is none.
#[derive(Debug)]
pub(crate) enum Notify {}

impl Notify {
    pub(crate) fn ready(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn reloading(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn alive(&mut self, _: Instant) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn stopping(&self) -> io::Result<()> {
        match *self {}
    }
}
