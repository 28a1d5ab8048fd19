//! The process in namespaces of its own: makes the interfaces, and plays what it is told, line by line.

use super::frames::Frames;
use super::host::READY;
use super::receiver::{self, Shared, receive};
use super::sender::Sender;
use super::{Order, Played, Traffic};
use crate::topology::{self, Cpu};
use corelane_net::capture::live::Live;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};
use std::process::Command;
use std::{fs, thread};

/// The ends of the pair of interfaces.
const FROM: &str = "a0";
const TO: &str = "b0";

/// Answers each line of the standard input, until there are no more.
pub(crate) fn guest(quick: bool) -> Result<(), String> {
    let (sender, receivers) = spread(topology::cpus());
    join()?;
    // Threads of the contenders get this thread's CPUs.
    give(receivers).map_err(|error| format!("pinning: {error}"))?;
    let socket = Sender::open(FROM).map_err(|error| format!("{FROM}: a packet socket: {error}"))?;
    let mut made = BTreeMap::new();
    answer(READY)?;
    for line in io::stdin().lines() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        let order: Order = serde_json::from_str(&line).map_err(|error| format!("an order: {error}"))?;
        let played =
            frames(&mut made, order.traffic, quick).and_then(|frames| play(&order, &socket, sender, frames, quick));
        answer(&serde_json::to_string(&played).map_err(|error| format!("an answer: {error}"))?)?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<(), String> {
    let mut out = io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}

/// The frames of this kind, which are made once.
fn frames(made: &mut BTreeMap<Traffic, Frames>, traffic: Traffic, quick: bool) -> Result<&mut Frames, String> {
    match made.entry(traffic) {
        Entry::Occupied(made) => Ok(made.into_mut()),
        Entry::Vacant(place) => Ok(place.insert(Frames::of(traffic, quick)?)),
    }
}

/// The sender's CPU, and those of the receivers. With a single CPU they share it.
fn spread(cpus: &[Cpu]) -> (Option<Cpu>, &[Cpu]) {
    match cpus {
        [] => (None, &[]),
        [only] => (Some(*only), cpus),
        [first, others @ ..] => (Some(*first), others),
    }
}

/// Leaves these CPUs to the calling thread, and to those that it starts.
fn give(cpus: &[Cpu]) -> io::Result<()> {
    let mut set = CpuSet::new();
    let known = cpus.iter().filter(|cpu| cpu.0 < CpuSet::MAX_CPU);
    known.clone().for_each(|cpu| set.set(cpu.0));
    if known.count() > 0 { Ok(sched_setaffinity(None, &set)?) } else { Ok(()) }
}

/// Makes the interfaces, on which nothing but our own frames comes.
fn join() -> Result<(), String> {
    for which in ["all", "default"] {
        // Without IPv6 there is nothing to switch off.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    ip(&format!("link add {FROM} mtu 65535 type veth peer name {TO} mtu 65535"))?;
    ip(&format!("link set {FROM} up"))?;
    ip(&format!("link set {TO} up"))
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn play(order: &Order, sender: &Sender, cpu: Option<Cpu>, frames: &mut Frames, quick: bool) -> Result<Played, String> {
    let live = Live::open(TO, &receiver::options(order.contender, quick)).map_err(|error| error.to_string())?;
    let shared = &Shared::default();
    let (played, received) = thread::scope(|scope| {
        let sending = scope.spawn(move || {
            /// Lets the reader end, also if this thread panics.
            struct Stop<'a>(&'a Shared);
            impl Drop for Stop<'_> {
                fn drop(&mut self) {
                    self.0.stop();
                }
            }
            let _stop = Stop(shared);
            if let Some(cpu) = cpu {
                topology::pin(cpu);
            }
            sender.play(order, frames, shared)
        });
        let received = receive(order.contender, live, shared);
        (sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), received)
    });
    // What the receiver says comes first: it may be why the sender has failed.
    received?;
    let played = played.map_err(|error| format!("{FROM}: sending: {error}"))?;
    let counts = shared.counts().ok_or("the ring was not read to the end")?;
    Ok(Played { received: counts.received, dropped: counts.dropped, ..played })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receivers_get_all_cpus_but_the_senders_if_there_are_two() {
        let cpus = [1, 3, 5].map(Cpu);
        assert_eq!(spread(&cpus), (Some(Cpu(1)), &cpus[1..]));
        assert_eq!(spread(&cpus[..1]), (Some(Cpu(1)), &cpus[..1]));
        assert_eq!(spread(&[]), (None, &[][..]));
    }
}
