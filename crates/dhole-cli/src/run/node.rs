//! `dhole node`: turns a process into the program of a node.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::error::RunError;
use crate::arguments::Node;

/// Becomes the program. The kernel kills it when the process that started this one ends, for any
/// reason. Returns only if it fails.
pub fn become_node(wanted: &Node) -> RunError {
    if let Err(errno) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return RunError::System {
            doing: "asking to be ended with `dhole run`",
            cause: errno.into(),
        };
    }
    // It may have ended before the kernel was asked.
    if getppid() != Pid::from_raw(wanted.parent) {
        return RunError::Orphan;
    }
    let (program, arguments) = wanted
        .program
        .split_first()
        .expect("clap requires a program");
    let cause = Command::new(program).args(arguments).exec();
    let program = program.to_string_lossy().into_owned();
    match cause.kind() {
        ErrorKind::NotFound if !Path::new(&program).exists() => RunError::NoSuchProgram { program },
        _ => RunError::NotExecutable { program, cause },
    }
}
