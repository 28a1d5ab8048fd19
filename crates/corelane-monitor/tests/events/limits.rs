//! What both analyses keep stays within what they may.

use crate::support::{of_bytes, plan};
use corelane_monitor::{Inspection, PARTITIONS, Progress, QueueKind, Settings, Source};
use corelane_net::capture::{LinkType, Record};
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::synth::Conversations;
use serde_json::Value;
use std::convert::Infallible;

#[test]
fn conversations_and_fragments_stay_within_their_limits() {
    let capture = Conversations { seed: 9, conversations: 5000, trouble: 50, spoofed: 100_000 }.capture();
    let inspection = Inspection { conversations: Limits::new(LEAST_BYTES), ..Inspection::default() };
    let run = of_bytes(&capture, &inspection, &plan(2, QueueKind::Lane, 64));
    let most = (PARTITIONS * LEAST_BYTES) as u64;
    let reserved = run.findings.conversation_bytes;
    assert!(reserved <= most && reserved > most / 4, "{reserved}");
    assert!(run.findings.conversations.evicted > 0);
}

/// Gives the same frame again and again.
struct Again(Vec<u8>, usize);

impl Source for Again {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let count = self.1.min(max);
        self.1 -= count;
        for _ in 0..count {
            let (data, wire_len) = (&self.0[..], self.0.len() as u32);
            sink(Record { time_ns: 1_700_000_000_000_000_000, wire_len, link: LinkType::RAW, data });
        }
        Ok(count)
    }
}

/// A response of 1 kB with 64 answers, each two pointers to a name of which each byte is written as five.
fn amplified() -> Vec<u8> {
    let mut name = Vec::new();
    for length in [63, 63, 63, 61] {
        name.push(length);
        name.resize(name.len() + usize::from(length), 1);
    }
    name.push(0);
    let mut message = vec![0, 7, 0x81, 0x80, 0, 1, 0, 64, 0, 0, 0, 0];
    message.extend(name);
    message.extend([0, 5, 0, 1]);
    for _ in 0..64 {
        message.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12]);
    }
    let length = (message.len() as u16 + 28).to_be_bytes();
    let mut frame = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    frame.extend([0, 53, 15, 160]);
    frame.extend((message.len() as u16 + 8).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(message);
    frame
}

#[test]
fn events_that_wait_are_limited_in_bytes() {
    const LINE: usize = 20 << 10;
    let mut texts = Vec::new();
    for analyzers in [0, 1, 3] {
        let (mut text, mut most) = (Vec::new(), 0);
        let ran = corelane_monitor::inspect(
            [Again(amplified(), 600)],
            &Settings::default(),
            &Inspection::default(),
            &plan(analyzers, QueueKind::Lane, 2048),
            &Progress::new(),
            |_, never| match never {},
            |lines: &[u8]| {
                most = most.max(lines.len());
                text.extend_from_slice(lines);
            },
        );
        ran.expect("a plan");
        assert!(most <= (64 << 10) + LINE, "{analyzers} analyzers: {most} bytes at once");
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::len);
        assert!(
            lines.clone().max() > Some(LINE / 2) && lines.max() <= Some(LINE),
            "an event is limited, and not empty"
        );
        texts.push(text);
    }
    assert!(texts.iter().all(|text| *text == texts[0]));
    let first: Value =
        serde_json::from_slice(texts[0].split(|&byte| byte == b'\n').next().expect("a line")).expect("JSON");
    let answers = first["dns"]["answers"].as_array().expect("answers").len();
    assert!((4..64).contains(&answers), "{answers}");
}
