//! Repeats the evaluations of papers; `dhole paper` starts this program. An evaluation is a file in
//! the folder `papers` of this crate.
#![forbid(unsafe_code)]

mod bars;
mod cache;
mod cell;
mod error;
mod expression;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod here;
mod network;
mod page;
mod paper;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod raw_memory;
mod runs;
mod scope;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use dhole::sim::Description;
use dhole_cli::paper::{self as command, PaperOptions};
use dhole_cli::say;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use cache::ResultCache;
use error::PaperError;
use network::Cost;
use paper::Paper;
use scope::Evaluation;

const DOSA: &str = include_str!("../papers/dosa.toml");
const MULTIVIEW: &str = include_str!("../papers/multiview.toml");
const VOTE: &str = include_str!("../papers/vote.toml");
const JACKAL: &str = include_str!("../papers/jackal.toml");

/// Repeats a paper's evaluation.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The paper
    #[command(subcommand)]
    paper: command::Paper,
}

fn main() -> ExitCode {
    let ended = match Arguments::parse().paper {
        command::Paper::Dosa(wanted) => evaluate(DOSA, &wanted.wanted()),
        command::Paper::Multiview(wanted) if wanted.today => measure_operations(),
        command::Paper::Multiview(wanted) => evaluate(MULTIVIEW, &wanted.wanted()),
        command::Paper::Vote(wanted) => evaluate(VOTE, &wanted.wanted()),
        command::Paper::Jackal(wanted) => evaluate(JACKAL, &wanted.wanted()),
    };
    ended.unwrap_or_else(|error| {
        say::complain(&error);
        ExitCode::from(error.exit_code())
    })
}

/// Repeats an evaluation: runs what has not run yet, measures this machine, and writes tables and
/// figures.
fn evaluate(text: &str, wanted: &PaperOptions) -> Result<ExitCode, PaperError> {
    let paper = Paper::read(text);
    let network = wanted
        .network
        .as_ref()
        .unwrap_or(&paper.simulated.network)
        .clone();
    Description::find(&network)?;
    let name = paper.name.clone();
    let folder = wanted.out.clone().unwrap_or_else(|| {
        PathBuf::from(if wanted.small {
            format!("{name}-small")
        } else {
            name.clone()
        })
    });
    let cache = ResultCache::open(&folder, interruption())?;
    let mut files = Map::new();
    for one in &paper.network {
        write(&folder, &one.file, &network::described(one))?;
        let path = folder.join(&one.file);
        // A network in a file has a `/` in its name.
        let path = match path.components().count() {
            1 => format!("./{}", path.display()),
            _ => path.display().to_string(),
        };
        files.insert(one.name.clone(), path.into());
    }
    let given = json!({
        "files": files,
        "network": network,
        "nodes_wanted": wanted.nodes,
        "nodes_most": wanted.nodes.iter().max(),
        "raw_memory": cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "simulated": wanted.simulated,
        "small": wanted.small,
    });
    let Value::Object(given) = given else {
        unreachable!("it is written so")
    };
    let mut evaluation = Evaluation {
        paper,
        given,
        printed: BTreeMap::new(),
    };
    let count = runs::run(&mut evaluation, &cache, wanted.jobs)?;
    measure(&mut evaluation, wanted)?;
    let data = |why| PaperError::Data {
        paper: name.clone(),
        why,
    };
    let page = page::page(&evaluation).map_err(data)?;
    write(&folder, &format!("{name}.md"), &page)?;
    let json = page::json(&evaluation).map_err(data)?;
    let json = serde_json::to_string_pretty(&json).expect("numbers and words");
    write(&folder, &format!("{name}.json"), &json)?;
    bars::draw(&folder, &bars::figures(&evaluation).map_err(data)?)?;
    let path = format!("{}\n", folder.join(format!("{name}.md")).display());
    say::print(path.as_bytes()).map_err(PaperError::Print)?;
    match count.failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(PaperError::Incomplete {
            failed,
            all: count.all,
        }),
    }
}

/// Adds what this program measures itself: the lists `cost` and `overhead` and the value `here`.
fn measure(evaluation: &mut Evaluation, wanted: &PaperOptions) -> Result<(), PaperError> {
    let network = evaluation.paper.simulated.network.clone();
    let Some(costs) = evaluation.paper.list.get_mut("cost") else {
        return Ok(());
    };
    for entry in costs {
        let cost = Cost::deserialize(&*entry).expect("an operation of the file");
        entry["simulated"] = json!(network::simulated_us(&cost, &network));
    }
    let here = match evaluation.paper.raw_memory && !wanted.simulated {
        true => measure_here(wanted.small)?,
        false => Value::Null,
    };
    let overheads = here["overheads"].as_array().cloned().unwrap_or_default();
    evaluation
        .paper
        .list
        .insert("overhead".to_owned(), overheads);
    evaluation.given.insert("here".to_owned(), here);
    Ok(())
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use here::{measure as measure_here, measure_operations};

/// Nothing is measured: there is no raw memory here.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn measure_here(_small: bool) -> Result<Value, PaperError> {
    Ok(Value::Null)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn measure_operations() -> Result<ExitCode, PaperError> {
    Err(PaperError::Cell {
        command: "dhole paper multiview --today".to_owned(),
        why: "only Linux on x86-64 has raw memory".to_owned(),
    })
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), PaperError> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|cause| PaperError::Folder {
        folder: path,
        cause,
    })
}

/// The flag that Ctrl-C sets. The runs in progress get the signal from the terminal too.
fn interruption() -> &'static AtomicBool {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    // Where there is a handler already, an interruption ends the command at once; runs that are
    // done are kept all the same.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    &INTERRUPTED
}
