use std::io::{self, Read, Seek};
use std::path::Path;

use tempfile::NamedTempFile;

/// The environment variable that tells a child where to say hello.
pub const ENVIRONMENT_VARIABLE: &str = "DHOLE_HELLO";

/// A fresh file in which a child says `run` when it calls `dhole::run`: a program that never
/// does would seem to have been simulated.
pub struct Hello(NamedTempFile);

impl Hello {
    /// A fresh file; it is removed with the value.
    pub fn new() -> io::Result<Hello> {
        NamedTempFile::with_prefix("dhole-hello-").map(Hello)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What the child has said.
    pub fn heard(mut self) -> io::Result<Heard> {
        const MOST_BYTES: u64 = 1 << 16;
        let mut said = String::new();
        self.0.rewind()?;
        self.0
            .as_file_mut()
            .take(MOST_BYTES)
            .read_to_string(&mut said)?;
        let run = said.lines().any(|line| line.trim() == "run");
        let computed = said
            .lines()
            .filter_map(|line| line.strip_prefix("computed_ns="));
        let computed_ns = computed.filter_map(|ns| ns.parse::<u64>().ok()).sum();
        Ok(Heard { run, computed_ns })
    }
}

/// What a child has said.
pub struct Heard {
    /// It has called `dhole::run`.
    pub run: bool,
    /// What its nodes have computed, in all runs that came to their end.
    pub computed_ns: u64,
}
