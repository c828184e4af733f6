use std::process::{Command, ExitCode, Stdio};

use dhole::Defaults;
use dhole::sim::{Description, Settings};

use crate::arguments::Sim;
use crate::calibrate;
use crate::child::{self, End};
use crate::error::SimError;
use crate::hello::{self, Heard, Hello};
use crate::say;

/// Runs the program in a simulated cluster and returns its own exit code, or measures the network.
///
/// # Errors
/// [`SimError`] if there is no such network, or the program could not run or did not run as a
/// cluster.
pub fn run(wanted: &Sim) -> Result<ExitCode, SimError> {
    Defaults::check_env()?;
    let described = Description::find(&wanted.network)?;
    let mut settings = wanted.settings(described.clone());
    settings.check()?;
    if wanted.calibrate {
        return calibrate::run(&described, &settings, wanted.json);
    }
    if let Some(seconds) = wanted.sequential_seconds {
        let alone_ns = computed_alone(wanted, &settings)?;
        settings.compute_scale = seconds * 1e9 / alone_ns as f64;
        settings.alone_ns = Some((seconds * 1e9) as u64);
        settings.check()?;
    }
    let (heard, ended) = child(wanted, &settings, false)?;
    match heard.run {
        true => Ok(ExitCode::from(ended.code)),
        false if ended.is_success() => Err(SimError::NotADholeProgram {
            program: program(wanted),
        }),
        false => {
            let program = program(wanted);
            say::complain(format_args!(
                "`{program}` failed before it called dhole::run"
            ));
            Ok(ExitCode::from(ended.code))
        }
    }
}

/// Nanoseconds of the program's computation on one node, measured on this host.
fn computed_alone(wanted: &Sim, settings: &Settings) -> Result<u64, SimError> {
    let mut alone = Settings {
        nodes: 1,
        crashes: Vec::new(),
        compute_scale: 1.0,
        ..settings.clone()
    };
    // One machine of the network need not have memory for the whole problem.
    alone.network.memory_bytes = 0;
    let (heard, ended) = child(wanted, &alone, true)?;
    match heard.computed_ns {
        ns if ns > 0 && ended.is_success() => Ok(ns),
        _ => Err(SimError::NothingComputed {
            program: program(wanted),
        }),
    }
}

/// The program as the user named it.
fn program(wanted: &Sim) -> String {
    let path = wanted.program.first().expect("clap requires a program");
    path.to_string_lossy().into_owned()
}

/// Runs the program as a child with these settings. Returns its report and its end. A child that
/// runs alone, to measure its computation, shows nothing.
fn child(wanted: &Sim, settings: &Settings, is_alone: bool) -> Result<(Heard, End), SimError> {
    let program = program(wanted);
    let hello_failed = |cause| SimError::Hello {
        program: program.clone(),
        cause,
    };
    let hello = Hello::new().map_err(hello_failed)?;
    let stdout = match is_alone {
        true => Stdio::null(),
        false => Stdio::inherit(),
    };
    let mut command = Command::new(&wanted.program[0]);
    command
        .args(&wanted.program[1..])
        .stdout(stdout)
        .env(dhole::sim::ENVIRONMENT_VARIABLE, settings.to_string())
        .env(hello::ENVIRONMENT_VARIABLE, hello.path())
        .envs(wanted.settings.variables());
    if is_alone {
        command.env_remove(dhole::Defaults::REPORT);
        command.env_remove(dhole::Defaults::TRACE);
    }
    let (mut child, passing) = child::spawn(&mut command, &program)?;
    let status = child.wait();
    drop(passing);
    let status = status.map_err(|cause| SimError::Wait {
        program: program.clone(),
        cause,
    })?;
    let end = End::from(status);
    if let Some(signal) = end.signal {
        let signal = child::describe(signal);
        say::complain(format_args!("`{program}` was ended by {signal}"));
    }
    Ok((hello.heard().map_err(hello_failed)?, end))
}
