//! Where one thread at a time sleeps.

#[cfg(loom)]
pub(super) use self::explored::Bed;
#[cfg(not(loom))]
pub(super) use self::usual::Bed;

#[cfg(not(loom))]
mod usual {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    #[derive(Default)]
    pub struct Bed(Mutex<()>);

    impl Bed {
        pub fn lie_down(&self) -> MutexGuard<'_, ()> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Unless somebody sleeps there.
        pub fn try_to_lie_down(&self) -> Option<MutexGuard<'_, ()>> {
            self.0.try_lock().ok()
        }
    }
}

/// Loom's `try_lock` waits where another thread takes the lock just before: this gives up.
#[cfg(loom)]
mod explored {
    use loom::sync::{Condvar, Mutex};

    pub struct Bed {
        taken: Mutex<bool>,
        left: Condvar,
    }

    impl Default for Bed {
        fn default() -> Bed {
            Bed {
                taken: Mutex::new(false),
                left: Condvar::new(),
            }
        }
    }

    pub struct Lies<'a>(&'a Bed);

    impl Drop for Lies<'_> {
        fn drop(&mut self) {
            *self.0.taken.lock().expect("a lock") = false;
            self.0.left.notify_all();
        }
    }

    impl Bed {
        pub fn lie_down(&self) -> Lies<'_> {
            let mut taken = self.taken.lock().expect("a lock");
            while *taken {
                taken = self.left.wait(taken).expect("a lock");
            }
            *taken = true;
            Lies(self)
        }

        pub fn try_to_lie_down(&self) -> Option<Lies<'_>> {
            let mut taken = self.taken.lock().expect("a lock");
            let free = !std::mem::replace(&mut *taken, true);
            free.then(|| Lies(self))
        }
    }
}
