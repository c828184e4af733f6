//! A simulated node has as much memory as its network's description says.

use dhole::{AccessError, Coherence, Config, Error, Lock, NodeId, OutOfMemory, Result, RunError};
use dhole::{SyncError, Worker, sim};

const LIMIT_BYTES: u64 = 1 << 20;

/// What a program comes to on two nodes of 1 MiB each.
fn run(
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync,
) -> Result<(), (NodeId, Box<Error>)> {
    let mut settings = sim::Settings::fixed_cost(2);
    settings.network.memory_bytes = LIMIT_BYTES;
    match Config::nodes(2).simulate(settings, program) {
        Ok(_) => Ok(()),
        Err(RunError::Failed { node, error, .. }) => Err((node, error)),
        Err(other) => panic!("{other}"),
    }
}

fn is_over(memory: OutOfMemory) {
    assert_eq!(memory.limit_bytes, LIMIT_BYTES);
    assert!(memory.held_bytes > LIMIT_BYTES);
}

#[test]
fn a_node_that_allocates_more_than_it_has_memory_for_fails() {
    let failed = run(|w| {
        if w.node().index() == 1 {
            w.alloc_range(200_000, |i| i as u64);
        }
        Ok(w.barrier()?)
    });
    let (node, error) = failed.unwrap_err();
    let Error::Sync(SyncError::Memory { cause, .. }) = *error else {
        panic!("{error}")
    };
    assert_eq!(node, NodeId(1));
    is_over(cause);
}

#[test]
fn a_node_that_fetches_more_than_it_has_memory_for_fails_where_it_did() {
    let failed = run(|w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(4, 100_000)))?;
        let own = 2 * w.node().index();
        rows.row(own).get_mut(w)[0] = 1;
        w.barrier()?;
        if w.node().index() == 1 {
            rows.row(0).get(w);
        }
        Ok(w.barrier()?)
    });
    let (node, error) = failed.unwrap_err();
    let Error::Access(AccessError::Memory { site, cause, .. }) = *error else {
        panic!("{error}")
    };
    assert_eq!(node, NodeId(1));
    assert!(site.to_string().contains("memory.rs"), "{site}");
    is_over(cause);
}

#[test]
fn a_node_that_stays_within_its_memory_does_not() {
    run(|w| {
        w.alloc_range(100_000, |i| i as u64);
        Ok(w.barrier()?)
    })
    .unwrap();
}

#[test]
fn a_node_that_is_told_of_its_memory_still_synchronises_and_frees() {
    run(|w| {
        let lock = Lock::numbered(1);
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(2, 100_000)))?;
        rows.row(w.node().index()).get_mut(w)[0] = 1;
        w.barrier()?;
        if w.node().index() == 1 {
            let over = rows.row(0).try_get(w).map(drop).unwrap_err();
            assert!(matches!(over, AccessError::Memory { .. }), "{over}");
            let held = lock.acquire(w)?;
            held.release(w)?;
        }
        w.switch(rows, Coherence::Update)?;
        if w.node().index() == 1 {
            w.free(rows.row(0))?;
            assert_eq!(w.counters().by_type["u64"].freed, 1);
            assert!(w.counters().shared_bytes < LIMIT_BYTES);
        }
        w.barrier()?;
        lock.with(w, |_| Ok(()))
    })
    .unwrap();
}
