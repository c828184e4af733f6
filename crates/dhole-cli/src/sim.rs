use std::process::{Command, ExitCode};

use crate::arguments::Sim;
use crate::child::{self, End};
use crate::error::SimError;
use crate::hello::{self, Hello};

/// Runs the program inside a simulated cluster; returns its own exit code.
///
/// # Errors
/// [`SimError`] when the program could not be run, or did not run as a cluster.
pub fn run(wanted: &Sim) -> Result<ExitCode, SimError> {
    let settings = wanted.settings();
    settings.check()?;
    let (path, arguments) = wanted
        .program
        .split_first()
        .expect("clap requires a program");
    let program = path.to_string_lossy().into_owned();
    let hello_failed = |cause| SimError::Hello {
        program: program.clone(),
        cause,
    };
    let hello = Hello::new().map_err(hello_failed)?;

    let mut command = Command::new(path);
    command
        .args(arguments)
        .env(dhole::sim::ENVIRONMENT_VARIABLE, settings.to_string())
        .env(hello::ENVIRONMENT_VARIABLE, hello.path());
    let status = child::spawn(&mut command, &program)?
        .wait()
        .map_err(|cause| SimError::Wait {
            program: program.clone(),
            cause,
        })?;

    let End { code, signal } = status.into();
    if let Some(signal) = signal {
        eprintln!(
            "dhole: `{program}` was ended by {}",
            child::describe(signal)
        );
    }
    match hello.was_said().map_err(hello_failed)? {
        true => Ok(ExitCode::from(code)),
        false if status.success() => Err(SimError::NotADholeProgram { program }),
        false => {
            eprintln!("dhole: `{program}` failed before it called dhole::run");
            Ok(ExitCode::from(code))
        }
    }
}
