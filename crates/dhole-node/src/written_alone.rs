//! Which exclusive objects are expected to be written.

use dhole_model::Oid;

/// The exclusive objects of a node that are expected to be written when an interval has ended. One
/// that has just become exclusive is, until the worker writes it. Those that the worker writes are
/// expected to be written again only on a node of which another one had to wait for such an object:
/// so the others do not pay for it. Nor do nodes whose clean objects neighbours read: there what
/// was asked for stays clean.
#[derive(Default)]
pub(crate) struct WrittenAlone {
    /// Somebody had to wait for an exclusive object.
    was_in_vain: bool,
    /// Before that: the objects that have become exclusive, some of them twice.
    alone: Vec<Oid>,
    /// How many of these there were when they were looked through last.
    were_alone: usize,
    /// After it: the exclusive objects that the worker has written, as was expected.
    written: Vec<Oid>,
}

/// Objects that have become exclusive are looked through when there are twice as many as before,
/// and more than these.
const LEAST_ALONE: usize = 128;

impl WrittenAlone {
    /// Somebody waits for an exclusive object that could not be withdrawn.
    pub fn is_waited_for(&mut self) {
        self.was_in_vain = true;
    }

    /// The worker has written these objects, as was expected, and synchronises.
    pub fn notes(&mut self, noted: impl Iterator<Item = Oid>, is_exclusive: impl Fn(Oid) -> bool) {
        if self.was_in_vain {
            self.written.extend(noted.filter(|oid| is_exclusive(*oid)));
        }
    }

    /// An interval has ended, in which these objects have `become` exclusive. Calls `expect` with
    /// those that are expected to be written from here on.
    pub fn ends_interval(
        &mut self,
        became: Vec<Oid>,
        publishes: bool,
        is_exclusive: impl Fn(Oid) -> bool,
        mut expect: impl FnMut(Oid),
    ) {
        let mut expect = |oid| {
            if is_exclusive(oid) {
                expect(oid);
            }
        };
        if self.was_in_vain {
            let before = self.alone.drain(..).chain(self.written.drain(..));
            before.for_each(&mut expect);
        }
        became.iter().copied().for_each(&mut expect);
        if self.was_in_vain || publishes {
            return;
        }
        self.alone.extend(became);
        if self.alone.len() > 2 * self.were_alone.max(LEAST_ALONE) {
            self.alone.sort_unstable();
            self.alone.dedup();
            self.alone.retain(|oid| is_exclusive(*oid));
            self.were_alone = self.alone.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of these objects that are expected to be written, when some have become exclusive.
    fn expected(alone: &mut WrittenAlone, became: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut expected = Vec::new();
        let became = became.into_iter().map(Oid).collect();
        let is_even = |oid: Oid| oid.0.is_multiple_of(2);
        alone.ends_interval(became, false, is_even, |oid| expected.push(oid.0));
        expected
    }

    #[test]
    fn what_is_written_is_expected_again_once_somebody_had_to_wait() {
        let mut alone = WrittenAlone::default();
        let is_even = |oid: Oid| oid.0.is_multiple_of(2);
        assert_eq!(expected(&mut alone, [2, 3, 4]), [2, 4]);
        alone.notes([Oid(2)].into_iter(), is_even);
        assert_eq!(expected(&mut alone, [6]), [6]);
        alone.is_waited_for();
        alone.notes([Oid(6), Oid(7)].into_iter(), is_even);
        assert_eq!(expected(&mut alone, [8]), [2, 4, 6, 6, 8]);
        alone.notes([Oid(4), Oid(5)].into_iter(), is_even);
        assert_eq!(expected(&mut alone, []), [4]);
        assert_eq!(expected(&mut alone, []), []);
    }

    #[test]
    fn what_becomes_exclusive_again_and_again_is_kept_once() {
        let mut alone = WrittenAlone::default();
        for _ in 0..10_000 {
            expected(&mut alone, [2, 4]);
            assert!(alone.alone.len() <= 2 * LEAST_ALONE + 2);
        }
        alone.is_waited_for();
        let again = expected(&mut alone, []);
        assert!([2, 4].iter().all(|oid| again.contains(oid)));
        assert_eq!(alone.alone, []);
    }
}
