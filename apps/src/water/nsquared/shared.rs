//! Water-nsquared over shared molecules.
//!
//! The fields that other nodes need are shared: the positions of each molecule, and the sum of the
//! forces on the molecules of each node. Only a molecule's node knows its motion. A step:
//!
//! 1. Each node predicts its molecules' positions and shows them, and sets its sum of forces to
//!    nothing. Barrier.
//! 2. It fetches the positions of the half of all molecules that follow its own, computes the
//!    forces of its pairs in its own memory, and then adds them to the sums of their nodes: under
//!    one lock for each, and each node begins with itself, so that not all want the same lock.
//!    Barrier.
//! 3. It corrects its molecules' motion by their sum.
//!
//! The sums depend on the order in which nodes take a lock, by rounding only.

use dhole::{Lock, Refs, Rows, Share, Worker};

use super::section::{self, Section};
use crate::water::inter::Sites;
use crate::water::outcome::Finding;
use crate::water::{Alone, Atoms, Energy, Outcome, Pairs, Problem};

/// The fields of a molecule that other nodes need.
#[derive(Share, Clone, Copy, Debug)]
#[repr(C)]
pub struct Molecule {
    /// Where its atoms are, in angstrom.
    pub atoms: Atoms,
}

/// The roots of the shared data.
#[derive(Share, Clone, Copy)]
struct Shared {
    molecules: Refs<Molecule>,
    /// For each node, the forces on its molecules: nine numbers for each.
    forces: Rows<f64>,
    findings: Refs<Finding>,
}

/// The numbers of a force on each atom of a molecule.
const NUMBERS: usize = 9;

fn create(w: &mut Worker<'_>, problem: &Problem) -> Shared {
    let nodes = w.nodes();
    let atoms = Atoms::default();
    let largest = problem.molecules.div_ceil(nodes);
    Shared {
        molecules: w.alloc_range(problem.molecules, |_| Molecule { atoms }),
        forces: w.alloc_rows(nodes, largest * NUMBERS),
        findings: w.alloc_range(nodes, |_| Finding::default()),
    }
}

/// Solves `problem` on the cluster of `w`. Every node calls it; `after_step` is called with the
/// number of steps done after each. With a `solution` the result is compared with it. The result is
/// complete on node 0.
///
/// # Errors
/// Those of the runtime.
pub fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> dhole::Result<Outcome> {
    let shared = w.once(|w| Ok(create(w, problem)))?;
    let own = section::section(problem.molecules, w.node().index(), w.nodes());
    let mut section = Section::new(problem, own.clone());
    if problem.prefetch {
        w.prefetch(shared.molecules.slice(own.clone()))?;
    }
    let mut found = Finding::default();
    let (potential, _) = act(w, problem, &shared, &mut section)?;
    found.start = potential;
    found.start.add(&section.start(&sum(w, &shared, &section)));
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    for step in 0..problem.steps {
        section.predict();
        let (potential, pairs) = act(w, problem, &shared, &mut section)?;
        found.end = potential;
        found.end.add(&section.correct(&sum(w, &shared, &section)));
        found.count(pairs);
        after_step(step + 1);
    }
    w.barrier()?;
    let steps = w.now().saturating_sub(began);
    w.end_measuring()?;
    if let Some(alone) = solution {
        for (number, motion) in own.zip(&section.motions) {
            found.compare(&section.system, &motion.terms[0], &alone.atoms[number]);
        }
    }
    let all = found.gather(w, shared.findings)?;
    Ok(all.outcome(problem, solution, steps))
}

/// Computes the forces of this node's pairs and adds them to the sums. Returns their energy.
fn act(
    w: &mut Worker<'_>,
    problem: &Problem,
    shared: &Shared,
    section: &mut Section,
) -> dhole::Result<(Energy, Pairs)> {
    for (number, motion) in section.own.clone().zip(&section.motions) {
        shared.molecules.at(number).get_mut(w).atoms = motion.terms[0];
    }
    shared.forces.row(w.node().index()).get_mut(w).fill(0.0);
    w.barrier()?;
    let within = section.act_within();
    let others = section.others.clone();
    if problem.prefetch {
        w.prefetch(others.clone().map(|others| shared.molecules.slice(others)))?;
    }
    for number in others.into_iter().flatten() {
        section.sites[number] = Sites::new(&shared.molecules.at(number).get(w).atoms);
    }
    let (between, pairs) = section.act_between();
    w.work(section.units(pairs));
    add(w, shared, section)?;
    w.barrier()?;
    let energy = Energy {
        within,
        between,
        ..Energy::default()
    };
    Ok((energy, pairs))
}

/// Adds the forces that were found here to the sums of all nodes.
fn add(w: &mut Worker<'_>, shared: &Shared, section: &Section) -> dhole::Result<()> {
    let (me, nodes) = (w.node().index(), w.nodes());
    for turn in 0..nodes {
        let node = (me + turn) % nodes;
        let theirs = section::section(section.sites.len(), node, nodes);
        if !theirs.clone().any(|number| section.meets(number)) {
            continue;
        }
        Lock::numbered(node as u32).with(w, |w| {
            let sums = shared.forces.row(node).get_mut(w);
            for (number, sum) in theirs.zip(sums.chunks_exact_mut(NUMBERS)) {
                if section.meets(number) {
                    let found = section.forces[number].as_flattened();
                    sum.iter_mut()
                        .zip(found)
                        .for_each(|(sum, force)| *sum += force);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The sum of all forces on this node's molecules.
fn sum(w: &Worker<'_>, shared: &Shared, section: &Section) -> Vec<Atoms> {
    let sums = shared.forces.row(w.node().index()).get(w);
    let (vectors, _) = sums.as_chunks::<3>();
    let (atoms, _) = vectors.as_chunks::<3>();
    atoms[..section.own.len()].to_vec()
}
