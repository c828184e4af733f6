use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value that exists only while one thread [holds](Confined::hold) it. Only this thread can reach
/// it, which every access checks. So the value needs to be neither `Send` nor `Sync`, while the
/// cell itself is both.
pub(crate) struct Confined<T> {
    /// The [mark](thread_mark) of the thread that holds the value, or 0.
    owner: AtomicUsize,
    value: RefCell<Option<T>>,
}

// SAFETY: `value` is touched by `hold` and `with` alone. `hold` first changes `owner` from 0 to
// its thread's mark, and changes it back only after it has taken the value out; `with` checks
// that `owner` is its own thread's mark. Marks of living threads differ, and the owner lives at
// least until its `hold` returns. So between two changes of `owner` one thread alone touches the
// cell, and the acquiring and releasing changes order it after the thread before. A `T` is made,
// used and dropped on one thread.
unsafe impl<T> Sync for Confined<T> {}

// SAFETY: the cell cannot be moved while `hold` borrows it, and outside `hold` it is empty, so
// no `T` ever changes its thread.
unsafe impl<T> Send for Confined<T> {}

/// The error if another call holds the cell already.
#[derive(Debug)]
pub(crate) struct Held;

impl<T> Confined<T> {
    /// A cell that no thread holds.
    pub(crate) fn new() -> Confined<T> {
        Confined {
            owner: AtomicUsize::new(0),
            value: RefCell::new(None),
        }
    }

    /// Puts `make()` into the cell, runs `f`, and drops the value.
    pub(crate) fn hold<R>(
        &self,
        make: impl FnOnce() -> T,
        f: impl FnOnce() -> R,
    ) -> Result<R, Held> {
        struct Release<'a, T>(&'a Confined<T>);
        impl<T> Drop for Release<'_, T> {
            fn drop(&mut self) {
                drop(self.0.value.take());
                self.0.owner.store(0, Ordering::Release);
            }
        }
        self.owner
            .compare_exchange(0, thread_mark(), Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| Held)?;
        let _release = Release(self);
        *self.value.borrow_mut() = Some(make());
        Ok(f())
    }

    /// Gives `f` the value.
    ///
    /// # Panics
    /// On any thread but the one that holds the cell, and within another call of `with`.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        assert!(
            self.owner.load(Ordering::Relaxed) == thread_mark(),
            "a simulated cluster is used outside its run or by another thread than its own"
        );
        f(self
            .value
            .borrow_mut()
            .as_mut()
            .expect("whoever holds the cell has filled it"))
    }
}

/// A number that no other living thread has, and never 0.
#[inline]
fn thread_mark() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_refused() {
        let cell = Confined::new();
        cell.hold(
            || 5,
            || {
                assert_eq!(cell.with(|n| *n), 5);
                let refused = std::thread::scope(|s| s.spawn(|| cell.with(|n| *n)).join().is_err());
                assert!(refused);
            },
        )
        .unwrap();
    }

    #[test]
    fn a_cell_is_held_once_and_can_be_held_again() {
        let cell = Confined::new();
        cell.hold(|| 1, || assert!(cell.hold(|| 2, || ()).is_err()))
            .unwrap();
        assert_eq!(cell.hold(|| 3, || cell.with(|n| *n)).unwrap(), 3);
    }

    #[test]
    fn an_unwind_releases_the_cell() {
        let cell: Confined<u8> = Confined::new();
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = cell.hold(|| 1, || std::panic::resume_unwind(Box::new(())));
        }));
        assert!(unwound.is_err());
        assert!(cell.hold(|| 1, || ()).is_ok());
    }
}
