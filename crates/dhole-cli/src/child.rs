use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use dhole_space::runtime_thread;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::error::SimError;

/// Starts `command`, which runs `program` as the user named it. From here on signals that would end
/// this command end the child instead, which ends this command too. If the system has no room for
/// that, they end this command alone.
pub fn spawn(command: &mut Command, program: &str) -> Result<(Child, Passing), SimError> {
    // Before there is a child that would be left behind; what comes meanwhile is kept for it.
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).ok();
    let child = command.spawn().map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound if !Path::new(program).exists() => SimError::NoSuchProgram {
            program: program.into(),
        },
        io::ErrorKind::PermissionDenied if Path::new(program).is_dir() => SimError::NotExecutable {
            program: program.into(),
            cause: io::ErrorKind::IsADirectory.into(),
        },
        _ => SimError::NotExecutable {
            program: program.into(),
            cause,
        },
    })?;
    let passing = Passing(signals.and_then(|signals| pass(signals, Pid::from_child(&child))));
    Ok((child, passing))
}

/// While this value lives, signals that would end this command end a child instead, which ends this
/// command too.
pub struct Passing(Option<Handle>);

/// `None` where the system refuses a thread for it.
fn pass(mut signals: Signals, to: Pid) -> Option<Handle> {
    let handle = signals.handle();
    let pass = move || {
        for number in &mut signals {
            let signal = match number {
                SIGINT => Signal::INT,
                SIGHUP => Signal::HUP,
                _ => Signal::TERM,
            };
            // It may have ended by itself.
            let _ = kill_process(to, signal);
        }
    };
    runtime_thread::spawn("dhole-signals", pass).ok()?;
    Some(handle)
}

impl Drop for Passing {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}

/// The end of a child, as a shell reports it.
pub struct End {
    /// Its exit code, or 128 plus the signal that ended it.
    pub code: u8,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
}

impl End {
    /// Whether it ended with exit code 0.
    pub fn is_success(&self) -> bool {
        self.code == 0
    }
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> End {
        let signal = status.signal();
        let code = match (status.code(), signal) {
            (Some(code), _) => code & 0xff,
            (None, Some(signal)) => (128 + signal) & 0xff,
            (None, None) => 255,
        };
        End {
            code: code as u8,
            signal,
        }
    }
}

/// The name of a signal, and its usual cause.
pub fn describe(signal: i32) -> String {
    const KNOWN: [(i32, &str); 8] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (9, "SIGKILL"),
        (
            11,
            "SIGSEGV; was a node's stack too small? --stack-kib makes it larger",
        ),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    match KNOWN.iter().find(|(number, _)| *number == signal) {
        Some((_, name)) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}
