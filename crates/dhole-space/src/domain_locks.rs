//! The locks of a domain's threads, in the file that its processes map.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::DomainFile;
use crate::lock_words::{BUCKET, LockAttempt, LockWords, Slot};
use crate::mapping::Mapping;

/// Buckets of the locks of a domain.
const BUCKETS: usize = 1 << 20;
const SLOTS: usize = 1 + BUCKETS * BUCKET;

/// The locks of the threads of a domain, by 64-bit keys. A lock that is free is taken by an atomic
/// operation, and so it is released unless threads sleep for it. Threads are named by numbers below
/// `u64::MAX`.
#[derive(Debug)]
pub struct DomainLocks(LockWords<MappedSlots>);

/// The slots of a domain's locks.
struct MappedSlots(Mapping);

impl fmt::Debug for MappedSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedSlots").field(&SLOTS).finish()
    }
}

impl DomainLocks {
    /// Bytes of a file that they take. Those that are not used take no memory.
    pub const BYTES: u64 = (SLOTS * size_of::<Slot>()) as u64;
    /// So many locks of a domain may be held at once, if their keys spread evenly.
    pub const ROOM: usize = SLOTS - 1;

    /// Maps the locks of a domain, which begin at an offset of its file.
    ///
    /// # Errors
    /// The system's own.
    ///
    /// # Panics
    /// Unless the file has so many bytes from that offset on, which is one of a page.
    pub fn map(file: &DomainFile, offset: u64) -> io::Result<DomainLocks> {
        let is_in_file = offset.checked_add(DomainLocks::BYTES);
        assert!(is_in_file.is_some_and(|end| end <= DomainFile::BYTES));
        assert!(offset.is_multiple_of(4096));
        let slots = Mapping::of_part(file.file(), offset..offset + DomainLocks::BYTES)?;
        // A child of `fork` takes no locks.
        slots.keep_from_children()?;
        Ok(DomainLocks(LockWords::new(MappedSlots(slots))))
    }

    /// Whether a thread may take a lock, as far as it can be seen: for threads that spin.
    pub fn may_take(&self, key: u64) -> bool {
        self.0.may_take(key)
    }

    /// A thread takes a lock if it is free. `has_slept` says that it has
    /// [slept](DomainLocks::sleep) for it.
    pub fn take(&self, key: u64, thread: u64, has_slept: bool) -> LockAttempt {
        self.0.take(key, thread, has_slept)
    }

    /// A thread releases a lock; whether it had it.
    pub fn release(&self, key: u64, thread: u64) -> bool {
        self.0.release(key, thread)
    }

    /// The thread that holds a lock.
    pub fn holder(&self, key: u64) -> Option<u64> {
        self.0.holder(key)
    }

    /// Sleeps until a lock may be free, and at most so long. It returns sooner for no reason, too.
    pub fn sleep(&self, key: u64, at_most: Duration) {
        self.0.sleep(key, at_most);
    }

    /// A thread that has [slept](DomainLocks::sleep) for a lock does not want it any more: another
    /// one is woken in its place.
    pub fn leave(&self, key: u64) {
        self.0.leave(key);
    }
}

impl AsRef<[Slot]> for MappedSlots {
    #[inline]
    fn as_ref(&self) -> &[Slot] {
        // SAFETY: `map` has mapped so many slots there, page-aligned, of which zeros are some; the
        // file never becomes shorter, and others change them by atomics alone.
        unsafe { std::slice::from_raw_parts(self.0.start().as_ptr().cast(), SLOTS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_a_file_have_the_same_locks() {
        let file = DomainFile::make().unwrap();
        let [one, other] = [(); 2].map(|()| DomainLocks::map(&file, 1 << 30).unwrap());
        assert_eq!(one.take(5, 1, false), LockAttempt::Taken);
        assert_eq!(other.take(5, 2, false), LockAttempt::Busy);
        assert_eq!(other.holder(5), Some(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut has_slept = false;
                while other.take(5, 2, has_slept) == LockAttempt::Busy {
                    other.sleep(5, Duration::from_secs(1000));
                    has_slept = true;
                }
            });
            assert!(one.release(5, 1));
        });
        assert_eq!(one.holder(5), Some(2));
        file.clear();
        assert_eq!(one.holder(5), None);
        assert_eq!(one.take(5, 1, false), LockAttempt::Taken);
    }
}
