//! What the examples in the engine's documentation assert, on nodes that are threads. The engine
//! has no machine to run them on.

use dhole_heap::Absent;
use dhole_live::Threads;
use dhole_node::{
    AccessError, Condvar, Lock, Outcome, Result, RwLock, Semaphore, Settings, Worker, run_on,
};

use crate::alone;

fn on_threads<R: Send>(
    settings: &Settings,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Outcome<R> {
    let _alone = alone();
    let machine = Threads::new(settings.nodes, 0);
    run_on(&machine, settings, program).expect("it runs")
}

#[test]
fn a_reader_of_a_read_write_lock_sees_whole_writes() {
    on_threads(&Settings::nodes(2), |w| {
        let pair = w.once(|w| Ok(w.alloc([0_u64; 2])))?;
        let lock = RwLock::numbered(1);
        lock.with_write(w, |w| {
            pair.get_mut(w)[0] += 1;
            pair.get_mut(w)[1] += 1;
            Ok(())
        })?;
        let [a, b] = lock.with_read(w, |w| Ok(pair.read(w)))?;
        assert_eq!(a, b);
        Ok(())
    });
}

#[test]
fn what_was_written_before_a_release_of_a_semaphore_is_seen_after_it() {
    on_threads(&Settings::nodes(2), |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        let ready = Semaphore::numbered(1, 0);
        if w.node().index() == 0 {
            *number.get_mut(w) = 7;
            ready.release(w)?;
        } else {
            ready.acquire(w)?;
            assert_eq!(number.read(w), 7);
        }
        Ok(())
    });
}

#[test]
fn a_wait_on_a_condition_ends_when_it_holds() {
    let outcome = on_threads(&Settings::nodes(2), |w| {
        let lock = Lock::numbered(1);
        let ready = Condvar::numbered(lock, 0);
        let flag = w.once(|w| Ok(w.alloc(false)))?;
        let mut held = lock.acquire(w)?;
        if w.node().index() == 0 {
            *flag.get_mut(w) = true;
            ready.notify_all(w)?;
        }
        while !flag.read(w) {
            held = ready.wait(w, held)?;
        }
        held.release(w)?;
        Ok(flag.read(w))
    });
    assert!(outcome.value);
}

#[test]
fn all_that_a_root_leads_to_is_prefetched() {
    on_threads(&Settings::nodes(2), |w| {
        let root = w.once(|w| {
            let leaves = [w.alloc(1_u64), w.alloc(2)];
            Ok(w.alloc(leaves))
        })?;
        assert_eq!(w.prefetch_reachable(root, 1_000)?, 3);
        Ok(())
    });
}

#[test]
fn an_access_to_what_was_freed_says_so() {
    on_threads(&Settings::nodes(2), |w| {
        let list = w.once(|w| Ok(w.alloc_range(100, |i| i)))?;
        if w.node().index() == 0 {
            w.free(list)?;
        }
        w.barrier()?;
        let error = list.at(7).try_get(w).unwrap_err();
        assert!(matches!(error, AccessError::Freed { .. }));
        Ok(())
    });
}

#[test]
fn objects_larger_than_a_stack_are_made_in_place() {
    on_threads(&Settings::nodes(1), |w| {
        let field = w.alloc_with(|field: &mut [[f64; 1024]; 2048]| field[0].fill(1.0));
        assert_eq!(field.get(w)[0][1023] + field.get(w)[1][0], 1.0);
        let numbers: Vec<u64> = (0..2 << 20).collect();
        let numbers: Box<[u64; 2 << 20]> = numbers.into_boxed_slice().try_into().unwrap();
        let numbers = w.alloc_boxed(numbers);
        assert_eq!(numbers.get(w)[1_000_000], 1_000_000);
        Ok(())
    });
}

#[test]
fn only_the_measured_part_of_a_program_is_counted() {
    let mut settings = Settings::nodes(2);
    settings.one_sided = false;
    let outcome = on_threads(&settings, |w| {
        let number = w.once(|w| Ok(w.alloc(7_u64)))?;
        w.begin_measuring()?;
        let seven = *number.get(w);
        w.barrier()?;
        w.end_measuring()?;
        Ok(seven)
    });
    let measured = outcome.measured.expect("both nodes measured");
    assert_eq!([measured[0].messages, measured[1].messages], [2, 2]);
    assert_eq!(measured[1].fetch_rounds, 1);
}

#[test]
fn threads_of_a_node_read_what_is_there() {
    on_threads(&Settings::nodes(1), |w| {
        let numbers = w.alloc_range(4, |i| i as u64);
        let sum = w.readers(|present| {
            std::thread::scope(|scope| {
                let sum = |half| {
                    numbers
                        .slice(half)
                        .iter()
                        .map(|r| present.get(r).copied())
                        .sum()
                };
                let upper = scope.spawn(move || sum(2..4));
                let lower: Result<u64, Absent> = sum(0..2);
                Ok::<u64, Absent>(lower? + upper.join().expect("it does not panic")?)
            })
        })?;
        assert_eq!(sum, 6);
        Ok(())
    });
}
