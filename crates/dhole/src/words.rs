//! Numbers, times and names as people read them.

use std::fmt::{self, Display};
use std::time::Duration;

use dhole_model::CallSite;
pub(crate) use dhole_model::{Counted, Grouped as Count};

/// Nanoseconds as a time.
pub(crate) fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// A type's name without modules, also of the types in it: `Pair<u8, Node>` for
/// `a::Pair<u8, b::Node>`.
pub(crate) fn short(name: &str) -> String {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = name.split_inclusive(|c| !is_path(c));
    words
        .map(|word| word.rsplit("::").next().unwrap_or(word))
        .collect()
}

/// A time with three digits: `3.72 s`, `7.10 ms`, `158 us`.
pub(crate) struct Took(pub Duration);

impl Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos() as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
        // What is rounded to 1000 of a unit is 1 of the next.
        let unit = units.into_iter().find(|(of, _)| ns >= 0.9995 * of);
        let (of, unit) = unit.unwrap_or((1.0, "ns"));
        let value = ns / of;
        let decimals = match value {
            _ if of == 1.0 || value >= 99.95 => 0,
            _ if value >= 9.995 => 1,
            _ => 2,
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// Bytes with two digits or more: `812 B`, `24 kB`, `0.2 MB`, `26 MB`.
pub(crate) struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mega = self.0 as f64 / 1e6;
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..95_000 => write!(f, "{:.0} kB", self.0 as f64 / 1e3),
            _ if mega < 9.95 => write!(f, "{mega:.1} MB"),
            _ => write!(f, "{} MB", Count(mega.round() as u64)),
        }
    }
}

/// A line of the program by its file's name, with its folder where many files have the name.
pub(crate) struct Place<'a>(pub &'a CallSite);

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallSite { file, line, .. } = *self.0;
        if line == 0 {
            return f.write_str(file);
        }
        let is_common = ["/mod.rs", "/lib.rs", "/main.rs"]
            .iter()
            .any(|it| file.ends_with(it));
        let mut parts = file.rsplitn(if is_common { 3 } else { 2 }, ['/', '\\']);
        let (name, folder) = (parts.next().unwrap_or(file), parts.next());
        match folder.filter(|_| is_common) {
            Some(folder) => write!(f, "{folder}/{name}:{line}"),
            None => write!(f, "{name}:{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_types_are_written_as_people_read_them() {
        let counts = [0, 999, 1000, 178_764, 1_000_000].map(|n| Count(n).to_string());
        assert_eq!(counts, ["0", "999", "1,000", "178,764", "1,000,000"]);
        assert_eq!(short("kdtree::Referring"), "Referring");
        assert_eq!(short("a::Pair<u8, b::c::Node>"), "Pair<u8, Node>");
        assert_eq!(short("[core::option::Option<x::Y>; 2]"), "[Option<Y>; 2]");
        assert_eq!(short("f64"), "f64");
    }

    #[test]
    fn times_and_bytes_have_the_digits_that_count() {
        let times = [
            (3_721_000_000, "3.72 s"),
            (999_700_000, "1.00 s"),
            (158_200_000, "158 ms"),
            (7_100_000, "7.10 ms"),
            (12_340, "12.3 us"),
            (99_960, "100 us"),
            (42, "42 ns"),
            (0, "0 ns"),
        ];
        for (time, shown) in times {
            assert_eq!(Took(ns(time)).to_string(), shown);
        }
        let bytes = [
            (812, "812 B"),
            (24_000, "24 kB"),
            (200_000, "0.2 MB"),
            (26_000_000, "26 MB"),
            (1_234_567_890, "1,235 MB"),
        ];
        for (bytes, shown) in bytes {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
    }

    #[test]
    fn a_place_is_as_short_as_it_can_be() {
        let shown = |file, line| {
            let site = CallSite {
                file,
                line,
                column: 1,
            };
            Place(&site).to_string()
        };
        assert_eq!(shown("apps/barnes/src/shared/run.rs", 92), "run.rs:92");
        assert_eq!(shown("apps/src/sor/mod.rs", 7), "sor/mod.rs:7");
        assert_eq!(shown("main.rs", 7), "main.rs:7");
        assert_eq!(shown("src/main.rs", 7), "src/main.rs:7");
        assert_eq!(shown("the end of the run", 0), "the end of the run");
    }
}
