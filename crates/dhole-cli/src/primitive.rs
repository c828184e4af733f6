//! Small programs over the real runtime, each of which measures one primitive in the simulator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole::sim::{Computation, Network, Primitive, Settings, round_trip_ns};
use dhole::{Config, Lock, Result, RunError, Worker};

/// A page, of which the papers fetch all or nothing.
const PAGE_BYTES: u64 = 4_096;
/// An object whose transmission hides everything else.
const LARGE_BYTES: u64 = 1 << 20;
/// Long enough for all that others send before they wait to have come.
const QUIET_NS: u64 = 100_000_000;

/// Measures a primitive, in the unit of its name; nothing when it belongs to what is not there.
///
/// # Errors
/// [`RunError`] when the cluster cannot be simulated.
pub fn measure(primitive: Primitive, settings: &Settings) -> Result<Option<f64>, RunError> {
    let of = |nodes: usize| Settings {
        nodes,
        computation: Computation::FixedCost { unit_ns: 1.0 },
        ..settings.clone()
    };
    let page = PageFault::of(&settings.network);
    let us = match primitive {
        Primitive::RoundTrip => round_trip_ns(&of(2))? as f64 / 1e3,
        Primitive::LockTwoHops => lock_us(of(2))?,
        Primitive::LockThreeHops => lock_us(of(3))?,
        Primitive::Barrier(nodes) => barrier_us(of(nodes.into()))?,
        Primitive::Fetch(bytes) => fetch_us(of(2), bytes.into(), 0)?,
        Primitive::PageFault => fetch_us(of(2), PAGE_BYTES, page.fault_ns)?,
        Primitive::EmptyDiffFault => fetch_us(of(2), 8, page.fault_ns)?,
        Primitive::FullDiffFault => fetch_us(of(2), PAGE_BYTES, page.fault_ns + page.diff_ns)?,
        Primitive::Throughput => LARGE_BYTES as f64 / fetch_us(of(2), LARGE_BYTES, 0)?,
        Primitive::GroupWrite(_) | Primitive::SequenceNumber => return Ok(None),
    };
    Ok(Some(us))
}

/// What a page-based runtime's own work costs, which no message says.
struct PageFault {
    fault_ns: u64,
    /// To make a diff of a whole page, and to apply it.
    diff_ns: u64,
}

impl PageFault {
    fn of(network: &Network) -> PageFault {
        let per_byte = network.diff_make_ns_per_byte + network.diff_apply_ns_per_byte;
        PageFault {
            fault_ns: network.page_fault_ns,
            diff_ns: (PAGE_BYTES as f64 * per_byte) as u64,
        }
    }
}

/// Microseconds that one node measures, in a program that all run.
fn measured_us(
    settings: Settings,
    program: impl for<'id> Fn(&mut Worker<'id>, &dyn Fn(Duration)) -> Result<()> + Sync,
) -> Result<f64, RunError> {
    let took_ns = AtomicU64::new(0);
    let took = |time: Duration| took_ns.store(time.as_nanos() as u64, Ordering::Relaxed);
    Config::nodes(settings.nodes).simulate(settings, |w| program(w, &took))?;
    Ok(took_ns.into_inner() as f64 / 1e3)
}

/// The last node acquires a lock whose manager is node 0 and that the node before it held last,
/// while those wait at a barrier.
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

/// All nodes come to one barrier after another; the average.
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

/// Node 1 fetches an object of node 0, which waits at a barrier, and computes `and_ns` for it.
fn fetch_us(settings: Settings, bytes: u64, and_ns: u64) -> Result<f64, RunError> {
    measured_us(settings, |w, took| {
        let rows = w.once(|w| {
            let rows = w.alloc_rows::<u64>(1, bytes as usize / 8);
            rows.row(0).get_mut(w)[0] = 1;
            Ok(rows)
        })?;
        if w.node().index() == 1 {
            w.work(QUIET_NS);
            let begun = w.now();
            w.work(and_ns);
            let _row = rows.row(0).get(w);
            took(w.now() - begun);
        }
        Ok(w.barrier()?)
    })
}
