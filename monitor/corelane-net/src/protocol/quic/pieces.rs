//! The pieces of a stream of CRYPTO frames, in the order of their places.

use crate::protocol::tls::HELLO;

/// The most runs of bytes of a side that are kept while bytes between them are missing.
pub const PIECES: usize = 256;
/// The bytes of the longest hello with its kind and length. Nothing further ahead is kept.
pub(super) const WINDOW: usize = HELLO + 4;
/// The most bytes on the heap: the window, and the places of what it has.
pub(in crate::protocol) const MOST: usize = WINDOW + PIECES * size_of::<(u32, u32)>();

/// A bound is hit: the stream is given up.
#[derive(Debug)]
pub(in crate::protocol) struct Full;

/// The bytes of one side from the next message on, with holes.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Pieces {
    /// Where the next message begins in the stream.
    base: u64,
    bytes: Vec<u8>,
    /// The places in `bytes` that have come: in order, none touching another.
    have: Vec<(u32, u32)>,
}

impl Pieces {
    /// Takes a piece at its place. Of what has come twice the first counts.
    pub(in crate::protocol) fn insert(&mut self, offset: u64, mut piece: &[u8]) -> Result<(), Full> {
        let passed = self.base.saturating_sub(offset);
        piece = piece.get(usize::try_from(passed).unwrap_or(usize::MAX)..).unwrap_or_default();
        let ahead = offset.saturating_sub(self.base);
        if piece.is_empty() || ahead >= WINDOW as u64 {
            return Ok(());
        }
        let begin = ahead as usize;
        let end = WINDOW.min(begin + piece.len());
        let range = (begin as u32, end as u32);
        let first = self.have.partition_point(|have| have.1 < range.0);
        let touched = self.have[first..].iter().take_while(|have| have.0 <= range.1).count();
        if touched == 0 && self.have.len() == PIECES {
            return Err(Full);
        }
        if end > self.bytes.len() {
            self.grow(end);
        }
        let mut joined = range;
        let mut at = begin;
        for &(from, to) in &self.have[first..first + touched] {
            if at < from as usize {
                self.bytes[at..from as usize].copy_from_slice(&piece[at - begin..from as usize - begin]);
            }
            at = at.max(to as usize);
            joined = (joined.0.min(from), joined.1.max(to));
        }
        if at < end {
            self.bytes[at..end].copy_from_slice(&piece[at - begin..end - begin]);
        }
        if touched == 1 {
            self.have[first] = joined;
        } else {
            self.have.splice(first..first + touched, [joined]);
        }
        Ok(())
    }

    /// Makes room up to `end`, which is within the window, and for twice as much as before.
    fn grow(&mut self, end: usize) {
        if end > self.bytes.capacity() {
            let room = end.max(2 * self.bytes.capacity()).min(WINDOW);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.resize(end, 0);
    }

    /// The kind and the content of the next message, once it is whole.
    pub(in crate::protocol) fn message(&self) -> Result<Option<(u8, &[u8])>, Full> {
        let whole = match self.have.first() {
            Some(&(0, end)) => &self.bytes[..end as usize],
            _ => return Ok(None),
        };
        let [kind, l0, l1, l2, content @ ..] = whole else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
        if length > HELLO {
            return Err(Full);
        }
        Ok(content.get(..length).map(|content| (*kind, content)))
    }

    /// Whether nothing was passed so far.
    pub(super) fn is_first(&self) -> bool {
        self.base == 0
    }

    /// Steps over a message with this many bytes of content.
    pub(super) fn pass(&mut self, content: usize) {
        let passed = (content + 4) as u32;
        self.base += u64::from(passed);
        self.bytes.drain(..passed as usize);
        self.have.retain_mut(|have| {
            *have = (have.0.saturating_sub(passed), have.1.saturating_sub(passed));
            have.1 > 0
        });
        if self.have.is_empty() {
            (self.bytes, self.have) = (Vec::new(), Vec::new());
        }
    }

    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.have.capacity() * size_of::<(u32, u32)>()
    }
}
