//! Water-nsquared over SPLASH's records in raw memory, each of 672 bytes a minipage, or several of
//! them (MultiView, sections 4.3 and 4.4).
//!
//! The parts of a step are those of [`records`](super::records), with a barrier after each. Forces
//! are added to each molecule under a lock of its own, as SPLASH-2 does it: each node begins with
//! its own molecules, and goes on to those that follow.

use dhole::memory::{self, AtomicF64, SharedRows};
use dhole::{Lock, Worker};
use std::sync::atomic::Ordering::Relaxed;

use super::section::{self, Section};
use crate::raw::{self, Cut, Reads};
use crate::water::inter::{self, Sites};
use crate::water::outcome::Finding;
use crate::water::{Alone, Atoms, Energy, Motion, Outcome, Pairs, Problem, System, intra, lattice};

/// Numbers of a record.
const NUMBERS: usize = 84;
/// Where the terms of the motion begin, of which the first are the places of the atoms.
const TERMS: usize = 3;
/// Where the forces begin.
const FORCES: usize = TERMS + 63;

/// A record, as a node sees it.
#[derive(Clone, Copy)]
struct Record<'id>(&'id [AtomicF64]);

impl Record<'_> {
    fn atoms_at(self, first: usize) -> Atoms {
        let at = |atom: usize, axis: usize| self.0[first + atom * 3 + axis].load(Relaxed);
        [0, 1, 2].map(|atom| [0, 1, 2].map(|axis| at(atom, axis)))
    }

    fn set_atoms_at(self, first: usize, atoms: &Atoms) {
        let cells = self.0[first..].iter().zip(atoms.as_flattened());
        cells.for_each(|(cell, number)| cell.store(*number, Relaxed));
    }

    fn atoms(self) -> Atoms {
        self.atoms_at(TERMS)
    }

    fn forces(self) -> Atoms {
        self.atoms_at(FORCES)
    }

    fn motion(self) -> Motion {
        let mut motion = Motion::default();
        let terms = motion.terms.iter_mut().enumerate();
        terms.for_each(|(term, atoms)| *atoms = self.atoms_at(TERMS + 9 * term));
        motion
    }

    fn set_motion(self, motion: &Motion) {
        let terms = motion.terms.iter().enumerate();
        terms.for_each(|(term, atoms)| self.set_atoms_at(TERMS + 9 * term, atoms));
    }

    /// Begins with the forces anew, as
    /// [`Molecule::act_within`](crate::water::Molecule::act_within).
    fn act_within(self) {
        let atoms = self.atoms();
        self.set_atoms_at(FORCES, &intra::act(&atoms).0);
        let cells = self.0.iter().zip(intra::centre(&atoms));
        cells.for_each(|(cell, number)| cell.store(number, Relaxed));
    }
}

/// The places of the atoms in a copy of a record.
fn atoms_of(record: &[f64]) -> Atoms {
    let at = |atom: usize, axis: usize| record[TERMS + atom * 3 + axis];
    [0, 1, 2].map(|atom| [0, 1, 2].map(|axis| at(atom, axis)))
}

/// One node's part in the run.
struct Part {
    molecules: SharedRows<f64>,
    section: Section,
    reads: Reads,
}

impl Part {
    fn record<'id>(&self, w: &Worker<'id>, number: usize) -> Record<'id> {
        Record(self.molecules.row(number).cells(w))
    }

    /// Does something with each of the node's molecules.
    fn each(&self, w: &Worker<'_>, mut act: impl FnMut(Record<'_>)) {
        let own = self.section.own.clone();
        own.for_each(|number| act(self.record(w, number)));
    }

    /// The kinetic energy of the node's molecules.
    fn kinetic(&self, w: &Worker<'_>) -> Energy {
        let mut energy = Energy::default();
        self.each(w, |record| record.motion().count(&mut energy));
        energy
    }

    /// The potential energy of the pairs that this node looks at, where the molecules are.
    ///
    /// # Errors
    /// Those of the runtime.
    fn potential(&mut self, w: &mut Worker<'_>) -> dhole::Result<(Energy, Pairs)> {
        for others in self.section.others.clone() {
            let rows = self.molecules.range(others.clone());
            match self.reads {
                Reads::Each => {}
                Reads::Round => rows.fetch(w)?,
                Reads::Coarse => {
                    let mut numbers = vec![0.0; others.len() * NUMBERS];
                    rows.copy_to(w, &mut numbers)?;
                    for (number, record) in others.zip(numbers.chunks(NUMBERS)) {
                        self.section.sites[number] = Sites::new(&atoms_of(record));
                    }
                }
            }
        }
        let mut within = 0.0;
        let own = self.section.own.clone();
        for number in own {
            let atoms = self.record(w, number).atoms();
            self.section.sites[number] = Sites::new(&atoms);
            within += intra::act(&atoms).1;
        }
        let each = self.section.others.clone().into_iter().flatten();
        for number in each.filter(|_| self.reads != Reads::Coarse) {
            self.section.sites[number] = Sites::new(&self.record(w, number).atoms());
        }
        self.section.forces.fill(Atoms::default());
        let (between, pairs) = self.section.act_between();
        let energy = Energy {
            within,
            between,
            ..Energy::default()
        };
        Ok((energy, pairs))
    }

    /// Adds the forces that were found here to the records.
    fn add(&self, w: &mut Worker<'_>) -> dhole::Result<()> {
        let molecules = self.section.sites.len();
        let first = self.section.own.start;
        for number in (0..molecules).map(|turn| (first + turn) % molecules) {
            if !self.section.meets(number) {
                continue;
            }
            Lock::numbered(number as u32).with(w, |w| {
                let record = self.record(w, number);
                let mut forces = record.forces();
                inter::add(&mut forces, &self.section.forces[number]);
                record.set_atoms_at(FORCES, &forces);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Solves `problem` on the cluster of `w`, as [`records::run`](super::records::run) does, with
/// records that are cut into minipages so.
///
/// # Errors
/// Those of the runtime; and that the run has no raw memory, or not enough.
pub fn run(
    w: &mut Worker<'_>,
    (problem, cut): (&Problem, Cut),
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> dhole::Result<Outcome> {
    let (molecules, findings) = w.once(|w| {
        let molecules = cut.rows::<f64>(w, problem.molecules, NUMBERS)?;
        let findings = w.alloc_range(w.nodes(), |_| Finding::default());
        Ok((molecules, findings))
    })?;
    let own = section::section(problem.molecules, w.node().index(), w.nodes());
    let system = System::of(problem);
    let mut part = Part {
        molecules,
        section: Section::new(problem, own.clone()),
        reads: problem.reads,
    };
    for (number, motion) in own
        .clone()
        .zip(&lattice::model(problem, &system)[own.clone()])
    {
        part.record(w, number).set_motion(motion);
    }
    let mut found = Finding::default();
    part.each(w, |record| record.act_within());
    w.barrier()?;
    let (energy, _) = part.potential(w)?;
    part.add(w)?;
    w.barrier()?;
    part.each(w, |record| {
        let mut motion = record.motion();
        motion.start(&record.forces(), &system);
        record.set_motion(&motion);
    });
    found.start = part.kinetic(w).with_potential(&energy);
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    for step in 0..problem.steps {
        part.each(w, |record| {
            let mut motion = record.motion();
            motion.predict();
            record.set_motion(&motion);
            record.act_within();
        });
        w.barrier()?;
        let (_, pairs) = part.potential(w)?;
        w.work(part.section.units(pairs));
        part.add(w)?;
        found.count(pairs);
        w.barrier()?;
        part.each(w, |record| {
            let mut motion = record.motion();
            motion.correct(&record.forces(), &system);
            motion.wrap(&system);
            record.set_motion(&motion);
        });
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
        for number in own {
            let atoms = part.record(w, number).atoms();
            found.compare(&system, &atoms, &alone.atoms[number]);
        }
    }
    let all = found.gather(w, findings)?;
    let mut outcome = all.outcome(problem, solution, steps);
    outcome.raw = Some(raw::shown(&memory::usage(w)?));
    Ok(outcome)
}
