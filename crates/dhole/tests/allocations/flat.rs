//! Nothing grows with time: ten times the transfers or barriers take no more memory.

use allocation_counter::measure;
use dhole::{
    Config, Counters, Lock, NodeId, Object, Result, Strategy, Worker, on, op, replicated, sim,
};
use serde::{Deserialize, Serialize};

/// The most bytes that a simulated run had allocated at a time, and what it counted.
fn peak(nodes: usize, program: impl Fn(&mut Worker<'_>) -> Result<()> + Sync) -> (u64, Counters) {
    let mut total = Counters::default();
    let info = measure(|| {
        let run = Config::nodes(nodes)
            .simulate(sim::Settings::fixed_cost(nodes), &program)
            .unwrap();
        total = run.report.total();
    });
    (info.bytes_max, total)
}

/// `busy` of the nodes write under a lock, `times` in all; the others take no part.
fn transfers(nodes: usize, busy: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(3, |_| 0_u64)))?;
        let lock = Lock::numbered(1);
        if w.node().index() < busy {
            for time in 0..times / busy as u64 {
                let number = numbers.at((time % 3) as usize);
                lock.with(w, |w| {
                    *number.get_mut(w) += 1;
                    Ok(())
                })?;
            }
        }
        Ok(())
    })
}

fn barriers(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        let mine = w.alloc(0_u64);
        for _ in 0..times {
            *mine.get_mut(w) += 1;
            w.barrier()?;
        }
        Ok(())
    })
}

/// Objects of all sizes come and go, a hundred in each of half as many rounds
/// as `times`, freed by each node in turn.
fn freed(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        for step in 0..times / 2 {
            let (small, single, rows) = w.once(|w| {
                let single = (0..16_u64).map(|i| w.alloc(i)).collect::<Vec<_>>();
                let single: [_; 16] = single.try_into().expect("as many as were made");
                Ok((
                    w.alloc_range(80, |i| i),
                    single,
                    w.alloc_rows::<u64>(4, 700),
                ))
            })?;
            let sum: usize = small.iter().map(|number| number.read(w)).sum();
            assert_eq!(sum, 80 * 79 / 2);
            for row in rows.iter() {
                assert_eq!(row.get(w)[699], 0);
            }
            w.barrier()?;
            if step as usize % nodes == w.node().index() {
                rows.row(1).get_mut(w)[0] = 1;
                w.free((small, single, rows))?;
            }
            w.barrier()?;
        }
        Ok(())
    })
}

/// Objects come and go on a node that synchronises with nobody meanwhile.
fn freed_alone(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        for i in 0..times {
            let number = w.alloc(i);
            *number.get_mut(w) += 1;
            w.free(number)?;
        }
        Ok(())
    })
}

#[derive(Serialize, Deserialize, Default)]
struct Tally {
    of: u64,
}

#[dhole::object]
impl Tally {
    #[new]
    pub fn from(first: u64) -> std::result::Result<Self, String> {
        Err(format!("{first} is not to be counted"))
    }

    pub fn add(&mut self, n: u64) {
        self.of += n;
    }
}

/// Objects with operations come and go: each node makes some, and the next frees them.
fn objects(nodes: usize, times: u64) -> (u64, Counters) {
    let made: fn(&mut Worker<'_>, Strategy) -> Result<Object<Tally>> =
        |w, strategy| Ok(w.new_object(strategy, Tally::default())?);
    let frees = op!(|w, tally: Object<Tally>| {
        tally.add(w, 1)?;
        Ok(Object::free(&tally, w)?)
    });
    peak(nodes, |w| {
        let me = w.node().index();
        for step in 0..times / 10 {
            let next = NodeId::at((me + 1) % nodes);
            let strategy = [replicated(), on(next), on(w.node())][(step % 3) as usize];
            let tally = made(w, strategy)?;
            tally.add(w, step)?;
            w.spawn(next, tally, frees)?.join(w)?;
        }
        Ok(())
    })
}

/// Constructors fail on each node, and on all.
fn not_made(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        for step in 0..times / 10 {
            let next = NodeId::at((w.node().index() + 1) % nodes);
            let strategy = [replicated(), on(next), on(w.node())][(step % 3) as usize];
            assert!(Tally::from_in(w, strategy, step).is_err());
        }
        Ok(())
    })
}

/// What is written is told through objects alone, and one node takes no part.
fn told_through_objects(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        let (numbers, tallies) = w.once(|w| {
            let one = w.new_object(replicated(), Tally::default())?;
            let other = w.new_object(on(NodeId(1)), Tally::default())?;
            Ok((w.alloc_range(5, |_| 0_u64), [one, other]))
        })?;
        let me = w.node().index();
        if me + 1 < nodes {
            for time in 0..times / 4 {
                *numbers.at(me + time as usize % 2).get_mut(w) += 1;
                tallies[(time % 2) as usize].add(w, 1)?;
            }
        }
        Ok(())
    })
}

/// Arrays of all sizes come and go, freed by each node in turn.
fn freed_arrays(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        for step in 0..times / 10 {
            let (small, large) = w.once(|w| {
                let small: [_; 4] = std::array::from_fn(|i| w.alloc_array::<u64>(10 + i));
                Ok((small, w.alloc_array2::<f64>(nodes, 700)))
            })?;
            small[0].slice_mut(w, 2 * me..2 * me + 2).fill(step);
            large.row(me).get_mut(w).fill(1.0);
            w.barrier()?;
            assert_eq!(small[0].slice(w, ..6), [step; 6]);
            assert_eq!(large.get(w, nodes - 1, 699), &1.0);
            w.barrier()?;
            if step as usize % nodes == me {
                w.free((&small[..], large.array()))?;
            }
            w.barrier()?;
        }
        Ok(())
    })
}

/// Objects and arrays come and go in turn, so that what is freed of one kind lies between what is
/// freed of the other, and each is freed by a node that synchronises with nobody meanwhile.
fn freed_in_turn(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        for i in 0..times / 20 {
            let numbers = w.alloc_range(100, |i| i);
            w.free(numbers)?;
            let array = w.alloc_array::<f64>(600);
            array.slice_mut(w, ..10).fill(i as f64);
            w.free(array)?;
            let (own, small) = (w.alloc_own(i), w.alloc_array::<f64>(3));
            small.slice_mut(w, ..).fill(i as f64);
            w.free(small)?;
            w.free(*own)?;
            let rows = w.alloc_rows::<f64>(2, 700);
            rows.row(1).get_mut(w)[0] = 1.0;
            w.free(rows)?;
            let grid = w.alloc_array2::<f64>(3, 300);
            grid.row(1).get_mut(w).fill(1.0);
            w.free(grid.array())?;
        }
        Ok(())
    })
}

/// The same, told to others which use some of it before: by a lock, as they never meet.
fn freed_in_turn_and_told(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        let lock = Lock::numbered(1);
        for i in 0..times / 10 {
            let (numbers, array) = (w.alloc_range(100, |i| i), w.alloc_array::<f64>(600));
            array.slice_mut(w, ..10).fill(i as f64);
            lock.with(w, |w| {
                w.free(numbers)?;
                Ok(w.free(array)?)
            })?;
        }
        Ok(())
    })
}

/// Locks of all kinds are made, used once and never again, by nodes that never meet.
fn made_locks(nodes: usize, times: u64) -> (u64, Counters) {
    peak(nodes, |w| {
        for _ in 0..times {
            let lock = w.new_lock();
            let condition = w.new_condvar(lock);
            let held = lock.acquire(w)?;
            condition.notify_all(w)?;
            held.release(w)?;
            let lock = w.new_rw_lock();
            lock.read(w)?.release(w)?;
            lock.write(w)?.release(w)?;
            let semaphore = w.new_semaphore(2);
            semaphore.acquire(w)?;
            semaphore.release(w)?;
        }
        Ok(())
    })
}

/// Processes begin on the next node and end.
fn processes(nodes: usize, times: u64) -> (u64, Counters) {
    let adds = op!(|_, number: u64| Ok(number + 1));
    peak(nodes, |w| {
        let next = NodeId::at((w.node().index() + 1) % nodes);
        for step in 0..times / 10 {
            assert_eq!(w.spawn(next, step, adds)?.join(w)?, step + 1);
        }
        Ok(())
    })
}

#[test]
fn a_small_array_costs_no_page() {
    const ARRAYS: usize = 2000;
    let of = |arrays: usize| {
        let (bytes, total) = peak(2, |w| {
            for _ in 0..arrays {
                let array = w.alloc_array::<f64>(10);
                array.slice_mut(w, ..).fill(1.0);
            }
            Ok(())
        });
        (bytes + total.shared_bytes) / 2
    };
    let each = (of(2 * ARRAYS) - of(ARRAYS)) / ARRAYS as u64;
    println!("{each} bytes for an array of 10 numbers");
    assert!(each < 3000, "{each} bytes for an array of 80 bytes");
}

fn assert_flat(what: &str, times: u64, run: impl Fn(u64) -> (u64, Counters)) {
    let ((few, _), (many, counters)) = (run(times / 10), run(times));
    let kept = counters.interval_records_most;
    println!(
        "{what}: {few} bytes for {} times, {many} for {times}; {kept} records",
        times / 10
    );
    assert!(many < few + few / 20, "{what}: {few} bytes, then {many}");
    // A log is collected from 128 records on, and compacted at 1,024 records and ranges.
    assert!(
        kept < 1200,
        "{what}: {kept} interval records kept at a time"
    );
}

fn all_flat(times: u64) {
    assert_flat("transfers between 2 nodes", times, |times| {
        transfers(2, 2, times)
    });
    assert_flat("transfers between 3 nodes", times, |times| {
        transfers(3, 3, times)
    });
    assert_flat("transfers beside an idle node", times, |times| {
        transfers(3, 2, times)
    });
    assert_flat("objects that come and go", times, |times| {
        let (bytes, counters) = freed(3, times);
        let stored = counters.shared_bytes / 3;
        assert!(
            stored <= 16 * 4096,
            "{stored} bytes of pages after {times} objects"
        );
        (bytes, counters)
    });
    assert_flat(
        "objects that come and go beside nobody",
        10 * times,
        |times| freed_alone(2, times),
    );
    assert_flat("arrays that come and go", times, |times| {
        let (bytes, counters) = freed_arrays(3, times);
        let stored = counters.shared_bytes / 3;
        assert!(
            stored <= 16 * 4096,
            "{stored} bytes of pages after {times} arrays"
        );
        (bytes, counters)
    });
    assert_flat("objects with operations that come and go", times, |times| {
        objects(3, times)
    });
    assert_flat("constructors that fail", times, |times| not_made(3, times));
    // What is heard of is compacted at 1,024 records and ranges.
    assert_flat("writes that objects tell of", 10 * times, |times| {
        told_through_objects(4, times)
    });
    assert_flat("barriers of 2 nodes", times, |times| barriers(2, times));
}

#[derive(Serialize, Deserialize)]
struct Samples(Vec<f64>);

#[dhole::object]
impl Samples {
    pub fn add(&mut self, samples: &[f64]) {
        self.0
            .iter_mut()
            .zip(samples)
            .for_each(|(sum, it)| *sum += it);
    }

    pub fn copy_to(&self, #[out] samples: &mut [f64]) {
        samples.copy_from_slice(&self.0);
    }
}

/// The bytes that are allocated for so many calls with 1 MiB of arguments, or with as much that
/// comes back.
fn long_calls(times: u64, back: bool) -> u64 {
    let numbers = 1 << 17;
    let info = measure(|| {
        let run = Config::nodes(2).simulate(sim::Settings::fixed_cost(2), |w| {
            let samples = w.new_object(on(NodeId(1)), Samples(vec![0.5; numbers]))?;
            let mut lent = vec![1.0; numbers];
            for _ in 0..times * u64::from(w.node() == NodeId(0)) {
                match back {
                    true => samples.copy_to(w, &mut lent)?,
                    false => samples.add(w, &lent)?,
                }
            }
            Ok(())
        });
        run.unwrap();
    });
    info.bytes_total
}

/// A call of long arguments allocates for its message and for what the object sees, each once. The
/// room in which bytes are gathered is that of the call before.
#[test]
fn calls_of_long_arguments_in_a_row_gather_them_in_the_same_room() {
    for back in [false, true] {
        let calls = long_calls(24, back) - long_calls(8, back);
        let each = calls as f64 / 16.0 / f64::from(1 << 20);
        println!("{each:.2} MiB a call, back: {back}");
        assert!(each < 3.2, "{each:.2} MiB a call, back: {back}");
    }
}

/// What is made, used and given back, or never used again.
fn all_given_back(times: u64) {
    for nodes in [1, 3] {
        assert_flat("objects and arrays in turn", times, |times| {
            freed_in_turn(nodes, times)
        });
        assert_flat("locks of all kinds", times, |times| {
            made_locks(nodes, times)
        });
    }
    assert_flat("objects and arrays in turn, told", times, |times| {
        freed_in_turn_and_told(3, times)
    });
    assert_flat("processes that come and go", times, |times| {
        processes(3, times)
    });
}

#[test]
fn memory_is_flat_over_lock_transfers_and_barriers() {
    all_flat(20_000);
}

#[test]
fn memory_is_flat_while_objects_arrays_and_locks_are_made_and_left() {
    all_given_back(20_000);
}

#[test]
#[ignore = "too long for every change: a million of each, minutes in release; 20,000 run above; \
            cargo test -p dhole --release --test allocations -- --ignored"]
fn memory_is_flat_over_a_million_lock_transfers_and_barriers() {
    all_flat(1_000_000);
    all_given_back(1_000_000);
}
