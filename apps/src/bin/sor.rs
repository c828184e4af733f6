//! `sor`: red-black successive over-relaxation over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::cluster::Cluster;
use apps::options::Common;
use apps::program::{self, Losses};
use apps::progress::Progress;
use apps::raw::Element;
use apps::report::{self, Report, sequential_seconds, verified};
use apps::share::Share;
use apps::sor::options::{SorLayout, SorOptions};
use apps::sor::{ByPage, Layout, PointByPoint, Problem, calls, sections, sequential, shared};
use dhole::{Array2, Config, Rows, RunError, Worker};
use serde_json::{Value, json};

/// The largest difference from the sequential program, which computes with `f64`, where rows are of
/// `f32`.
const ROUNDING: f64 = 1e-4;

fn main() -> ExitCode {
    let options: SorOptions = program::options();
    let problem = |nodes| options.problem(nodes);
    program::main(
        "sor",
        Losses::End,
        &options.common,
        problem,
        |cluster, problem| {
            let config = cluster.config(&options.common);
            let rounding = match options.element {
                Element::F32 => ROUNDING,
                Element::F64 => 0.0,
            };
            let solve = |config: &Config, run: Solve<'_>| {
                let common = (&options.common, config, rounding);
                solve(common, cluster, problem, run)
            };
            if options.share == Share::Memory {
                return over_memory(config, &options, solve);
            }
            match options.share {
                Share::Sections => {
                    let construct = options.construct;
                    return solve(&config, &|w, problem, solution, after_step| {
                        let run = sections::run(w, problem, construct, solution, after_step);
                        Ok((run?, json!({})))
                    });
                }
                Share::Calls => {
                    return solve(&config, &|w, problem, solution, after_step| {
                        let run = calls::run(w, problem, solution, after_step);
                        Ok((run?, json!({})))
                    });
                }
                Share::Objects | Share::Memory => {}
            }
            let run = match (options.layout, options.hoist) {
                (SorLayout::Rows, true) => over_objects::<Rows<f64>>,
                (SorLayout::Arrays, true) => over_objects::<Array2<f64>>,
                (SorLayout::Rows, false) => over_objects::<PointByPoint<Rows<f64>>>,
                (SorLayout::Pages, true) => over_objects::<ByPage>,
                (SorLayout::Pages, false) => over_objects::<PointByPoint<ByPage>>,
                (SorLayout::Arrays, false) => over_objects::<PointByPoint<Array2<f64>>>,
            };
            solve(&config, &run)
        },
    )
}

/// What a node does: the outcome, and what else is to be reported.
type Solve<'a> = &'a (
        dyn Fn(
    &mut Worker<'_>,
    &Problem,
    Option<&sequential::Grid>,
    &dyn Fn(usize),
) -> dhole::Result<(shared::Outcome, Value)>
            + Sync
    );

fn over_objects<L: Layout>(
    w: &mut Worker<'_>,
    problem: &Problem,
    solution: Option<&sequential::Grid>,
    after_step: &dyn Fn(usize),
) -> dhole::Result<(shared::Outcome, Value)> {
    let outcome = shared::run::<L>(w, problem, solution, after_step)?;
    Ok((outcome, json!({})))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn over_memory(
    config: Config,
    options: &SorOptions,
    solve: impl FnOnce(&Config, Solve<'_>) -> Result<Report, RunError>,
) -> Result<Report, RunError> {
    use apps::raw::{self, Cut};
    use apps::sor::memory;
    let mut config = config.memory(dhole::memory::MemorySettings::default());
    if let Some(consistency) = options.consistency {
        config = config.memory_consistency(consistency);
    }
    let cut = Cut {
        granularity: options.granularity,
        chunk: options.chunk as usize,
    };
    solve(&config, &|w, problem, solution, after_step| {
        let run = match options.element {
            Element::F32 => memory::run::<f32>,
            Element::F64 => memory::run::<f64>,
        };
        let (outcome, usage) = run(w, (problem, cut), solution, after_step)?;
        Ok((outcome, raw::shown(&usage)))
    })
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn over_memory(
    config: Config,
    _options: &SorOptions,
    solve: impl FnOnce(&Config, Solve<'_>) -> Result<Report, RunError>,
) -> Result<Report, RunError> {
    solve(&config, &|_, _, _, _| {
        Err("--share memory: only Linux on x86-64 has raw memory".into())
    })
}

fn solve(
    (common, config, rounding): (&Common, &Config, f64),
    cluster: Cluster,
    problem: &Problem,
    solve: Solve<'_>,
) -> Result<Report, RunError> {
    let wanted = common.verify || cluster.simulated;
    let (alone, had) = wanted
        .then(|| {
            report::alone(|| {
                let progress = Progress::new("sequential", problem.steps);
                let alone = sequential::run(*problem, |step| progress.done(step));
                progress.finish();
                alone
            })
        })
        .unzip();
    let solution = alone
        .as_ref()
        .filter(|_| common.verify)
        .map(|alone| &alone.grid);
    let progress = Progress::new("sor", problem.steps);
    let run = config.run(|w| {
        let first = w.node().index() == 0;
        solve(w, problem, solution, &|step| {
            if first {
                progress.done(step);
            }
        })
    })?;
    progress.finish();
    let (outcome, more) = &run.value;
    let mut result = json!({
        "rows": problem.rows,
        "columns": problem.columns,
        "steps": problem.steps,
        "digest": format!("{:016x}", outcome.digest),
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        result[name] = value.clone();
    }
    verified(&mut result, outcome.max_error, rounding, &run.report)?;
    let alone =
        alone.map(|alone| sequential_seconds(&run.report, alone.sweep_seconds, alone.units));
    let done = Report::new("sor", &run.report, outcome.sweeps, alone, &result);
    let (rows, columns) = (problem.rows, problem.columns);
    let steps = report::steps(problem.steps);
    let title = format!("grid of {rows} x {columns} points, {steps}");
    let digest = format!("digest {:016x}", outcome.digest);
    Ok(done.alone_had(had).titled(title).found(digest))
}
