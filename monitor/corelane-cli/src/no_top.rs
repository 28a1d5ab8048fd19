//! In place of `corelane top`, where the feature `top` is off: a refusal.

use crate::args::TopArguments;
use crate::exit::{Exit, left_out, refused};
use crate::interrupt::Interrupt;

pub(crate) fn run(_: TopArguments, _: &Interrupt) -> Exit {
    refused(left_out("`corelane top`", "top"))
}
