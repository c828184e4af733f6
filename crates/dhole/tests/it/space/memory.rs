//! A simulated node has as much memory as its network's description says.

use dhole::{
    AccessError, Coherence, Config, Error, Lock, NodeId, OutOfMemory, Placement, Result, RunError,
};
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

/// Node 1 reads one in four of node 0's objects of 256 bytes, so 4 of each page's 16.
#[test]
fn what_a_node_uses_lies_together_unless_it_must_lie_where_it_does_elsewhere() {
    let stored = |placement| {
        let run = Config::nodes(2).placement(placement).run(|w| {
            let objects = w.once(|w| Ok(w.alloc_range(640, |i| [i as u64; 32])))?;
            if w.node().index() == 1 {
                let read = objects.iter().step_by(4).map(|r| r.get(w)[0]);
                assert_eq!(read.sum::<u64>(), (0..640).step_by(4).sum::<u64>());
            }
            Ok(())
        });
        let per_node = run.unwrap().report.per_node;
        [0, 1].map(|node: usize| per_node[node].shared_bytes)
    };
    let page = 4096;
    assert_eq!(stored(Placement::FirstTouch), [40 * page, 10 * page]);
    assert_eq!(stored(Placement::Everywhere), [40 * page, 40 * page]);
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
