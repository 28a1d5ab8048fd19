//! A thread that sends frames at a rate.

use super::frames::Frames;
use super::receiver::Shared;
use super::{Order, Played};
use crate::raw;
use cpu_time::{ProcessTime, ThreadTime};
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, netdevice, sendmmsg};
use socket2::{Domain, Protocol, Socket, Type};
use std::hint::spin_loop;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// The most frames that one call sends.
const MOST: usize = 64;
/// The time between two calls, as far as that makes no more frames of a call. The pace is as even as that.
const APART: Duration = Duration::from_micros(100);
/// The longest that a reader takes until it reads for the first time.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a frame may be on its way to the ring when the call that sent it is over.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

/// Sends on an interface.
#[derive(Debug)]
pub(super) struct Sender(Socket);

/// The counts at one moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    sent: u64,
    read: u64,
    /// CPU time of the process without this thread.
    cpu: Duration,
}

impl Mark {
    fn now(sent: u64, shared: &Shared) -> Self {
        let (all, own) = (ProcessTime::now().as_duration(), ThreadTime::now().as_duration());
        Mark { at: Instant::now(), sent, read: shared.read(), cpu: all.saturating_sub(own) }
    }
}

impl Sender {
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        // To no protocol: it receives nothing.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
        let index = netdevice::name_to_index(&socket, interface)?;
        socket.bind(&raw::packet_address(index as i32))?;
        Ok(Sender(socket))
    }

    /// Plays an order, from the first frame on. What the ring has counted is still missing in what it returns.
    ///
    /// # Errors
    /// If the kernel takes no frame, or the reader does not begin or has ended.
    pub(super) fn play(&self, order: &Order, frames: &mut Frames, shared: &Shared) -> io::Result<Played> {
        frames.rewind();
        let begun = Instant::now();
        while !shared.is_reading() {
            if shared.is_over() || begun.elapsed() > PATIENCE {
                return Err(io::Error::other("the reader has not begun to read"));
            }
            thread::yield_now();
        }
        let burst = (order.rate * APART.as_secs_f64()).clamp(1.0, MOST as f64) as usize;
        let begun = Instant::now();
        let mut sent = 0;
        let begin = self.until(begun + order.warm, begun, order.rate, burst, frames, &mut sent, shared)?;
        let end = self.until(begun + order.warm + order.window, begun, order.rate, burst, frames, &mut sent, shared)?;
        thread::sleep(ON_ITS_WAY);
        Ok(Played {
            sent: end.sent - begin.sent,
            read: end.read - begin.read,
            wall: end.at - begin.at,
            cpu: end.cpu.saturating_sub(begin.cpu),
            behind: end.sent.saturating_sub(end.read),
            in_block: frames.in_block(order.contender.headers_only()),
            all_sent: end.sent,
            received: 0,
            dropped: 0,
        })
    }

    /// Sends until then. What should have been sent since `begun` is caught up with, as far as that is possible.
    #[expect(clippy::too_many_arguments, reason = "the state of one loop that is run twice")]
    fn until(
        &self,
        end: Instant,
        begun: Instant,
        rate: f64,
        burst: usize,
        frames: &mut Frames,
        sent: &mut u64,
        shared: &Shared,
    ) -> io::Result<Mark> {
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok(Mark::now(*sent, shared));
            }
            if shared.is_over() {
                return Err(io::Error::other("the reader has ended early"));
            }
            if *sent as f64 > (now - begun).as_secs_f64() * rate {
                spin_loop();
                continue;
            }
            *sent += self.send(frames, burst)? as u64;
        }
    }

    /// Sends up to `most` frames, and returns how many.
    fn send(&self, frames: &mut Frames, most: usize) -> io::Result<usize> {
        let slices: Vec<_> = frames.next(most).map(|frame| [frame]).collect();
        let mut controls: Vec<_> = slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: Vec<_> =
            slices.iter().zip(&mut controls).map(|(slice, control)| MMsgHdr::new(slice, control)).collect();
        let mut sent = 0;
        while sent < messages.len() {
            match sendmmsg(&self.0, &mut messages[sent..], SendFlags::empty()) {
                Ok(more) => sent += more,
                // The queue to the other end is full, or there was a signal.
                Err(Errno::NOBUFS | Errno::AGAIN | Errno::INTR) => thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sent)
    }
}
