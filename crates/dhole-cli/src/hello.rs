use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::process;

use rustix::fs::{MemfdFlags, memfd_create};

/// The environment variable that tells a child where to say hello.
pub const ENVIRONMENT_VARIABLE: &str = "DHOLE_HELLO";

/// A fresh file in which a child says `run` when it calls `dhole::run`: a program that never
/// does would seem to have been simulated. It lies in no folder, so nothing is left of it however
/// this command ends.
pub struct Hello(File);

impl Hello {
    /// A fresh file; it is gone with this process.
    pub fn new() -> io::Result<Hello> {
        Ok(Hello(
            memfd_create("dhole-hello", MemfdFlags::CLOEXEC)?.into(),
        ))
    }

    /// Where other processes of this user find it as long as this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// What the child has said.
    pub fn heard(mut self) -> io::Result<Heard> {
        const MOST_BYTES: u64 = 1 << 16;
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

/// What a child has said.
pub struct Heard {
    /// It has called `dhole::run`.
    pub run: bool,
    /// What its nodes have computed, in all runs that came to their end.
    pub computed_ns: u64,
}
