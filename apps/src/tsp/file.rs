//! Reads TSPLIB's files (Reinelt 1991): headers, which are keywords with values, and sections of
//! numbers, in any order.
//!
//! The reader first splits a file and then interprets it. So a header may come after its section.
//! Keywords may have any case, and their colon may be missing.

use std::collections::BTreeMap;

use super::edges::FixedEdges;
use super::instance::Instance;
use super::weights::{Format, Metric};
use crate::input::{BadFile, Lines};

/// The most cities that are solved: branch and bound makes sense up to a few dozen.
pub const MOST_CITIES: usize = 1000;
/// No two cities are further apart.
pub const LONGEST: i64 = 1 << 31;

/// Keywords that have a value.
const HEADS: [&str; 10] = [
    "NAME",
    "TYPE",
    "COMMENT",
    "DIMENSION",
    "CAPACITY",
    "EDGE_WEIGHT_TYPE",
    "EDGE_WEIGHT_FORMAT",
    "EDGE_DATA_FORMAT",
    "NODE_COORD_TYPE",
    "DISPLAY_DATA_TYPE",
];

/// Keywords that numbers follow.
const SECTIONS: [&str; 8] = [
    "NODE_COORD_SECTION",
    "EDGE_WEIGHT_SECTION",
    "FIXED_EDGES_SECTION",
    "DISPLAY_DATA_SECTION",
    "EDGE_DATA_SECTION",
    "DEMAND_SECTION",
    "DEPOT_SECTION",
    "TOUR_SECTION",
];

/// A number and its line.
type Number = (usize, f64);

/// A section: the line of its keyword, and its numbers.
#[derive(Default)]
struct Section {
    line: usize,
    numbers: Vec<Number>,
}

impl Section {
    /// The line of its last number.
    fn last(&self) -> usize {
        self.numbers.last().map_or(self.line, |(line, _)| *line)
    }
}

/// A file, split.
struct Parts<'a> {
    lines: &'a Lines,
    heads: BTreeMap<&'static str, (usize, &'a str)>,
    sections: BTreeMap<&'static str, Section>,
}

/// A file that is sound.
#[derive(Clone, PartialEq, Debug)]
pub struct File {
    /// The file's name for the instance.
    pub name: String,
    /// How many cities there are.
    pub cities: usize,
    path: String,
    distances: Distances,
    fixed: FixedEdges,
}

/// How far apart the cities are.
#[derive(Clone, PartialEq, Debug)]
enum Distances {
    /// Row by row.
    Given(Vec<u32>),
    /// Between places.
    Between(Metric, Vec<[f64; 3]>),
}

/// A line that begins with a keyword: that and what follows it.
fn keyword(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        .then(|| {
            let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
            let (word, rest) = text.split_at(end);
            let rest = rest.trim();
            (word, rest.strip_prefix(':').unwrap_or(rest).trim())
        })
}

fn known(word: &str, of: &[&'static str]) -> Option<&'static str> {
    of.iter().copied().find(|it| it.eq_ignore_ascii_case(word))
}

impl<'a> Parts<'a> {
    fn of(lines: &'a Lines) -> Result<Parts<'a>, BadFile> {
        let mut parts = Parts {
            lines,
            heads: BTreeMap::new(),
            sections: BTreeMap::new(),
        };
        let mut open: Option<&mut Section> = None;
        for (line, text) in lines.iter().filter(|(_, text)| !text.trim().is_empty()) {
            let Some((word, value)) = keyword(text) else {
                let Some(section) = &mut open else {
                    let what = format!("{:?} begins with no keyword", text.trim());
                    return Err(lines.wrong(line, what));
                };
                add_numbers(lines, line, text, &mut section.numbers)?;
                continue;
            };
            if word.eq_ignore_ascii_case("EOF") {
                break;
            }
            let twice = |word| lines.wrong(line, format!("{word} comes twice"));
            if let Some(head) = known(word, &HEADS) {
                open = None;
                let before = parts.heads.insert(head, (line, value));
                if before.is_some() && head != "COMMENT" {
                    return Err(twice(head));
                }
            } else if let Some(name) = known(word, &SECTIONS) {
                if parts.sections.contains_key(name) {
                    return Err(twice(name));
                }
                let section = parts.sections.entry(name).or_default();
                section.line = line;
                add_numbers(lines, line, value, &mut section.numbers)?;
                open = Some(section);
            } else {
                let nor = if open.is_some() { " and no number" } else { "" };
                return Err(lines.wrong(line, format!("{word:?} is no keyword{nor}")));
            }
        }
        Ok(parts)
    }

    /// The first word of a head's value, with its line: a remark may follow.
    fn word(&self, head: &str) -> Option<(usize, &'a str)> {
        let (line, value) = self.heads.get(head)?;
        Some((*line, value.split_whitespace().next().unwrap_or("")))
    }

    /// Whether there and back is the same way.
    fn symmetric(&self) -> Result<bool, BadFile> {
        let (line, kind) = self.word("TYPE").unwrap_or((0, "TSP"));
        match &*kind.to_ascii_uppercase() {
            "TSP" => Ok(true),
            "ATSP" => Ok(false),
            _ => {
                let what = format!("a problem of type {kind:?}: TSP and ATSP are solved");
                Err(self.lines.wrong(line, what))
            }
        }
    }

    fn cities(&self) -> Result<usize, BadFile> {
        let (line, word) = self
            .word("DIMENSION")
            .ok_or_else(|| self.lines.wrong_as_a_whole("it has no DIMENSION"))?;
        let cities = self.lines.parse(line, "DIMENSION", Some(word))?;
        match cities {
            0 | 1 => {
                let what = format!("{cities} cities: a tour needs at least 2");
                Err(self.lines.wrong(line, what))
            }
            _ => Ok(cities),
        }
    }

    fn metric(&self) -> Result<Option<Metric>, BadFile> {
        let Some((line, word)) = self.word("EDGE_WEIGHT_TYPE") else {
            return Ok(None);
        };
        if let "XRAY1" | "XRAY2" | "SPECIAL" = &*word.to_ascii_uppercase() {
            let what = format!("EDGE_WEIGHT_TYPE {word} is not understood here");
            return Err(self.lines.wrong(line, what));
        }
        self.lines
            .parse(line, "EDGE_WEIGHT_TYPE", Some(word))
            .map(Some)
    }

    /// Sections that do not matter to a tour.
    fn check_sections(&self) -> Result<(), BadFile> {
        for (name, why) in [
            ("EDGE_DATA_SECTION", "graphs that lack roads are not solved"),
            ("DEMAND_SECTION", "tours with demands are not solved"),
            ("DEPOT_SECTION", "tours from depots are not solved"),
            ("TOUR_SECTION", "a file of tours has no distances"),
        ] {
            if let Some(section) = self.sections.get(name) {
                return Err(self.lines.wrong(section.line, format!("{name}: {why}")));
            }
        }
        Ok(())
    }

    fn distances(&self, symmetric: bool) -> Result<Distances, BadFile> {
        let (lines, metric) = (self.lines, self.metric()?);
        let given = self.sections.get("EDGE_WEIGHT_SECTION");
        let places = self.sections.get("NODE_COORD_SECTION");
        match (metric, given, places) {
            (Some(Metric::Explicit), Some(given), _) => self.given(given, symmetric),
            (None, Some(given), _) => {
                let what = "distances are given, but no EDGE_WEIGHT_TYPE says EXPLICIT";
                Err(lines.wrong(given.line, what))
            }
            (Some(_), Some(given), _) => {
                let what = "distances are given, but EDGE_WEIGHT_TYPE is not EXPLICIT";
                Err(lines.wrong(given.line, what))
            }
            (Some(Metric::Explicit), None, _) => {
                let what = "EDGE_WEIGHT_TYPE is EXPLICIT, but there is no EDGE_WEIGHT_SECTION";
                Err(lines.wrong_as_a_whole(what))
            }
            (Some(metric), None, Some(places)) => self.places(metric, places),
            (Some(metric), None, None) => {
                let what = format!("it has no NODE_COORD_SECTION, which {metric} needs");
                Err(lines.wrong_as_a_whole(what))
            }
            (None, None, Some(places)) => {
                let what = "places are given, but no EDGE_WEIGHT_TYPE says how far apart";
                Err(lines.wrong(places.line, what))
            }
            (None, None, None) => {
                let what = "it has neither an EDGE_WEIGHT_SECTION nor a NODE_COORD_SECTION";
                Err(lines.wrong_as_a_whole(what))
            }
        }
    }

    /// Distances that the file spells out.
    fn given(&self, section: &Section, symmetric: bool) -> Result<Distances, BadFile> {
        let (lines, cities) = (self.lines, self.cities()?);
        let (line, word) = self
            .word("EDGE_WEIGHT_FORMAT")
            .ok_or_else(|| lines.wrong_as_a_whole("it has no EDGE_WEIGHT_FORMAT"))?;
        if word.eq_ignore_ascii_case("FUNCTION") {
            let what = "EDGE_WEIGHT_FORMAT is FUNCTION, but EDGE_WEIGHT_TYPE is EXPLICIT";
            return Err(lines.wrong(line, what));
        }
        let format: Format = lines.parse(line, "EDGE_WEIGHT_FORMAT", Some(word))?;
        let (given, wanted) = (section.numbers.len(), format.numbers(cities));
        // Also before anything of that size is made.
        if given as u128 != wanted {
            let what = format!("{given} distances of {cities} cities as {word}: {wanted} wanted");
            return Err(lines.wrong(section.last(), what));
        }
        let mut distances = vec![0; cities * cities];
        for ((from, to), &(line, number)) in format.places(cities).zip(&section.numbers) {
            if number < 0.0 || number >= LONGEST as f64 || number.fract() != 0.0 {
                let what = format!("a distance cannot be {number}");
                return Err(lines.wrong(line, what));
            }
            distances[from * cities + to] = number as u32;
            if format != Format::FullMatrix {
                distances[to * cities + from] = number as u32;
            }
        }
        for (from, to) in Format::UpperRow.places(cities).filter(|_| symmetric) {
            let (there, back) = (distances[from * cities + to], distances[to * cities + from]);
            if there != back {
                let (from, to) = (from + 1, to + 1);
                let what = format!(
                    "from city {from} to {to} it is {there} and back {back}, but TYPE is TSP"
                );
                return Err(lines.wrong(section.line, what));
            }
        }
        Ok(Distances::Given(distances))
    }

    /// Distances between places.
    fn places(&self, metric: Metric, section: &Section) -> Result<Distances, BadFile> {
        let (lines, cities) = (self.lines, self.cities()?);
        let wanted = metric.coordinates();
        if let Some((line, word)) = self.word("NODE_COORD_TYPE") {
            let given = match &*word.to_ascii_uppercase() {
                "TWOD_COORDS" => 2,
                "THREED_COORDS" => 3,
                "NO_COORDS" => 0,
                _ => {
                    let what = format!("NODE_COORD_TYPE cannot be {word:?}");
                    return Err(lines.wrong(line, what));
                }
            };
            if given != wanted {
                let what = format!("{word} are {given} coordinates, and {metric} needs {wanted}");
                return Err(lines.wrong(line, what));
            }
        }
        let each = 1 + wanted;
        let given = section.numbers.len();
        if given as u128 != each as u128 * cities as u128 {
            let what = format!("{given} numbers for {cities} places of {each}, as {metric} has");
            return Err(lines.wrong(section.last(), what));
        }
        let mut places = vec![None; cities];
        for numbers in section.numbers.chunks_exact(each) {
            let (line, city) = numbers[0];
            let index = city_of(city, cities).filter(|city| places[*city].is_none());
            let Some(index) = index else {
                let what = format!("a place of city {city}, which is none or has one");
                return Err(lines.wrong(line, what));
            };
            let mut place = [0.0; 3];
            for (to, (_, number)) in place.iter_mut().zip(&numbers[1..]) {
                *to = *number;
            }
            places[index] = Some(place);
        }
        Ok(Distances::Between(
            metric,
            places.into_iter().flatten().collect(),
        ))
    }

    /// The edges that must be on the tour: pairs of cities up to a -1.
    fn fixed(&self, cities: usize, symmetric: bool) -> Result<FixedEdges, BadFile> {
        let (lines, none) = (self.lines, FixedEdges::none(cities));
        let Some(section) = self.sections.get("FIXED_EDGES_SECTION") else {
            return Ok(none);
        };
        let (mut pairs, mut after) = (Vec::new(), section.numbers.iter());
        let ended = loop {
            match (after.next(), after.clone().next()) {
                (None, _) => break true,
                (Some((_, first)), _) if *first == -1.0 => break after.next().is_none(),
                (Some(&(line, from)), Some(&(_, to))) => {
                    after.next();
                    let city = |city| {
                        let what = || lines.wrong(line, format!("a fixed edge of city {city}"));
                        city_of(city, cities).ok_or_else(what)
                    };
                    pairs.push((line, city(from)?, city(to)?));
                }
                (Some(_), None) => break false,
            }
        };
        if !ended {
            let what = "fixed edges are pairs of cities, and a -1 after the last";
            return Err(lines.wrong(section.last(), what));
        }
        if !symmetric && !pairs.is_empty() {
            let what = "FIXED_EDGES_SECTION: of an ATSP, fixed edges are not solved";
            return Err(lines.wrong(section.line, what));
        }
        let mut fixed = none;
        for (line, from, to) in pairs {
            let added = fixed.add(from, to);
            added.map_err(|what| lines.wrong(line, what))?;
        }
        Ok(fixed)
    }
}

/// A city by its number, counted from 1.
fn city_of(number: f64, cities: usize) -> Option<usize> {
    let whole = number.fract() == 0.0 && number >= 1.0 && number <= cities as f64;
    whole.then(|| number as usize - 1)
}

fn add_numbers(
    lines: &Lines,
    line: usize,
    text: &str,
    numbers: &mut Vec<Number>,
) -> Result<(), BadFile> {
    for word in text.split_whitespace() {
        let number: f64 = lines.parse(line, "a number", Some(word))?;
        if !number.is_finite() {
            return Err(lines.wrong(line, format!("a number cannot be {word:?}")));
        }
        numbers.push((line, number));
    }
    Ok(())
}

impl File {
    /// Reads a file's lines, of any number of cities.
    ///
    /// # Errors
    /// [`BadFile`] with the line that is wrong.
    pub fn parse(lines: &Lines) -> Result<File, BadFile> {
        let parts = Parts::of(lines)?;
        let symmetric = parts.symmetric()?;
        parts.check_sections()?;
        if parts.heads.contains_key("DIMENSION") {
            parts.cities()?;
        }
        let distances = parts.distances(symmetric)?;
        let cities = parts.cities()?;
        Ok(File {
            name: parts.heads.get("NAME").map_or("", |it| it.1).to_owned(),
            cities,
            path: lines.path().to_owned(),
            fixed: parts.fixed(cities, symmetric)?,
            distances,
        })
    }

    /// The instance, with all its distances.
    ///
    /// # Errors
    /// [`BadFile`] when there are more than `MOST_CITIES`, or two are too far apart.
    pub fn instance(self) -> Result<Instance, BadFile> {
        let File {
            name,
            cities,
            path,
            distances,
            fixed,
        } = self;
        let wrong = |what| BadFile::Whole { path, what };
        if cities > MOST_CITIES {
            let what = format!("{cities} cities are more than are solved: at most {MOST_CITIES}");
            return Err(wrong(what));
        }
        let (metric, places) = match distances {
            Distances::Given(distances) => {
                return Ok(Instance::of(&name, cities, distances).with_fixed(fixed));
            }
            Distances::Between(metric, places) => (metric, places),
        };
        let mut distances = vec![0; cities * cities];
        for (from, &a) in places.iter().enumerate() {
            for (to, &b) in places.iter().enumerate().filter(|(to, _)| *to != from) {
                let distance = metric.between(a, b);
                if !(0.0..LONGEST as f64).contains(&distance) {
                    let (from, to) = (from + 1, to + 1);
                    return Err(wrong(format!("cities {from} and {to} are too far apart")));
                }
                distances[from * cities + to] = distance as u32;
            }
        }
        Ok(Instance::of(&name, cities, distances).with_fixed(fixed))
    }
}
