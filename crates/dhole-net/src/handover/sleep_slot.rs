//! The right to sleep, which one thread at a time has.

#[cfg(loom)]
pub(super) use self::explored::SleepSlot;
#[cfg(not(loom))]
pub(super) use self::usual::SleepSlot;

#[cfg(not(loom))]
mod usual {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    #[derive(Default)]
    pub struct SleepSlot(Mutex<()>);

    impl SleepSlot {
        pub fn take(&self) -> MutexGuard<'_, ()> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Unless another thread has it.
        pub fn try_take(&self) -> Option<MutexGuard<'_, ()>> {
            self.0.try_lock().ok()
        }
    }
}

/// Loom's `try_lock` waits where another thread takes the lock just before: this gives up.
#[cfg(loom)]
mod explored {
    use loom::sync::{Condvar, Mutex};

    pub struct SleepSlot {
        taken: Mutex<bool>,
        left: Condvar,
    }

    impl Default for SleepSlot {
        fn default() -> SleepSlot {
            SleepSlot {
                taken: Mutex::new(false),
                left: Condvar::new(),
            }
        }
    }

    pub struct Taken<'a>(&'a SleepSlot);

    impl Drop for Taken<'_> {
        fn drop(&mut self) {
            *self.0.taken.lock().expect("a lock") = false;
            self.0.left.notify_all();
        }
    }

    impl SleepSlot {
        pub fn take(&self) -> Taken<'_> {
            let mut taken = self.taken.lock().expect("a lock");
            while *taken {
                taken = self.left.wait(taken).expect("a lock");
            }
            *taken = true;
            Taken(self)
        }

        pub fn try_take(&self) -> Option<Taken<'_>> {
            let mut taken = self.taken.lock().expect("a lock");
            let free = !std::mem::replace(&mut *taken, true);
            free.then(|| Taken(self))
        }
    }
}
