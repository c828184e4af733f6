//! Locks that do not stay poisoned: who holds one leaves what it guards consistent before it calls
//! what may panic.

use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

/// The lock, also where a thread that held it panicked.
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless another thread has it.
#[inline]
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The lock to read, also where a thread that held it panicked.
#[inline]
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// The lock to write, also where a thread that held it panicked.
#[inline]
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn panics(with: impl FnOnce()) {
        catch_unwind(AssertUnwindSafe(with)).expect_err("it panics");
    }

    #[test]
    fn what_a_panic_has_left_can_be_locked() {
        let (mutex, rw) = (Mutex::new(1), RwLock::new(1));
        panics(|| {
            *lock(&mutex) = 2;
            let _held = (lock(&mutex), write(&rw));
            panic!("with both held");
        });
        assert!(mutex.is_poisoned() && rw.is_poisoned());
        assert_eq!((*lock(&mutex), *read(&rw)), (2, 1));
        *write(&rw) += 1;
        assert_eq!(*read(&rw), 2);
        let held = try_lock(&mutex);
        assert_eq!(held.as_deref(), Some(&2));
        assert!(try_lock(&mutex).is_none());
    }
}
