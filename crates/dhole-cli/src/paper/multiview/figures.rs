//! MultiView's figures.

use std::path::Path;

use super::super::PaperError;
use super::super::bars::{self, Bars};
use super::Here;
use super::runs::{CHUNKINGS, HOSTS, MOST, Run, Runs, SHARES, Variant};

/// Draws the figures into `folder`; figure 5 if it was measured.
///
/// # Errors
/// [`PaperError::Figure`].
pub fn draw(folder: &Path, runs: &Runs<'_>, here: &Here) -> Result<(), PaperError> {
    let mut figures = vec![speedups(runs), shares(runs), chunking(runs)];
    figures.extend(views(here));
    bars::draw_all(folder, &figures)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn views(here: &Here) -> Option<Bars> {
    use super::today::VIEWS;
    let series = here.overheads.iter();
    let series = series.map(|found| (format!("{} KB", found.bytes >> 10), found.ratios.clone()));
    (!here.overheads.is_empty()).then(|| Bars {
        file: "figure-5.svg",
        title: "Time to read an array, by the number of views",
        unit: "time over one view",
        groups: VIEWS.map(|views| views.to_string()).into(),
        series: series.collect(),
    })
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn views(_here: &Here) -> Option<Bars> {
    None
}

fn speedups(runs: &Runs<'_>) -> Bars {
    let (mut groups, mut series) = (Vec::new(), Vec::new());
    for (variant, name) in [
        (Variant::Millipage, "millipage"),
        (Variant::Polling, "polling"),
    ] {
        let mut values = Vec::new();
        groups.clear();
        for program in &runs.paper.program {
            for nodes in HOSTS {
                groups.push(format!("{} {nodes}", program.name));
                let run = runs.of(&program.name, nodes, variant);
                values.push(run.map_or(0.0, Run::speedup));
            }
        }
        series.push((name.to_owned(), values));
    }
    Bars {
        file: "figure-6-left.svg",
        title: "Speedup, by the number of hosts",
        unit: "speedup",
        groups,
        series,
    }
}

fn shares(runs: &Runs<'_>) -> Bars {
    let names = SHARES.iter().map(|(name, _)| *name).chain(["serving"]);
    let mut series: Vec<_> = names.map(|name| (name.to_owned(), Vec::new())).collect();
    let mut groups = Vec::new();
    for program in &runs.paper.program {
        let Some(run) = runs.of(&program.name, MOST, Variant::Millipage) else {
            continue;
        };
        groups.push(program.name.clone());
        for (series, share) in series.iter_mut().zip(run.shares()) {
            series.1.push(share * 100.0);
        }
    }
    Bars {
        file: "figure-6-right.svg",
        title: "What the time of 8 hosts is spent on",
        unit: "%",
        groups,
        series,
    }
}

fn chunking(runs: &Runs<'_>) -> Bars {
    let series = CHUNKINGS.iter().map(|chunking| {
        let best = chunking.least_seconds(runs);
        let efficiency = |(_, variant)| {
            let run = chunking.run(runs, variant);
            run.map_or(0.0, |run| best / run.seconds())
        };
        let values = chunking.variants().into_iter().map(efficiency);
        (chunking.title.to_owned(), values.collect())
    });
    let rows = CHUNKINGS[0].variants().into_iter();
    Bars {
        file: "figure-7.svg",
        title: "WATER by molecules in a minipage",
        unit: "efficiency",
        groups: rows.map(|(name, _)| name).collect(),
        series: series.collect(),
    }
}
