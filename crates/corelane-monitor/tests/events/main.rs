//! The second analysis from outside: captures in, events out.

mod broken;
mod limits;
mod numbers;
mod order;
mod printed;
mod support;
mod truth;
