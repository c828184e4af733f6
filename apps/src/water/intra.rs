//! Forces within a molecule (`intraf`; the energy is that of `poteng`).

use super::inter::SHARES;
use super::model::{ANGLE, BOND, force::*};
use super::motion::Atoms;
use crate::vector::{Vector, dot, minus, plus, times};

/// The point M of a molecule, from which the charge of its oxygen atom acts.
pub fn centre(&[oxygen, first, second]: &Atoms) -> Vector {
    let [of_oxygen, of_hydrogen, _] = SHARES;
    plus(
        times(oxygen, of_oxygen),
        times(plus(first, second), of_hydrogen),
    )
}

/// The forces on a molecule's atoms, and its energy.
pub fn act(atoms: &Atoms) -> (Atoms, f64) {
    let &[oxygen, first, second] = atoms;
    let (bond1, bond2) = (minus(oxygen, first), minus(oxygen, second));
    let (length1, length2) = (dot(bond1, bond1).sqrt(), dot(bond2, bond2).sqrt());
    let (u1, u2) = (times(bond1, 1.0 / length1), times(bond2, 1.0 / length2));
    // Rounding must not take a straight molecule beyond what has an angle.
    let cos = dot(u1, u2).clamp(-1.0, 1.0);
    let sin = (1.0 - cos * cos).sqrt().max(f64::MIN_POSITIVE);
    let bend = (cos.acos() - ANGLE) * BOND;
    let (a, b) = (length1 - BOND, length2 - BOND);
    let energy = energy(a, b, bend);
    let turn = BOND * by_bend(a, b, bend) / sin;
    let on_hydrogen = |stretch: f64, length: f64, u, other| {
        let sideways = minus(other, times(u, cos));
        minus(times(u, stretch), times(sideways, turn / length))
    };
    let on_first = on_hydrogen(by_stretch(a, b, bend), length1, u1, u2);
    let on_second = on_hydrogen(by_stretch(b, a, bend), length2, u2, u1);
    let on_oxygen = times(plus(on_first, on_second), -1.0);
    ([on_oxygen, on_first, on_second], energy)
}

/// The energy of bonds that are longer than at rest by `a` and `b`, and of an angle that is wider
/// by `t`, times the length of a bond at rest.
fn energy(a: f64, b: f64, t: f64) -> f64 {
    let (a2, b2, t2, ab, sum) = (a * a, b * b, t * t, a * b, a + b);
    let squares = 0.5 * (K11 * (a2 + b2) + K33 * t2) + K12 * ab + K13 * sum * t;
    let cubes = K111 * (a2 * a + b2 * b)
        + K333 * t2 * t
        + (K112 * ab + K133 * t2) * sum
        + K113 * (a2 + b2) * t
        + K123 * ab * t;
    let fourths = K1111 * (a2 * a2 + b2 * b2)
        + K3333 * t2 * t2
        + K1112 * (a2 + b2) * ab
        + K1122 * a2 * b2
        + K1113 * (a2 * a + b2 * b) * t
        + K1123 * sum * ab * t
        + K1133 * (a2 + b2) * t2
        + K1233 * ab * t2
        + K1333 * sum * t2 * t;
    squares + (cubes + fourths / BOND) / BOND
}

/// The derivative of [`energy`] by `a`; that by `b` is the same with `a` and `b` swapped.
fn by_stretch(a: f64, b: f64, t: f64) -> f64 {
    let (a2, b2, t2, ab) = (a * a, b * b, t * t, a * b);
    let squares = K11 * a + K12 * b + K13 * t;
    let cubes =
        3.0 * K111 * a2 + K112 * (2.0 * ab + b2) + 2.0 * K113 * a * t + K123 * b * t + K133 * t2;
    let fourths = 4.0 * K1111 * a2 * a
        + K1112 * (3.0 * a2 + b2) * b
        + 2.0 * K1122 * a * b2
        + 3.0 * K1113 * a2 * t
        + K1123 * (2.0 * ab + b2) * t
        + 2.0 * K1133 * a * t2
        + K1233 * b * t2
        + K1333 * t2 * t;
    squares + (cubes + fourths / BOND) / BOND
}

/// The derivative of [`energy`] by `t`.
fn by_bend(a: f64, b: f64, t: f64) -> f64 {
    let (a2, b2, t2, ab, sum) = (a * a, b * b, t * t, a * b, a + b);
    let squares = K33 * t + K13 * sum;
    let cubes = 3.0 * K333 * t2 + K113 * (a2 + b2) + K123 * ab + 2.0 * K133 * sum * t;
    let fourths = 4.0 * K3333 * t2 * t
        + K1113 * (a2 * a + b2 * b)
        + K1123 * sum * ab
        + 2.0 * (K1133 * (a2 + b2) + K1233 * ab) * t
        + 3.0 * K1333 * sum * t2;
    squares + (cubes + fourths / BOND) / BOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENT: Atoms = [[0.1, 0.2, 0.3], [1.08, 0.15, 0.25], [-0.2, 1.1, 0.5]];

    #[test]
    fn a_molecule_at_rest_stays_so() {
        let (sin, cos) = (0.5 * ANGLE).sin_cos();
        let at_rest = [
            [0.0; 3],
            [BOND * cos, BOND * sin, 0.0],
            [BOND * cos, -BOND * sin, 0.0],
        ];
        let (forces, energy) = act(&at_rest);
        assert!(energy.abs() < 1e-15);
        assert!(forces.as_flattened().iter().all(|f| f.abs() < 1e-12));
    }

    #[test]
    fn forces_are_the_slope_of_the_energy() {
        let (forces, _) = act(&BENT);
        let step = 1e-5;
        for atom in 0..3 {
            for axis in 0..3 {
                let at = |by: f64| {
                    let mut atoms = BENT;
                    atoms[atom][axis] += by;
                    act(&atoms).1
                };
                let slope = (at(step) - at(-step)) / (2.0 * step);
                let error = forces[atom][axis] + slope;
                assert!(error.abs() < 1e-9, "atom {atom}, axis {axis}: {error:e}");
            }
        }
    }
}
