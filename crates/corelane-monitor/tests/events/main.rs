//! The second analysis from outside: captures in, events out.

mod broken;
mod limits;
mod numbers;
mod order;
mod support;
mod truth;
mod tunnels;
mod wire;
