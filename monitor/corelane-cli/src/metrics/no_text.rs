//! In place of the text of `/metrics`, where the feature `metrics` is off, and `--metrics` is refused.

use super::Served;
use std::fmt::Debug;

pub(super) const CONTENT_TYPE: &str = "";

pub(crate) trait Collected: Debug + Send + Sync + 'static {}

impl<T: Debug + Send + Sync + 'static> Collected for T {}

pub(super) fn metrics(_: impl Served) -> String {
    String::new()
}
