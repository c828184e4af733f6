use super::*;

fn locks(buckets: usize) -> LockWords<Vec<Slot>> {
    let slots = (0..=buckets * BUCKET).map(|_| Slot::default());
    LockWords::new(slots.collect())
}

#[test]
fn a_lock_is_held_by_one_thread_and_released_by_that_one() {
    let locks = locks(2);
    for key in [0, 7, u64::MAX] {
        assert_eq!(locks.holder(key), None);
        assert_eq!(locks.take(key, 0, false), LockAttempt::Taken);
        assert_eq!(locks.holder(key), Some(0));
        assert!(!locks.may_take(key));
        assert_eq!(locks.take(key, 0, false), LockAttempt::Own);
        assert_eq!(locks.take(key, 1, false), LockAttempt::Busy);
        assert!(!locks.release(key, 1));
        assert!(locks.release(key, 0) && !locks.release(key, 0));
        assert!(locks.may_take(key));
        assert_eq!(locks.take(key, 1, false), LockAttempt::Taken);
    }
}

#[test]
fn free_locks_take_no_room_and_those_that_are_held_do() {
    let locks = locks(1);
    for key in 0..1000 {
        assert_eq!(locks.take(key, 3, false), LockAttempt::Taken, "{key}");
        assert!(locks.release(key, 3));
    }
    for key in 0..BUCKET as u64 {
        assert_eq!(locks.take(5 * key, 3, false), LockAttempt::Taken, "{key}");
    }
    assert_eq!(locks.take(1, 3, false), LockAttempt::Full);
    assert_eq!(locks.take(0, 3, false), LockAttempt::Own);
    assert!(locks.release(10, 3));
    assert_eq!(locks.take(1, 3, false), LockAttempt::Taken);
    assert_eq!(locks.take(10, 3, false), LockAttempt::Full);
}

#[test]
fn keys_of_a_full_bucket_are_in_others_and_each_has_one_slot() {
    let locks = locks(64);
    // One bucket has all keys below 128.
    let keys = || 0..4 * BUCKET as u64;
    let taken = keys().filter(|key| locks.take(*key, 9, false) == LockAttempt::Taken);
    assert!(taken.count() > 2 * BUCKET);
    let held: Vec<_> = keys().filter(|key| locks.holder(*key) == Some(9)).collect();
    for key in &held {
        assert_eq!(locks.take(*key, 8, false), LockAttempt::Busy);
        assert!(locks.release(*key, 9));
        assert_eq!(locks.take(*key, 8, false), LockAttempt::Taken);
    }
    assert!(held.iter().all(|key| locks.release(*key, 8)));
}

#[test]
fn a_thread_that_sleeps_is_woken() {
    let locks = locks(1);
    assert_eq!(locks.take(1, 0, false), LockAttempt::Taken);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut has_slept = false;
            while locks.take(1, 1, has_slept) == LockAttempt::Busy {
                // Longer than the test may take.
                locks.sleep(1, Duration::from_secs(1000));
                has_slept = true;
            }
            assert!(locks.release(1, 1));
        });
        let slot = locks.find(1).unwrap();
        while slot.state.load(Ordering::Relaxed) != CONTENDED {
            std::thread::yield_now();
        }
        assert!(locks.release(1, 0));
    });
    assert_eq!(locks.holder(1), None);
}

#[test]
fn a_thread_that_died_while_it_added_a_key_stops_those_that_add_alone() {
    let locks = locks(1);
    assert_eq!(locks.take(1, 0, false), LockAttempt::Taken);
    locks.0[0].state.store(HELD, Ordering::Relaxed);
    assert_eq!(locks.take(2, 0, false), LockAttempt::Adding);
    assert!(locks.release(1, 0));
    assert_eq!(locks.take(1, 5, false), LockAttempt::Taken);
}
