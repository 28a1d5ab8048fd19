//! Writing pcap files.
