//! Measures primitives in the simulator, each by a small program over the real runtime.

mod invocation;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole::sim::{Computation, Primitive, Settings, round_trip_ns};
use dhole::{Barriers, Coherence, Config, Lock, MessageKind, Result, RunError, Worker, replicated};
use serde::{Deserialize, Serialize};

use invocation::{Invocation, invocation_us};

/// The bytes of a page. The papers fetch all of it or nothing.
const PAGE_BYTES: u64 = 4_096;
/// The bytes of an object whose transmission hides every other cost.
const LARGE_BYTES: u64 = 1 << 20;
/// A wait that is long enough for every message that others send before they wait.
const QUIET_NS: u64 = 100_000_000;

/// Measures a primitive, in the unit of its name. Returns `None` if the network lacks what the
/// primitive needs.
///
/// # Errors
/// [`RunError`] if the cluster cannot be simulated.
pub fn measure(primitive: Primitive, settings: &Settings) -> Result<Option<f64>, RunError> {
    let of = |nodes: usize| Settings {
        nodes,
        crashes: Vec::new(),
        computation: Computation::FixedCost { unit_ns: 1.0 },
        ..settings.clone()
    };
    let us = match primitive {
        Primitive::RoundTrip => round_trip_ns(&of(2), 0)? as f64 / 1e3,
        Primitive::LargeRoundTrip(bytes) => round_trip_ns(&of(2), bytes as usize)? as f64 / 1e3,
        Primitive::LockTwoHops => lock_us(of(2))?,
        Primitive::LockThreeHops => lock_us(of(3))?,
        Primitive::Barrier(nodes) => barrier_us(of(nodes.into()))?,
        Primitive::Fetch(bytes) => fetch_us(of(2), bytes.into())?,
        Primitive::PageFault => fault_us(of(2), Fault::WholePage)?,
        Primitive::EmptyDiffFault => fault_us(of(2), Fault::EmptyDiff)?,
        Primitive::FullDiffFault => fault_us(of(2), Fault::FullDiff)?,
        Primitive::MinipageRead(bytes) => return minipage_us(&of, bytes, None),
        Primitive::MinipageWrite(bytes, copies) => return minipage_us(&of, bytes, Some(copies)),
        Primitive::Throughput => LARGE_BYTES as f64 / fetch_us(of(2), LARGE_BYTES)?,
        Primitive::GroupWrite(nodes) => group_write_us(of(nodes.into()))?,
        Primitive::Invocation(bytes) => invocation_us(of(2), Invocation::Of(bytes as usize))?,
        Primitive::StartedInvocation => invocation_us(of(2), Invocation::Started)?,
        Primitive::Creation => invocation_us(of(2), Invocation::Creation)?,
        Primitive::CopyBack(kib) => invocation_us(of(2), Invocation::Copy(kib as usize * 1_024))?,
        Primitive::ReadFault => invocation_us(of(2), Invocation::ReadFault)?,
        Primitive::SequenceNumber if settings.network.card_sequencer => sequence_number_us(of(2))?,
        Primitive::SequenceNumber => return Ok(None),
    };
    Ok(Some(us))
}

/// The data that a fault on a page of TreadMarks brings.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// A page that the node lacks.
    WholePage,
    /// The diff of a page whose words were written but did not change.
    EmptyDiff,
    /// The diff of a page of which every word changed.
    FullDiff,
}

/// The configuration of a measuring program: it has the central barriers that the papers measured.
fn config(nodes: usize) -> Config {
    Config::nodes(nodes).barriers(Barriers::Central)
}

/// The microseconds that one node measures, in a program that all nodes run.
fn measured_us(
    settings: Settings,
    program: impl for<'id> Fn(&mut Worker<'id>, &dyn Fn(Duration)) -> Result<()> + Sync,
) -> Result<f64, RunError> {
    let took_ns = AtomicU64::new(0);
    let took = |time: Duration| took_ns.store(time.as_nanos() as u64, Ordering::Relaxed);
    config(settings.nodes).simulate(settings, |w| program(w, &took))?;
    Ok(took_ns.into_inner() as f64 / 1e3)
}

/// The last node acquires a lock. Its manager is node 0, and the node before the last held it last.
/// Both wait at a barrier.
fn lock_us(settings: Settings) -> Result<f64, RunError> {
    let lock = Lock::numbered(0);
    measured_us(settings, |w, took| {
        let (node, last) = (w.node().index(), w.nodes() - 1);
        if node + 1 == last {
            lock.with(w, |_| Ok(()))?;
        }
        w.barrier()?;
        if node == last {
            w.work(QUIET_NS);
            let begun = w.now();
            let held = lock.acquire(w)?;
            took(w.now() - begun);
            held.release(w)?;
        }
        Ok(w.barrier()?)
    })
}

/// All nodes pass one barrier after another; the average.
fn barrier_us(settings: Settings) -> Result<f64, RunError> {
    const BARRIERS: u32 = 10;
    measured_us(settings, |w, took| {
        w.barrier()?;
        let begun = w.now();
        for _ in 0..BARRIERS {
            w.barrier()?;
        }
        if w.node().index() == 0 {
            took((w.now() - begun) / BARRIERS);
        }
        Ok(())
    })
}

/// Node 1 fetches an object of node 0, which waits at a barrier.
fn fetch_us(settings: Settings, bytes: u64) -> Result<f64, RunError> {
    measured_us(settings, |w, took| {
        let rows = w.once(|w| {
            let rows = w.alloc_rows::<u64>(1, bytes as usize / 8);
            rows.row(0).get_mut(w)[0] = 1;
            Ok(rows)
        })?;
        if w.node().index() == 1 {
            w.work(QUIET_NS);
            let begun = w.now();
            let _row = rows.row(0).get(w);
            took(w.now() - begun);
        }
        Ok(w.barrier()?)
    })
}

/// A replicated counter.
#[derive(Serialize, Deserialize)]
struct Counter(u64);

#[dhole::object]
impl Counter {
    pub fn increment(&mut self) {
        self.0 += 1;
    }
    #[when(self.0 >= *count)]
    pub fn reach(&self, count: u64) {
        let _ = count;
    }
}

/// The nodes take turns to increment a replicated counter, while all others wait to see that. The
/// time from an increment until another node sees it, averaged over all pairs.
fn group_write_us(settings: Settings) -> Result<f64, RunError> {
    let (begun_ns, took_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let nodes = settings.nodes;
    config(nodes).simulate(settings, |w| {
        let counter = w.once(|w| Ok(w.new_object(replicated(), Counter(0))?))?;
        for turn in 0..nodes {
            w.barrier()?;
            if w.node().index() == turn {
                w.work(QUIET_NS);
                begun_ns.store(w.now().as_nanos() as u64, Ordering::Relaxed);
                counter.increment(w)?;
            } else {
                counter.reach(w, turn as u64 + 1)?;
                let took = w.now().as_nanos() as u64 - begun_ns.load(Ordering::Relaxed);
                took_ns.fetch_add(took, Ordering::Relaxed);
            }
        }
        Ok(w.barrier()?)
    })?;
    let pairs = nodes * (nodes - 1);
    Ok(took_ns.into_inner() as f64 / pairs as f64 / 1e3)
}

/// Node 1 increments a replicated counter of two nodes, if the network gives the numbers. The
/// increment is done when node 1 has its number and has sent it to the other node; the time of the
/// sending is subtracted.
fn sequence_number_us(settings: Settings) -> Result<f64, RunError> {
    let sending_us = settings
        .network
        .sending_ns(MessageKind::OperationRequest, 0) as f64
        / 1e3;
    let number_us = measured_us(settings, |w, took| {
        let counter = w.once(|w| Ok(w.new_object(replicated(), Counter(0))?))?;
        if w.node().index() == 1 {
            w.work(QUIET_NS);
            let begun = w.now();
            counter.increment(w)?;
            took(w.now() - begun);
        }
        Ok(w.barrier()?)
    });
    Ok(number_us? - sending_us)
}

/// The last node reads a minipage that node 1 has written, or writes one of which so many nodes
/// have a copy. Node 0 is the manager; all but the last wait at a barrier.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn minipage_us(
    of: &impl Fn(usize) -> Settings,
    bytes: u32,
    copies: Option<u16>,
) -> Result<Option<f64>, RunError> {
    use std::sync::atomic::Ordering::Relaxed;

    use dhole::memory::{self, MemorySettings};

    let nodes = 2 + usize::from(copies.unwrap_or(1));
    let memory = MemorySettings {
        views: 1,
        bytes: 1 << 30,
    };
    let took_ns = AtomicU64::new(0);
    config(nodes).memory(memory).simulate(of(nodes), |w| {
        let row = w.once(|w| Ok(memory::alloc_rows::<u8>(w, 1, bytes as usize)?))?;
        let (node, last) = (w.node().index(), w.nodes() - 1);
        let cells = row.row(0).cells(w);
        if node == 1 {
            cells[0].store(1, Relaxed);
        }
        w.barrier()?;
        if (2..last).contains(&node) {
            cells[0].load(Relaxed);
        }
        w.barrier()?;
        if node == last {
            w.work(QUIET_NS);
            let begun = w.now();
            match copies {
                None => drop(cells[0].load(Relaxed)),
                Some(_) => cells[0].store(2, Relaxed),
            }
            let took = w.now() - begun;
            took_ns.store(took.as_nanos() as u64, Relaxed);
        }
        Ok(w.barrier()?)
    })?;
    Ok(Some(took_ns.into_inner() as f64 / 1e3))
}

/// Nothing: there is no raw memory here.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn minipage_us(
    _of: &impl Fn(usize) -> Settings,
    _bytes: u32,
    _copies: Option<u16>,
) -> Result<Option<f64>, RunError> {
    Ok(None)
}

/// Under TreadMarks, node 1 faults on a page that node 0 wrote. Node 0 waits at a barrier.
fn fault_us(settings: Settings, fault: Fault) -> Result<f64, RunError> {
    let took_ns = AtomicU64::new(0);
    let config = config(settings.nodes).coherence(Coherence::TreadMarks);
    config.simulate(settings, |w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(1, PAGE_BYTES as usize / 8)))?;
        let page = rows.row(0);
        if w.node().index() == 1 && fault != Fault::WholePage {
            page.get(w);
        }
        w.barrier()?;
        if w.node().index() == 0 {
            let value = if fault == Fault::FullDiff {
                u64::MAX
            } else {
                0
            };
            page.get_mut(w).fill(value);
        }
        w.barrier()?;
        if w.node().index() == 1 {
            w.work(QUIET_NS);
            let begun = w.now();
            page.get(w);
            let took = w.now() - begun;
            took_ns.store(took.as_nanos() as u64, Ordering::Relaxed);
        }
        Ok(w.barrier()?)
    })?;
    Ok(took_ns.into_inner() as f64 / 1e3)
}
