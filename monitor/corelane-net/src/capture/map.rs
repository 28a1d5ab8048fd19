//! A reader over a mapped file. All `unsafe` of reading captures is in this file.

use std::fs::{self, File};
use std::path::Path;

use memmap2::Mmap;

use super::error::OpenError;
use super::input::{self, Input};
use super::memory::Bytes;
use super::reader::{Options, Reader};

impl Reader {
    /// Opens a capture as [`Reader::open`] does, but maps a plain file: the records are lent from the system's own copy
    /// of it. An input that is no plain file, is packed, or cannot be mapped is read instead.
    ///
    /// # Safety
    ///
    /// While this reader or a clone of its [`memory`](Reader::memory) lives, no process, neither this one nor another,
    /// may change or shorten the file. A change alters bytes behind a `&[u8]`, which is undefined behaviour. A process
    /// that reads bytes that were cut off is killed by the system (SIGBUS).
    pub unsafe fn open_mapped(input: &Path) -> Result<Self, OpenError> {
        let is_file = fs::metadata(input).is_ok_and(|facts| facts.is_file() && facts.len() > 0);
        if is_file && input.as_os_str() != "-" {
            let mut file = File::open(input).map_err(OpenError::Open)?;
            let is_packed = input::is_packed(&mut file)?;
            // SAFETY: the map is only read, through `&[u8]`, and is dropped with the last clone of the `Memory` that it
            // becomes. The caller has promised that the file's bytes stay as they are until then.
            if let Some(map) = (!is_packed).then(|| unsafe { Mmap::map(&file) }).and_then(Result::ok) {
                // Only advice: without it reading is slower, not wrong.
                #[cfg(unix)]
                let _ = map.advise(memmap2::Advice::Sequential);
                return Self::new(Input::whole(Bytes::Mapped(map)));
            }
        }
        Self::open(input, &Options::default())
    }
}
