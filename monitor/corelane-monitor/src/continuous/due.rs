//! What is due at the end of a step.

use std::collections::VecDeque;

/// So many keys may be due before it is looked which of them still are.
const MANY: usize = 1 << 16;

/// Keys that are due, each with its partition.
pub(super) type Keys<K> = Vec<(u8, K)>;

/// Keys by the step at whose end they are due.
#[derive(Debug)]
pub(super) struct Due<K> {
    /// The steps ascend. A key is nearly always due in the last one, or in that before it.
    steps: VecDeque<(u64, Keys<K>)>,
    /// The number of keys …
    len: usize,
    /// … and that at which those leave that are not due any longer.
    limit: usize,
    /// Memory of a step that is over, for one that comes.
    spare: Keys<K>,
}

impl<K: Copy + Ord> Due<K> {
    pub(super) fn new() -> Self {
        Due { steps: VecDeque::new(), len: 0, limit: MANY, spare: Vec::new() }
    }

    /// One key more is due. When these are many, those leave that `is_due` denies, or that are there twice.
    pub(super) fn add(&mut self, step: u64, partition: u8, key: K, is_due: impl FnMut(u64, u8, &K) -> bool) {
        match self.steps.iter_mut().rev().find(|(at, _)| *at <= step) {
            Some((at, keys)) if *at == step => keys.push((partition, key)),
            _ => self.begin(step).push((partition, key)),
        }
        self.len += 1;
        if self.len >= self.limit {
            self.tidy(is_due);
        }
    }

    #[cold]
    fn begin(&mut self, step: u64) -> &mut Keys<K> {
        let place = self.steps.partition_point(|&(at, _)| at < step);
        self.steps.insert(place, (step, std::mem::take(&mut self.spare)));
        &mut self.steps[place].1
    }

    #[cold]
    fn tidy(&mut self, mut is_due: impl FnMut(u64, u8, &K) -> bool) {
        self.spare = Vec::new();
        self.len = 0;
        for (step, keys) in &mut self.steps {
            keys.retain(|(partition, key)| is_due(*step, *partition, key));
            keys.sort_unstable();
            keys.dedup();
            keys.shrink_to(keys.len() + keys.len() / 4);
            self.len += keys.len();
        }
        self.limit = MANY.max(4 * self.len);
    }

    /// The first step at whose end something is due.
    pub(super) fn first(&self) -> Option<u64> {
        self.steps.front().map(|&(step, _)| step)
    }

    /// Takes what is due at the end of the first step, if that is not after `last`.
    pub(super) fn take(&mut self, last: u64) -> Option<(u64, Keys<K>)> {
        self.first().filter(|&step| step <= last)?;
        let taken = self.steps.pop_front()?;
        self.len -= taken.1.len();
        Some(taken)
    }

    /// Gives the memory back. What a step with few keys had from one with many is freed.
    pub(super) fn give_back(&mut self, mut keys: Keys<K>) {
        keys.shrink_to(2 * keys.len());
        keys.clear();
        self.spare = keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_by_step_whatever_the_order_in_which_they_went_in() {
        let mut due = Due::new();
        for step in [7, 9, 8, 7, 9, 3] {
            due.add(step, 1, step * 10, |_, _, _| true);
        }
        assert_eq!((due.first(), due.take(2)), (Some(3), None));
        assert_eq!(due.take(3), Some((3, vec![(1, 30)])));
        for (step, expected) in [(7, vec![(1, 70); 2]), (8, vec![(1, 80)]), (9, vec![(1, 90); 2])] {
            let (at, keys) = due.take(u64::MAX).unwrap();
            assert_eq!((at, &keys), (step, &expected));
            due.give_back(keys);
        }
        assert_eq!((due.first(), due.len), (None, 0));
        due.add(10, 2, 5, |_, _, _| true);
        assert_eq!(due.take(10), Some((10, vec![(2, 5)])), "memory that was given back is empty");
    }

    #[test]
    fn the_memory_of_a_flood_does_not_stay() {
        let mut due = Due::new();
        for keys in [10_000, 3] {
            (0..keys).for_each(|key| due.add(1, 0, key, |_, _, _| true));
            let (_, keys) = due.take(1).unwrap();
            due.give_back(keys);
        }
        assert!(due.spare.capacity() < 100);
    }

    #[test]
    fn of_many_keys_those_leave_that_are_not_due_or_twice_there() {
        let mut due = Due::new();
        for number in 0..MANY as u64 {
            assert_eq!(due.len as u64, number);
            due.add(number % 2, 0, number % 1000, |step, _, key| step == 1 && *key < 100);
        }
        assert_eq!(due.len, 50);
        assert_eq!(due.take(0), Some((0, Vec::new())));
        let (_, keys) = due.take(1).unwrap();
        assert_eq!(keys, (0..50).map(|number| (0, 2 * number + 1)).collect::<Vec<_>>());
        assert!(keys.capacity() < 100, "memory is given back too");
    }
}
