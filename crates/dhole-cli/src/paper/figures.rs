//! DOSA's figures.

use std::path::Path;

use super::PaperError;
use super::bars::{self, Bars};
use super::published::Grain;
use super::results::Results;
use super::variant::Variant;

/// Draws all figures into `folder`.
///
/// # Errors
/// [`PaperError::Figure`].
pub fn draw(folder: &Path, results: &Results<'_>) -> Result<(), PaperError> {
    let figures = [
        speedups(
            results,
            Grain::Fine,
            "figure-5.svg",
            "Speedup of fine-grained programs",
        ),
        normalised(
            results,
            Grain::Fine,
            "figure-6.svg",
            "Fine-grained programs",
        ),
        speedups(
            results,
            Grain::Coarse,
            "figure-9.svg",
            "Speedup of coarse-grained programs",
        ),
        normalised(
            results,
            Grain::Coarse,
            "figure-10.svg",
            "Coarse-grained programs",
        ),
        ablation(results),
    ];
    bars::draw_all(folder, &figures)
}

fn speedups(results: &Results<'_>, grain: Grain, file: &'static str, title: &'static str) -> Bars {
    let mut groups = Vec::new();
    let variants = [Variant::Treadmarks, Variant::Dosa];
    let mut ours = variants.map(|variant| (variant.name().to_owned(), Vec::new()));
    let mut papers = variants.map(|variant| (format!("{}, paper", variant.name()), Vec::new()));
    for (place, problem) in results.paper.problem.iter().enumerate() {
        if problem.grain != grain {
            continue;
        }
        for &nodes in &results.wanted.nodes {
            groups.push(format!("{} {nodes}", problem.name));
            for (series, variant) in ours.iter_mut().zip(variants) {
                let run = results.run(place, nodes, variant);
                series.1.push(run.map_or(0.0, |run| run.speedup()));
            }
            for (series, of) in papers.iter_mut().zip([problem.treadmarks, problem.dosa]) {
                let known = nodes == 32 && results.are_the_papers();
                let speedup = problem.sequential_seconds / of.seconds;
                series.1.push(if known { speedup } else { 0.0 });
            }
        }
    }
    let with_papers = results
        .are_the_papers()
        .then_some(papers)
        .into_iter()
        .flatten();
    Bars {
        file,
        title,
        unit: "speedup",
        groups,
        series: ours.into_iter().chain(with_papers).collect(),
    }
}

/// DOSA's counts as a percentage of TreadMarks', large inputs.
fn normalised(
    results: &Results<'_>,
    grain: Grain,
    file: &'static str,
    title: &'static str,
) -> Bars {
    let (mut groups, mut here, mut paper) = (Vec::new(), Vec::new(), Vec::new());
    for (place, problem) in results.paper.problem.iter().enumerate() {
        if problem.grain != grain || !problem.name.ends_with("/lg") {
            continue;
        }
        let of = |variant| results.run(place, results.most_nodes(), variant);
        let (Some(tmk), Some(dosa)) = (of(Variant::Treadmarks), of(Variant::Dosa)) else {
            continue;
        };
        let percent =
            |(over, of): ((&'static str, f64), (&'static str, f64))| of.1 / over.1 * 100.0;
        let ours = tmk.measures.named().into_iter().zip(dosa.measures.named());
        let papers = problem
            .treadmarks
            .named()
            .into_iter()
            .zip(problem.dosa.named());
        for (ours, papers) in ours.zip(papers) {
            groups.push(format!("{} {}", problem.name, ours.0.0));
            here.push(percent(ours));
            paper.push(percent(papers));
        }
    }
    let mut series = vec![("here".to_owned(), here)];
    if results.compare() {
        series.push(("paper".to_owned(), paper));
    }
    Bars {
        file,
        title,
        unit: "DOSA in % of TreadMarks",
        groups,
        series,
    }
}

fn ablation(results: &Results<'_>) -> Bars {
    let variants = [&[Variant::Dosa], &Variant::ABLATED[..]].concat();
    let mut series: Vec<(String, Vec<f64>)> = variants
        .iter()
        .map(|v| (v.name().to_owned(), Vec::new()))
        .collect();
    let mut groups = Vec::new();
    for (place, problem) in results.paper.problem.iter().enumerate() {
        if problem.ablation.is_empty() {
            continue;
        }
        groups.push(problem.name.clone());
        for (series, variant) in series.iter_mut().zip(&variants) {
            let run = results.run(place, results.most_nodes(), *variant);
            series.1.push(run.map_or(0.0, |run| run.speedup()));
        }
        if results.compare() {
            groups.push(format!("{}, paper", problem.name));
            for (series, variant) in series.iter_mut().zip(&variants) {
                let seconds = problem
                    .ablation
                    .get(variant)
                    .map_or(f64::MAX, |m| m.seconds);
                series.1.push(problem.sequential_seconds / seconds);
            }
        }
    }
    Bars {
        file: "figure-11.svg",
        title: "Speedup without each optimisation",
        unit: "speedup",
        groups,
        series,
    }
}
