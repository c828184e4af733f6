//! The water model of SPLASH's Water: its numbers, as `cnstnt` has them.
//!
//! A molecule is an oxygen atom and two hydrogen atoms, all of which move. A polynomial of fourth
//! degree in the two bond lengths and the angle holds them together. Between molecules acts a
//! potential like that of Matsuoka, Clementi and Yoshimine (1976). Each hydrogen atom has a
//! positive charge, and a point M near the oxygen atom has both negative ones. Atoms repel each
//! other exponentially.
//!
//! Units: length 1 angstrom, time 1 fs, mass 1 u; so energy is in u A^2 / fs^2 (1.66e-17 J).

/// Mass of an oxygen atom.
pub const OXYGEN_MASS: f64 = 15.999_45;
/// Mass of a hydrogen atom.
pub const HYDROGEN_MASS: f64 = 1.007_825;
/// The masses of a molecule's atoms, in their order.
pub const MASSES: [f64; 3] = [OXYGEN_MASS, HYDROGEN_MASS, HYDROGEN_MASS];
/// Mass of a molecule.
pub const MOLECULE_MASS: f64 = OXYGEN_MASS + 2.0 * HYDROGEN_MASS;

/// Length of an O-H bond at rest.
pub const BOND: f64 = 0.9572;
/// Angle between the bonds at rest, in radians.
pub const ANGLE: f64 = 1.824_218;

/// Density, in g/cm^3.
pub const DENSITY: f64 = 0.9980;
/// One atomic mass unit, in g.
pub const UNIT_MASS_G: f64 = 1.660_565_5e-24;
/// Temperature of the initial velocities, in K.
pub const TEMPERATURE: f64 = 298.0;
/// Boltzmann's constant times the temperature: 1.380662e-16 erg/K over u A^2 / fs^2 in erg.
pub const THERMAL: f64 = 1.380_662e-16 * TEMPERATURE / (UNIT_MASS_G * 1e14);
/// Time from one step to the next; that of SPLASH's inputs.
pub const TIME_STEP: f64 = 0.15;

/// The cut-off radius of SPLASH-2's inputs: twice the distance of neighbours in the lattice.
pub const CUTOFF: f64 = 6.212_752;
/// No cut-off radius is larger that the programs choose themselves.
pub const LARGEST_CUTOFF: f64 = 11.0;

/// How far from the oxygen atom towards the middle of the hydrogen atoms the point M lies.
pub const CENTRE_SHIFT: f64 = 0.456_825_90;
/// The square of a hydrogen atom's charge.
pub const CHARGE_SQUARED: f64 = 0.071_521_58;
/// The charges of M, the hydrogen atoms and the oxygen atom, in units of a hydrogen atom's.
pub const CHARGES: [f64; 4] = [-2.0, 1.0, 1.0, 0.0];

/// An exponential: an energy and what a distance is multiplied by.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    /// Energy at distance 0.
    pub energy: f64,
    /// Decay, per angstrom.
    pub decay: f64,
}

/// Between oxygen atoms.
pub const OXYGENS: Exponential = Exponential {
    energy: 455.313_100,
    decay: 5.152_710_70,
};
/// Between hydrogen atoms.
pub const HYDROGENS: Exponential = Exponential {
    energy: 0.278_798_39,
    decay: 2.760_843_70,
};
/// Between an oxygen and a hydrogen atom: repulsion.
pub const MIXED: Exponential = Exponential {
    energy: 0.608_957_06,
    decay: 2.961_895_50,
};
/// Between an oxygen and a hydrogen atom: attraction.
pub const MIXED_ATTRACTION: Exponential = Exponential {
    energy: -0.114_473_36,
    decay: 2.233_264_10,
};

/// Force constants within a molecule: of a bond's stretch (1), the other's (2) and the bend (3),
/// each as often as it is a factor.
#[allow(missing_docs, reason = "a table: its rows are named by their digits")]
pub mod force {
    pub const K11: f64 = 0.512_596;
    pub const K33: f64 = 0.048_098;
    pub const K12: f64 = -0.005_823;
    pub const K13: f64 = 0.016_452;
    pub const K111: f64 = -0.571_91;
    pub const K333: f64 = -0.007_636;
    pub const K112: f64 = -0.001_867;
    pub const K113: f64 = -0.002_047;
    pub const K123: f64 = -0.030_83;
    pub const K133: f64 = -0.009_424_5;
    pub const K1111: f64 = 0.843_1;
    pub const K3333: f64 = -0.001_93;
    pub const K1112: f64 = -0.003_0;
    pub const K1122: f64 = 0.003_6;
    pub const K1113: f64 = -0.012;
    pub const K1123: f64 = 0.006_0;
    pub const K1133: f64 = -0.004_8;
    pub const K1233: f64 = 0.021_1;
    pub const K1333: f64 = 0.006_263;
}
