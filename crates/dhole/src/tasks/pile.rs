//! A pile of tasks in the order of their priorities.

use std::collections::BTreeMap;

use dhole_node::object::encoded_len;
use serde::{Deserialize, Serialize};

/// A gift of several tasks has so many bytes at most: a message carries more.
const MOST_BYTES: usize = 1 << 20;

/// Tasks that wait. Those of the highest priority go out first; of equals, the newest.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Pile<T> {
    /// The highest priority, unless its tasks are all gone.
    highest: i64,
    /// The tasks of that priority, the oldest first.
    tasks: Vec<T>,
    /// Those of lower ones; none is empty.
    lower: BTreeMap<i64, Vec<T>>,
    len: u64,
}

impl<T> Default for Pile<T> {
    fn default() -> Pile<T> {
        Pile {
            highest: 0,
            tasks: Vec::new(),
            lower: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<T> Pile<T> {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push(&mut self, priority: i64, task: T) {
        if priority != self.highest {
            return self.push_other(priority, task);
        }
        self.len += 1;
        self.tasks.push(task);
    }

    #[cold]
    fn push_other(&mut self, priority: i64, task: T) {
        self.append(priority, vec![task]);
    }

    /// Tasks of one priority, the oldest first; they are newer than those that are here.
    fn append(&mut self, priority: i64, mut tasks: Vec<T>) {
        if tasks.is_empty() {
            return;
        }
        self.len += tasks.len() as u64;
        if self.tasks.is_empty() && self.lower.range(priority..).next().is_none() {
            self.highest = priority;
        }
        if priority > self.highest {
            let before = std::mem::take(&mut self.tasks);
            if !before.is_empty() {
                self.lower.insert(self.highest, before);
            }
            self.highest = priority;
        }
        match priority == self.highest {
            true => self.tasks.append(&mut tasks),
            false => self.lower.entry(priority).or_default().append(&mut tasks),
        }
    }

    /// The next task.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let task = match self.tasks.pop() {
            Some(task) => task,
            None => {
                (self.highest, self.tasks) = self.lower.pop_last()?;
                self.tasks.pop()?
            }
        };
        self.len -= 1;
        Some(task)
    }

    /// All that are in another pile, as newer ones.
    pub fn add(&mut self, other: Pile<T>) {
        for (priority, tasks) in other.lower {
            self.append(priority, tasks);
        }
        self.append(other.highest, other.tasks);
    }

    /// The highest priority of a task.
    pub fn top(&self) -> Option<i64> {
        match self.tasks.is_empty() {
            false => Some(self.highest),
            true => self.lower.last_key_value().map(|(priority, _)| *priority),
        }
    }

    /// Takes all tasks away that [`half`](Pile::half) would leave, or the single one.
    pub fn better_half(&mut self) -> Pile<T> {
        let lower = match self.len {
            0 | 1 => Pile::default(),
            _ => self.half(),
        };
        std::mem::replace(self, lower)
    }

    /// Takes half of the tasks away, of each priority the oldest ones: of a tree these lead to the
    /// most others. The best task stays, unless it is the only one.
    pub fn half(&mut self) -> Pile<T> {
        let mut half = Pile::default();
        // Where each priority has one task, every second of them goes.
        let mut goes_up = self.len == 1;
        let mut of = |priority: i64, tasks: &mut Vec<T>| {
            let odd = tasks.len() % 2;
            let count = tasks.len() / 2 + usize::from(goes_up && odd == 1);
            goes_up ^= odd == 1;
            half.append(priority, tasks.drain(..count).collect());
        };
        of(self.highest, &mut self.tasks);
        for (priority, tasks) in self.lower.iter_mut().rev() {
            of(*priority, tasks);
        }
        self.lower.retain(|_, tasks| !tasks.is_empty());
        self.len -= half.len;
        half
    }
}

impl<T: Serialize> Pile<T> {
    /// Whether a message carries all.
    pub fn fits(&self) -> bool {
        self.len < 2 || encoded_len(self) <= MOST_BYTES
    }

    /// The better half for a node that takes tasks, or so many of them as a message carries.
    pub fn share(&mut self) -> Pile<T> {
        let mut share = self.better_half();
        while !share.fits() {
            self.add(share.half());
        }
        share
    }

    /// As [`half`](Pile::half), for another node: one task, or so many as a message carries. Those
    /// that are left of the half become the newest.
    pub fn gift(&mut self) -> Pile<T> {
        let mut half = self.half();
        while !half.fits() {
            self.add(half.better_half());
        }
        half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut pile: Pile<u32>) -> Vec<u32> {
        std::iter::from_fn(|| pile.pop()).collect()
    }

    fn pile(tasks: &[(i64, u32)]) -> Pile<u32> {
        let mut pile = Pile::default();
        tasks.iter().for_each(|(at, task)| pile.push(*at, *task));
        assert_eq!(pile.len(), tasks.len() as u64);
        pile
    }

    #[test]
    fn the_highest_go_first_and_of_equals_the_newest() {
        let mixed = [(0, 1), (5, 2), (0, 3), (-4, 4), (5, 5), (9, 6), (-4, 7)];
        assert_eq!(all(pile(&mixed)), [6, 5, 2, 3, 1, 7, 4]);
        let mut pile = pile(&[(3, 1), (1, 2)]);
        assert_eq!(pile.pop(), Some(1));
        pile.push(2, 3);
        pile.push(3, 4);
        pile.push(1, 5);
        assert_eq!(all(pile), [4, 3, 5, 2]);
    }

    #[test]
    fn half_of_each_priority_goes_the_oldest_first() {
        let mut equal = pile(&[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
        let half = equal.half();
        assert_eq!((all(half), all(equal)), (vec![2, 1], vec![5, 4, 3]));
        let mut mixed = pile(&[(1, 1), (2, 2), (3, 3), (4, 4)]);
        let half = mixed.half();
        assert_eq!((half.len(), mixed.len()), (2, 2));
        assert_eq!((all(half), all(mixed)), (vec![3, 1], vec![4, 2]));
        let mut better = pile(&[(1, 1), (1, 2), (4, 3), (2, 4)]);
        assert_eq!(better.top(), Some(4));
        let half = better.better_half();
        assert_eq!((all(half), all(better)), (vec![3, 2], vec![4, 1]));
        let mut one = pile(&[(1, 1)]);
        assert_eq!((all(one.better_half()), all(one)), (vec![1], vec![]));
        let mut one = pile(&[(7, 1)]);
        assert_eq!(all(one.half()), [1]);
        assert!(one.is_empty() && one.half().is_empty());
    }

    #[test]
    fn a_gift_has_one_task_or_less_bytes_than_a_message_carries() {
        let large = || vec![7_u8; MOST_BYTES / 4];
        let mut tasks = Pile::default();
        (0..40).for_each(|_| tasks.push(0, large()));
        let gift = tasks.gift();
        assert_eq!((gift.len(), tasks.len()), (2, 38));
        assert!(encoded_len(&gift) <= MOST_BYTES);
        let mut tasks = Pile::default();
        (0..8).for_each(|_| tasks.push(0, vec![7_u8; 2 * MOST_BYTES]));
        assert_eq!((tasks.gift().len(), tasks.len()), (1, 7));
        let mut small = pile(&[(0, 1), (0, 2), (0, 3), (0, 4)]);
        assert_eq!((all(small.gift()), all(small)), (vec![2, 1], vec![4, 3]));
    }

    /// Beside a list that is sorted each time.
    #[test]
    fn whatever_is_done_the_order_and_the_number_are_those_of_a_list() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..300 {
            let (mut pile, mut list) = (Pile::default(), Vec::new());
            for task in 0..40 {
                match next(4) {
                    0 => {
                        let highest = (0..list.len()).max_by_key(|at| {
                            let (priority, _): (i64, u64) = list[*at];
                            (priority, *at)
                        });
                        assert_eq!(pile.pop(), highest.map(|at| list.remove(at).1));
                    }
                    1 if next(4) == 0 => {
                        let half = pile.half();
                        let most = (list.len() as u64).div_ceil(2);
                        assert!(half.len() == most || half.len() + 1 == most);
                        // It comes back as newer ones.
                        let mut goes = half.clone();
                        while let Some(task) = goes.pop() {
                            list.retain(|(_, its)| *its != task);
                        }
                        assert_eq!(pile.len(), list.len() as u64);
                    }
                    _ => {
                        let priority = next(3) as i64;
                        pile.push(priority, task);
                        list.push((priority, task));
                    }
                }
                assert_eq!(pile.len(), list.len() as u64);
                assert_eq!(pile.is_empty(), list.is_empty());
            }
        }
    }
}
