use dhole_wire::{Pair, Tail, Wire, WireError, count};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::Mutex;

use crate::unpoisoned;

/// A line of the user's program: where it acquired, waited, allocated or read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct CallSite {
    /// The source file as the compiler names it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl CallSite {
    /// The caller of the function that calls this, where that function is `#[track_caller]`.
    #[track_caller]
    pub fn caller() -> CallSite {
        Location::caller().into()
    }

    /// A site for events that belong to no line of the user's program.
    pub const fn runtime(what: &'static str) -> CallSite {
        CallSite {
            file: what,
            line: 0,
            column: 0,
        }
    }
}

impl From<&'static Location<'static>> for CallSite {
    fn from(at: &'static Location<'static>) -> CallSite {
        CallSite {
            file: at.file(),
            line: at.line(),
            column: at.column(),
        }
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(self.file);
        }
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The most file names of other processes that are kept, and the bytes of the longest.
const MOST_NAMES: usize = 4096;
const LONGEST_NAME: usize = 512;

/// The name in place of one beyond these limits.
const UNNAMED: &str = "a file of another process";

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// A name that is kept for as long as the process lives.
fn intern(name: &str) -> &'static str {
    kept_words(name).unwrap_or(UNNAMED)
}

/// Keeps words for as long as the process lives, once however often they come. `None` if they have
/// more than 512 bytes, or 4,096 others are kept.
pub fn kept_words(words: &str) -> Option<&'static str> {
    if words.len() > LONGEST_NAME {
        return None;
    }
    let mut names = unpoisoned::lock(&NAMES);
    if let Some(known) = names.get(words) {
        return Some(known);
    }
    if names.len() >= MOST_NAMES {
        return None;
    }
    let kept: &'static str = Box::leak(words.into());
    names.insert(kept);
    Some(kept)
}

/// A site as another process sends it.
#[derive(Deserialize)]
struct Told {
    file: Name,
    line: u32,
    column: u32,
}

impl<'de> Deserialize<'de> for CallSite {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CallSite, D::Error> {
        Told::deserialize(from).map(|told| CallSite {
            file: told.file.0,
            line: told.line,
            column: told.column,
        })
    }
}

/// As a name, a line and a column: a name that cannot be kept becomes another.
impl Wire for CallSite {
    type Head = Pair<u32, Pair<u32, u32>>;

    #[inline]
    fn head(&self) -> Self::Head {
        Pair(count(self.file.len()), Pair(self.line, self.column))
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.file.len()
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.file.as_bytes());
    }

    fn read(
        Pair(bytes, Pair(line, column)): &Self::Head,
        tail: &mut Tail<'_>,
    ) -> Result<CallSite, WireError> {
        let name = std::str::from_utf8(tail.bytes(*bytes as usize)?);
        let name = name.map_err(|_| WireError::Value("a file's name that is no UTF-8"))?;
        Ok(CallSite {
            file: intern(name),
            line: *line,
            column: *column,
        })
    }
}

/// The name of a file.
struct Name(&'static str);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
        struct Interning;

        impl Visitor<'_> for Interning {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a source file")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                Ok(Name(intern(name)))
            }
        }

        from.deserialize_str(Interning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_no_more_than_so_many_are() {
        let (first, again) = (intern("some/file.rs"), intern("some/file.rs"));
        assert!(std::ptr::eq(first, again));
        assert_eq!(intern(&"x".repeat(LONGEST_NAME + 1)), UNNAMED);
        for i in 0..2 * MOST_NAMES {
            intern(&format!("file {i}"));
        }
        assert_eq!(intern("one too many"), UNNAMED);
        assert!(std::ptr::eq(intern("some/file.rs"), first));
    }
}
