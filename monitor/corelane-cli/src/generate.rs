//! `corelane gen`: a synthetic capture into a file or a pipe.

use crate::args::GenArguments;
use crate::exit::{Exit, complain, refused};
use crate::input::Watch;
use crate::interrupt::Interrupt;
use crate::output::{How, Output, is_one_output};
use crate::progress::{Gauge, Meter, ProgressKind};
use corelane_net::capture::write::PcapWriter;
use corelane_net::synth::{Config, Generator, LINK, truth_json};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Frames between two checks of the interrupt.
const STEP: usize = 4096;

/// Writes all remaining frames of `generator`. False if the user ended the run.
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
        probe_scans: arguments.probe_scans,
        ..Config::default()
    };
    let mut generator = match Generator::new(config) {
        Ok(generator) => generator,
        Err(error) => return refused(error),
    };
    if let Some(truth) = &arguments.truth
        && is_one_output(truth, &arguments.out)
    {
        return refused(format_args!(
            "{}: cannot hold both the capture and its scans; choose two files",
            truth.display()
        ));
    }
    let open = |path: &Path| Output::open(path, How::Replace, interrupt);
    let is_new = arguments.truth.as_ref().is_some_and(|path| !path.exists());
    let truth = match arguments.truth.as_deref().map(open).transpose() {
        Ok(truth) => truth,
        Err(error) => return refused(error).and(interrupt.exit()),
    };
    let out = match open(&arguments.out).map_err(|error| error.to_string()) {
        Ok(out) if !out.is_terminal() => out,
        out => {
            let why = out
                .err()
                .unwrap_or("OUT is a terminal, and a capture is binary; name a file, or pipe it on".to_owned());
            let exit = refused(why).and(interrupt.exit());
            // What it held before stays.
            truth.into_iter().filter(|_| is_new).for_each(Output::remove);
            return exit;
        }
    };
    if let Err(error) = [&out].into_iter().chain(&truth).try_for_each(Output::begin) {
        return refused(error);
    }
    #[cfg(target_os = "linux")]
    {
        // What is not complete is removed.
        let folders_rw = crate::output::folders([&arguments.out].into_iter().chain(&arguments.truth));
        let confinement = crate::confine::Confinement { folders_rw, ..Default::default() };
        if let Err(refusal) = confinement.apply() {
            return refused(refusal);
        }
    }
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    let meter =
        Meter::start("Generating", ProgressKind::Packets, Some(arguments.packets), &watch.gauge, arguments.quiet);
    let mut whole = false;
    let written = out.write(|out| {
        let snaplen = generator.config().file_snaplen();
        let mut writer = PcapWriter::new(out, snaplen, LINK)?;
        whole = write_frames(&mut generator, &mut writer, &watch)?;
        writer.finish().map(drop)
    });
    drop(meter);
    if let Err(error) = written {
        complain(error);
        discard(out, truth);
        return Exit::Partial;
    }
    if !whole && truth.is_some() {
        // Either the reader has gone away, or the user ended the run. The scans are still wanted in the first case.
        while !interrupt.is_set() && generator.next_frame().is_some() {}
    }
    if interrupt.is_set() && !whole {
        complain("interrupted before the capture was complete");
        discard(out, truth);
        return interrupt.exit();
    }
    let Some(truth) = truth else { return Exit::Done };
    let json = truth_json(&generator.truth());
    truth.write(|out| writeln!(out, "{json}")).unwrap_or_else(|error| {
        complain(error);
        Exit::Partial
    })
}

/// Removes files that look whole and are not.
fn discard(out: Output, truth: Option<Output>) {
    [Some(out), truth].into_iter().flatten().for_each(Output::remove);
}
