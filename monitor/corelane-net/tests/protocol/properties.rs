//! Any bytes, in any pieces: the same events, no panic, within the bounds.

use corelane_net::protocol::fuzz::{parsers, targets};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;

/// Words that lead deep into the parsers.
const WORDS: [&[u8]; 79] = [
    b"\x80\x1c\x01\x03\x01\x00\x03\x00\x00\x00\x10\x00\x00\x35aaaaaaaaaaaaaaaa",
    b"GET / HTTP/1.1\r\n",
    b"HEAD /x HTTP/1.0\r\n",
    b"POST /p HTTP/1.1\r\n",
    b"CONNECT h:1 HTTP/1.1\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Up\r\n",
    b"HTTP/1.0 204 \r\n",
    b"HTTP/1.1 417 No\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 30\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Expect: 100-continue\r\n",
    b"Host: h\r\n",
    b"Bad Header\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"0\r\n\r\n",
    b"3\r\nabc\r\n",
    b"5;x\r\nabcde\r\n",
    b"abc",
    b"}GET /y HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x00\x34\x01\x00\x00\x30\x03\x03",
    b"\x16\x03\x03\x00\x10",
    b"\x14\x03\x03\x00\x01\x01",
    b"\x17\x03\x03\x00\x05",
    b"\x01\x00\x00\x30\x03\x03",
    b"\x02\x00\x00\x2c\x03\x03",
    b"\x0b\x00\x00\x04\x00\x00\x00\x00",
    b"\x00\x00\x00\x02\x13\x01\x01\x00\x00\x05\xff\x01\x00\x01\x00",
    b"\x00\x1d",
    b"\x00\x00",
    b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00",
    b"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00",
    b"\x07example\x03org\x00\x00\x01\x00\x01",
    b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x00\x00\x01",
    b"\xc0\x1d",
    b"\x01a\xc0\x0c",
    b"SSH-2.0-x\r\n",
    b"SSH-",
    b"220 x\r\n",
    b"220 FTP\r\n",
    b"220",
    b"USER a\r\n",
    b"EHLO b\r\n",
    b"+OK\r\n",
    b"* OK x\r\n",
    b"\xff\xfd\x18",
    b"\x00\x00\x00\x10\xfeSMB",
    b"\x81\x00\x00\x44",
    b"\x00\x00\x06\x04\x00\x00\x00\x00\x00",
    b"\x13BitTorrent protocol",
    b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    b"SSH-1.99-y z\n",
    b"\x00\x00\x00\x48\x04\x14cccccccccccccccc",
    b"\x00\x00\x00\x01k\x00\x00\x00\x00\x00\x00\x00\x01e\x00\x00\x00\x00\x00\x00\x00\x01m\x00\x00\x00\x00",
    b"\x00\x00\x00\x01c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x00\x00\x00\x0c\x0a\x1e",
    b"\x00\x00\x00\x05\x03\x02",
    b"STARTTLS\r\n",
    b"AUTH TLS\r\n",
    b"STLS\r\n",
    b"a STARTTLS\r\n",
    b"a OK\r\n",
    b"DATA\r\n",
    b"354 go\r\n",
    b".\r\n",
    b"BDAT 9\r\n",
    b"234-\n234 x\r\n",
    b"500 no\r\n",
    b"\x00\x01\x00\x08\x21\x12\xa4\x42abcdefghijkl",
    b"\x01\x06\x00\x34\x01\x00\x00\x30\x03\x03",
    b"\x05\x06\x40\x04\x10",
    b"\x09\x02\x00\x00\x00\x00\x06\x00\x0a",
    b"\xc0\x00\x00\x00\x01\x08original\x01c\x00\x14",
];

/// The words, and what the examples of the parsers say.
static SPOKEN: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let examples = parsers().flat_map(|parser| parser.example).map(|(_, bytes)| bytes);
    WORDS.iter().map(|word| word.to_vec()).chain(examples).collect()
});

/// What a side says: words and noise.
fn speech() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => prop::sample::select(&SPOKEN[..]),
        1 => vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 1..5000_usize).prop_map(|(byte, times)| vec![byte; times]),
    ];
    vec(word, 0..8).prop_map(|words| words.concat())
}

/// A script for the targets.
fn script() -> impl Strategy<Value = Vec<u8>> {
    let step = prop_oneof![
        8 => (0..2_u8, speech()).prop_map(|(side, bytes)| {
            let mut step = vec![side];
            step.extend((bytes.len().min(0xffff) as u16).to_be_bytes());
            step.extend(&bytes[..bytes.len().min(0xffff)]);
            step
        }),
        1 => (0..2_u8, prop_oneof![0..40_u16, any::<u16>()]).prop_map(|(side, missing)| {
            let mut step = vec![12 | side];
            step.extend(missing.to_be_bytes());
            step
        }),
        1 => (0..2_u8).prop_map(|side| vec![14 | side]),
    ];
    vec(step, 0..12).prop_map(|steps| steps.concat())
}

/// The seeds that are kept for fuzzing reach what they are meant to, so they had better be sound.
#[test]
fn every_target_takes_the_seeds_of_fuzzing() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for folder in std::fs::read_dir(corpus).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let target = targets().find(|target| target.name() == name).unwrap_or_else(|| panic!("no target is {name}"));
        for seed in std::fs::read_dir(folder.path()).unwrap() {
            target.run(&std::fs::read(seed.unwrap().path()).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_target_takes_a_script(bytes in script()) {
        targets().for_each(|target| target.run(&bytes));
    }

    #[test]
    fn every_target_takes_any_bytes(bytes in vec(any::<u8>(), 0..600)) {
        targets().for_each(|target| target.run(&bytes));
    }
}
