//! Records per second of reading and decoding one capture, in memory: `walk FILE [ROUNDS]`. For tuning.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use corelane_net::capture::{Options, Reader};
use corelane_net::decode::{Decoded, decode};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let file = PathBuf::from(arguments.next().ok_or("usage: walk FILE [ROUNDS]")?);
    let rounds = arguments.next().map_or(Ok(5), |rounds| rounds.to_string_lossy().parse::<u32>());
    let rounds = rounds.map_err(|_| "ROUNDS must be a whole number")?;
    for _ in 0..rounds {
        walk("walk        ", &file, |_, _| 0)?;
        walk("walk, decode", &file, |link, data| match decode(link, data) {
            Decoded::V4(packet) => packet.source.wrapping_add(packet.destination) ^ u32::from(packet.flags),
            Decoded::V6(packet) => (packet.source ^ packet.destination) as u32,
            Decoded::OtherIp | Decoded::Fragment => 1,
            Decoded::Undecoded => 2,
            Decoded::Malformed => 3,
        })?;
    }
    let mut kinds = BTreeMap::<&str, u64>::new();
    let mut reader = Reader::open(&file, &Options::default())?;
    while reader.read(1024, |record| {
        *kinds.entry(name(decode(record.link, record.data))).or_default() += 1;
    })? > 0
    {}
    println!("{kinds:?}");
    Ok(())
}

fn walk(
    what: &str,
    file: &std::path::Path,
    mut look: impl FnMut(corelane_net::capture::LinkType, &[u8]) -> u32,
) -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::open(file, &Options::default().preload(true))?;
    let start = Instant::now();
    let (mut records, mut bytes, mut sum) = (0_usize, 0_u64, 0_u32);
    loop {
        let count = reader.read(4096, |record| {
            bytes += u64::from(record.wire_len);
            sum = sum.wrapping_add(look(record.link, record.data) ^ record.time_ns as u32);
        })?;
        if count == 0 {
            break;
        }
        records += count;
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = records as f64 / seconds / 1e6;
    println!("{what} {rate:8.1} M records/s  {records} records, {bytes} bytes, check {sum:08x}");
    Ok(())
}

fn name(decoded: Decoded) -> &'static str {
    match decoded {
        Decoded::V4(_) => "v4",
        Decoded::V6(_) => "v6",
        Decoded::Fragment => "a fragment",
        Decoded::OtherIp => "other IP",
        Decoded::Undecoded => "undecoded",
        Decoded::Malformed => "malformed",
    }
}
