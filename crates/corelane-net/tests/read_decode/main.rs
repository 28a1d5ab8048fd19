//! Reading captures and decoding frames, from outside.

mod damage;
mod filter;
mod frames;
mod inputs;
mod oracles;
mod pcap;
mod pcapng;
mod support;
mod truth;
mod tunnels;
mod write;
