//! Message passing by objects that their writer has for itself. They are withdrawn from it while it
//! computes, or sent at its next call.

use std::sync::atomic::{AtomicU64, Ordering};

use conformance::{Simulated, run, seeds};
use dhole::Lock;

const SEEDS: u64 = 3_000;

#[test]
fn message_passing_works_by_objects_that_one_node_alone_writes() {
    let [fetched, deferred] = [const { AtomicU64::new(0) }; 2];
    for seed in seeds(0..SEEDS) {
        let ran = run(&Simulated::default(), 2, seed, |w| {
            let objects = w.once(|w| Ok(w.alloc_range(2, |_| 0_u64)))?;
            let [data, flag] = [0, 1].map(|at| objects.at(at));
            let is_writer = w.node().index() == 0;
            for _ in 0..4 {
                if is_writer {
                    (*data.get_mut(w), *flag.get_mut(w)) = (0, 0);
                }
                w.barrier()?;
            }
            let [of_data, of_flag] = [0, 1].map(Lock::numbered);
            for round in 1..=3_u64 {
                w.work(w.random() % 40_000);
                if is_writer {
                    of_data.with(w, |w| {
                        *data.get_mut(w) = round;
                        Ok(())
                    })?;
                    w.work(w.random() % 20_000);
                    of_flag.with(w, |w| {
                        *flag.get_mut(w) = round;
                        Ok(())
                    })?;
                } else {
                    let flag = of_flag.with(w, |w| Ok(flag.read(w)))?;
                    let data = of_data.with(w, |w| Ok(data.read(w)))?;
                    assert!(data >= flag, "{flag} is told, and {data} is there");
                }
            }
            w.barrier()?;
            assert_eq!([data, flag].map(|object| object.read(w)), [3, 3]);
            let counters = w.counters();
            fetched.fetch_add(counters.misses, Ordering::Relaxed);
            deferred.fetch_add(counters.deferred_requests, Ordering::Relaxed);
            Ok(())
        });
        if let Err(error) = ran {
            panic!("DHOLE_SEED={seed}: {error}");
        }
    }
    let (fetched, deferred) = (fetched.into_inner(), deferred.into_inner());
    println!("{deferred} of {fetched} fetches waited for the writer");
    assert!(deferred < fetched / 2, "{deferred} of {fetched} waited");
}
