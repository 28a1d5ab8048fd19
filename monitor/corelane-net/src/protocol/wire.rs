//! Fields of binary protocols, in network byte order.

/// Takes fields from the front of bytes. A call gives nothing, and takes nothing, where bytes are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The bytes behind their number, which is one byte.
    pub(super) fn counted_by_u8(&mut self) -> Option<&'a [u8]> {
        let mut rest = *self;
        let count = rest.u8()?;
        let taken = rest.take(count.into())?;
        *self = rest;
        Some(taken)
    }

    /// The bytes behind their number, which is two bytes.
    pub(super) fn counted_by_u16(&mut self) -> Option<&'a [u8]> {
        let mut rest = *self;
        let count = rest.u16()?;
        let taken = rest.take(count.into())?;
        *self = rest;
        Some(taken)
    }
}

/// The numbers of two bytes each; an odd byte at the end is left out.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.as_chunks().0.iter().map(|word| u16::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_takes_nothing() {
        let mut fields = Fields(&[1, 0, 2, 3]);
        assert_eq!((fields.u8(), fields.counted_by_u16(), fields.0.len()), (Some(1), None, 3));
        assert_eq!((fields.u32(), fields.array::<4>(), fields.take(4), fields.0.len()), (None, None, None, 3));
        assert_eq!((fields.counted_by_u8(), fields.counted_by_u8(), fields.0), (Some(&[][..]), None, &[2, 3][..]));
        assert_eq!((fields.u16(), fields.u8(), fields.take(0)), (Some(0x0203), None, Some(&[][..])));
        assert_eq!(words(&[1, 2, 3]).collect::<Vec<_>>(), [0x0102]);
    }
}
