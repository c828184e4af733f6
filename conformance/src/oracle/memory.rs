//! Random programs over raw memory, checked against a plain sequential run.
//!
//! A seed decides a [`MemoryProgram`]: phases that end at barriers, in which the nodes use rows by
//! slices, by holds of several rows, and by cells, under locks and without. Some rows come in
//! groups. All numbers of a row are alike. In each phase a row belongs to one node, or is only
//! read, or is only added to, so every value that is tested is determined. Each node computes the
//! values of all rows beside the run, action by action of all nodes, and tests its own.

use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, SharedRow, SharedRows, sync};
use dhole::{CallSite, Error, Result, Worker};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::{Platform, run};

/// How all nodes use a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Slices,
    Cells,
}

/// An action of a node. Rows have numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// Writes all numbers of a row.
    Fill(usize, u64),
    /// Reads a row, which must hold what the sequential run has.
    Read(usize),
    /// Reads a row of slices, whose numbers must be alike, whatever they are.
    ReadWhole(usize),
    /// Adds to all numbers of a row: holds it, or makes atomic additions.
    Add(usize, u64),
    /// Adds to all numbers of a row of cells by loads and stores, under the row's lock.
    AddLocked(usize, u64),
    /// Takes from one row and adds to the other, while both are held.
    Move(usize, usize, u64),
    /// Writes the second row as the first, while both are held.
    Copy(usize, usize),
    /// Asks for a row ahead.
    Prefetch(usize),
    /// Sends a row to all.
    Push(usize),
}

/// What nodes do with a row in a phase.
#[derive(Clone, Copy)]
enum Role {
    Node(usize),
    Readers,
    Adders,
    LockedAdders,
}

/// A program. After its last phase all nodes read all rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryProgram {
    /// Nodes.
    pub nodes: usize,
    rows: Vec<By>,
    /// Numbers of each row.
    len: usize,
    in_groups: bool,
    /// By phase and node.
    phases: Vec<Vec<Vec<Action>>>,
}

/// The program of a seed, of so many nodes.
pub fn generate_memory(seed: u64, nodes: usize) -> MemoryProgram {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let rows = random.random_range(2..=30);
    let by = |random: &mut Xoshiro256PlusPlus| match random.random_bool(0.7) {
        true => By::Slices,
        false => By::Cells,
    };
    let mut program = MemoryProgram {
        nodes,
        rows: (0..rows).map(|_| by(&mut random)).collect(),
        // Of several on a page up to several pages.
        len: [7, 40, 100, 600][random.random_range(0..4)],
        in_groups: random.random_bool(0.6),
        phases: Vec::new(),
    };
    for _ in 0..random.random_range(2..=8) {
        let role = |by: &By| match random.random_range(0..6) {
            0 | 1 => Role::Readers,
            2 => Role::Adders,
            3 if *by == By::Cells => Role::LockedAdders,
            _ => Role::Node(random.random_range(0..nodes)),
        };
        let roles: Vec<Role> = program.rows.iter().map(role).collect();
        let of_node = |node| actions(&mut random, &program.rows, &roles, node);
        let phase = (0..nodes).map(of_node).collect();
        program.phases.push(phase);
    }
    program
}

/// What one node does in a phase: mostly it goes from row to row.
fn actions(
    random: &mut Xoshiro256PlusPlus,
    rows: &[By],
    roles: &[Role],
    node: usize,
) -> Vec<Action> {
    let goes_through = random.random_bool(0.6);
    let count = match goes_through {
        true => rows.len(),
        false => random.random_range(0..12),
    };
    let action = |at: usize| {
        let row = match goes_through {
            true => at,
            false => random.random_range(0..rows.len()),
        };
        let (other, value) = (
            random.random_range(0..rows.len()),
            random.random_range(1..1000),
        );
        let are_slices = rows[row] == By::Slices && rows[other] == By::Slices && row != other;
        Some(
            match (roles[row], roles[other], random.random_range(0..8)) {
                (_, _, 0) => Action::Prefetch(row),
                (Role::Node(owner), Role::Readers, 1 | 2) if owner == node && are_slices => {
                    Action::Copy(other, row)
                }
                (Role::Node(owner), _, 3) if owner == node => Action::Push(row),
                (Role::Node(owner), _, 4) if owner == node => Action::Read(row),
                (Role::Node(owner), ..) if owner == node => Action::Fill(row, value),
                (Role::Readers, ..) => Action::Read(row),
                (Role::Adders, Role::Adders, 1..4) if are_slices => Action::Move(row, other, value),
                (Role::Adders, _, 4..) => Action::Add(row, value),
                (Role::LockedAdders, _, 3..) => Action::AddLocked(row, value),
                _ if rows[row] == By::Slices => Action::ReadWhole(row),
                _ => return None,
            },
        )
    };
    (0..count).filter_map(action).collect()
}

/// What the rows hold in the sequential run.
struct Expected(Vec<u64>);

impl Expected {
    fn act(&mut self, action: Action) {
        let rows = &mut self.0;
        match action {
            Action::Fill(row, value) => rows[row] = value,
            Action::Add(row, value) | Action::AddLocked(row, value) => {
                rows[row] = rows[row].wrapping_add(value);
            }
            Action::Move(from, to, value) => {
                rows[from] = rows[from].wrapping_sub(value);
                rows[to] = rows[to].wrapping_add(value);
            }
            Action::Copy(from, to) => rows[to] = rows[from],
            Action::Read(_) | Action::ReadWhole(_) | Action::Prefetch(_) | Action::Push(_) => {}
        }
    }
}

/// Runs a program; how many nodes have the same memory as node 0.
///
/// # Errors
/// The words of the first read that finds something else, or of a run that fails.
pub fn execute_memory(
    program: &MemoryProgram,
    platform: &dyn Platform,
    seed: u64,
) -> Result<usize, String> {
    let ran = run(platform, program.nodes, seed, |w| run_program(program, w));
    ran.map(|run| run.value).map_err(|error| error.to_string())
}

/// What each node does.
fn run_program(program: &MemoryProgram, w: &mut Worker<'_>) -> Result<usize> {
    let rows = w.once(|w| {
        let (count, len) = (program.rows.len(), program.len);
        Ok(match program.in_groups {
            true => memory::alloc_groups::<u64>(w, count, len)?,
            false => memory::alloc_rows::<u64>(w, count, len)?,
        })
    })?;
    let (me, mut expected) = (w.node().index(), Expected(vec![0; program.rows.len()]));
    for phase in &program.phases {
        for (node, actions) in phase.iter().enumerate() {
            for action in actions {
                expected.act(*action);
                if node == me {
                    act(program, rows, w, *action, &expected)?;
                }
            }
        }
        w.barrier()?;
    }
    for row in 0..program.rows.len() {
        act(program, rows, w, Action::Read(row), &expected)?;
    }
    w.barrier()?;
    Ok(memory::usage(w)?.domain_nodes)
}

fn act(
    program: &MemoryProgram,
    rows: SharedRows<u64>,
    w: &mut Worker<'_>,
    action: Action,
    expected: &Expected,
) -> Result<()> {
    let row = |number: usize| rows.row(number);
    let by = |number: usize| program.rows[number];
    match action {
        Action::Fill(number, value) if by(number) == By::Slices => {
            row(number).write(w, |row| row.fill(value))?;
        }
        Action::Fill(number, value) => {
            let cells = row(number).cells(w);
            cells.iter().for_each(|cell| cell.store(value, Relaxed));
        }
        Action::Read(number) => {
            let found = found(row(number), by(number), w)?;
            let wanted = expected.0[number];
            if found != Some(wanted) {
                let words = format!("row {number} is {found:?} and not {wanted} for {action:?}");
                return Err(Error::program(words));
            }
        }
        Action::ReadWhole(number) => {
            if found(row(number), By::Slices, w)?.is_none() {
                return Err(Error::program(format!("row {number} is torn")));
            }
        }
        Action::Add(number, value) if by(number) == By::Slices => {
            let add = |number: &mut u64| *number = number.wrapping_add(value);
            row(number).write(w, |row| row.iter_mut().for_each(add))?;
        }
        Action::Add(number, value) => {
            let cells = row(number).cells(w);
            cells
                .iter()
                .for_each(|cell| _ = cell.fetch_add(value, Relaxed));
        }
        Action::AddLocked(number, value) => {
            let cells = row(number).cells(w);
            sync::lock(number as u64, CallSite::caller())?;
            for cell in cells {
                cell.store(cell.load(Relaxed).wrapping_add(value), Relaxed);
            }
            sync::unlock(number as u64)?;
        }
        Action::Move(from, to, value) => {
            memory::hold(w, [], [row(from), row(to)], |[], [from, to]| {
                for (from, to) in from.iter_mut().zip(to) {
                    *from = from.wrapping_sub(value);
                    *to = to.wrapping_add(value);
                }
            })?;
        }
        Action::Copy(from, to) => {
            memory::hold(w, [row(from)], [row(to)], |[from], [to]| {
                to.copy_from_slice(from);
            })?;
        }
        Action::Prefetch(number) => row(number).prefetch(w)?,
        Action::Push(number) => row(number).push(w)?,
    }
    Ok(())
}

/// What all numbers of a row are, if they are alike.
fn found(row: SharedRow<u64>, by: By, w: &mut Worker<'_>) -> Result<Option<u64>> {
    let numbers: Vec<u64> = match by {
        By::Slices => row.read(w, <[u64]>::to_vec)?,
        By::Cells => row.cells(w).iter().map(|cell| cell.load(Relaxed)).collect(),
    };
    let are_alike = numbers.iter().all(|number| *number == numbers[0]);
    Ok(are_alike.then(|| numbers[0]))
}
