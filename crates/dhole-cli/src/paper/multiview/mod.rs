//! `dhole paper multiview`: the evaluation of MultiView and Millipage.

mod figures;
mod holds;
mod published;
mod runs;
mod tables;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod today;

use std::path::PathBuf;
use std::process::ExitCode;

use dhole::sim::{Computation, Description, Primitive, Settings};

use super::cache::ResultCache;
use super::{PaperError, interruption, write};
use crate::arguments::Multiview;
use crate::primitive;
use crate::say;
use published::{Cost, Published};
use runs::{NETWORK, Runs};

/// Repeats the evaluation: runs what has not run yet, measures this machine, and writes tables
/// and figures.
///
/// # Errors
/// [`PaperError`].
pub fn evaluate(wanted: &Multiview) -> Result<ExitCode, PaperError> {
    if wanted.today {
        return measure_here();
    }
    let paper = Published::multiview();
    let folder = wanted.out.clone().unwrap_or_else(|| {
        let name = match wanted.small {
            true => "multiview-small",
            false => "multiview",
        };
        PathBuf::from(name)
    });
    let cache = ResultCache::open(&folder, interruption())?;
    let polling = folder.join("polling.toml");
    write(&folder, "polling.toml", &polling_network())?;
    // A network in a file has a `/` in its name.
    let polling = match polling.components().count() {
        1 => format!("./{}", polling.display()),
        _ => polling.display().to_string(),
    };
    let (runs, failed, all) = Runs::fetch(&paper, wanted, polling, &cache)?;
    let costs: Vec<Option<f64>> = paper.cost.iter().map(simulated_us).collect();
    let here = match wanted.simulated {
        true => Here::default(),
        false => Here::measure(wanted.small)?,
    };
    write(&folder, "multiview.md", &tables::page(&runs, &costs, &here))?;
    let json = serde_json::to_string_pretty(&runs.json()).expect("numbers and words");
    write(&folder, "multiview.json", &json)?;
    figures::draw(&folder, &runs, &here)?;
    let path = format!("{}\n", folder.join("multiview.md").display());
    say::print(path.as_bytes()).map_err(PaperError::Print)?;
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(PaperError::Incomplete { failed, all }),
    }
}

/// The paper's network, on which a node that computes takes messages at once.
fn polling_network() -> String {
    let text = Description::text(NETWORK).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with("sweep_ns"));
    let lines = lines.map(|line| match line.starts_with("name = ") {
        true => "name = \"millipage-polling\"".to_owned(),
        false => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// The cost of an operation in the simulator, in microseconds.
fn simulated_us(cost: &Cost) -> Option<f64> {
    let described = Description::find(NETWORK).ok()?;
    if let Some(key) = &cost.key {
        let table: toml::Table = Description::text(NETWORK)?.parse().ok()?;
        return Some(table.get(key)?.as_integer()? as f64 / 1e3);
    }
    let name = cost.primitive.as_deref()?;
    let primitive = Primitive::ALL.into_iter().find(|one| one.name() == name)?;
    let settings = Settings {
        network: described.network,
        network_name: described.name.clone(),
        computation: Computation::FixedCost { unit_ns: 1.0 },
        ..Settings::new(2)
    };
    let measured = primitive::measure(primitive, &settings).ok()??;
    Some(measured / cost.of)
}

/// What was measured on this machine.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[derive(Default)]
struct Here {
    /// Operations between two nodes, by what carries their messages.
    operations: Vec<(&'static str, today::Operations)>,
    overheads: Vec<today::Overhead>,
}

/// Nothing was measured: there is no raw memory here.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[derive(Default)]
struct Here;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl Here {
    fn measure(small: bool) -> Result<Here, PaperError> {
        let failed = |command: &str, why: String| PaperError::Cell {
            command: command.to_owned(),
            why,
        };
        let here = |cause: dhole::RunError| failed("dhole paper multiview", cause.to_string());
        let mut operations = Vec::new();
        if let Some(found) = today::operations().map_err(here)? {
            operations.push(("threads", found));
        }
        let dhole = std::env::current_exe().map_err(PaperError::Print)?;
        for transport in ["shm", "tcp"] {
            let run = ["run", "-n", "2", "--domains", "node", "--managers", "one"];
            let words = [&run[..], &["--transport", transport, "--"]].concat();
            let shown = format!("dhole {} dhole paper multiview --today", words.join(" "));
            let output = std::process::Command::new(&dhole)
                .args(&words)
                .arg(&dhole)
                .args(["paper", "multiview", "--today"])
                .stdin(std::process::Stdio::null())
                .output()
                .map_err(|cause| failed(&shown, cause.to_string()))?;
            let found = serde_json::from_slice(&output.stdout).map_err(|cause| {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                failed(&shown, format!("{cause}: {said}"))
            })?;
            operations.push((transport, found));
        }
        let sizes: &[usize] = match small {
            true => &[512 << 10, 2 << 20],
            false => &[512 << 10, 2 << 20, 8 << 20, 16 << 20],
        };
        let overheads = sizes.iter().map(|bytes| today::overhead(*bytes));
        let overheads = overheads.collect::<Result<_, _>>().map_err(here)?;
        Ok(Here {
            operations,
            overheads,
        })
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
impl Here {
    fn measure(_small: bool) -> Result<Here, PaperError> {
        Ok(Here)
    }
}

/// Measures operations between the nodes that the environment says, and prints them on node 0.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn measure_here() -> Result<ExitCode, PaperError> {
    let found = today::operations().map_err(|cause| PaperError::Cell {
        command: "dhole paper multiview --today".to_owned(),
        why: cause.to_string(),
    })?;
    if let Some(found) = found {
        let text = serde_json::to_string(&found).expect("numbers");
        say::print(format!("{text}\n").as_bytes()).map_err(PaperError::Print)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn measure_here() -> Result<ExitCode, PaperError> {
    Err(PaperError::Cell {
        command: "dhole paper multiview --today".to_owned(),
        why: "only Linux on x86-64 has raw memory".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_without_sweeps_is_the_paper_s_but_for_them() {
        let of = |name, text: &str| Description::parse(name, text).unwrap();
        let polling = of("polling", &polling_network());
        let mut paper = Description::find(NETWORK).unwrap();
        assert_eq!(paper.network.sweep_ns, 1_000_000);
        paper.network.sweep_ns = 0;
        assert_eq!(polling.network, paper.network);
        assert_eq!(polling.name, "millipage-polling");
    }

    #[test]
    fn every_cost_of_table_1_is_simulated_within_15_percent() {
        for cost in Published::multiview().cost {
            let ours = simulated_us(&cost).unwrap_or_else(|| panic!("{cost:?}"));
            let paper: f64 = cost.paper.parse().unwrap();
            assert!((0.85..=1.15).contains(&(ours / paper)), "{cost:?}: {ours}");
        }
    }
}
