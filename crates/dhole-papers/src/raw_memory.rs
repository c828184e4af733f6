//! What MultiView and raw memory cost on this machine.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use dhole::memory::{self, MemoryError, MemorySettings, SharedRows};
use dhole::{Config, Lock, MemoryManagers, RunError, Worker};

/// Minipages of which one is read or written after the other.
const MINIPAGES: usize = 256;
/// Barriers, and locks that are acquired.
const ROUNDS: u32 = 200;
/// Times that an array is read in as many views as are asked for, each beside one view.
const TURNS: usize = 9;
/// Numbers of views (figure 5). The paper has 512 too, which are more than dhole's most.
pub const VIEWS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const PAGE: usize = 4096;
/// The faults among [`OPERATIONS`]: bytes of a minipage, and whether it is written.
const FAULTS: [(usize, bool); 4] = [(128, false), (PAGE, false), (128, true), (PAGE, true)];

/// Operations between two nodes, the other of which waits: reading and writing a minipage of 128
/// bytes and of 4 KB; acquiring and releasing a lock that the other node held; a barrier; and a
/// fault that needs no message, for the manager writes a minipage that no node has used.
const OPERATIONS: [&str; 7] = [
    "read_128_us",
    "read_4096_us",
    "write_128_us",
    "write_4096_us",
    "lock_us",
    "barrier_us",
    "local_us",
];

/// Measures operations between two nodes: threads, or as the environment says. Returns microseconds
/// by the names of [`OPERATIONS`], on node 0.
///
/// # Errors
/// [`RunError`]
pub fn operations() -> Result<Option<BTreeMap<&'static str, f64>>, RunError> {
    let config = Config::nodes(2).memory(MemorySettings::default());
    let config = config.memory_managers(MemoryManagers::One);
    let run = config.run(|w| {
        let local_us = local_fault_us(w)?;
        let mut found = [0.0; OPERATIONS.len()];
        for (found, (bytes, writes)) in found.iter_mut().zip(FAULTS) {
            *found = fault_us(w, bytes, writes)?;
        }
        w.barrier()?;
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            w.barrier()?;
        }
        let barrier_us = us(begun.elapsed()) / f64::from(ROUNDS);
        let mut took = Duration::ZERO;
        for round in 0..ROUNDS {
            let lock = Lock::numbered(round);
            if w.node().index() == 0 {
                lock.with(w, |_| Ok(()))?;
            }
            w.barrier()?;
            if w.node().index() == 1 {
                let begun = Instant::now();
                lock.with(w, |_| Ok(()))?;
                took += begun.elapsed();
            }
            w.barrier()?;
        }
        found[FAULTS.len()..].copy_from_slice(&[
            us(took) / f64::from(ROUNDS),
            barrier_us,
            local_us,
        ]);
        let all = w.gather(found)?;
        // Node 1 has measured, but for the local fault.
        Ok(all.and_then(|all| {
            let mut found = all.last().copied()?;
            found[6] = all.first()?[6];
            Some(OPERATIONS.into_iter().zip(found).collect())
        }))
    })?;
    Ok(run.value)
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Node 0 writes minipages that it has allocated and no node has used. The other nodes wait.
fn local_fault_us(w: &mut Worker<'_>) -> dhole::Result<f64> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u8>(w, MINIPAGES, PAGE)?))?;
    let begun = Instant::now();
    if w.node().index() == 0 {
        (0..MINIPAGES).for_each(|row| rows.row(row).cells(w)[0].store(1, Relaxed));
    }
    let took = us(begun.elapsed()) / MINIPAGES as f64;
    w.barrier()?;
    Ok(took)
}

/// Node 1 reads or writes minipages that node 0 has written, while that waits.
fn fault_us(w: &mut Worker<'_>, bytes: usize, writes: bool) -> dhole::Result<f64> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u8>(w, MINIPAGES, bytes)?))?;
    if w.node().index() == 0 {
        (0..MINIPAGES).for_each(|row| rows.row(row).cells(w)[0].store(1, Relaxed));
    }
    w.barrier()?;
    let begun = Instant::now();
    if w.node().index() == 1 {
        for row in 0..MINIPAGES {
            let cell = &rows.row(row).cells(w)[0];
            match writes {
                true => cell.store(2, Relaxed),
                false => drop(black_box(cell.load(Relaxed))),
            }
        }
    }
    let took = us(begun.elapsed()) / MINIPAGES as f64;
    w.barrier()?;
    Ok(took)
}

/// Reading an array through several views.
#[derive(Clone, Debug)]
pub struct Overhead {
    /// Bytes of the array.
    pub bytes: usize,
    /// For each of [`VIEWS`], the time over that of one view: through pointers, and by a call for
    /// each minipage.
    pub ratios: [Vec<f64>; 2],
    /// Bytes of page tables of the process with the most views.
    pub page_tables: Option<u64>,
}

/// Measures figure 5 for an array of so many bytes: read in order, byte by byte. The paper's array
/// was read through pointers. Each number of views is measured in turn with one view, for a
/// machine's speed drifts.
///
/// # Errors
/// [`RunError`]
pub fn overhead(bytes: usize) -> Result<Overhead, RunError> {
    let mut ratios = [Vec::new(), Vec::new()];
    let mut page_tables = None;
    for views in VIEWS {
        let settings = MemorySettings {
            views,
            ..MemorySettings::default()
        };
        let run = Config::nodes(1).memory(settings).run(|w| {
            let (one, many) = (array(w, bytes, 1)?, array(w, bytes, views)?);
            let rows = [many, one];
            let pointers = rows.map(|rows| {
                (0..rows.count())
                    .map(|row| rows.row(row).cells(w))
                    .collect::<Vec<_>>()
            });
            let found = [
                median(|at| read(pointers[at].iter().copied())),
                median(|at| read((0..rows[at].count()).map(|row| rows[at].row(row).cells(w)))),
            ];
            Ok((found, page_table_bytes()))
        })?;
        let (found, tables) = run.value;
        ratios
            .iter_mut()
            .zip(found)
            .for_each(|(all, one)| all.push(one));
        page_tables = tables;
    }
    Ok(Overhead {
        bytes,
        ratios,
        page_tables,
    })
}

/// An array of so many bytes, of which so many minipages lie on a page.
fn array(
    w: &mut Worker<'_>,
    bytes: usize,
    minipages: usize,
) -> Result<SharedRows<u8>, MemoryError> {
    let len = PAGE / minipages;
    let rows = memory::alloc_rows::<u8>(w, bytes / len, len)?;
    (0..rows.count()).for_each(|row| rows.row(row).cells(w)[0].store(1, Relaxed));
    Ok(rows)
}

/// The time of the first reading over that of the second, the median of several turns.
fn median(read: impl Fn(usize) -> Duration) -> f64 {
    let turns = (0..TURNS).map(|_| [0, 1].map(|at| read(at).as_secs_f64()));
    let mut ratios: Vec<f64> = turns.map(|[many, one]| many / one).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[TURNS / 2]
}

/// Reads minipages byte by byte.
fn read<'a>(minipages: impl Iterator<Item = &'a [AtomicU8]>) -> Duration {
    let begun = Instant::now();
    let mut sum = 0_u64;
    for cells in minipages {
        for cell in cells {
            sum += u64::from(cell.load(Relaxed));
        }
    }
    black_box(sum);
    begun.elapsed()
}

/// What the system says of this process (`VmPTE`).
fn page_table_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmPTE:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_views_and_every_operation_is_measured() {
        let found = overhead(64 << 10).unwrap();
        for ratios in &found.ratios {
            assert_eq!(ratios.len(), VIEWS.len());
            assert!(ratios.iter().all(|ratio| *ratio > 0.0), "{found:?}");
        }
        assert!(found.page_tables.is_some_and(|bytes| bytes > 0));
        let found = operations().unwrap().expect("this is node 0");
        assert!(found.values().all(|us| *us > 0.0), "{found:?}");
        assert_eq!(found.len(), 7);
    }
}
