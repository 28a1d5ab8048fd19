//! Where bytes may come from, and what may be no capture at all.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use corelane_net::capture::{Compression, Memory, OpenError, Options, ReadError, Reader};
use tempfile::TempDir;

use crate::support::{Order, PACKERS, Pcap, PcapNg, gzip, packed_and_plain, read_all, read_whole};

/// Large enough to pass through every buffer several times, with frames of all sizes and one larger than the buffer.
fn large() -> Vec<u8> {
    let mut capture = Pcap::usual();
    for n in 0..20_000_u32 {
        let len = if n == 7_000 { 900_000 } else { (n.wrapping_mul(2_654_435_761) >> 23) as usize % 300 };
        capture = capture.record(n, n, &vec![n as u8; len]);
    }
    capture.bytes
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn open(path: &Path, preload: bool) -> Result<Reader, OpenError> {
    Reader::open(path, &Options::default().preload(preload))
}

#[test]
fn a_reader_may_change_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<Reader>();
}

#[test]
fn every_input_gives_the_same() {
    let capture = large();
    let whole = read_whole(&capture);
    let folder = TempDir::new().unwrap();
    let middle = capture.len() / 2;
    let mut inputs = vec![("plain".to_owned(), capture.clone())];
    for (packing, pack) in PACKERS {
        let parts = [pack(&capture[..middle]), pack(&[]), pack(&capture[middle..])].concat();
        inputs.extend([(packing.to_string(), pack(&capture)), (format!("{packing} in parts"), parts)]);
        if *packing == Compression::Zstd {
            let skippable = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
            inputs.push(("skippable".to_owned(), [&skippable, &pack(&capture)[..]].concat()));
        }
    }
    for (name, bytes) in &inputs {
        let path = file(&folder, name, bytes);
        let same = |reader: Result<Reader, OpenError>, how: &str| {
            let (records, errors) = read_all(reader.unwrap());
            assert!(errors.is_empty(), "{name}, {how}: {errors:?}");
            assert!(records == whole, "{name}, {how}");
        };
        same(open(&path, false), "file");
        same(open(&path, true), "preloaded");
        // SAFETY: no other process knows the file.
        same(unsafe { Reader::open_mapped(&path) }, "mapped");
        same(Reader::from_bytes(bytes.clone()), "bytes");
    }
}

#[test]
fn what_a_reader_has_lent_stays_while_it_reads_on() {
    let capture = large();
    let folder = TempDir::new().unwrap();
    for bytes in packed_and_plain(&capture) {
        let mut reader = open(&file(&folder, "capture", &bytes), false).unwrap();
        let (mut kept, mut elsewhere) = (Vec::new(), 0);
        loop {
            let memory = reader.memory().expect("a file").clone();
            let before = kept.len() + elsewhere;
            let read = reader.read(1000, |record| match memory.place(record.data) {
                Some(at) => kept.push((memory.clone(), at, record.data.len(), record.data.to_vec())),
                None => elsewhere += 1,
            });
            if read.unwrap() == 0 {
                break;
            }
            assert!(kept.len() + elsewhere > before);
        }
        assert_eq!(kept.len() + elsewhere, 20_000);
        assert!(elsewhere < 2_000, "{elsewhere} records have to be copied");
        assert!(kept.iter().all(|(memory, at, len, data)| memory[*at..at + len] == data[..]));
    }
}

#[test]
fn what_was_given_back_is_filled_again() {
    let folder = TempDir::new().unwrap();
    let capture = (0..20_000).fold(Pcap::usual(), |capture, n| capture.record(n, 0, &[n as u8; 1000])).bytes;
    let mut reader = open(&file(&folder, "capture", &capture), false).unwrap();
    // Three blocks are held at a time, and one is filled.
    let (mut held, mut places) = (VecDeque::new(), BTreeSet::new());
    loop {
        let memory = reader.memory().expect("a file").clone();
        if held.back().is_none_or(|last: &Memory| !last.is(&memory)) {
            places.insert(memory.as_ptr().addr());
            held.push_back(memory);
        }
        if held.len() > 3 {
            held.pop_front();
        }
        if reader.read(1000, |_| {}).unwrap() == 0 {
            break;
        }
    }
    assert_eq!(reader.records(), 20_000);
    assert!((3..=5).contains(&places.len()), "{}", places.len());
}

#[test]
fn a_file_is_searched_to_its_end_for_an_interface_that_can_be_decoded() {
    let mut capture = PcapNg::new(Order::Little).interface(147, 0, &[]);
    for n in 0..30 {
        capture = capture.enhanced(0, n, 100_000, &[n as u8; 100_000]);
    }
    let unknown = capture.bytes.clone();
    let capture = capture.interface(1, 0, &[]).enhanced(1, 31, 1, &[1]).bytes;
    let whole = read_whole(&capture);
    assert_eq!(whole.len(), 31);
    let folder = TempDir::new().unwrap();
    for preload in [false, true] {
        let (records, errors) = read_all(open(&file(&folder, "capture", &capture), preload).unwrap());
        assert!(records == whole && errors.is_empty(), "{errors:?}");
        let error = open(&file(&folder, "unknown", &unknown), preload).unwrap_err();
        assert!(matches!(error, OpenError::UnknownLink(_)), "{error:?}");
    }
    // What can be read only once is looked at up to the first packet.
    let error = Reader::from_bytes(gzip(&capture)).unwrap_err();
    assert!(matches!(error, OpenError::UnknownLink(_)), "{error:?}");
}

#[test]
fn a_stream_is_not_kept_to_search_it() {
    let mut capture = PcapNg::new(Order::Little);
    for _ in 0..10 {
        capture = capture.block(0xbad, &[0; 4 << 20]);
    }
    let capture = capture.interface(1, 0, &[]).enhanced(0, 1, 1, &[1]).bytes;
    let seen = Arc::new(AtomicUsize::new(0));
    let source = Counting { source: std::io::Cursor::new(capture), seen: seen.clone() };
    let reader = Reader::from_read(source, None, &Options::default()).unwrap();
    assert!(seen.load(Relaxed) <= 20 << 20, "{seen:?}");
    let (records, errors) = read_all(reader);
    assert!(records.len() == 1 && errors.is_empty(), "{errors:?}");
}

/// Counts what is read.
struct Counting<R> {
    source: R,
    seen: Arc<AtomicUsize>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.seen.fetch_add(count, Relaxed);
        Ok(count)
    }
}

#[test]
fn an_input_that_is_shorter_than_it_was_ends_early() {
    let capture = Pcap::usual().record(1, 0, &[1; 10]).record(2, 0, &[2; 20]).bytes;
    for preload in [false, true] {
        // Also where it ends between two records.
        for (length, place) in [(50, 2), (60, 2), (86, 3)] {
            let source = std::io::Cursor::new(capture[..length].to_vec());
            let reader = Reader::from_read(source, Some(100), &Options::default().preload(preload)).unwrap();
            let (records, errors) = read_all(reader);
            assert_eq!(records.len(), place - 1);
            let [error] = &errors[..] else { panic!("{errors:?}") };
            let text =
                format!("the input ended early: {length} of 100 bytes are there; read it while nothing changes it");
            assert!(error.place().record == place as u64 && error.to_string().ends_with(&text), "{error}");
        }
        // What it has got since is left alone.
        let source = std::io::Cursor::new(capture.clone());
        let (records, errors) =
            read_all(Reader::from_read(source, Some(50), &Options::default().preload(preload)).unwrap());
        assert!(records.len() == 1 && errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn the_position_runs_up_to_the_size() {
    let capture = large();
    let folder = TempDir::new().unwrap();
    for bytes in packed_and_plain(&capture) {
        let path = file(&folder, "capture", &bytes);
        for preload in [false, true] {
            let mut reader = open(&path, preload).unwrap();
            let size = reader.size().unwrap();
            assert_eq!(size, if preload { capture.len() } else { bytes.len() } as u64);
            assert!(reader.position() < size);
            while reader.read(100, |_| {}).unwrap() > 0 {
                assert!(reader.position() <= size);
            }
            assert_eq!(reader.position(), size);
        }
    }
}

#[cfg(target_os = "linux")]
mod pipes {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Writes to a pipe from another thread and reads it by a path.
    fn through_a_pipe(write: impl FnOnce(std::io::PipeWriter) + Send, read: impl FnOnce(&Path)) {
        let (reader, writer) = std::io::pipe().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| write(writer));
            read(Path::new(&format!("/proc/self/fd/{}", reader.as_raw_fd())));
        });
    }

    #[test]
    fn a_pipe_gives_the_same() {
        let capture = large();
        let whole = read_whole(&capture);
        for bytes in packed_and_plain(&capture) {
            for preload in [false, true] {
                through_a_pipe(
                    |mut writer| writer.write_all(&bytes).unwrap(),
                    |path| {
                        let reader = open(path, preload).unwrap();
                        assert_eq!(reader.size().is_some(), preload);
                        let (records, errors) = read_all(reader);
                        assert!(errors.is_empty() && records == whole, "{errors:?}");
                    },
                );
            }
        }
    }

    #[test]
    fn what_a_pipe_has_brought_does_not_wait_for_more() {
        let (ask, asked) = mpsc::channel();
        through_a_pipe(
            move |mut writer| {
                writer.write_all(&Pcap::usual().record(1, 0, &[1; 10]).bytes).unwrap();
                // Half a record: the first one must not wait for the rest of the second.
                let second = &Pcap::usual().record(2, 0, &[2; 10]).bytes[24..];
                writer.write_all(&second[..20]).unwrap();
                asked.recv_timeout(Duration::from_secs(10)).expect("the reader waits for more");
                writer.write_all(&second[20..]).unwrap();
            },
            |path| {
                let mut reader = open(path, false).unwrap();
                assert_eq!(reader.read(100, |record| assert_eq!(record.data, [1; 10])).unwrap(), 1);
                assert_eq!(reader.position(), 50, "what is only buffered is not used");
                let _ = ask.send(());
                assert_eq!(reader.read(100, |record| assert_eq!(record.data, [2; 10])).unwrap(), 1);
                assert_eq!(reader.read(100, |_| {}).unwrap(), 0);
            },
        );
    }

    #[test]
    fn a_device_without_bytes_is_empty() {
        assert!(matches!(open(Path::new("/dev/null"), false).unwrap_err(), OpenError::Empty));
    }

    #[test]
    fn a_device_without_end_is_no_capture() {
        assert!(matches!(open(Path::new("/dev/zero"), false).unwrap_err(), OpenError::NotACapture { .. }));
    }
}

const CHILD: &str = "CORELANE_TEST_READS_STDIN";

/// Run by [`the_standard_input`] as a process of its own.
#[test]
fn standard_input_child() {
    if std::env::var_os(CHILD).is_some() {
        let (records, errors) = read_all(open(Path::new("-"), false).unwrap());
        assert!(errors.is_empty() && records == read_whole(&large()), "{errors:?}");
        println!("read {} records", records.len());
    }
}

#[test]
fn the_standard_input() {
    for bytes in [large(), gzip(&large())] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "inputs::standard_input_child", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("read 20000 records"));
    }
}

#[test]
fn what_is_no_capture() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str, bytes: &[u8]| file(&folder, name, bytes);
    let check = |path: PathBuf, right: fn(&OpenError) -> bool, text: &str| {
        for preload in [false, true] {
            let error = open(&path, preload).unwrap_err();
            assert!(right(&error), "{}: {error:?}", path.display());
            let line = error.to_string();
            assert!(line.contains(text), "{line:?} does not say {text:?}");
            assert!(!line.contains('\n') && !line.contains(path.to_str().unwrap()), "{line:?}");
        }
    };
    check(folder.path().join("none"), |e| matches!(e, OpenError::Open(_)), "no such file");
    check(folder.path().to_owned(), |e| matches!(e, OpenError::Directory), "directory");
    check(path("empty", b""), |e| matches!(e, OpenError::Empty), "empty");
    check(path("short", b"abc"), |e| matches!(e, OpenError::NotACapture { .. }), "61 62 63");
    check(path("text", b"# a text, not a capture"), |e| matches!(e, OpenError::NotACapture { .. }), "23 20 61 20");
    check(path("zipped-text", &gzip(b"# a text")), |e| matches!(e, OpenError::NotACapture { .. }), "23 20 61 20");
    check(path("zipped-nothing", &gzip(b"")), |e| matches!(e, OpenError::Empty), "empty");
    check(path("gzip-magic", &[0x1f, 0x8b]), |e| matches!(e, OpenError::Read { .. }), "the gzip data end early");
    check(path("no-gzip", &[0x1f, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8, 9]), |e| matches!(e, OpenError::Read { .. }), "gzip");
    let no_zstd = path("no-zstd", &[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]);
    if cfg!(feature = "zstd") {
        check(no_zstd, |e| matches!(e, OpenError::Read { .. }), "zstd");
    } else {
        check(no_zstd, |e| matches!(e, OpenError::NoZstd), "`zstd -dc` unpacks it");
    }
    let capture = Pcap::usual().record(1, 0, &[1; 10]).bytes;
    check(path("cut", &capture[..23]), |e| matches!(e, OpenError::CutHeader { needed: 24, have: 23 }), "23 of 24");
    let section = PcapNg::new(Order::Little).bytes;
    check(path("cut-ng", &section[..20]), |e| matches!(e, OpenError::CutHeader { .. }), "20 of 28");
    let unknown = Pcap::new(Order::Little, crate::support::MICROSECONDS, 0, 147).bytes;
    check(path("link", &unknown), |e| matches!(e, OpenError::UnknownLink(_)), "link type 147");
}

#[cfg(unix)]
#[test]
fn an_unreadable_file() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().unwrap();
    let path = file(&folder, "capture", &Pcap::usual().bytes);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: this user may read files that no user may read");
    } else {
        assert_eq!(open(&path, false).unwrap_err().to_string(), "permission denied; get read access to it");
    }
    let denied = OpenError::Open(std::io::ErrorKind::PermissionDenied.into());
    assert_eq!(denied.to_string(), "permission denied; get read access to it");
}

#[test]
fn damaged_packing_keeps_what_came_before() {
    let capture = large();
    let whole = read_whole(&capture);
    let folder = TempDir::new().unwrap();
    let mut checksum = gzip(&capture);
    let at = checksum.len() - 8;
    checksum[at] ^= 1;
    let mut cases = vec![("checksum", checksum, Compression::Gzip, "damaged")];
    for &(kind, pack) in PACKERS {
        let packed = pack(&capture);
        cases.push(("cut", packed[..packed.len() / 2].to_vec(), kind, "end early"));
        cases.push(("trailing", [&packed[..], b"and this is not packed at all"].concat(), kind, "damaged"));
    }
    for (what, bytes, kind, text) in cases {
        let path = file(&folder, what, &bytes);
        for preload in [false, true] {
            let (records, errors) = read_all(open(&path, preload).unwrap());
            assert!(!records.is_empty() && records == whole[..records.len()], "{kind} {what}");
            assert_eq!(records.len() == whole.len(), what != "cut", "{kind} {what}");
            let [ReadError::Input { place, compression: Some(found), .. }] = &errors[..] else {
                panic!("{kind} {what}: {errors:?}")
            };
            assert_eq!((*found, place.record), (kind, records.len() as u64 + 1));
            assert!(errors[0].to_string().contains(text), "{kind} {what}: {}", errors[0]);
        }
    }
}

/// The unpackers notice late, or leave it to the reader to find nonsense; but one of the two always notices.
#[test]
fn corrupt_packing_is_noticed() {
    let capture = large();
    let whole = read_whole(&capture);
    for (_, pack) in PACKERS {
        let mut packed = pack(&capture);
        let half = packed.len() / 2;
        packed[half..half + 64].fill(0xa5);
        let (records, errors) = read_all(Reader::from_bytes(packed).unwrap());
        assert_eq!(records[..100], whole[..100]);
        assert_eq!(errors.len(), 1, "{errors:?}");
    }
}

#[cfg(unix)]
mod files_that_change {
    use super::*;

    const CHILD: &str = "CORELANE_TEST_READS_A_FILE_THAT_CHANGES";

    /// More than any buffer holds.
    fn long() -> Vec<u8> {
        (0..4_000).fold(Pcap::usual(), |capture, n| capture.record(n, 0, &[n as u8; 10_000])).bytes
    }

    /// Runs a test of this module as a process of its own, which may be killed, on such a file.
    fn run_alone(name: &str) {
        let folder = TempDir::new().unwrap();
        let path = file(&folder, "capture", &long());
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("inputs::files_that_change::{name}"), "--nocapture"])
            .env(CHILD, &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("read to the end"), "{output:?}");
    }

    /// In such a process: the file.
    fn own_file() -> Option<PathBuf> {
        std::env::var_os(CHILD).map(PathBuf::from)
    }

    #[test]
    fn shortened_child() {
        let Some(path) = own_file() else { return };
        let mut reader = open(&path, false).unwrap();
        let (mut records, mut errors) = (0, 0);
        loop {
            let read = reader.read(100, |record| {
                if records == 0 {
                    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5_000).unwrap();
                }
                assert_eq!(record.data, [records as u8; 10_000]);
                records += 1;
            });
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => errors += 1,
            }
        }
        assert!((1..4_000).contains(&records) && errors == 1, "{records} records, {errors} errors");
        println!("read to the end");
    }

    #[test]
    fn a_file_that_is_shortened_meanwhile_ends_early() {
        run_alone("shortened_child");
    }

    #[test]
    fn overwritten_child() {
        let Some(path) = own_file() else { return };
        let mut reader = open(&path, false).unwrap();
        let mut records = 0;
        let read = reader.read(1, |record| {
            let before = record.data.to_vec();
            fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&[0xa5; 20_000]).unwrap();
            assert!(record.data == before, "a borrowed record has changed");
            records += 1;
        });
        assert_eq!((read.unwrap(), records), (1, 1));
        println!("read to the end");
    }

    #[test]
    fn a_record_stays_as_it_is_when_the_file_is_overwritten() {
        run_alone("overwritten_child");
    }
}
