//! Draws the paper's figures: groups of bars, as SVG.

use std::path::Path;

use plotters::prelude::*;

use super::PaperError;
use super::published::Grain;
use super::results::Results;
use super::variant::Variant;

const SIZE: (u32, u32) = (960, 420);

/// Groups of bars.
struct Bars {
    file: &'static str,
    title: &'static str,
    unit: &'static str,
    groups: Vec<String>,
    /// Series with a bar in every group; an unknown value is 0.
    series: Vec<(String, Vec<f64>)>,
}

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
    for figure in figures {
        figure.draw(folder).map_err(|cause| PaperError::Figure {
            figure: figure.file.to_owned(),
            cause: cause.to_string(),
        })?;
    }
    Ok(())
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

impl Bars {
    fn draw(&self, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
        const WIDTH: f64 = 0.8;
        let path = folder.join(self.file);
        let area = SVGBackend::new(&path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let most = self.series.iter().flat_map(|(_, values)| values).copied();
        let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(
                0.0..self.groups.len().max(1) as f64,
                0.0..most.max(1e-9) * 1.1,
            )?;
        let name = |place: &f64| {
            let group = (place.fract() - 0.5).abs() < 1e-9;
            let name = group.then(|| self.groups.get(*place as usize)).flatten();
            name.cloned().unwrap_or_default()
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * self.groups.len() + 1)
            .x_label_formatter(&name)
            .x_label_style(("sans-serif", 10))
            .y_desc(self.unit)
            .draw()?;
        let width = WIDTH / self.series.len().max(1) as f64;
        for (place, (name, values)) in self.series.iter().enumerate() {
            let colour = Palette99::pick(place).to_rgba();
            let bars = values.iter().enumerate().map(|(group, value)| {
                let left = group as f64 + (1.0 - WIDTH) / 2.0 + place as f64 * width;
                Rectangle::new([(left, 0.0), (left + width * 0.9, *value)], colour.filled())
            });
            chart.draw_series(bars)?.label(name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled())
            });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .position(SeriesLabelPosition::UpperRight)
            .draw()?;
        area.present()?;
        Ok(())
    }
}
