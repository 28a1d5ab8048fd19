//! Both ends as what the standard library calls a sink and a source of bytes.

use super::body::EMPTY;
use super::consumer::Consumer;
use super::error::PushError;
use super::producer::{Producer, Reserved};
use crate::macros::debug;
use crate::spsc::stats::{NoStats, Recorder};
use crate::wait::{Adaptive, Strategy};

/// A sink of bytes; see [`Producer::writer`]. What cannot be pushed is an error of the kind `BrokenPipe`,
/// `OutOfMemory`, or `FileTooLarge` beyond the limit.
pub struct Writer<'a, W = Adaptive, S: Recorder = NoStats> {
    producer: &'a mut Producer<W, S>,
}

impl<W: Strategy, S: Recorder> Producer<W, S> {
    /// This end as a sink of bytes: each `write` is one message, and waits for room.
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
    /// let mut writer = producer.writer();
    /// writer.write_all(b"one message")?;
    /// writer.write_all(b"another")?;
    /// assert_eq!(consumer.pop().unwrap(), b"one message");
    /// assert_eq!(consumer.pop().unwrap(), b"another");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn writer(&mut self) -> Writer<'_, W, S> {
        Writer { producer: self }
    }
}

impl<W: Strategy, S: Recorder> std::io::Write for Writer<'_, W, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        use std::io::{Error, ErrorKind};
        if bytes.is_empty() {
            return Ok(0);
        }
        self.producer.push(bytes).map_err(|error| {
            let kind = match error {
                PushError::Closed => ErrorKind::BrokenPipe,
                PushError::NoMemory => ErrorKind::OutOfMemory,
                PushError::TooLarge => ErrorKind::FileTooLarge,
                PushError::Full | PushError::Timeout => ErrorKind::WouldBlock,
            };
            Error::new(kind, error)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

debug! { [W, S: Recorder] Writer<['_, W, S]>: self }

/// A source of bytes; see [`Consumer::reader`]. Of a message that was read in part, dropping it pops the rest.
pub struct Reader<'a, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<W, S>,
    /// Bytes read of the oldest message.
    read: usize,
}

impl<W: Strategy, S: Recorder> Consumer<W, S> {
    /// This end as a source of bytes: the messages one behind the other, without bounds between them. It waits for
    /// messages, and ends when the queue is closed and drained.
    ///
    /// ```
    /// use std::io::BufRead;
    ///
    /// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
    /// // A line may begin in one message and end in the next.
    /// producer.push_batch(&["first li", "ne\nsecond", " line\n"]).unwrap();
    /// drop(producer);
    /// let lines = consumer.reader().lines().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(lines, ["first line", "second line"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reader(&mut self) -> Reader<'_, W, S> {
        Reader { consumer: self, read: 0 }
    }
}

impl<W: Strategy, S: Recorder> std::io::BufRead for Reader<'_, W, S> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        loop {
            let Ok(found) = self.consumer.await_message(None) else { return Ok(&[]) };
            if self.read < found - 1 {
                let message = self.consumer.raw.at;
                // SAFETY: the header was found there.
                return Ok(unsafe { &self.consumer.raw.lend(message, found - 1)[self.read..] });
            }
            self.consumer.take(found);
            self.read = 0;
        }
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

impl<W: Strategy, S: Recorder> std::io::Read for Reader<'_, W, S> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        use std::io::BufRead;
        if bytes.is_empty() {
            return Ok(0);
        }
        let there = self.fill_buf()?;
        let count = there.len().min(bytes.len());
        bytes[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<W, S: Recorder> Drop for Reader<'_, W, S> {
    fn drop(&mut self) {
        if self.read > 0 {
            let found = self.consumer.next();
            if found != EMPTY {
                self.consumer.take(found);
            }
        }
    }
}

debug! { [W, S: Recorder] Reader<['_, W, S]>: self }

/// Appends; there is no more room where `write` returns 0.
impl<W, S: Recorder> std::io::Write for Reserved<'_, W, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.append(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
