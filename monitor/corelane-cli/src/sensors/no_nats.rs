//! In place of the connection to a NATS server, where the feature `nats` is off. [`Place`](super::Place) refuses the
//! names of servers then, so that nothing here is ever reached.

use super::Engine;
use super::connection::Connection;
use super::engine::without_nats;
use std::path::Path;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct NatsOptions;

impl NatsOptions {
    pub(crate) fn new(_: &Connection) -> Self {
        NatsOptions
    }

    pub(crate) fn check(&self, _: &str) -> Result<(), String> {
        Err(without_nats())
    }
}

pub(crate) fn engine(_: &str, _: &NatsOptions, _: bool) -> Result<Box<dyn Engine>, String> {
    Err(without_nats())
}

#[derive(Debug)]
pub(crate) enum Sender {}

#[derive(Debug)]
pub(crate) struct SenderState {
    pub(crate) acknowledged: Option<(u64, u64)>,
    pub(crate) error: Option<String>,
}

impl Sender {
    pub(crate) fn start(_: &str, _: &NatsOptions, _: &Path, _: &str) -> Result<Self, String> {
        Err(without_nats())
    }

    pub(crate) fn state(&self) -> SenderState {
        match *self {}
    }

    pub(crate) fn finish(self, _: Duration) -> bool {
        match self {}
    }
}
