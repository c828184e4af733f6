//! TSPLIB's files (Reinelt 1991): a head of keywords, and sections of numbers.

use std::collections::BTreeSet;

use super::weights::{Format, Metric, geo, planar};
use crate::input::{BadFile, Lines};

/// The most cities for which branch and bound makes sense, generously.
const MOST_CITIES: usize = 1000;
/// No two cities are further apart.
const LONGEST: i64 = 1 << 31;

/// Cities and their distances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// What the file calls it.
    pub name: String,
    cities: usize,
    distances: Vec<u32>,
}

/// The head of a file.
#[derive(Default)]
struct Head {
    name: String,
    cities: Option<usize>,
    metric: Option<Metric>,
    format: Option<Format>,
    symmetric: bool,
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

    /// An instance of these distances, row by row.
    pub fn of(name: &str, cities: usize, distances: Vec<u32>) -> Instance {
        assert_eq!(distances.len(), cities * cities);
        Instance {
            name: name.to_owned(),
            cities,
            distances,
        }
    }

    /// Reads a file's lines.
    ///
    /// # Errors
    /// [`BadFile`] with the line that is wrong.
    pub fn parse(lines: &Lines) -> Result<Instance, BadFile> {
        let mut head = Head {
            symmetric: true,
            ..Head::default()
        };
        let (mut distances, mut seen) = (None, BTreeSet::new());
        let mut all = lines.iter().peekable();
        while let Some((line, text)) = all.next() {
            let (keyword, value) = match text.split_once(':') {
                Some((keyword, value)) => (keyword.trim(), value.trim()),
                None => (text.trim(), ""),
            };
            if keyword != "COMMENT" && !keyword.is_empty() && !seen.insert(keyword) {
                return Err(lines.wrong(line, format!("{keyword} comes twice")));
            }
            match keyword {
                "" | "COMMENT" | "DISPLAY_DATA_TYPE" | "NODE_COORD_TYPE" => {}
                "NAME" => head.name = value.to_owned(),
                "TYPE" => match value {
                    "TSP" => head.symmetric = true,
                    "ATSP" => head.symmetric = false,
                    other => {
                        let what = format!("a problem of type {other:?}: TSP and ATSP are solved");
                        return Err(lines.wrong(line, what));
                    }
                },
                "DIMENSION" => {
                    let cities = lines.parse(line, "DIMENSION", Some(value))?;
                    if !(2..=MOST_CITIES).contains(&cities) {
                        let what = format!("{cities} cities: there can be 2 to {MOST_CITIES}");
                        return Err(lines.wrong(line, what));
                    }
                    head.cities = Some(cities);
                }
                "EDGE_WEIGHT_TYPE" => {
                    head.metric = Some(lines.parse(line, keyword, Some(value))?)
                }
                // Of places, it says that the distances follow from them.
                "EDGE_WEIGHT_FORMAT" if value == "FUNCTION" => {}
                "EDGE_WEIGHT_FORMAT" => {
                    head.format = Some(lines.parse(line, keyword, Some(value))?);
                }
                "EDGE_WEIGHT_SECTION" => {
                    let numbers = numbers(lines, &mut all)?;
                    distances = Some(head.explicit(lines, line, &numbers)?);
                }
                "NODE_COORD_SECTION" => {
                    let numbers = numbers(lines, &mut all)?;
                    distances = Some(head.placed(lines, line, &numbers)?);
                }
                "DISPLAY_DATA_SECTION" => drop(numbers(lines, &mut all)?),
                "EOF" => break,
                other => return Err(lines.wrong(line, format!("{other:?} is no keyword"))),
            }
        }
        let (Some(cities), Some(distances)) = (head.cities, distances) else {
            return Err(lines.wrong_as_a_whole("it has no DIMENSION, or no section of distances"));
        };
        Ok(Instance::of(&head.name, cities, distances))
    }
}

/// The numbers of a section, each with its line, up to the next keyword.
fn numbers<'a>(
    lines: &Lines,
    all: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'a str)>>,
) -> Result<Vec<(usize, f64)>, BadFile> {
    let mut numbers = Vec::new();
    let is_word = |text: &str| {
        text.trim_start()
            .starts_with(|c: char| c.is_ascii_alphabetic())
    };
    while let Some((line, text)) = all.next_if(|(_, text)| !is_word(text)) {
        for word in text.split_whitespace() {
            let number: f64 = lines.parse(line, "a number", Some(word))?;
            if !number.is_finite() {
                return Err(lines.wrong(line, format!("a number cannot be {word:?}")));
            }
            numbers.push((line, number));
        }
        if numbers.len() > MOST_CITIES * MOST_CITIES {
            return Err(lines.wrong(line, "there are more numbers than any instance has"));
        }
    }
    Ok(numbers)
}

impl Head {
    fn cities(&self, lines: &Lines, line: usize) -> Result<usize, BadFile> {
        let missing = || lines.wrong(line, "DIMENSION must come before the numbers");
        self.cities.ok_or_else(missing)
    }

    /// Distances that the file spells out.
    fn explicit(
        &self,
        lines: &Lines,
        line: usize,
        numbers: &[(usize, f64)],
    ) -> Result<Vec<u32>, BadFile> {
        if self.metric != Some(Metric::Explicit) {
            let what = "distances are given, but EDGE_WEIGHT_TYPE is not EXPLICIT";
            return Err(lines.wrong(line, what));
        }
        let cities = self.cities(lines, line)?;
        let format = self
            .format
            .ok_or_else(|| lines.wrong(line, "EDGE_WEIGHT_FORMAT must come before the numbers"))?;
        let places = format.places(cities);
        if places.len() != numbers.len() {
            let last = numbers.last().map_or(line, |(line, _)| *line);
            let (given, wanted) = (numbers.len(), places.len());
            let what = format!("{given} distances of {cities} cities as {format}: {wanted} wanted");
            return Err(lines.wrong(last, what));
        }
        let mut distances = vec![0; cities * cities];
        for (&(from, to), &(line, number)) in places.iter().zip(numbers) {
            if number < 0.0 || number >= LONGEST as f64 || number.fract() != 0.0 {
                let what = format!("a distance cannot be {number}");
                return Err(lines.wrong(line, what));
            }
            distances[from * cities + to] = number as u32;
            if format != Format::FullMatrix {
                distances[to * cities + from] = number as u32;
            }
        }
        let symmetric = |i| {
            let (from, to) = (i / cities, i % cities);
            from == to || distances[i] == distances[to * cities + from]
        };
        if self.symmetric && !(0..distances.len()).all(symmetric) {
            let what = "the distances there and back differ, but the problem's TYPE is TSP";
            return Err(lines.wrong(line, what));
        }
        Ok(distances)
    }

    /// Distances between places.
    fn placed(
        &self,
        lines: &Lines,
        line: usize,
        numbers: &[(usize, f64)],
    ) -> Result<Vec<u32>, BadFile> {
        let cities = self.cities(lines, line)?;
        let metric = self.metric.filter(|metric| *metric != Metric::Explicit);
        let metric = metric.ok_or_else(|| {
            let what = "places are given, but EDGE_WEIGHT_TYPE does not say how far apart";
            lines.wrong(line, what)
        })?;
        if numbers.len() != 3 * cities {
            let last = numbers.last().map_or(line, |(line, _)| *line);
            let what = format!("{} numbers for {cities} places of three", numbers.len());
            return Err(lines.wrong(last, what));
        }
        let mut places = vec![None; cities];
        for triple in numbers.chunks_exact(3) {
            let [(line, city), (_, x), (_, y)] = [triple[0], triple[1], triple[2]];
            let index = city - 1.0;
            let place = (index.fract() == 0.0 && index >= 0.0)
                .then(|| places.get_mut(index as usize))
                .flatten()
                .filter(|place| place.is_none());
            let Some(place) = place else {
                let what = format!("a place of city {city}, which is none or has one");
                return Err(lines.wrong(line, what));
            };
            *place = Some((x, y));
        }
        let places: Vec<(f64, f64)> = places.into_iter().flatten().collect();
        let mut distances = vec![0; cities * cities];
        for (from, &a) in places.iter().enumerate() {
            for (to, &b) in places.iter().enumerate().filter(|(to, _)| *to != from) {
                let distance = match metric {
                    Metric::Geo => geo(a, b),
                    metric => planar(metric, a, b),
                };
                if !(0.0..LONGEST as f64).contains(&distance) {
                    let what = format!("cities {} and {} are too far apart", from + 1, to + 1);
                    return Err(lines.wrong(line, what));
                }
                distances[from * cities + to] = distance as u32;
            }
        }
        Ok(distances)
    }
}
