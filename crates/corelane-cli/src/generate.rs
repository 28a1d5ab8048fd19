//! `corelane gen`: a synthetic capture into a file or a pipe.

use crate::args::GenArguments;
use crate::exit::{Exit, complain, refused};
use crate::input::Watch;
use crate::interrupt::Interrupt;
use crate::output::{Output, same_file};
use crate::progress::{Gauge, Meter, Shows};
use corelane_net::capture::write::PcapWriter;
use corelane_net::synth::{Config, Generator, LINK, truth_json};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Frames between two looks at the interrupt.
const STEP: usize = 4096;

/// Writes all frames that `generator` has left. False if the user ended it.
pub(crate) fn write_frames<W: Write>(
    generator: &mut Generator,
    writer: &mut PcapWriter<W>,
    watch: &Watch,
) -> io::Result<bool> {
    let (mut packets, mut bytes) = (0, 0);
    loop {
        for _ in 0..STEP {
            let Some(record) = generator.next_frame() else { return Ok(true) };
            writer.write(record.time_ns, record.wire_len, record.data)?;
            packets += 1;
            bytes += u64::from(record.wire_len);
        }
        watch.gauge.packets.set(packets, bytes);
        watch.gauge.set(packets);
        if watch.interrupt.is_set() {
            return Ok(false);
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &GenArguments, interrupt: &Interrupt) -> Exit {
    let config = Config {
        packets: arguments.packets,
        hosts: arguments.hosts,
        seed: arguments.seed,
        snaplen: arguments.snaplen,
        packets_per_second: arguments.rate,
        vertical_scans: arguments.vertical_scans,
        horizontal_scans: arguments.horizontal_scans,
        ..Config::default()
    };
    let mut generator = match Generator::new(config) {
        Ok(generator) => generator,
        Err(error) => return refused(error),
    };
    if let Some(truth) = &arguments.truth
        && is_one_output(truth, &arguments.out)
    {
        return refused(format_args!("{}: cannot hold both the capture and its scans", truth.display()));
    }
    let out = match Output::create(&arguments.out) {
        Ok(out) if out.is_terminal() => return refused("a capture is not for terminals: name a file, or pipe it on"),
        Ok(out) => out,
        Err(error) => return refused(error),
    };
    let truth = match &arguments.truth {
        Some(path) => match Output::create(path) {
            Ok(truth) => Some(truth),
            Err(error) => {
                out.remove();
                return refused(error);
            }
        },
        None => None,
    };

    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    let meter = Meter::start("Generating", Shows::Packets, Some(arguments.packets), &watch.gauge, arguments.quiet);
    let mut whole = false;
    let written = out.write(|out| {
        let snaplen = generator.config().file_snaplen();
        let mut writer = PcapWriter::new(out, snaplen, LINK)?;
        whole = write_frames(&mut generator, &mut writer, &watch)?;
        writer.finish().map(drop)
    });
    drop(meter);
    match written {
        Err(error) => {
            complain(error);
            discard(out, truth);
            Exit::Partial
        }
        Ok(_) if interrupt.is_set() && !whole => {
            discard(out, truth);
            interrupt.exit()
        }
        // The reader has gone away: there is nobody to tell the truth to, but a file for it is still wanted.
        Ok(exit) => {
            if !whole {
                while generator.next_frame().is_some() && !interrupt.is_set() {}
            }
            let Some(truth) = truth else { return exit };
            let json = truth_json(&generator.truth());
            exit.and(truth.write(|out| writeln!(out, "{json}")).unwrap_or_else(|error| {
                complain(error);
                Exit::Partial
            }))
        }
    }
}

/// Whether what is written to both gets mixed up. Devices may take everything.
fn is_one_output(a: &Path, b: &Path) -> bool {
    let is_device = fs::metadata(a).is_ok_and(|facts| !facts.is_file());
    (a == b && !is_device) || same_file(a, b)
}

/// Leaves no file that looks whole and is not.
fn discard(out: Output, truth: Option<Output>) {
    out.remove();
    if let Some(truth) = truth {
        truth.remove();
    }
}
