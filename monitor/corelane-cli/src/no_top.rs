//! In place of `corelane top`, where the feature `top` is off: a refusal. Nothing else here is ever made.

use crate::args::TopArguments;
use crate::exit::{Exit, left_out, refused};
use crate::input::{Fault, Inputs};
use crate::interrupt::Interrupt;
use corelane_monitor::{Captured, Found, Silence, Source};
use corelane_net::capture::Record;
use std::convert::Infallible;

pub(crate) fn run(_: TopArguments, _: &Interrupt) -> Exit {
    refused(left_out("`corelane top`", "top"))
}

#[derive(Debug)]
pub(crate) enum Screen {}

impl Screen {
    pub(crate) fn begin(&self) {
        match *self {}
    }

    pub(crate) fn found(&self, _: &Found<'_>, _: impl FnOnce() -> Option<Captured>) {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) inputs: Inputs,
    never: Infallible,
}

impl Source for Replay {
    type Error = Fault;

    fn read(&mut self, _: usize, _: impl FnMut(Record<'_>)) -> Result<usize, Fault> {
        match self.never {}
    }

    fn silence(&mut self) -> Silence {
        match self.never {}
    }
}
