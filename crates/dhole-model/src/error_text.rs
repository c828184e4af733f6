//! Writes errors for people: an error with its causes, in lines that fit a terminal.
//!
//! A `main` that returns an error prints the error's `Debug`. So the `Debug` of every error that a
//! `main` may return writes the same as its `Display`: see
//! [`debug_in_words`](crate::debug_in_words).

use std::error::Error;
use std::fmt::{self, Write as _};

/// Columns of a line if the width of the terminal is unknown.
const USUAL_COLUMNS: usize = 80;
/// The fewest columns of a line.
const FEWEST_COLUMNS: usize = 40;
/// The most columns of a line: a longer one is hard to read.
const MOST_COLUMNS: usize = 120;
/// The words that `main` prints before the first line.
const BEFORE: &str = "Error: ";
/// The beginning of every line that continues another.
const INDENT: &str = "    ";

/// Makes `{:?}` of these errors write what `{}` writes, with the causes, in lines that fit a
/// terminal ([`write_error`]).
///
/// ```
/// struct Full;
/// impl std::fmt::Display for Full {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         f.write_str("the disk is full")
///     }
/// }
/// impl std::error::Error for Full {}
/// dhole_model::debug_in_words!(Full);
/// assert_eq!(format!("{Full:?}"), "the disk is full");
/// ```
#[macro_export]
macro_rules! debug_in_words {
    ($($error:ty),+ $(,)?) => {$(
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $crate::write_error(self, f)
            }
        }
    )+};
}

/// Writes an error and its causes, in lines that fit a terminal of `COLUMNS` columns, or 80 if that
/// variable is not set.
///
/// # Errors
/// Those of `f`.
pub fn write_error(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write_wrapped(&with_causes(error), f)
}

/// The words of an error and of its causes, in one line. It leaves out a cause that the words
/// before it contain already.
pub fn with_causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !words.contains(&said) {
            let _infallible = write!(words, ": {said}");
        }
        next = cause.source();
    }
    words
}

/// Writes text in lines that fit a terminal, as [`write_error`] does.
///
/// # Errors
/// Those of `f`.
pub fn write_wrapped(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&wrapped(text, columns()))
}

/// Columns of the terminal.
fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.trim().parse().ok());
    let columns: usize = said.unwrap_or(USUAL_COLUMNS);
    columns.clamp(FEWEST_COLUMNS, MOST_COLUMNS)
}

/// Splits text into lines of at most `columns` columns, unless a word is longer. A part that ends
/// with a comma, a semicolon or a colon stays whole if it fits a line of its own. So each wait of a
/// deadlock has a line.
fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let taken = if number == 0 { BEFORE.len() } else { 0 };
        Line {
            begins: taken,
            taken,
            columns,
        }
        .wrap(line, &mut out);
    }
    out
}

/// The line to which words are appended.
struct Line {
    /// Columns taken at its beginning.
    begins: usize,
    /// Columns taken so far.
    taken: usize,
    /// The columns of a line.
    columns: usize,
}

impl Line {
    /// Appends a line of the text, as several lines if it is too long.
    fn wrap(mut self, line: &str, out: &mut String) {
        for part in parts(line) {
            if self.fits(part) {
                self.put(part, out);
            } else if self.taken > self.begins && INDENT.len() + width(part) <= self.columns {
                self.next(out);
                self.put(part, out);
            } else {
                for word in part.split_inclusive(' ') {
                    if !self.fits(word) && self.taken > self.begins {
                        self.next(out);
                    }
                    self.put(word, out);
                }
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
    }

    fn fits(&self, text: &str) -> bool {
        self.taken + width(text) <= self.columns
    }

    fn put(&mut self, text: &str, out: &mut String) {
        out.push_str(text);
        self.taken += text.chars().count();
    }

    fn next(&mut self, out: &mut String) {
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        out.push_str(INDENT);
        (self.begins, self.taken) = (INDENT.len(), INDENT.len());
    }
}

/// Columns of a text at the end of a line.
fn width(text: &str) -> usize {
    text.trim_end().chars().count()
}

/// Splits a line into parts that end with a comma, a semicolon or a colon and the space behind it.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let mut spaces = rest.match_indices(' ').map(|(at, _)| at);
        let end = spaces.find(|&at| rest[..at].ends_with([',', ';', ':']));
        let (part, behind) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_of_a_deadlock_has_a_line() {
        let said = "node 0 failed: node 0 is in a deadlock: node 0 waits for lock 1 at \
                    src/main.rs:12:20, node 1 waits for lock 2 at src/main.rs:15:20";
        let lines = "node 0 failed: node 0 is in a deadlock:\n    \
                     node 0 waits for lock 1 at src/main.rs:12:20,\n    \
                     node 1 waits for lock 2 at src/main.rs:15:20";
        assert_eq!(wrapped(said, 80), lines);
        assert_eq!(wrapped(said, 500), said);
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_unless_a_word_is() {
        let words = "what was being done to which object of the run and where it was done";
        let said = format!("{words}, {words}: {}", "x".repeat(50));
        for columns in FEWEST_COLUMNS..MOST_COLUMNS {
            let text = wrapped(&said, columns);
            let lines = text.lines().enumerate();
            for (number, line) in lines.filter(|(_, line)| line.trim().contains(' ')) {
                let before = if number == 0 { BEFORE.len() } else { 0 };
                assert!(before + line.len() <= columns, "{columns}: {line:?}");
                assert_eq!(line.trim_end(), line);
            }
            let joined: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(joined.join(" "), said, "no word is lost");
        }
    }

    #[test]
    fn lines_of_the_text_stay_lines() {
        let said = "node 1 panicked: assertion failed\n  left: 1\n right: 2\n";
        assert_eq!(wrapped(said, 80), said.trim_end());
        assert_eq!(wrapped("", 80), "");
    }

    #[derive(Clone)]
    struct Chain(&'static str, Option<Box<Chain>>);

    impl fmt::Display for Chain {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Chain {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    crate::debug_in_words!(Chain);

    #[test]
    fn causes_follow_once_each() {
        let last = Chain("no such file", None);
        let middle = Chain("opening x: no such file", Some(Box::new(last)));
        let first = Chain("reading the settings", Some(Box::new(middle)));
        let said = "reading the settings: opening x: no such file";
        assert_eq!(with_causes(&first), said);
        assert_eq!(format!("{first:?}"), said);
    }
}
