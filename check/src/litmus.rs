//! Litmus tests: the classic programs of a few lines, each with a question about what its reads may
//! return.
//!
//! Every node runs a body over two shared cells, which begin as 0, with random work between its
//! steps. It leaves the values that it read in registers. A [`Litmus`] runs over many seeds. A
//! [`Tally`] counts its outcomes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use dhole::{Array, Lock, Ref, Result, RwLock, Semaphore, Share, Worker};

use crate::{Platform, run};

/// The shared cells, once their creators have published the references.
#[derive(Clone, Copy, Share)]
struct Cells {
    x: Option<Ref<u64>>,
    y: Option<Ref<u64>>,
}

/// A shared cell.
#[derive(Clone, Copy)]
enum Place {
    /// An object.
    Object(Ref<u64>),
    /// An element of an array, in one block with the other cell.
    Element(Array<u64>, usize),
}

impl Place {
    fn read(self, w: &Worker<'_>) -> u64 {
        match self {
            Place::Object(cell) => cell.read(w),
            Place::Element(cells, at) => cells.slice(w, at..at + 1)[0],
        }
    }

    fn write(self, w: &mut Worker<'_>, value: u64) {
        match self {
            Place::Object(cell) => *cell.get_mut(w) = value,
            Place::Element(cells, at) => cells.slice_mut(w, at..at + 1)[0] = value,
        }
    }
}

/// The guard of the steps of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// Nothing: the program is racy.
    Nothing,
    /// Every access to a cell holds that cell's lock.
    Locks,
    /// Every access to any cell holds one lock.
    OneLock,
    /// Every access to any cell holds one read-write lock, to read or to write.
    OneRwLock,
    /// Every access to any cell holds the one permit of a semaphore.
    OnePermit,
    /// All nodes pass a barrier between their two steps.
    Barrier,
    /// All nodes call a reduction for all between their two steps.
    AllReduce,
}

/// One node's side of a litmus program.
pub struct Player<'a, 'id> {
    w: &'a mut Worker<'id>,
    part: usize,
    x: Place,
    y: Place,
    guard: Guard,
    registers: &'a [AtomicU64],
}

/// Which cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// One.
    X,
    /// The other.
    Y,
}

impl Player<'_, '_> {
    /// The part of the program that this node plays, counted from 0.
    pub fn part(&self) -> usize {
        self.part
    }

    fn locked<R>(
        &mut self,
        cell: Cell,
        writes: bool,
        f: impl FnOnce(&mut Worker<'_>, Place) -> R,
    ) -> Result<R> {
        let (at, own) = match cell {
            Cell::X => (self.x, Lock::numbered(0)),
            Cell::Y => (self.y, Lock::numbered(1)),
        };
        let lock = match self.guard {
            Guard::Nothing | Guard::Barrier | Guard::AllReduce => return Ok(f(self.w, at)),
            Guard::Locks => own,
            Guard::OneLock => Lock::numbered(2),
            Guard::OneRwLock => {
                let (lock, f) = (RwLock::numbered(2), |w: &mut Worker<'_>| Ok(f(w, at)));
                return match writes {
                    true => lock.with_write(self.w, f),
                    false => lock.with_read(self.w, f),
                };
            }
            Guard::OnePermit => {
                let permit = Semaphore::numbered(2, 1);
                permit.acquire(self.w)?;
                let result = f(self.w, at);
                permit.release(self.w)?;
                return Ok(result);
            }
        };
        lock.with(self.w, |w| Ok(f(w, at)))
    }

    /// Writes a cell.
    pub fn write(&mut self, cell: Cell, value: u64) -> Result<()> {
        self.locked(cell, true, |w, at| at.write(w, value))
    }

    /// Reads a cell into a register.
    pub fn read(&mut self, cell: Cell, register: usize) -> Result<u64> {
        let value = self.locked(cell, false, |w, at| at.read(w))?;
        self.registers[register].store(value, Ordering::SeqCst);
        Ok(value)
    }

    /// Works for a random time, and synchronises as the guard says.
    pub fn between(&mut self) -> Result<()> {
        idle(self.w)?;
        match self.guard {
            Guard::Barrier => Ok(self.w.barrier()?),
            Guard::AllReduce => Ok(self.w.all_reduce((), |(), ()| ())?),
            _ => Ok(()),
        }
    }
}

/// Works for next to no time or for some round trips. Sometimes it ends the borrow epoch meanwhile.
fn idle(w: &mut Worker<'_>) -> Result<()> {
    let most = [100, 20_000, 100_000][(w.random() % 3) as usize];
    w.work(w.random() % most);
    match w.random() % 3 {
        0 => Ok(w.pause()?),
        _ => Ok(()),
    }
}

/// Reads each cell or not, so that there are copies or none.
fn see_some(w: &Worker<'_>, cells: [Place; 2]) {
    for cell in cells {
        if w.random().is_multiple_of(2) {
            cell.read(w);
        }
    }
}

/// The value of a register into which nothing was read.
pub const UNREAD: u64 = u64::MAX;

/// A litmus program.
#[derive(Clone, Copy)]
pub struct Litmus {
    /// Its name in the literature.
    pub name: &'static str,
    /// Nodes.
    pub nodes: usize,
    /// Registers, [`UNREAD`] until something is read into them.
    pub registers: usize,
    /// The body of each node.
    pub body: fn(&mut Player<'_, '_>) -> Result<()>,
}

/// How the cells of a program are made, on the node that plays this part.
type MakeCells = fn(&Litmus, &mut Worker<'_>, usize, u64) -> Result<[Place; 2]>;

/// The outcomes of many runs.
pub struct Tally {
    /// The name of the count.
    pub name: String,
    /// The number of each outcome, and a seed of it.
    pub outcomes: BTreeMap<Vec<u64>, (usize, u64)>,
}

impl Litmus {
    /// Runs the program once. Returns the registers, and the error if the run failed.
    pub fn once(
        &self,
        platform: &dyn Platform,
        guard: Guard,
        seed: u64,
    ) -> (Vec<u64>, Result<(), String>) {
        self.once_over(platform, guard, seed, Litmus::cells)
    }

    /// As above, over cells that are made so.
    fn once_over(
        &self,
        platform: &dyn Platform,
        guard: Guard,
        seed: u64,
        cells: MakeCells,
    ) -> (Vec<u64>, Result<(), String>) {
        let registers: Vec<AtomicU64> = (0..self.registers)
            .map(|_| AtomicU64::new(UNREAD))
            .collect();
        let ran = run(platform, self.nodes, seed, |w| {
            // Node 0 manages the barrier and is the first to leave it, so all play all parts.
            let part = (w.node().index() + seed as usize / 8) % self.nodes;
            let [x, y] = cells(self, w, part, seed)?;
            if seed.is_multiple_of(2) {
                see_some(w, [x, y]);
            }
            w.barrier()?;
            idle(w)?;
            let registers = &registers;
            (self.body)(&mut Player {
                w,
                part,
                x,
                y,
                guard,
                registers,
            })
        });
        let read = registers
            .iter()
            .map(|register| register.load(Ordering::SeqCst))
            .collect();
        (read, ran.map(drop).map_err(|error| error.to_string()))
    }

    /// Allocates the cells on the node that writes them first, or on another: without
    /// synchronisation a read asks the creator.
    fn cells(&self, w: &mut Worker<'_>, part: usize, seed: u64) -> Result<[Place; 2]> {
        let cells = w.once(|w| Ok(w.alloc(Cells { x: None, y: None })))?;
        for cell in [Cell::X, Cell::Y] {
            let writer = cell as usize % self.nodes;
            let creator = match seed >> (1 + cell as usize) & 1 {
                0 => writer,
                _ => (writer + 1) % self.nodes,
            };
            if part == creator {
                let at = w.alloc(0);
                match cell {
                    Cell::X => cells.get_mut(w).x = Some(at),
                    Cell::Y => cells.get_mut(w).y = Some(at),
                }
            }
            w.barrier()?;
        }
        let Cells { x, y } = cells.read(w);
        Ok([x, y].map(|cell| Place::Object(cell.expect("its creator has said where it is"))))
    }

    /// The cells as elements of one block, whose array node 0 has allocated.
    fn elements(&self, w: &mut Worker<'_>, _: usize, seed: u64) -> Result<[Place; 2]> {
        let cells = w.once(|w| match seed >> 1 & 1 {
            0 => Ok(w.alloc_array(2)),
            _ => Ok(w.alloc_array_with(2, |_| 0)),
        })?;
        Ok([0, 1].map(|at| Place::Element(cells, at)))
    }

    /// Runs the program with each of the seeds.
    ///
    /// # Panics
    /// When a run fails.
    pub fn tally(
        &self,
        platform: &dyn Platform,
        guard: Guard,
        seeds: impl Iterator<Item = u64>,
    ) -> Tally {
        self.tally_over(platform, guard, seeds, Litmus::cells)
    }

    /// As [`tally`](Litmus::tally), where the cells are elements of one block of an array.
    ///
    /// # Panics
    /// When a run fails.
    pub fn tally_of_elements(
        &self,
        platform: &dyn Platform,
        guard: Guard,
        seeds: impl Iterator<Item = u64>,
    ) -> Tally {
        self.tally_over(platform, guard, seeds, Litmus::elements)
    }

    fn tally_over(
        &self,
        platform: &dyn Platform,
        guard: Guard,
        seeds: impl Iterator<Item = u64>,
        cells: MakeCells,
    ) -> Tally {
        let mut outcomes = BTreeMap::new();
        for seed in seeds {
            let (outcome, ran) = self.once_over(platform, guard, seed, cells);
            if let Err(error) = ran {
                panic!("{} with {guard:?}, DHOLE_SEED={seed}: {error}", self.name);
            }
            outcomes.entry(outcome).or_insert((0, seed)).0 += 1;
        }
        let name = format!("{} with {guard:?} on {}", self.name, platform.name());
        Tally { name, outcomes }
    }
}

impl Tally {
    /// The outcomes that `is` says yes to.
    fn such(&self, is: impl Fn(&[u64]) -> bool) -> impl Iterator<Item = (&Vec<u64>, (usize, u64))> {
        self.outcomes
            .iter()
            .filter(move |(outcome, _)| is(outcome))
            .map(|(o, times)| (o, *times))
    }

    /// Asserts that an outcome never came.
    ///
    /// # Panics
    /// When it did, with a seed of it.
    #[track_caller]
    pub fn never(&self, what: &str, is: impl Fn(&[u64]) -> bool) {
        if let Some((outcome, (times, seed))) = self.such(is).next() {
            panic!(
                "{}: {what}: {outcome:?} came {times} times, DHOLE_SEED={seed}",
                self.name
            );
        }
    }

    /// Asserts that an outcome came, unless only one seed was run.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn sometimes(&self, what: &str, is: impl Fn(&[u64]) -> bool) {
        let runs: usize = self.outcomes.values().map(|(times, _)| times).sum();
        let times: usize = self.such(is).map(|(_, (times, _))| times).sum();
        println!("{}: {what}: {times} of {runs}", self.name);
        assert!(
            times > 0 || runs == 1,
            "{}: {what}: never in {runs} runs",
            self.name
        );
    }
}

/// Message passing: node 0 writes x and then y; node 1 reads y and then x.
pub const MESSAGE_PASSING: Litmus = Litmus {
    name: "message passing",
    nodes: 2,
    registers: 2,
    body: |p| match p.part() {
        0 => {
            p.write(Cell::X, 1)?;
            p.between()?;
            p.write(Cell::Y, 1)
        }
        _ => {
            p.read(Cell::Y, 0)?;
            p.between()?;
            p.read(Cell::X, 1).map(drop)
        }
    },
};

/// Store buffering: each node writes one cell and reads the other.
pub const STORE_BUFFERING: Litmus = Litmus {
    name: "store buffering",
    nodes: 2,
    registers: 2,
    body: |p| {
        let (mine, other) = match p.part() {
            0 => (Cell::X, Cell::Y),
            _ => (Cell::Y, Cell::X),
        };
        p.write(mine, 1)?;
        p.between()?;
        p.read(other, p.part()).map(drop)
    },
};

/// Load buffering: each node reads one cell and writes the other.
pub const LOAD_BUFFERING: Litmus = Litmus {
    name: "load buffering",
    nodes: 2,
    registers: 2,
    body: |p| {
        let (mine, other) = match p.part() {
            0 => (Cell::X, Cell::Y),
            _ => (Cell::Y, Cell::X),
        };
        p.read(mine, p.part())?;
        p.between()?;
        p.write(other, 1)
    },
};

/// Independent reads of independent writes: nodes 0 and 1 write a cell each; nodes 2 and 3 read
/// both, in different orders.
pub const IRIW: Litmus = Litmus {
    name: "independent reads of independent writes",
    nodes: 4,
    registers: 4,
    body: |p| match p.part() {
        0 => p.write(Cell::X, 1),
        1 => p.write(Cell::Y, 1),
        2 => {
            p.read(Cell::X, 0)?;
            p.between()?;
            p.read(Cell::Y, 1).map(drop)
        }
        _ => {
            p.read(Cell::Y, 2)?;
            p.between()?;
            p.read(Cell::X, 3).map(drop)
        }
    },
};

/// Coherence: node 0 writes x twice; node 1 reads it three times.
pub const COHERENCE: Litmus = Litmus {
    name: "coherence",
    nodes: 2,
    registers: 3,
    body: |p| match p.part() {
        0 => {
            p.write(Cell::X, 1)?;
            p.between()?;
            p.write(Cell::X, 2)
        }
        _ => {
            p.read(Cell::X, 0)?;
            p.between()?;
            p.read(Cell::X, 1)?;
            p.w.pause()?;
            p.read(Cell::X, 2).map(drop)
        }
    },
};

/// Reading and overwriting. Node 0 writes x three times, each time in an interval of its own. Node
/// 1 reads x, without a lock, and writes 10. Then all pass a barrier and read x.
pub const OVERWRITING: Litmus = Litmus {
    name: "reading and writing over",
    nodes: 2,
    registers: 3,
    body: |p| {
        if p.part() == 0 {
            for value in 1..=3 {
                let x = p.x;
                Lock::numbered(3).with(p.w, |w| {
                    x.write(w, value);
                    Ok(())
                })?;
                idle(p.w)?;
            }
        } else {
            idle(p.w)?;
            p.read(Cell::X, 0)?;
            p.write(Cell::X, 10)?;
        }
        p.w.barrier()?;
        p.read(Cell::X, 1 + p.part()).map(drop)
    },
};

/// Write to read causality: node 0 writes x; node 1 reads x and, if it saw the write, writes y;
/// node 2 reads y and then x.
pub const CAUSALITY: Litmus = Litmus {
    name: "write to read causality",
    nodes: 3,
    registers: 3,
    body: |p| match p.part() {
        0 => p.write(Cell::X, 1),
        1 => match p.read(Cell::X, 0)? {
            1 => {
                p.between()?;
                p.write(Cell::Y, 1)
            }
            _ => p.between(),
        },
        _ => {
            p.read(Cell::Y, 1)?;
            p.between()?;
            p.read(Cell::X, 2).map(drop)
        }
    },
};

/// Collectives in one direction, twice, because nodes run ahead. Node 0 writes x before a
/// broadcast, after which the others read it. Node 2 writes y before a reduction, after which node
/// 0 reads it.
pub const ONE_WAY: Litmus = Litmus {
    name: "collectives that go one way",
    nodes: 3,
    registers: 3,
    body: |p| {
        let node = p.w.node().index();
        let (x, y) = (p.x, p.y);
        for round in 1..=2 {
            if node == 0 {
                x.write(p.w, round);
            }
            idle(p.w)?;
            p.w.broadcast(())?;
            if node > 0 {
                p.read(Cell::X, node)?;
            }
            if node == 2 {
                y.write(p.w, round);
            }
            idle(p.w)?;
            p.w.reduce((), |(), ()| ())?;
            if node == 0 {
                p.read(Cell::Y, 0)?;
            }
        }
        Ok(())
    },
};
