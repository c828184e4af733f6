use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::process;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The environment variable with the path of the file for the child's report.
pub const ENVIRONMENT_VARIABLE: &str = "DHOLE_HELLO";

/// The most bytes of a report.
const MOST_BYTES: u64 = 1 << 16;

/// A fresh file in which a child writes `run` when it calls `dhole::run`. So the command notices a
/// program that never calls it. The file has no name in any folder: it is gone however this command
/// ends.
pub struct Hello(File);

impl Hello {
    /// Makes the file, which is gone with this process.
    pub fn new() -> io::Result<Hello> {
        let limit = getrlimit(Resource::Fsize).current;
        if limit.is_some_and(|most| most < MOST_BYTES) {
            // A child that says more is ended (SIGXFSZ).
            return Err(Errno::FBIG.into());
        }
        Ok(Hello(
            memfd_create("dhole-hello", MemfdFlags::CLOEXEC)?.into(),
        ))
    }

    /// The path by which other processes of this user open the file while this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// Reads the child's report.
    pub fn heard(mut self) -> io::Result<Heard> {
        let mut said = String::new();
        self.0.rewind()?;
        self.0.take(MOST_BYTES).read_to_string(&mut said)?;
        let run = said.lines().any(|line| line.trim() == "run");
        let computed = said
            .lines()
            .filter_map(|line| line.strip_prefix("computed_ns="));
        let computed_ns = computed.filter_map(|ns| ns.parse::<u64>().ok()).sum();
        Ok(Heard { run, computed_ns })
    }
}

/// The report of a child.
pub struct Heard {
    /// Whether it has called `dhole::run`.
    pub run: bool,
    /// The computation of its nodes, in all runs that reached their end.
    pub computed_ns: u64,
}
