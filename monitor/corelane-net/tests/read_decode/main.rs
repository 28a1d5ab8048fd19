//! Reading captures and decoding frames, from outside.

#[path = "../support/captures_folder.rs"]
mod captures_folder;
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
