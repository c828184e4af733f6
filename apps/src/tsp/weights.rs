//! The distances of TSPLIB's files: as numbers in some order, or by places and a metric.

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

/// How far apart two cities are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// As the file says.
    Explicit,
    /// In the plane, rounded to the nearest.
    Euclidean,
    /// In space, rounded to the nearest.
    Euclidean3,
    /// In the plane, rounded up.
    Ceiling,
    /// Along the axes of the plane.
    Manhattan,
    /// Along the axes of space.
    Manhattan3,
    /// Along the axis of the plane on which they are furthest apart.
    Maximum,
    /// Along the axis of space on which they are furthest apart.
    Maximum3,
    /// On the Earth, as TSPLIB takes it.
    Geo,
    /// AT&T's pseudo-Euclidean one.
    Att,
}

/// The metrics by the names that files give them.
const METRICS: [(&str, Metric); 10] = [
    ("EXPLICIT", Metric::Explicit),
    ("EUC_2D", Metric::Euclidean),
    ("EUC_3D", Metric::Euclidean3),
    ("CEIL_2D", Metric::Ceiling),
    ("MAN_2D", Metric::Manhattan),
    ("MAN_3D", Metric::Manhattan3),
    ("MAX_2D", Metric::Maximum),
    ("MAX_3D", Metric::Maximum3),
    ("GEO", Metric::Geo),
    ("ATT", Metric::Att),
];

impl FromStr for Metric {
    type Err = ();
    fn from_str(name: &str) -> Result<Metric, ()> {
        let mut all = METRICS.iter();
        let found = all.find(|(its, _)| its.eq_ignore_ascii_case(name));
        found.map(|(_, metric)| *metric).ok_or(())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = METRICS.iter();
        let found = all.find(|(_, metric)| metric == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

impl Metric {
    /// How many coordinates a place has.
    pub fn coordinates(self) -> usize {
        match self {
            Metric::Explicit => 0,
            Metric::Euclidean3 | Metric::Manhattan3 | Metric::Maximum3 => 3,
            _ => 2,
        }
    }

    /// How far it is from one place to another, a whole number. What a place of two coordinates
    /// has in place of a third is 0.
    pub fn between(self, a: [f64; 3], b: [f64; 3]) -> f64 {
        let apart = [0, 1, 2].map(|axis| a[axis] - b[axis]);
        let square: f64 = apart.iter().map(|along| along * along).sum();
        let nearest = |exact: f64| (exact + 0.5).floor();
        match self {
            Metric::Explicit => 0.0,
            // As TSPLIB has it: `hypot` may be a little above the root of an exact square.
            Metric::Euclidean | Metric::Euclidean3 => nearest(square.sqrt()),
            Metric::Ceiling => square.sqrt().ceil(),
            Metric::Manhattan | Metric::Manhattan3 => {
                nearest(apart.iter().map(|it| it.abs()).sum())
            }
            Metric::Maximum | Metric::Maximum3 => apart
                .iter()
                .fold(0.0, |most: f64, it| most.max(nearest(it.abs()))),
            Metric::Geo => geo((a[0], a[1]), (b[0], b[1])),
            Metric::Att => {
                let exact = (square / 10.0).sqrt();
                let rounded = nearest(exact);
                if rounded < exact {
                    rounded + 1.0
                } else {
                    rounded
                }
            }
        }
    }
}

/// A distance on the Earth; places are in degrees and minutes, `DDD.MM`. TSPLIB's own arithmetic,
/// with its value of pi, is what published optima are for.
fn geo(a: (f64, f64), b: (f64, f64)) -> f64 {
    #[expect(clippy::approx_constant, reason = "TSPLIB's pi is not pi")]
    const TSPLIB_PI: f64 = 3.141_592;
    const _: () = assert!(PI - TSPLIB_PI < 1e-6);
    const RADIUS_KM: f64 = 6378.388;
    let radians = |place: f64| {
        let degrees = place.trunc();
        let minutes = place - degrees;
        TSPLIB_PI * (degrees + 5.0 * minutes / 3.0) / 180.0
    };
    let [latitude_a, longitude_a, latitude_b, longitude_b] = [a.0, a.1, b.0, b.1].map(radians);
    let q1 = (longitude_a - longitude_b).cos();
    let q2 = (latitude_a - latitude_b).cos();
    let q3 = (latitude_a + latitude_b).cos();
    let cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3);
    (RADIUS_KM * cosine.clamp(-1.0, 1.0).acos() + 1.0).floor()
}

/// In which order a file gives distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// All of them.
    FullMatrix,
    /// Row by row, what is right of the diagonal.
    UpperRow,
    /// Row by row, what is left of the diagonal.
    LowerRow,
    /// Row by row, what is right of the diagonal, and it.
    UpperDiagonalRow,
    /// Row by row, what is left of the diagonal, and it.
    LowerDiagonalRow,
}

impl FromStr for Format {
    type Err = ();
    fn from_str(name: &str) -> Result<Format, ()> {
        // A symmetric matrix by columns is its other half by rows.
        Ok(match &*name.to_ascii_uppercase() {
            "FULL_MATRIX" => Format::FullMatrix,
            "UPPER_ROW" | "LOWER_COL" => Format::UpperRow,
            "LOWER_ROW" | "UPPER_COL" => Format::LowerRow,
            "UPPER_DIAG_ROW" | "LOWER_DIAG_COL" => Format::UpperDiagonalRow,
            "LOWER_DIAG_ROW" | "UPPER_DIAG_COL" => Format::LowerDiagonalRow,
            _ => return Err(()),
        })
    }
}

impl Format {
    /// How many numbers there are.
    pub fn numbers(self, cities: usize) -> u128 {
        let cities = cities as u128;
        match self {
            Format::FullMatrix => cities * cities,
            Format::UpperRow | Format::LowerRow => cities * (cities - 1) / 2,
            Format::UpperDiagonalRow | Format::LowerDiagonalRow => cities * (cities + 1) / 2,
        }
    }

    /// Row and column of each number.
    pub fn places(self, cities: usize) -> impl Iterator<Item = (usize, usize)> {
        let columns = move |row: usize| match self {
            Format::FullMatrix => 0..cities,
            Format::UpperRow => row + 1..cities,
            Format::LowerRow => 0..row,
            Format::UpperDiagonalRow => row..cities,
            Format::LowerDiagonalRow => 0..row + 1,
        };
        let row = move |row| columns(row).map(move |column| (row, column));
        (0..cities).flat_map(row)
    }
}
