//! Reads the programs' input files line by line, and reports errors in them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

/// A file that cannot be used.
#[derive(Error, Clone, PartialEq, Eq, Debug)]
pub enum BadFile {
    /// The system does not give it.
    #[error("reading {path}: {cause}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's own words.
        cause: String,
    },
    /// The system does not let it be written.
    #[error("writing {path}: {cause}")]
    Unwritable {
        /// The file.
        path: String,
        /// The system's own words.
        cause: String,
    },
    /// A line of it is not what it should be.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// As a whole it is not what it should be.
    #[error("{path}: {what}")]
    Whole {
        /// The file.
        path: String,
        /// The error.
        what: String,
    },
}

/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 1 << 20;

/// A file, as its lines.
#[derive(Clone, Debug)]
pub struct Lines {
    path: String,
    lines: Vec<String>,
}

impl Lines {
    /// Reads a file of at most `most_bytes`.
    ///
    /// # Errors
    /// [`BadFile`] when it cannot be read, is larger, or is no text.
    pub fn read(path: &Path, most_bytes: u64) -> Result<Lines, BadFile> {
        let name = path.display().to_string();
        let unreadable = |cause: std::io::Error| BadFile::Unreadable {
            path: name.clone(),
            cause: cause.to_string(),
        };
        let file = File::open(path).map_err(unreadable)?;
        let mut reader = BufReader::new(file.take(most_bytes + 1));
        let (mut lines, mut bytes, mut line) = (Vec::new(), 0, Vec::new());
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(unreadable)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            let number = lines.len() + 1;
            let whole = |what| BadFile::Whole {
                path: name.clone(),
                what,
            };
            if bytes > most_bytes {
                return Err(whole(format!("it is larger than {most_bytes} bytes")));
            }
            if read > LONGEST_LINE {
                return Err(BadFile::Line {
                    path: name,
                    line: number,
                    what: format!("it is longer than {LONGEST_LINE} bytes"),
                });
            }
            if number == 1 && (line.starts_with(b"\xFF\xFE") || line.starts_with(b"\xFE\xFF")) {
                return Err(whole("it is UTF-16: write it as UTF-8".to_owned()));
            }
            let text = decoded(&line).ok_or_else(|| BadFile::Line {
                path: name.clone(),
                line: number,
                what: "it is no text".to_owned(),
            })?;
            lines.push(text);
        }
        without_mark(&mut lines);
        Ok(Lines { path: name, lines })
    }

    /// Lines of a text, as tests have them.
    pub fn of(path: &str, text: &str) -> Lines {
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        let mut lines: Vec<String> = lines.collect();
        without_mark(&mut lines);
        Lines {
            path: path.to_owned(),
            lines,
        }
    }

    /// The name of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The lines with their numbers, counted from 1.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter().enumerate();
        lines.map(|(index, line)| (index + 1, line.as_str()))
    }

    /// An error in a line.
    pub fn wrong(&self, line: usize, what: impl Into<String>) -> BadFile {
        BadFile::Line {
            path: self.path.clone(),
            line,
            what: what.into(),
        }
    }

    /// An error in the file as a whole.
    pub fn wrong_as_a_whole(&self, what: impl Into<String>) -> BadFile {
        BadFile::Whole {
            path: self.path.clone(),
            what: what.into(),
        }
    }

    /// A word of a line as a number or the like.
    ///
    /// # Errors
    /// [`BadFile::Line`] when the word is missing or is none.
    pub fn parse<T: FromStr>(
        &self,
        line: usize,
        what: &str,
        word: Option<&str>,
    ) -> Result<T, BadFile> {
        let word = word.ok_or_else(|| self.wrong(line, format!("{what} is missing")))?;
        let parsed = word.parse();
        parsed.map_err(|_| self.wrong(line, format!("{what} cannot be {word:?}")))
    }
}

/// A line as text: UTF-8, or else Latin-1, in which old files have their authors' names.
fn decoded(line: &[u8]) -> Option<String> {
    let text = match str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => line.iter().copied().map(char::from).collect(),
    };
    let is_text = |c: char| !c.is_control() || c.is_whitespace();
    text.chars()
        .all(is_text)
        .then(|| text.trim_end().to_owned())
}

/// Removes the byte order mark from the first line.
fn without_mark(lines: &mut [String]) {
    if let Some(first) = lines.first_mut()
        && let Some(rest) = first.strip_prefix('\u{feff}')
    {
        *first = rest.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let wrong = Lines::read(Path::new("/nowhere/at.all"), 100).unwrap_err();
        assert!(wrong.to_string().starts_with("reading /nowhere/at.all: "));
    }

    fn read(bytes: &[u8]) -> Result<Vec<String>, BadFile> {
        let name = format!("dhole-input-{:?}", std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let lines = Lines::read(&path, 1 << 21);
        std::fs::remove_file(&path).unwrap();
        lines.map(|lines| lines.lines)
    }

    #[test]
    fn marks_and_latin_1_are_read_and_what_is_no_text_is_refused_with_its_reason() {
        assert_eq!(read(b"\xEF\xBB\xBFNAME: a\r\n").unwrap(), ["NAME: a"]);
        assert_eq!(read(b"Gr\xF6tschel\n").unwrap(), ["Gr\u{f6}tschel"]);
        assert_eq!(
            read("Gr\u{f6}tschel".as_bytes()).unwrap(),
            ["Gr\u{f6}tschel"]
        );
        let refused = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(refused(b"a\n\x00\x01\xFF\n").ends_with(":2: it is no text"));
        assert!(refused(b"\xFF\xFEN\x00").ends_with("it is UTF-16: write it as UTF-8"));
        let long = refused(&vec![b'1'; LONGEST_LINE + 1]);
        assert!(
            long.ends_with(":1: it is longer than 1048576 bytes"),
            "{long}"
        );
        let large = refused("1\n".repeat(1 << 20).repeat(2).as_bytes());
        assert!(
            large.ends_with("it is larger than 2097152 bytes"),
            "{large}"
        );
    }

    #[test]
    fn a_word_that_is_no_number_is_named_with_its_line() {
        let lines = Lines::of("a.txt", "1\nx");
        let (line, text) = lines.iter().nth(1).unwrap();
        let wrong = lines.parse::<u32>(line, "the weight", Some(text));
        let text = wrong.unwrap_err().to_string();
        assert_eq!(text, "a.txt:2: the weight cannot be \"x\"");
    }
}
