//! Locks as ports take them.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The lock, also where a thread that held it panicked: whoever holds a port's lock while it calls
/// what is not the port's own leaves things in order before.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless another thread has it.
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
