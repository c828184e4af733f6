//! What raw memory costs on this machine, measured by this program itself.

use std::process::{Command, ExitCode, Stdio};

use dhole_cli::say;
use serde_json::{Map, Value, json};

use crate::error::PaperError;
use crate::raw_memory::{self, VIEWS};

/// The words with which this program measures operations between the nodes of a run.
const TODAY: &str = "dhole paper multiview --today";

fn failed(command: &str, why: impl ToString) -> PaperError {
    let (command, why) = (command.to_owned(), why.to_string());
    PaperError::Cell { command, why }
}

/// Measures operations between two nodes, by what carries their messages, and the overhead of
/// views.
///
/// # Errors
/// [`PaperError`] if a run fails.
pub fn measure(small: bool) -> Result<Value, PaperError> {
    let here = |cause: dhole::RunError| failed("dhole paper multiview", cause);
    let mut operations = Map::new();
    if let Some(found) = raw_memory::operations().map_err(here)? {
        operations.insert("threads".to_owned(), json!(found));
    }
    let own = std::env::current_exe().map_err(PaperError::Print)?;
    for transport in ["shm", "tcp"] {
        let run = ["run", "-n", "2", "--domains", "node", "--managers", "one"];
        let words = [&run[..], &["--transport", transport, "--"]].concat();
        let shown = format!("dhole {} {TODAY}", words.join(" "));
        let output = Command::new(own.with_file_name("dhole"))
            .args(&words)
            .arg(&own)
            .args(["multiview", "--today"])
            .stdin(Stdio::null())
            .output()
            .map_err(|cause| failed(&shown, cause))?;
        let found = serde_json::from_slice(&output.stdout).map_err(|cause| {
            let said = String::from_utf8_lossy(&output.stderr);
            failed(&shown, format!("{cause}: {said}"))
        })?;
        operations.insert(transport.to_owned(), found);
    }
    let sizes: &[usize] = match small {
        true => &[512 << 10, 2 << 20],
        false => &[512 << 10, 2 << 20, 8 << 20, 16 << 20],
    };
    let mut overheads = Vec::new();
    for bytes in sizes {
        let found = raw_memory::overhead(*bytes).map_err(here)?;
        for (through, ratios) in ["pointers", "`cells()`"].into_iter().zip(&found.ratios) {
            let ratios = VIEWS.iter().map(usize::to_string).zip(ratios);
            let ratios = ratios.map(|(views, ratio)| (views, json!(ratio)));
            overheads.push(json!({
                "bytes": found.bytes,
                "kilobytes": found.bytes >> 10,
                "through": through,
                "ratios": ratios.collect::<Map<_, _>>(),
                "page_tables": found.page_tables,
            }));
        }
    }
    Ok(json!({ "operations": operations, "overheads": overheads }))
}

/// Measures operations between the nodes that the environment says, and prints them on node 0.
pub fn measure_operations() -> Result<ExitCode, PaperError> {
    let found = raw_memory::operations().map_err(|cause| failed(TODAY, cause))?;
    if let Some(found) = found {
        say::print(format!("{}\n", json!(found)).as_bytes()).map_err(PaperError::Print)?;
    }
    Ok(ExitCode::SUCCESS)
}
