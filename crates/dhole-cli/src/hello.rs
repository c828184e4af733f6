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

    /// Whether the child has called `dhole::run`.
    pub fn was_said(mut self) -> io::Result<bool> {
        const WORD: &[u8] = b"run";
        let mut said = Vec::new();
        self.0.rewind()?;
        self.0.as_file_mut().take(64).read_to_end(&mut said)?;
        Ok(said.trim_ascii() == WORD)
    }
}
