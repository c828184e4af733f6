//! What others wait for goes though the call fails in which they are answered.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dhole::{Config, Races};

#[test]
fn who_is_refused_has_answered_others_before() {
    let (written, has) = (Barrier::new(2), AtomicBool::new(false));
    let config = Config::nodes(2).races(Races::Ignore);
    let ran = config.run(|w| {
        let (number, lock) = w.once(|w| Ok((w.alloc(0_u64), w.new_lock())))?;
        w.barrier()?;
        if w.node().0 == 1 {
            written.wait();
            assert_eq!(number.read(w), 7);
            has.store(true, SeqCst);
            return Ok(());
        }
        let guard = lock.acquire(w)?;
        // It is written without a copy of what was: so nobody gets it before a call of this worker.
        *number.get_mut(w) = 7;
        written.wait();
        let since = Instant::now();
        while !has.load(SeqCst) {
            assert!(since.elapsed() < Duration::from_secs(10), "it waits");
            // The worker computes, so that what comes is put off until its next call.
            sleep(Duration::from_millis(10));
            assert!(lock.acquire(w).is_err(), "it has the lock");
        }
        guard.release(w)?;
        Ok(())
    });
    ran.unwrap();
}
