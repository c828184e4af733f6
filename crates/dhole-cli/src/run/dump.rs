//! `dhole dump`: makes the nodes of a run report what they do, hold and wait for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::{env, fs};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::error::RunError;

/// Sends SIGQUIT to a `dhole run`, which passes it on to its nodes. They write to the standard
/// error of that run. Without a number, it is the only run of this user on this machine.
pub fn dump(wanted: Option<i32>) -> Result<(), RunError> {
    let runs = runs();
    let run = match (wanted, &runs[..]) {
        (Some(process), _) if !runs.contains(&process) => {
            return Err(RunError::NoRun { process });
        }
        (Some(process), _) => process,
        (None, [only]) => *only,
        (None, []) => return Err(RunError::NothingRuns),
        (None, _) => return Err(RunError::SeveralRun { runs }),
    };
    let failed = |errno: rustix::io::Errno| RunError::System {
        doing: "sending SIGQUIT",
        cause: errno.into(),
    };
    let run = Pid::from_raw(run).ok_or(RunError::NothingRuns)?;
    kill_process(run, Signal::QUIT).map_err(failed)
}

/// The processes of this user that are `dhole run`. SIGQUIT would end any other process.
fn runs() -> Vec<i32> {
    let own = env::current_exe().ok();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry.file_name().to_str().and_then(|n| n.parse().ok());
        let Some(process) = process else {
            continue;
        };
        let path = entry.path();
        let of_this_user = entry
            .metadata()
            .is_ok_and(|about| about.uid() == geteuid().as_raw());
        let same = fs::read_link(path.join("exe")).ok() == own;
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        let second = words.nth(1).map(|word| OsString::from_vec(word.to_vec()));
        if of_this_user && same && second.is_some_and(|word| word == "run") {
            found.push(process);
        }
    }
    found.sort_unstable();
    found
}
