//! What client and server say to each other: frames of a length, a kind and a body. All numbers are little-endian.
//!
//! | frame | length (4 bytes) | kind (1) | body |
//! |---|---|---|---|
//! | batch, to the server | 9 + 4 n | 1 | number (8), n jobs (4 each): how many turns of a loop |
//! | stop, to the server | 1 | 2 | |
//! | done, to the client | 13 | 1 | the batch's number (8), its jobs (4) |
//! | refused, to the client | 1 + text | 2 | text: what is wrong, and where |
//!
//! The length counts what follows it. A server reads none that is longer than [`LONGEST`], so it never makes room for
//! what a client only announces.

use std::fmt;
use std::io::{self, Read, Write};

/// The most bytes behind a length: a batch of 16,381 jobs.
pub const LONGEST: usize = 64 * 1024;
/// The most jobs in a batch.
pub const MOST_JOBS: usize = (LONGEST - 9) / 4;

/// A frame to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Jobs to be done, and acknowledged together.
    Batch { number: u64, jobs: Vec<u32> },
    /// The server shall stop.
    Stop,
}

/// A frame to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All jobs of this batch are done.
    Done { number: u64, jobs: u32 },
    /// The server takes no more of this client.
    Refused(String),
}

/// What ends a stream of frames.
#[derive(Debug)]
pub enum End {
    /// It was closed between two frames.
    Closed,
    /// A frame that makes no sense, or that ends early.
    Bad { offset: u64, what: String },
    /// The connection failed.
    Failed { offset: u64, error: io::Error },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the other side has closed the connection"),
            Self::Bad { offset, what } => write!(f, "bad frame at byte {offset}: {what}"),
            Self::Failed { offset, error } => write!(f, "the connection failed at byte {offset}: {error}"),
        }
    }
}

/// Reads frames, and counts bytes.
#[derive(Debug)]
pub struct Frames<R> {
    from: R,
    offset: u64,
    body: Vec<u8>,
}

impl<R: Read> Frames<R> {
    pub fn new(from: R) -> Self {
        Self { from, offset: 0, body: Vec::new() }
    }

    /// The next frame, as it is; errors name the byte where it starts.
    fn next(&mut self) -> Result<(u64, &[u8]), End> {
        let offset = self.offset;
        let mut length = [0; 4];
        match self.fill(&mut length, offset)? {
            0 => return Err(End::Closed),
            4 => {}
            _ => return Err(End::Bad { offset, what: "it ends inside the 4 bytes of its length".into() }),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > LONGEST {
            let what = format!("a length of {length}, which is not from 1 to {LONGEST}");
            return Err(End::Bad { offset, what });
        }
        let mut body = std::mem::take(&mut self.body);
        body.resize(length, 0);
        let got = self.fill(&mut body, offset)?;
        self.body = body;
        if got < length {
            return Err(End::Bad { offset, what: format!("it ends after {got} of {length} bytes") });
        }
        Ok((offset, &self.body))
    }

    /// Reads until the buffer is full or the stream ends.
    fn fill(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, End> {
        let mut got = 0;
        while got < buffer.len() {
            match self.from.read(&mut buffer[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(End::Failed { offset, error }),
            }
        }
        self.offset += got as u64;
        Ok(got)
    }

    /// The next frame from a client.
    pub fn request(&mut self) -> Result<Request, End> {
        let (offset, body) = self.next()?;
        let bad = |what: String| Err(End::Bad { offset, what });
        match body {
            [1, number @ ..] if number.len() >= 8 && number.len().is_multiple_of(4) => {
                let (number, jobs) = number.split_at(8);
                if jobs.is_empty() {
                    return bad("a batch has no jobs".into());
                }
                let jobs = jobs.chunks_exact(4).map(|job| u32::from_le_bytes(job.try_into().expect("4 bytes")));
                Ok(Request::Batch { number: read_u64(number), jobs: jobs.collect() })
            }
            [1, ..] => bad(format!("a batch has {} bytes, not 9 and 4 for each job", body.len())),
            [2] => Ok(Request::Stop),
            [2, ..] => bad(format!("a stop has {} bytes, not 1", body.len())),
            [kind, ..] => bad(format!("the kind is {kind}, not 1 or 2")),
            [] => bad("it is empty".into()),
        }
    }

    /// The next frame from the server.
    pub fn answer(&mut self) -> Result<Answer, End> {
        let (offset, body) = self.next()?;
        match body {
            [1, rest @ ..] if rest.len() == 12 => Ok(Answer::Done {
                number: read_u64(&rest[..8]),
                jobs: u32::from_le_bytes(rest[8..].try_into().expect("4 bytes")),
            }),
            [2, text @ ..] => Ok(Answer::Refused(String::from_utf8_lossy(text).into_owned())),
            _ => Err(End::Bad { offset, what: "it is not an answer of a job_server".into() }),
        }
    }
}

fn read_u64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

/// Puts a frame into a buffer, so that it is written by one call.
fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut frame = Vec::with_capacity(4 + length);
    frame.extend_from_slice(&(length as u32).to_le_bytes());
    frame.push(kind);
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

/// # Panics
/// If the batch has no jobs, or more than [`MOST_JOBS`].
pub fn write_request(to: &mut impl Write, request: &Request) -> io::Result<()> {
    let frame = match request {
        Request::Batch { number, jobs } => {
            assert!((1..=MOST_JOBS).contains(&jobs.len()), "a batch has from 1 to {MOST_JOBS} jobs");
            let jobs = jobs.iter().flat_map(|job| job.to_le_bytes()).collect::<Vec<_>>();
            frame(1, &[&number.to_le_bytes(), &jobs])
        }
        Request::Stop => frame(2, &[]),
    };
    to.write_all(&frame)
}

pub fn write_answer(to: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let frame = match answer {
        Answer::Done { number, jobs } => frame(1, &[&number.to_le_bytes(), &jobs.to_le_bytes()]),
        Answer::Refused(text) => frame(2, &[text.as_bytes()]),
    };
    to.write_all(&frame)
}
