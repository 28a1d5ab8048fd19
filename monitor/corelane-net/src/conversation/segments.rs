//! Items side by side in pieces of equal size. No item is moved when their number grows, and memory is given back when
//! it shrinks.

/// Items of a piece; with 128 bytes each they fill a page.
const PIECE: usize = 32;

#[derive(Debug)]
pub(super) struct Segments<T> {
    /// All pieces with items are full but the last one. At most one empty piece follows, so that one item that comes
    /// and goes costs no allocation.
    pieces: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self { pieces: Vec::new(), len: 0 }
    }
}

impl<T> Segments<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &T {
        &self.pieces[number as usize / PIECE][number as usize % PIECE]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.pieces[number as usize / PIECE][number as usize % PIECE]
    }

    /// The bytes that the next item makes it reserve.
    pub(super) fn bytes_of_next(&self) -> usize {
        if self.len < self.pieces.len() * PIECE {
            return 0;
        }
        let list = match self.pieces.capacity() {
            capacity if self.pieces.len() < capacity => 0,
            capacity => Self::list(capacity) - capacity,
        };
        PIECE * size_of::<T>() + list * size_of::<Vec<T>>()
    }

    /// The list of pieces grows by half, beginning with four.
    fn list(pieces: usize) -> usize {
        (pieces + pieces / 2).max(4)
    }

    pub(super) fn push(&mut self, item: T) -> u32 {
        let piece = self.len / PIECE;
        if piece == self.pieces.len() {
            if piece == self.pieces.capacity() {
                self.pieces.reserve_exact(Self::list(piece) - piece);
            }
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        self.pieces[piece].push(item);
        self.len += 1;
        (self.len - 1) as u32
    }

    /// Removes an item. The last item, if it is another, takes its number.
    pub(super) fn swap_remove(&mut self, number: u32) -> T {
        self.len -= 1;
        let last = self.pieces[self.len / PIECE].pop().expect("the last piece with items");
        // One empty piece stays.
        self.pieces.truncate(self.len.div_ceil(PIECE) + 1);
        if number as usize == self.len { last } else { std::mem::replace(self.get_mut(number), last) }
    }

    pub(super) fn reserved_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<Vec<T>>() + self.pieces.len() * PIECE * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_and_go_and_so_does_memory() {
        let mut items = Segments::default();
        let mut model = Vec::new();
        let mut state = 1_u64;
        for round in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let grow = if (round / 2000).is_multiple_of(2) { 3 } else { 1 };
            if (state >> 33) % 4 < grow {
                let before = items.reserved_bytes();
                let announced = items.bytes_of_next();
                assert_eq!(items.push(round) as usize, model.len());
                model.push(round);
                assert_eq!(items.reserved_bytes(), before + announced);
            } else if !model.is_empty() {
                let number = (state >> 40) as usize % model.len();
                assert_eq!(items.swap_remove(number as u32), model.swap_remove(number));
            }
            assert_eq!(items.len(), model.len());
            let real: usize = items.pieces.iter().map(|piece| piece.capacity() * 8).sum();
            assert_eq!(items.reserved_bytes(), real + items.pieces.capacity() * 24);
            assert!(items.pieces.len() * PIECE <= model.len() + 2 * PIECE);
        }
        for (number, item) in model.iter().enumerate() {
            assert_eq!(items.get(number as u32), item);
        }
    }
}
