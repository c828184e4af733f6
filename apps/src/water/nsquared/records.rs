//! Water-nsquared over SPLASH's records: all fields of a molecule are shared.
//!
//! A step, as SPLASH's (`mdmain`), with a barrier after each part:
//!
//! 1. Each node predicts its molecules' positions, and computes the forces within them.
//! 2. It reads the records of the half of all molecules that follow its own, computes the forces
//!    of its pairs in its own memory, and then adds them to the records, under one lock for the
//!    molecules of each node. So a record goes from adder to adder, and in the end to its owner.
//! 3. It corrects its molecules' motion by their forces.
//! 4. It reads the same records once more and adds up the potential energy (`poteng`).

use dhole::{Lock, Refs, Share, Worker};

use super::section::{self, Section};
use crate::water::inter::{self, Sites};
use crate::water::outcome::Finding;
use crate::water::{
    Alone, Atoms, Energy, Molecule, Outcome, Pairs, Problem, System, intra, lattice,
};

/// The roots of the shared data.
#[derive(Share, Clone, Copy)]
struct Shared {
    molecules: Refs<Molecule>,
    findings: Refs<Finding>,
}

fn create(w: &mut Worker<'_>, problem: &Problem) -> Shared {
    let motions = lattice::model(problem, &System::of(problem));
    let nodes = w.nodes();
    Shared {
        molecules: w.alloc_range(motions.len(), |i| Molecule::new(i, motions[i])),
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
    let Shared {
        molecules,
        findings,
    } = w.once(|w| Ok(create(w, problem)))?;
    let own = section::section(problem.molecules, w.node().index(), w.nodes());
    let mut part = Part {
        molecules,
        section: Section::new(problem, own),
        prefetches: problem.prefetch,
    };
    let mut found = Finding::default();
    part.each(w, Molecule::act_within)?;
    w.barrier()?;
    let (energy, _) = part.act(w)?;
    w.barrier()?;
    let system = part.section.system;
    part.each(w, |molecule| {
        molecule.motion.start(&molecule.forces, &system);
    })?;
    found.start = part.kinetic(w).with_potential(&energy);
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    for step in 0..problem.steps {
        part.each(w, |molecule| {
            molecule.motion.predict();
            molecule.act_within();
        })?;
        w.barrier()?;
        let (_, pairs) = part.act(w)?;
        w.work(part.section.units(pairs));
        found.count(pairs);
        w.barrier()?;
        part.each(w, |molecule| molecule.correct(&system))?;
        found.end = part.kinetic(w);
        w.barrier()?;
        let (potential, pairs) = part.potential(w)?;
        w.work(pairs.units());
        found.end = found.end.with_potential(&potential);
        w.barrier()?;
        after_step(step + 1);
    }
    let steps = w.now().saturating_sub(began);
    w.end_measuring()?;
    if let Some(alone) = solution {
        for number in part.section.own.clone() {
            let atoms = molecules.at(number).get(w).atoms();
            found.compare(&system, atoms, &alone.atoms[number]);
        }
    }
    let all = found.gather(w, findings)?;
    Ok(all.outcome(problem, solution, steps))
}

/// One node's part in the run.
struct Part {
    molecules: Refs<Molecule>,
    section: Section,
    prefetches: bool,
}

impl Part {
    /// Changes each of the node's molecules.
    fn each(&self, w: &mut Worker<'_>, mut change: impl FnMut(&mut Molecule)) -> dhole::Result<()> {
        let own = self.section.own.clone();
        if self.prefetches {
            w.prefetch(self.molecules.slice(own.clone()))?;
        }
        for number in own {
            change(self.molecules.at(number).get_mut(w));
        }
        Ok(())
    }

    /// The kinetic energy of the node's molecules.
    fn kinetic(&self, w: &Worker<'_>) -> Energy {
        let mut energy = Energy::default();
        for number in self.section.own.clone() {
            self.molecules.at(number).get(w).motion.count(&mut energy);
        }
        energy
    }

    /// The potential energy of the pairs that this node looks at, where the molecules are.
    fn potential(&mut self, w: &Worker<'_>) -> dhole::Result<(Energy, Pairs)> {
        let Part {
            molecules,
            ref mut section,
            prefetches,
        } = *self;
        let others = section.others.clone();
        if prefetches {
            w.prefetch(others.clone().map(|others| molecules.slice(others)))?;
        }
        let mut within = 0.0;
        for number in section.own.clone() {
            let atoms = molecules.at(number).get(w).atoms();
            section.sites[number] = Sites::new(atoms);
            within += intra::act(atoms).1;
        }
        for number in others.into_iter().flatten() {
            section.sites[number] = Sites::new(molecules.at(number).get(w).atoms());
        }
        section.forces.fill(Atoms::default());
        let (between, pairs) = section.act_between();
        let energy = Energy {
            within,
            between,
            ..Energy::default()
        };
        Ok((energy, pairs))
    }

    /// Computes the forces of this node's pairs and adds them to the records. Returns their energy.
    fn act(&mut self, w: &mut Worker<'_>) -> dhole::Result<(Energy, Pairs)> {
        let found = self.potential(w)?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let Part {
            molecules,
            ref section,
            ..
        } = *self;
        for turn in 0..nodes {
            let node = (me + turn) % nodes;
            let theirs = section::section(section.sites.len(), node, nodes);
            let met: Vec<usize> = theirs.filter(|&number| section.meets(number)).collect();
            if met.is_empty() {
                continue;
            }
            Lock::numbered(node as u32).with(w, |w| {
                for number in met {
                    let forces = &mut molecules.at(number).get_mut(w).forces;
                    inter::add(forces, &section.forces[number]);
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}
