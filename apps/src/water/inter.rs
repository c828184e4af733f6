//! Forces between molecules (`interf`, `cshift`; the energy is that of `poteng`).
//!
//! Charges act up to the cut-off radius, with a term that makes the force vanish there (a reaction
//! field). The energy is shifted to vanish there too. SPLASH needs no shift, because a molecule's
//! charges add up to zero. The exponentials act if no two charges are beyond the radius. Each pair
//! of sites is taken to the nearest image by itself.

use super::intra::centre;
use super::model::{
    CENTRE_SHIFT, CHARGE_SQUARED, CHARGES, Exponential, HYDROGENS, MIXED, MIXED_ATTRACTION, OXYGENS,
};
use super::motion::Atoms;
use super::problem::System;
use crate::vector::{Vector, dot, minus, plus};

/// The places of a molecule from which forces act: the point M, the hydrogen atoms and the oxygen
/// atom, in this order; by axis, because that is how the inner loop goes.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Sites {
    axes: [[f64; 4]; 3],
    /// How far from M the farthest other site is.
    reach: f64,
}

const OXYGEN: usize = 3;

/// The share of the force on M that each atom bears.
pub const SHARES: [f64; 3] = [1.0 - CENTRE_SHIFT, 0.5 * CENTRE_SHIFT, 0.5 * CENTRE_SHIFT];

impl Sites {
    /// The sites of the molecule with these atoms.
    pub fn new(atoms: &Atoms) -> Sites {
        let (&[oxygen, first, second], centre) = (atoms, centre(atoms));
        let squared = |site: Vector| {
            let from_centre = minus(site, centre);
            dot(from_centre, from_centre)
        };
        let farthest = squared(first).max(squared(second)).max(squared(oxygen));
        Sites {
            axes: [0, 1, 2].map(|axis| [centre, first, second, oxygen].map(|site| site[axis])),
            reach: farthest.sqrt(),
        }
    }
}

/// The forces between two molecules.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The force on each site of the one, by axis and site.
    on_one: [[f64; 4]; 3],
    /// The force on each site of the other.
    on_other: [[f64; 4]; 3],
    /// The energy of the pair.
    pub energy: f64,
}

impl Exchange {
    /// The forces on the atoms of the one.
    #[inline(always)]
    pub fn on_one(&self) -> Atoms {
        on_atoms(&self.on_one)
    }

    /// The forces on the atoms of the other.
    #[inline(always)]
    pub fn on_other(&self) -> Atoms {
        on_atoms(&self.on_other)
    }
}

#[inline(always)]
fn on_atoms(on_sites: &[[f64; 4]; 3]) -> Atoms {
    let mut atoms = [[0.0; 3]; 3];
    for (axis, &[centre, first, second, oxygen]) in on_sites.iter().enumerate() {
        atoms[0][axis] = oxygen + SHARES[0] * centre;
        atoms[1][axis] = first + SHARES[1] * centre;
        atoms[2][axis] = second + SHARES[2] * centre;
    }
    atoms
}

/// Adds forces to those on a molecule.
#[inline(always)]
pub fn add(sum: &mut Atoms, forces: &Atoms) {
    for (sum, force) in sum.iter_mut().zip(forces) {
        *sum = plus(*sum, *force);
    }
}

/// Something for each pair of sites: of the one and of the other.
type Table = [[f64; 4]; 4];

/// What two molecules do to each other, if any of their charges are within the cut-off radius.
#[inline(always)]
pub fn act(system: &System, one: &Sites, other: &Sites) -> Option<Exchange> {
    // Most molecules are so far from each other that none of their charges are near enough, which
    // one distance tells.
    let between = |axis: usize| one.axes[axis][0] - other.axes[axis][0];
    let apart = |axis: usize| {
        let far = between(axis).abs();
        far.min(system.side - far)
    };
    let centres = [apart(0), apart(1), apart(2)];
    let reach = one.reach + other.reach;
    let most = system.cutoff + reach;
    if dot(centres, centres) > most * most {
        return None;
    }
    let edge = 0.5 * system.side - reach;
    if centres.iter().all(|along| along.abs() < edge) {
        // All sites are nearest to the same image.
        let shift = |axis| {
            let shift = system.shift(between(axis));
            move |along: f64| along + shift
        };
        let x = differences(one.axes[0], other.axes[0], shift(0));
        let y = differences(one.axes[1], other.axes[1], shift(1));
        let z = differences(one.axes[2], other.axes[2], shift(2));
        act_over(system, &x, &y, &z)
    } else {
        let nearest = |along| system.nearest(along);
        let x = differences(one.axes[0], other.axes[0], nearest);
        let y = differences(one.axes[1], other.axes[1], nearest);
        let z = differences(one.axes[2], other.axes[2], nearest);
        act_over(system, &x, &y, &z)
    }
}

/// The differences of the sites' coordinates along an axis, taken to an image by `image`.
#[inline(always)]
fn differences(one: [f64; 4], other: [f64; 4], image: impl Fn(f64) -> f64) -> Table {
    let mut table = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..4 {
            table[i][j] = image(one[i] - other[j]);
        }
    }
    table
}

/// What sites do to each other whose coordinates differ by this along each axis.
#[inline(never)]
fn act_over(system: &System, x: &Table, y: &Table, z: &Table) -> Option<Exchange> {
    let mut squared = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..4 {
            squared[i][j] = (x[i][j] * x[i][j] + y[i][j] * y[i][j]) + z[i][j] * z[i][j];
        }
    }
    let cutoff_squared = system.cutoff * system.cutoff;
    let mut beyond = 0;
    for row in &squared[..OXYGEN] {
        for squared in &row[..OXYGEN] {
            beyond += usize::from(*squared > cutoff_squared);
        }
    }
    if beyond == OXYGEN * OXYGEN {
        return None;
    }
    let (mut slopes, mut energy) = act_by_charges(system.cutoff, &squared);
    if beyond == 0 {
        energy += act_by_exponentials(&squared, &mut slopes);
    }
    let (x1, x2) = forces(x, &slopes);
    let (y1, y2) = forces(y, &slopes);
    let (z1, z2) = forces(z, &slopes);
    Some(Exchange {
        on_one: [x1, y1, z1],
        on_other: [x2, y2, z2],
        energy,
    })
}

/// The energy of the charges and, for each pair of sites, the force over the distance.
#[inline(always)]
fn act_by_charges(cutoff: f64, squared: &Table) -> (Table, f64) {
    let field = 1.0 / (cutoff * cutoff * cutoff);
    let mut slopes = [[0.0; 4]; 4];
    let mut energies = [0.0; 4];
    for i in 0..OXYGEN {
        for j in 0..4 {
            // The oxygen atom has no charge, but four are counted as fast as three.
            let charge = CHARGE_SQUARED * CHARGES[i] * CHARGES[j];
            let within = squared[i][j] < cutoff * cutoff;
            let inverse = 1.0 / squared[i][j].sqrt();
            let slope = charge * (inverse * inverse * inverse - field);
            let energy = charge * (inverse + 0.5 * field * squared[i][j] - 1.5 / cutoff);
            slopes[i][j] = if within { slope } else { 0.0 };
            energies[j] += if within { energy } else { 0.0 };
        }
    }
    (
        slopes,
        (energies[0] + energies[1]) + (energies[2] + energies[3]),
    )
}

/// Adds the exponentials' share to `slopes`, and returns their energy.
#[inline(always)]
fn act_by_exponentials(squared: &Table, slopes: &mut Table) -> f64 {
    let mut energy = 0.0;
    let mut count = |i: usize, j: usize, exponentials: &[Exponential]| {
        let distance = squared[i][j].sqrt();
        for term in exponentials {
            let value = term.energy * (-term.decay * distance).exp();
            energy += value;
            slopes[i][j] += term.decay * value / distance;
        }
    };
    count(OXYGEN, OXYGEN, &[OXYGENS]);
    for i in 1..OXYGEN {
        for j in 1..OXYGEN {
            count(i, j, &[HYDROGENS]);
        }
        count(i, OXYGEN, &[MIXED, MIXED_ATTRACTION]);
        count(OXYGEN, i, &[MIXED, MIXED_ATTRACTION]);
    }
    energy
}

/// The forces along an axis on the sites of the one, and of the other.
#[inline(always)]
fn forces(along: &Table, slopes: &Table) -> ([f64; 4], [f64; 4]) {
    let (mut on_one, mut on_other) = ([0.0; 4], [0.0; 4]);
    for i in 0..4 {
        for j in 0..4 {
            let force = slopes[i][j] * along[i][j];
            on_one[i] += force;
            on_other[j] -= force;
        }
    }
    (on_one, on_other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::water::problem::Problem;

    const ONE: Atoms = [[0.1, 0.2, 0.3], [1.08, 0.15, 0.25], [-0.2, 1.1, 0.5]];

    fn at(molecule: &Atoms, by: Vector) -> Atoms {
        molecule.map(|atom| plus(atom, by))
    }

    fn system() -> System {
        System::of(&Problem::new(512, 1, 1))
    }

    #[test]
    fn forces_are_the_slope_of_the_energy() {
        let system = system();
        // Near, where some charges are beyond the radius, and across the wall of the box.
        for by in [[2.4, 1.1, -0.3], [5.4, 3.0, 0.3], [-22.2, 0.4, 24.0]] {
            let other = at(&ONE, by);
            let energy = |atoms: &Atoms| {
                let pair = act(&system, &Sites::new(atoms), &Sites::new(&other));
                pair.unwrap().energy
            };
            let pair = act(&system, &Sites::new(&ONE), &Sites::new(&other)).unwrap();
            for atom in 0..3 {
                for axis in 0..3 {
                    let step = |by: f64| {
                        let mut atoms = ONE;
                        atoms[atom][axis] += by;
                        energy(&atoms)
                    };
                    let slope = (step(1e-5) - step(-1e-5)) / 2e-5;
                    let error = pair.on_one()[atom][axis] + slope;
                    assert!(error.abs() < 1e-9, "by {by:?}: {error:e}");
                }
            }
        }
    }

    #[test]
    fn what_one_suffers_the_other_does_too() {
        let (one, other) = (Sites::new(&ONE), Sites::new(&at(&ONE, [2.4, 1.1, -0.3])));
        let (here, there) = (act(&system(), &one, &other), act(&system(), &other, &one));
        let (here, there) = (here.unwrap(), there.unwrap());
        assert!((here.energy - there.energy).abs() < 1e-15);
        let all = [
            (here.on_one(), there.on_other()),
            (here.on_other(), there.on_one()),
        ];
        for (a, b) in all {
            for (a, b) in a.as_flattened().iter().zip(b.as_flattened()) {
                assert!((a - b).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn molecules_out_of_reach_do_nothing() {
        let system = system();
        let far = Sites::new(&at(&ONE, [8.5, 0.0, 0.0]));
        assert!(act(&system, &Sites::new(&ONE), &far).is_none());
    }

    /// Two molecules that pull each other along a hydrogen bond, as the model was made for.
    #[test]
    fn a_hydrogen_bond_holds() {
        let system = System::of(&Problem {
            cutoff: 0.0,
            ..Problem::new(4096, 1, 1)
        });
        // The first points one hydrogen atom at the other's oxygen atom.
        let donor = [[0.0; 3], [0.9572, 0.0, 0.0], [-0.24, 0.927, 0.0]];
        let acceptor = [[2.87, 0.0, 0.0], [3.3, -0.5, 0.757], [3.3, -0.5, -0.757]];
        let pair = act(&system, &Sites::new(&donor), &Sites::new(&acceptor)).unwrap();
        // In kJ/mol: the unit of energy is 1.66e-17 J. The dimer of this model has -25.
        let energy = pair.energy * 1.660_565_5e-17 * 6.022_045e20;
        assert!((-28.0..-18.0).contains(&energy), "{energy} kJ/mol");
    }
}
