//! Where indices, counts and versions start: at 0. With debug assertions all of them start just below the end of their
//! range, so that every test passes over it, with checks of overflow.
//!
//! Not among them: positions of `spsc` alone, as what lies side by side depends on them, so tests choose their start;
//! numbers that users are told (of workers, of [`Stats`](crate::spsc::Stats)); and counts that do not wrap around (of
//! handles, of what sleeps, of bytes).

const BELOW: u32 = if cfg!(debug_assertions) { 3 } else { 0 };

/// Of a `usize`.
pub(crate) const START: usize = 0_usize.wrapping_sub(BELOW as usize);
/// Of a `u32`.
pub(crate) const START_32: u32 = 0_u32.wrapping_sub(BELOW);
/// Of a `u64`.
pub(crate) const START_64: u64 = 0_u64.wrapping_sub(BELOW as u64);
