//! Graphs as files: DIMACS and Matrix Market.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use dhole_model::Counted;

use super::GraphWeight;
use crate::collections::GraphFileError;
use crate::collections::error::Numbers;

/// No line of these forms is as long.
const LONGEST_LINE: u64 = 1 << 16;

/// A weight that files have: numbers, and `()`, which passes over what is there.
pub trait FileWeight: GraphWeight {
    /// The weight that is written so, or of an arc for which the file has none.
    fn read(word: Option<&str>) -> Option<Self>;
}

impl FileWeight for () {
    fn read(_: Option<&str>) -> Option<()> {
        Some(())
    }
}

macro_rules! numbers {
    ($($number:ty: $one:literal;)*) => {$(
        impl FileWeight for $number {
            fn read(word: Option<&str>) -> Option<$number> {
                word.map_or(Some($one), |word| word.parse().ok())
            }
        }
    )*};
}
numbers! {
    u8: 1; u16: 1; u32: 1; u64: 1; i8: 1; i16: 1; i32: 1; i64: 1; f32: 1.0; f64: 1.0;
}

/// The arcs of a file.
#[derive(Debug)]
pub(super) struct List<W> {
    pub vertices: u32,
    pub arcs: Vec<(u32, u32, W)>,
}

/// Reads a file.
pub(super) fn read<W: FileWeight>(path: &Path) -> Result<List<W>, GraphFileError> {
    let wrong = |line, cause| GraphFileError {
        file: path.to_owned(),
        line,
        cause,
    };
    let file = File::open(path).map_err(|error| wrong(0, error.to_string()))?;
    let mut lines = Lines {
        file: BufReader::new(file),
        number: 0,
        text: String::new(),
    };
    parse(&mut lines).map_err(|cause| wrong(lines.number, cause))
}

/// The lines of a file.
struct Lines<R> {
    file: R,
    /// Of the line that was read last.
    number: u64,
    text: String,
}

impl<R: BufRead> Lines<R> {
    /// The next line that is neither empty nor a comment.
    fn next(&mut self, is_comment: fn(&str) -> bool) -> Result<Option<&str>, String> {
        loop {
            self.text.clear();
            self.number += 1;
            let mut line = self.file.by_ref().take(LONGEST_LINE);
            let read = line.read_line(&mut self.text);
            let read = read.map_err(|error| error.to_string())?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == LONGEST_LINE && !self.text.ends_with('\n') {
                return Err(format!("a line of {LONGEST_LINE} bytes or more"));
            }
            let text = self.text.trim();
            if !text.is_empty() && !is_comment(text) {
                break;
            }
        }
        Ok(Some(self.text.trim()))
    }
}

/// How the lines of arcs look.
struct Form {
    /// The word before each arc.
    letter: Option<&'static str>,
    is_comment: fn(&str) -> bool,
    /// Each line stands for the arc back too.
    both_ways: bool,
    /// Whether a line has a weight: it must, or must not, or may.
    weighted: Option<bool>,
    vertices: u32,
    /// How many lines there are to be.
    lines: u64,
}

fn parse<W: FileWeight, R: BufRead>(lines: &mut Lines<R>) -> Result<List<W>, String> {
    let is_comment = |line: &str| line == "c" || line.starts_with("c ");
    let first = lines.next(is_comment)?.ok_or("the file is empty")?;
    let form = match first.to_ascii_lowercase() {
        matrix if matrix.starts_with("%%matrixmarket") => {
            let (both_ways, weighted) = banner(&matrix)?;
            let is_comment = |line: &str| line.starts_with('%');
            let size = lines.next(is_comment)?;
            let size = size.ok_or("the file ends before the size of its matrix")?;
            let [rows, columns, entries] = numbers(size)
                .ok_or_else(|| format!("\"{size}\" where rows, columns and entries are due"))?;
            if rows != columns {
                return Err(format!(
                    "a matrix of {rows} rows and {columns} columns: that of a graph is square"
                ));
            }
            Form {
                letter: None,
                is_comment,
                both_ways,
                weighted: Some(weighted),
                vertices: vertices(rows)?,
                lines: entries,
            }
        }
        problem => {
            let unknown =
                || format!("\"{first}\" where \"%%MatrixMarket\", \"p sp\" or \"p edge\" is due");
            let is_edges = match problem.split_whitespace().take(2).collect::<Vec<_>>()[..] {
                ["p", "sp"] => false,
                ["p", "edge" | "col"] => true,
                _ => return Err(unknown()),
            };
            let size = problem.splitn(3, char::is_whitespace).nth(2);
            let [count, arcs] = size
                .and_then(numbers)
                .ok_or_else(|| format!("\"{first}\" without numbers of vertices and lines"))?;
            Form {
                letter: Some(if is_edges { "e" } else { "a" }),
                is_comment,
                both_ways: is_edges,
                weighted: (!is_edges).then_some(true),
                vertices: vertices(count)?,
                lines: arcs,
            }
        }
    };
    arcs(lines, &form)
}

/// Whether the matrix is symmetric, and whether it has values.
fn banner(line: &str) -> Result<(bool, bool), String> {
    let mut words = line.split_whitespace().skip(1);
    let mut is = |known: &[&str]| {
        let word = words.next().unwrap_or_default();
        let found = known.iter().position(|it| *it == word);
        found.ok_or_else(|| format!("\"{word}\" where one of {known:?} is due"))
    };
    is(&["matrix"])?;
    is(&["coordinate"])?;
    let has_values = is(&["real", "integer", "pattern"])? != 2;
    Ok((is(&["general", "symmetric"])? == 1, has_values))
}

/// A line of just so many numbers.
fn numbers<const N: usize>(line: &str) -> Option<[u64; N]> {
    let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}

fn vertices(count: u64) -> Result<u32, String> {
    u32::try_from(count).map_err(|_| format!("{count} vertices, and the most is {}", u32::MAX))
}

/// The arcs, which come to the end of the file.
fn arcs<W: FileWeight, R: BufRead>(lines: &mut Lines<R>, form: &Form) -> Result<List<W>, String> {
    let mut arcs = Vec::new();
    let mut found = 0;
    while let Some(line) = lines.next(form.is_comment)? {
        if found == form.lines {
            return Err(format!(
                "\"{line}\" behind all lines of arcs, of which there are {found}"
            ));
        }
        found += 1;
        let (from, to, weight) = arc(line, form).ok_or_else(|| {
            format!(
                "\"{line}\" is no arc; {}",
                Numbers(1..u64::from(form.vertices) + 1)
            )
        })?;
        let weight = W::read(weight).ok_or_else(|| {
            let (word, of) = (weight.unwrap_or_default(), std::any::type_name::<W>());
            format!("the weight \"{word}\" is no {of}")
        })?;
        arcs.push((from, to, weight));
        if form.both_ways && from != to {
            arcs.push((to, from, weight));
        }
    }
    match found == form.lines {
        true => Ok(List {
            vertices: form.vertices,
            arcs,
        }),
        false => Err(format!(
            "the file ends early: it has {}, and begins with {}",
            Counted(found, "line of arcs", "lines of arcs"),
            form.lines
        )),
    }
}

/// The vertices, from 0 on, and the weight.
fn arc<'a>(line: &'a str, form: &Form) -> Option<(u32, u32, Option<&'a str>)> {
    let mut words = line.split_whitespace();
    if let Some(letter) = form.letter
        && words.next() != Some(letter)
    {
        return None;
    }
    let mut vertex = || {
        let number: u32 = words.next()?.parse().ok()?;
        let is_there = (1..=form.vertices).contains(&number);
        is_there.then(|| number - 1)
    };
    let (from, to) = (vertex()?, vertex()?);
    let (weight, rest) = (words.next(), words.next());
    let is_right = form.weighted.is_none_or(|it| it == weight.is_some());
    (is_right && rest.is_none()).then_some((from, to, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text<W: FileWeight>(text: &str) -> Result<List<W>, (u64, String)> {
        let mut lines = Lines {
            file: text.as_bytes(),
            number: 0,
            text: String::new(),
        };
        parse(&mut lines).map_err(|cause| (lines.number, cause))
    }

    #[test]
    fn each_form_gives_its_arcs() {
        let list = read_text::<u32>("c a comment\n\np sp 3 2\nc\na 1 2 7\na 3 1 9\n").unwrap();
        assert_eq!((list.vertices, list.arcs), (3, vec![(0, 1, 7), (2, 0, 9)]));
        for kind in ["edge", "col"] {
            let text = format!("p {kind} 4 2\ne 1 4\ne 2 2");
            let list = read_text::<()>(&text).unwrap();
            let arcs = vec![(0, 3, ()), (3, 0, ()), (1, 1, ())];
            assert_eq!((list.vertices, list.arcs), (4, arcs));
        }
        let real = "%%MatrixMarket matrix coordinate real general\n% so\n2 2 1\n2 1 0.5\n";
        assert_eq!(read_text::<f64>(real).unwrap().arcs, [(1, 0, 0.5)]);
        let pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n1 1\n";
        let list = read_text::<u8>(pattern).unwrap();
        assert_eq!(list.arcs, [(1, 0, 1), (0, 1, 1), (0, 0, 1)]);
        let none = read_text::<()>("p sp 0 0\n").unwrap();
        assert_eq!((none.vertices, none.arcs.len()), (0, 0));
    }

    #[test]
    fn what_is_no_graph_is_told_with_its_line() {
        let all = [
            ("", 1, "the file is empty"),
            ("c only\n", 2, "the file is empty"),
            ("1 2\n", 1, "\"1 2\" where \"%%MatrixMarket\""),
            ("p max 2 1\n", 1, "where"),
            ("p sp 2\n", 1, "without numbers"),
            (
                "p sp 4294967296 0\n",
                1,
                "4294967296 vertices, and the most",
            ),
            (
                "p sp 2 2\na 1 2 3\n",
                3,
                "ends early: it has 1 line of arcs, and begins with 2",
            ),
            (
                "p sp 2 1\na 1 2 3\na 2 1 3\n",
                3,
                "behind all lines of arcs, of which there are 1",
            ),
            (
                "p sp 2 1\na 1 3 3\n",
                2,
                "\"a 1 3 3\" is no arc; the vertices are 1 to 2",
            ),
            ("p sp 2 1\na 0 1 3\n", 2, "is no arc"),
            ("p sp 2 1\na 1 2\n", 2, "is no arc"),
            ("p sp 2 1\na 1 2 3 4\n", 2, "is no arc"),
            ("p sp 2 1\ne 1 2 3\n", 2, "is no arc"),
            ("p sp 2 1\na 1 2 x\n", 2, "the weight \"x\" is no u32"),
            ("p sp 2 1\na 1 2 -1\n", 2, "the weight \"-1\" is no u32"),
            (
                "%%MatrixMarket matrix array real general\n",
                1,
                "\"array\" where",
            ),
            (
                "%%MatrixMarket matrix coordinate complex general\n",
                1,
                "\"complex\" where",
            ),
            (
                "%%MatrixMarket matrix coordinate real\n",
                1,
                "\"\" where one of",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n",
                2,
                "before the size",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n2 3 1\n",
                2,
                "square",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n2 2\n",
                2,
                "are due",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n",
                3,
                "is no arc",
            ),
            (
                "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 3\n",
                3,
                "is no arc",
            ),
        ];
        for (text, line, words) in all {
            let (at, cause) = read_text::<u32>(text).unwrap_err();
            assert!(cause.contains(words), "{text:?}: {cause}");
            assert_eq!(at, line, "{text:?}: {cause}");
        }
        let long = "c ".to_owned() + &"x".repeat(1 << 17);
        assert!(
            read_text::<()>(&long)
                .unwrap_err()
                .1
                .contains("65536 bytes")
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_its_name() {
        let error = read::<()>(Path::new("/no/such/graph")).unwrap_err();
        let words = error.to_string();
        assert!(words.starts_with("reading a graph from /no/such/graph, line 0: No such"));
    }
}
