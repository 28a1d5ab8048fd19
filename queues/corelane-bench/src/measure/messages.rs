//! Messages of bytes through one queue, and round a ring of threads.

use super::reading::{Outcome, Reading};
use crate::contenders::Unable;
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use crate::topology::{Cpu, cpus};
use std::hint::spin_loop;
use std::thread;

/// The sending end of a queue of messages of bytes, or of pointers to them.
pub(crate) trait Sends: Send + 'static {
    /// Pushes a message if there is room.
    fn try_send(&mut self, message: &[u8]) -> bool;
}

/// The receiving end.
pub(crate) trait Receives: Send + 'static {
    /// Pops a message, if there is one, and lets `read` see it.
    fn try_receive<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// Every message begins with its length, as the case study's messages do.
const PREFIX: usize = 4;
/// How many messages are made before the measurement: a message written just before its copy would delay the copy.
const MOST: usize = 1024;
/// The most messages a sample moves: a queue without a bound holds everything that its consumer has not read yet.
const MOST_BYTES: u64 = 256 << 20;

/// A stock of messages, side by side in memory.
struct Stock {
    bytes: Vec<u8>,
    /// Where each message starts, and where the last one ends.
    starts: Vec<u32>,
    mask: usize,
}

impl Stock {
    /// Makes messages of `least` to `longest` bytes, in an order without a pattern.
    fn new(least: usize, longest: usize) -> Self {
        let count = (MOST * 32 / longest.max(32)).next_power_of_two();
        let mut stock = Stock { bytes: Vec::new(), starts: vec![0], mask: count - 1 };
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for number in 0..count {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let len = least + (random >> 20) as usize % (longest - least + 1);
            stock.bytes.extend_from_slice(&(len as u32).to_ne_bytes());
            stock.bytes.resize(stock.bytes.len() + len - PREFIX, number as u8);
            stock.starts.push(stock.bytes.len() as u32);
        }
        stock
    }

    #[inline(always)]
    fn message(&self, number: u64) -> &[u8] {
        let index = number as usize & self.mask;
        &self.bytes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    /// The expected result of `sign` for the message of this number.
    #[inline(always)]
    fn due(&self, number: u64) -> u64 {
        let index = number as usize & self.mask;
        let len = self.starts[index + 1] - self.starts[index];
        u64::from(len) << 8 | u64::from(index as u8)
    }
}

/// Length and contents of a message, if its length is true and its payload is whole at both ends.
#[inline(always)]
fn sign(message: &[u8]) -> u64 {
    let &[a, b, c, d, first, ..] = message else { return u64::MAX };
    let last = message[message.len() - 1];
    if u32::from_ne_bytes([a, b, c, d]) as usize == message.len() && first == last {
        (message.len() as u64) << 8 | u64::from(last)
    } else {
        u64::MAX
    }
}

fn enough(setting: &Setting, longest: usize) -> u64 {
    setting.count.min(MOST_BYTES / longest as u64).max(1)
}

/// Streams messages of `least` to `longest` bytes.
pub(crate) fn messages<X: Sends, Y: Receives>(
    (tx, rx): (X, Y),
    setting: &Setting,
    least: usize,
    longest: usize,
) -> Outcome {
    let count = enough(setting, longest);
    let warm = count.min(4096);
    let produce: Work<u64> = Box::new(move |side| {
        let mut tx = tx;
        let stock = Stock::new(least, longest);
        push(&mut tx, &stock, 0..warm, side)?;
        side.start()?;
        let full = push(&mut tx, &stock, warm..warm + count, side)?;
        side.stop();
        Ok(full)
    });
    let consume: Work<u64> = Box::new(move |side| {
        let mut rx = rx;
        let stock = Stock::new(least, longest);
        pop(&mut rx, &stock, 0..warm, side)?;
        side.start()?;
        let empty = pop(&mut rx, &stock, warm..warm + count, side)?;
        side.stop();
        Ok(empty)
    });
    let (tries, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    Ok(Reading { full: tries[0], empty: tries[1], ..Reading::new(count, took) })
}

#[inline(always)]
fn push<X: Sends>(tx: &mut X, stock: &Stock, numbers: std::ops::Range<u64>, side: &Side) -> Result<u64, Stop> {
    let mut full = 0_u64;
    for number in numbers {
        let message = stock.message(number);
        side.until(&mut full, number, spin_loop, || tx.try_send(message).then_some(()))?;
    }
    Ok(full)
}

#[inline(always)]
fn pop<Y: Receives>(rx: &mut Y, stock: &Stock, numbers: std::ops::Range<u64>, side: &Side) -> Result<u64, Stop> {
    let mut empty = 0_u64;
    for number in numbers {
        let got = side.until(&mut empty, number, spin_loop, || rx.try_receive(sign))?;
        side.check(got, stock.due(number))?;
    }
    Ok(empty)
}

/// The last message, of the least length. A message of the stock may look like it, so the end of a stream also tells
/// the number of the last message.
const END: [u8; 5] = [5, 0, 0, 0, 255];
/// How many messages the main thread emits before it takes back those that have come round.
const BURST: u64 = 1024;

/// A main thread and `workers` other threads in a ring. The main thread emits messages of 5 to 20 bytes and takes them
/// back, and the workers check them and pass them on. A message goes round once. The message END ends the run.
pub(crate) fn message_ring<X: Sends, Y: Receives>(
    pair: impl Fn(usize) -> Result<(X, Y), Unable>,
    setting: &Setting,
    workers: usize,
) -> Outcome {
    const LONGEST: usize = 20;
    let pairs = (0..=workers).map(|_| pair(LONGEST)).collect::<Result<Vec<_>, _>>()?;
    let count = enough(setting, LONGEST);
    // Thread i pushes into queue i and pops from the queue before it.
    let (txs, mut rxs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    rxs.rotate_right(1);
    let crowded = workers + 1 > cpus().len();
    let pause = move |tries: u64| {
        // Where threads share a CPU, a thread that spins keeps the CPU from the thread it waits for.
        if crowded && tries.is_multiple_of(32) { thread::yield_now() } else { spin_loop() }
    };
    let mut ends = txs.into_iter().zip(rxs);
    let handles = ends.next().expect("the main thread's");
    let main: Work<u64> = Box::new(move |side| {
        let (mut tx, mut rx) = handles;
        let stock = Stock::new(5, LONGEST);
        side.start()?;
        let (mut tries, mut back) = (0_u64, 0);
        let mut take = |back: &mut u64, side: &Side| -> Result<bool, Stop> {
            let Some(got) = rx.try_receive(|message| (sign(message), message == END)) else { return Ok(false) };
            if got.1 && *back == count {
                return Ok(true);
            }
            side.check(got.0, stock.due(*back))?;
            *back += 1;
            Ok(true)
        };
        for number in 0..=count {
            let message = if number == count { &END[..] } else { stock.message(number) };
            while !tx.try_send(message) {
                take(&mut back, side)?;
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(number + back)?;
                }
                pause(tries);
            }
            // Messages that have come round are taken now and then, so that memory holds little more than those on
            // their way.
            if number < count && number % BURST == BURST - 1 {
                while take(&mut back, side)? {}
            }
        }
        loop {
            let before = back;
            if take(&mut back, side)? {
                if back == before {
                    break;
                }
            } else {
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(count + back)?;
                }
                pause(tries);
            }
        }
        side.stop();
        Ok(tries)
    });
    let mut work: Vec<(Option<Cpu>, Work<u64>)> = vec![(setting.cpus[0], main)];
    for (worker, handles) in ends.enumerate() {
        // The first worker runs beside the main thread, the others where the system puts them.
        let cpu = if worker == 0 { setting.cpus[1] } else { None };
        let pass: Work<u64> = Box::new(move |side| {
            let (mut tx, mut rx) = handles;
            let stock = Stock::new(5, LONGEST);
            side.start()?;
            let (mut tries, mut number) = (0_u64, 0);
            loop {
                let mut full = 0_u64;
                let passed = rx.try_receive(|message| {
                    let is_end = message == END;
                    if !is_end {
                        side.check(sign(message), stock.due(number))?;
                    }
                    while !tx.try_send(message) {
                        full += 1;
                        if full.is_multiple_of(PATIENCE) {
                            side.stuck(number)?;
                        }
                        pause(full);
                    }
                    Ok::<_, Stop>(is_end)
                });
                match passed {
                    Some(passed) => {
                        if passed? && number == count {
                            break;
                        }
                        number += 1;
                    }
                    None => {
                        tries += 1;
                        if tries.is_multiple_of(PATIENCE) {
                            side.stuck(number)?;
                        }
                        pause(tries);
                    }
                }
            }
            side.stop();
            Ok(tries)
        });
        work.push((cpu, pass));
    }
    let (tries, took) = rig::run(setting, work)?;
    Ok(Reading { empty: tries.iter().sum(), ..Reading::new(count, took) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_is_due() {
        for (least, longest) in [(5, 20), (5, 5), (64, 64), (4096, 4096)] {
            let stock = Stock::new(least, longest);
            for number in 0..3000 {
                let message = stock.message(number);
                assert!((least..=longest).contains(&message.len()));
                assert_eq!(sign(message), stock.due(number));
                let mut torn = message.to_vec();
                *torn.last_mut().unwrap() ^= 1;
                assert_ne!(sign(&torn), stock.due(number));
            }
            assert_ne!(stock.due(0), stock.due(1));
        }
        assert_eq!(sign(&[4, 0, 0, 0]), u64::MAX);
    }
}
