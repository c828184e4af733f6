//! One run of a program, and the measures in its output.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PaperError;
use super::published::{Measures, Problem};
use super::variant::Variant;

/// Makes the C library's allocator ask the system for huge pages, as the object space does. So a
/// plain program has the same pages as one over dhole.
const HUGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Its name, and that of its file.
    pub name: String,
    /// The program.
    pub program: String,
    /// The arguments of `dhole` before the program, if it is simulated.
    pub cluster: Option<Vec<String>>,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// How to count its memory.
    pub memory: Counted,
}

/// How to count the memory of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counted {
    /// Whether every object has a place on every node, touched or not.
    pub everywhere: bool,
    /// Whether the number to compare with the paper's is that of allotted bytes, and not of touched
    /// ones.
    pub allotted: bool,
}

/// The outcome of a run.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Outcome {
    /// The measures of the paper's tables.
    pub measures: Measures,
    /// Storage for shared objects, counted both ways.
    pub memory: Memory,
    /// The time of the sequential program, in seconds of the same clock.
    pub sequential_seconds: f64,
    /// The computation of all nodes in the measured steps, divided by that of the sequential
    /// program; only of simulated runs.
    pub compute_inflation: Option<f64>,
    /// The output of the program.
    pub printed: Value,
}

/// Storage for shared objects on the average node, in 10^6 bytes.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub struct Memory {
    /// Pages of which the node has accessed something.
    pub touched_mb: f64,
    /// Places of objects on the node: of all objects, or, if a first access gives the place, of
    /// those that it has accessed.
    pub allotted_mb: f64,
}

impl Outcome {
    /// The time of the sequential program, divided by that of this run.
    pub fn speedup(&self) -> f64 {
        self.sequential_seconds / self.measures.seconds
    }
}

impl Cell {
    /// The run of a problem on simulated nodes; a unit of work takes `unit_ns`.
    pub fn simulated(
        problem: &Problem,
        arguments: &[String],
        variant: Variant,
        (nodes, network): (u16, &str),
        unit_ns: f64,
    ) -> Cell {
        let words = [
            "sim".to_owned(),
            format!("--nodes={nodes}"),
            format!("--network={network}"),
            format!("--fixed-cost={unit_ns}"),
            "--barrier=central".to_owned(),
            "--".to_owned(),
        ];
        let name = variant.name().to_lowercase().replace(' ', "-");
        let mut options = variant.options();
        options.extend(problem.options.iter().map(String::as_str));
        if variant != Variant::Treadmarks {
            options.extend(problem.dosa_options.iter().map(String::as_str));
        }
        Cell {
            name: format!("{}.{nodes}.{name}", problem.file_name()),
            program: problem.program.clone(),
            cluster: Some(words.into()),
            arguments: with(arguments, &options),
            memory: Counted {
                everywhere: variant.places_everywhere(),
                allotted: problem.memory_of_all,
            },
        }
    }

    /// The same run without hoisting. A unit of work then takes `unit_ns`.
    pub fn unhoisted(mut self, unit_ns: f64) -> Cell {
        self.name += ".unhoisted";
        if let Some(words) = &mut self.cluster {
            let is_cost = |word: &&mut String| word.starts_with("--fixed-cost=");
            words
                .iter_mut()
                .filter(is_cost)
                .for_each(|word| *word = format!("--fixed-cost={unit_ns}"));
        }
        self.arguments.extend(["--hoist", "no"].map(str::to_owned));
        self
    }

    /// The run of a problem on one node of this machine, not simulated.
    pub fn live(problem: &Problem, options: &[&str], name: &str, turn: usize) -> Cell {
        let of_problem: Vec<&str> = problem.options.iter().map(String::as_str).collect();
        let options = [&of_problem, options, &["--nodes", "1", "--verify"]].concat();
        Cell {
            name: format!("{}.here.{name}.{turn}", problem.file_name()),
            program: problem.program.clone(),
            cluster: None,
            arguments: with(&problem.size, &options),
            memory: Counted {
                everywhere: false,
                allotted: false,
            },
        }
    }

    /// The command line that a user would type.
    pub fn shown(&self) -> String {
        let huge_pages = format!("{}={}", HUGE_PAGES.0, HUGE_PAGES.1);
        let mut words: Vec<&str> = Vec::new();
        match &self.cluster {
            None => words.push(&huge_pages),
            Some(cluster) => {
                words.push("dhole");
                words.extend(cluster.iter().map(String::as_str));
            }
        }
        words.push(&self.program);
        words.extend(self.arguments.iter().map(String::as_str));
        words.join(" ")
    }

    /// Runs the program, which is in `folder` beside `dhole`.
    ///
    /// # Errors
    /// [`PaperError::Cell`] with the program's words if it fails.
    pub fn run(&self, folder: &Path) -> Result<Outcome, PaperError> {
        let failed = |why: String| PaperError::Cell {
            command: self.shown(),
            why,
        };
        let program = folder.join(&self.program);
        let mut command = match &self.cluster {
            None => {
                let mut command = Command::new(program);
                command.env(HUGE_PAGES.0, HUGE_PAGES.1);
                command
            }
            Some(words) => {
                let mut command = Command::new(folder.join("dhole"));
                command.args(words).arg(program);
                command
            }
        };
        command.args(&self.arguments).stdin(Stdio::null());
        // The paper's runs are what their words say, whatever this user's other runs have.
        for variable in dhole::Defaults::VARIABLES {
            command.env_remove(variable);
        }
        // The papers' systems ask for every object by message.
        command.env(dhole::Defaults::ONE_SIDED, "off");
        let output = command
            .output()
            .map_err(|cause| failed(cause.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it said nothing");
            return Err(failed(format!("{}: {last}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().unwrap_or_default();
        let printed = serde_json::from_str(line).map_err(|cause| failed(cause.to_string()))?;
        read(printed, self.memory).map_err(|missing| failed(format!("it printed no `{missing}`")))
    }
}

fn with(arguments: &[String], options: &[&str]) -> Vec<String> {
    let options = options.iter().chain(&["--json"]);
    let options = options.map(|option| (*option).to_owned());
    arguments.iter().cloned().chain(options).collect()
}

/// Reads the measures from a program's output. The error is the name of one that is missing.
fn read(printed: Value, how: Counted) -> Result<Outcome, &'static str> {
    let number = |name: &'static str| printed[name].as_f64().ok_or(name);
    let counted = |name: &'static str| printed["measured"][name].as_f64().ok_or(name);
    const MEGA: f64 = 1e6;
    let touched_mb = counted("shared_bytes_per_node")? / MEGA;
    let allotted_mb = if how.everywhere {
        counted("allotted_bytes")? / MEGA
    } else {
        touched_mb
    };
    let memory = Memory {
        touched_mb,
        allotted_mb,
    };
    let measures = Measures {
        seconds: number("seconds")?,
        data_mb: counted("data_bytes")? / MEGA,
        messages: counted("messages")?,
        requests: counted("fetch_rounds")?,
        memory_mb: if how.allotted {
            allotted_mb
        } else {
            touched_mb
        },
        notice_mb: Some(counted("write_notice_bytes")? / MEGA),
        write_faults: Some(counted("write_faults")?),
    };
    let sequential_seconds = number("sequential_seconds")?;
    let inflation = counted("computed_seconds").map(|computed| computed / sequential_seconds);
    Ok(Outcome {
        measures,
        memory,
        sequential_seconds,
        compute_inflation: inflation.ok(),
        printed,
    })
}
