//! Byte orders as types, so that a loop over records is compiled for one of them.

/// How the numbers of a capture are laid out.
pub(super) trait Order {
    fn u16(bytes: [u8; 2]) -> u16;
    fn u32(bytes: [u8; 4]) -> u32;
    fn u64(bytes: [u8; 8]) -> u64;

    /// The number at `at`, which must lie inside `bytes`.
    #[inline(always)]
    fn u16_at(bytes: &[u8], at: usize) -> u16 {
        Self::u16(*array_at(bytes, at))
    }

    /// The number at `at`, which must lie inside `bytes`.
    #[inline(always)]
    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        Self::u32(*array_at(bytes, at))
    }
}

#[inline(always)]
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    bytes[at..].first_chunk().expect("the caller checked the length")
}

/// Least significant byte first.
#[derive(Debug)]
pub(super) struct Little;

impl Order for Little {
    #[inline(always)]
    fn u16(bytes: [u8; 2]) -> u16 {
        u16::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn u32(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn u64(bytes: [u8; 8]) -> u64 {
        u64::from_le_bytes(bytes)
    }
}

/// Most significant byte first.
#[derive(Debug)]
pub(super) struct Big;

impl Order for Big {
    #[inline(always)]
    fn u16(bytes: [u8; 2]) -> u16 {
        u16::from_be_bytes(bytes)
    }

    #[inline(always)]
    fn u32(bytes: [u8; 4]) -> u32 {
        u32::from_be_bytes(bytes)
    }

    #[inline(always)]
    fn u64(bytes: [u8; 8]) -> u64 {
        u64::from_be_bytes(bytes)
    }
}

/// Which of the two a capture uses, before the choice becomes a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}
