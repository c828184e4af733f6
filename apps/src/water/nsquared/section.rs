//! A section: molecules with consecutive numbers, and the sums over all pairs of which one of them
//! is the first.

use std::ops::Range;

use crate::water::problem::UNITS_PER_MOLECULE;
use crate::water::{Atoms, Energy, Motion, Pairs, Problem, System, inter, intra, lattice};

/// The molecules of node `node` of `nodes`; sections differ by at most one molecule.
pub const fn section(molecules: usize, node: usize, nodes: usize) -> Range<usize> {
    molecules * node / nodes..molecules * (node + 1) / nodes
}

/// How many of the molecules that follow `molecule` it looks at: half of all others. Where two
/// molecules are opposite each other in the circle, the one of even number among those of the
/// first half does it, and the one of odd number among the others.
const fn following(molecules: usize, molecule: usize) -> usize {
    let half = molecules / 2;
    let opposite = molecules.is_multiple_of(2)
        && if molecule < half {
            (molecule + half) % 2 == 1
        } else {
            molecule.is_multiple_of(2)
        };
    half - opposite as usize
}

/// One node's molecules, and its own view of all others.
#[derive(Debug)]
pub struct Section {
    /// The box.
    pub system: System,
    /// The numbers of the node's molecules.
    pub own: Range<usize>,
    /// How these move.
    pub motions: Vec<Motion>,
    /// The numbers of the other molecules that these look at: in the circle those that follow.
    pub others: [Range<usize>; 2],
    /// By numbers: the sites of those molecules that a pair is looked at with.
    pub sites: Vec<inter::Sites>,
    /// By numbers: the forces that were found here.
    pub forces: Vec<Atoms>,
}

impl Section {
    /// The molecules `own` of `problem` before the first step.
    pub fn new(problem: &Problem, own: Range<usize>) -> Section {
        let system = System::of(problem);
        let molecules = problem.molecules;
        let end = own.end + (molecules / 2).min(molecules - own.len());
        Section {
            system,
            motions: lattice::model(problem, &system)[own.clone()].to_vec(),
            others: [
                own.end..end.min(molecules),
                0..end.saturating_sub(molecules),
            ],
            own,
            sites: vec![inter::Sites::default(); problem.molecules],
            forces: vec![Atoms::default(); problem.molecules],
        }
    }

    /// Whether this section looks at pairs with `molecule`.
    pub fn meets(&self, molecule: usize) -> bool {
        self.own.contains(&molecule) || self.others.iter().any(|all| all.contains(&molecule))
    }

    /// Predicts where the node's molecules will be.
    pub fn predict(&mut self) {
        self.motions.iter_mut().for_each(Motion::predict);
    }

    /// Begins with the forces anew: with those within the node's own molecules, and none on the
    /// others. Returns the energy.
    pub fn act_within(&mut self) -> f64 {
        self.forces.fill(Atoms::default());
        let mut sum = 0.0;
        for (number, motion) in self.own.clone().zip(&self.motions) {
            let (forces, energy) = intra::act(&motion.terms[0]);
            self.sites[number] = inter::Sites::new(&motion.terms[0]);
            self.forces[number] = forces;
            sum += energy;
        }
        sum
    }

    /// Adds the forces between molecules of all pairs that this section looks at. Returns the
    /// energy.
    pub fn act_between(&mut self) -> (f64, Pairs) {
        let molecules = self.sites.len();
        let mut energy = 0.0;
        let mut pairs = Pairs::default();
        for one in self.own.clone() {
            let following = following(molecules, one);
            let wrapped = (one + 1 + following).saturating_sub(molecules);
            let site = self.sites[one];
            let mut on_one = Atoms::default();
            for others in [one + 1..one + 1 + following - wrapped, 0..wrapped] {
                for (sites, forces) in self.sites[others.clone()]
                    .iter()
                    .zip(&mut self.forces[others])
                {
                    if let Some(exchange) = inter::act(&self.system, &site, sites) {
                        inter::add(&mut on_one, &exchange.on_one());
                        inter::add(forces, &exchange.on_other());
                        energy += exchange.energy;
                        pairs.near += 1;
                    }
                }
            }
            inter::add(&mut self.forces[one], &on_one);
            pairs.seen += following as u64;
        }
        (energy, pairs)
    }

    /// Adds the forces of all other molecules on the node's own, whose sites are all known. Returns
    /// the energy, of which each molecule of a pair has a half.
    pub fn act_with_all(&mut self) -> (f64, Pairs) {
        let mut energy = 0.0;
        let mut pairs = Pairs::default();
        for one in self.own.clone() {
            let site = self.sites[one];
            let mut on_one = Atoms::default();
            for other in (0..self.sites.len()).filter(|other| *other != one) {
                if let Some(exchange) = inter::act(&self.system, &site, &self.sites[other]) {
                    inter::add(&mut on_one, &exchange.on_one());
                    energy += 0.5 * exchange.energy;
                    pairs.near += 1;
                }
                pairs.seen += 1;
            }
            inter::add(&mut self.forces[one], &on_one);
        }
        (energy, pairs)
    }

    /// Takes `forces`, the sum of all on the node's molecules, as what their motion starts with.
    pub fn start(&mut self, forces: &[Atoms]) -> Energy {
        let mut energy = Energy::default();
        for (motion, force) in self.motions.iter_mut().zip(forces) {
            motion.start(force, &self.system);
            motion.count(&mut energy);
        }
        energy
    }

    /// Corrects where the node's molecules are by `forces`, the sum of all on them.
    pub fn correct(&mut self, forces: &[Atoms]) -> Energy {
        let mut energy = Energy::default();
        for (motion, force) in self.motions.iter_mut().zip(forces) {
            motion.correct(force, &self.system);
            motion.wrap(&self.system);
            motion.count(&mut energy);
        }
        energy
    }

    /// The cost of a step with these pairs in units of `Worker::work`.
    pub fn units(&self, pairs: Pairs) -> u64 {
        pairs.units() + self.own.len() as u64 * UNITS_PER_MOLECULE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_looked_at_once() {
        for molecules in 1..=13 {
            let mut seen = vec![vec![0; molecules]; molecules];
            for one in 0..molecules {
                for k in 1..=following(molecules, one) {
                    let other = (one + k) % molecules;
                    seen[one.min(other)][one.max(other)] += 1;
                }
            }
            for one in 0..molecules {
                assert_eq!(seen[one][one], 0);
                assert!(seen[one][one + 1..].iter().all(|&times| times == 1));
            }
        }
    }

    #[test]
    fn a_section_meets_those_that_its_molecules_look_at() {
        let problem = Problem::new(12, 1, 1);
        for node in 0..3 {
            let section = Section::new(&problem, section(12, node, 3));
            for one in section.own.clone() {
                assert!((0..=following(12, one)).all(|k| section.meets((one + k) % 12)));
            }
            assert_eq!((0..12).filter(|&m| section.meets(m)).count(), 10);
        }
    }
}
