//! Cities and the distances between them.

use super::edges::FixedEdges;
use super::file::File;
use crate::input::{BadFile, Lines};

/// Cities and their distances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Its name in the file.
    pub name: String,
    cities: usize,
    distances: Vec<u32>,
    fixed: FixedEdges,
}

impl Instance {
    /// How many cities there are.
    pub fn cities(&self) -> usize {
        self.cities
    }

    /// How far it is from one city to another.
    #[inline]
    pub fn distance(&self, from: usize, to: usize) -> u32 {
        self.distances[from * self.cities + to]
    }

    /// How far it is from each city to each, row by row.
    pub fn distances(&self) -> &[u32] {
        &self.distances
    }

    /// The edges that must be on the tour.
    pub fn fixed(&self) -> &FixedEdges {
        &self.fixed
    }

    /// An instance of these distances, row by row.
    pub fn of(name: &str, cities: usize, distances: Vec<u32>) -> Instance {
        assert_eq!(distances.len(), cities * cities);
        Instance {
            name: name.to_owned(),
            cities,
            distances,
            fixed: FixedEdges::none(cities),
        }
    }

    /// The same with edges that must be on the tour.
    pub fn with_fixed(self, fixed: FixedEdges) -> Instance {
        Instance { fixed, ..self }
    }

    /// Reads a file's lines.
    ///
    /// # Errors
    /// [`BadFile`] with the line that is wrong, or when there are more cities than are solved.
    pub fn parse(lines: &Lines) -> Result<Instance, BadFile> {
        File::parse(lines)?.instance()
    }
}
