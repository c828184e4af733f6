//! How TSPLIB's files give distances: as numbers in some order, or by places and a metric.

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
    /// In the plane, rounded up.
    Ceiling,
    /// On the Earth, as TSPLIB takes it.
    Geo,
    /// AT&T's pseudo-Euclidean one.
    Att,
}

impl FromStr for Metric {
    type Err = ();
    fn from_str(name: &str) -> Result<Metric, ()> {
        Ok(match name {
            "EXPLICIT" => Metric::Explicit,
            "EUC_2D" => Metric::Euclidean,
            "CEIL_2D" => Metric::Ceiling,
            "GEO" => Metric::Geo,
            "ATT" => Metric::Att,
            _ => return Err(()),
        })
    }
}

/// A distance in the plane.
pub fn planar(metric: Metric, a: (f64, f64), b: (f64, f64)) -> f64 {
    let (x, y) = (a.0 - b.0, a.1 - b.1);
    match metric {
        // As TSPLIB has it: `hypot` may be a little above the root of an exact square.
        Metric::Ceiling => (x * x + y * y).sqrt().ceil(),
        Metric::Att => {
            let exact = ((x * x + y * y) / 10.0).sqrt();
            let rounded = (exact + 0.5).floor();
            if rounded < exact {
                rounded + 1.0
            } else {
                rounded
            }
        }
        _ => ((x * x + y * y).sqrt() + 0.5).floor(),
    }
}

/// A distance on the Earth; places are in degrees and minutes, `DDD.MM`. TSPLIB's own arithmetic,
/// with its value of pi, is what published optima are for.
pub fn geo(a: (f64, f64), b: (f64, f64)) -> f64 {
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
        Ok(match name {
            "FULL_MATRIX" => Format::FullMatrix,
            "UPPER_ROW" | "LOWER_COL" => Format::UpperRow,
            "LOWER_ROW" | "UPPER_COL" => Format::LowerRow,
            "UPPER_DIAG_ROW" | "LOWER_DIAG_COL" => Format::UpperDiagonalRow,
            "LOWER_DIAG_ROW" | "UPPER_DIAG_COL" => Format::LowerDiagonalRow,
            _ => return Err(()),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::FullMatrix => "FULL_MATRIX",
            Format::UpperRow => "UPPER_ROW",
            Format::LowerRow => "LOWER_ROW",
            Format::UpperDiagonalRow => "UPPER_DIAG_ROW",
            Format::LowerDiagonalRow => "LOWER_DIAG_ROW",
        })
    }
}

impl Format {
    /// Row and column of each number.
    pub fn places(self, cities: usize) -> Vec<(usize, usize)> {
        let columns = |row: usize| match self {
            Format::FullMatrix => 0..cities,
            Format::UpperRow => row + 1..cities,
            Format::LowerRow => 0..row,
            Format::UpperDiagonalRow => row..cities,
            Format::LowerDiagonalRow => 0..row + 1,
        };
        let row = |row| columns(row).map(move |column| (row, column));
        (0..cities).flat_map(row).collect()
    }
}
