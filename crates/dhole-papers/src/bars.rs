//! Figures: groups of bars, as SVG.

use std::path::Path;

use plotters::prelude::*;

use crate::error::PaperError;
use crate::paper::Figure;
use crate::scope::{Evaluation, Scope};

const SIZE: (u32, u32) = (960, 420);

/// Groups of bars.
pub struct Bars<'a> {
    figure: &'a Figure,
    groups: Vec<String>,
    /// Series with a bar in every group; an unknown value is 0.
    series: Vec<(String, Vec<f64>)>,
}

/// The evaluation's figures.
///
/// # Errors
/// In words, if the evaluation's data are wrong.
pub fn figures(evaluation: &Evaluation) -> Result<Vec<Bars<'_>>, String> {
    let scope = evaluation.scope();
    let mut all = Vec::new();
    for figure in &evaluation.paper.figure {
        if scope.holds(figure.when.as_deref())? {
            all.push(bars(figure, &scope)?);
        }
    }
    Ok(all)
}

fn bars<'a>(figure: &'a Figure, scope: &Scope<'_>) -> Result<Bars<'a>, String> {
    let groups = scope.along(&figure.each, figure.r#where.as_deref())?;
    let mut series = Vec::new();
    for bars in &figure.bars {
        if !scope.holds(bars.when.as_deref())? {
            continue;
        }
        // Along these axes each group has the same places.
        let first = groups.first().unwrap_or(scope);
        for (place, one) in first.along(&bars.each, None)?.iter().enumerate() {
            let of = |group: &Scope<'_>| {
                let value = group.along(&bars.each, None)?[place].eval(&bars.value)?;
                Ok(value.as_f64().unwrap_or(0.0))
            };
            let values = groups.iter().map(of).collect::<Result<_, String>>()?;
            series.push((one.fill(&bars.name)?, values));
        }
    }
    let groups = groups.iter().map(|group| group.fill(&figure.group));
    Ok(Bars {
        figure,
        groups: groups.collect::<Result<_, _>>()?,
        series,
    })
}

/// Draws figures into `folder`.
///
/// # Errors
/// [`PaperError::Figure`].
pub fn draw(folder: &Path, figures: &[Bars<'_>]) -> Result<(), PaperError> {
    for bars in figures {
        bars.draw(folder).map_err(|cause| PaperError::Figure {
            figure: bars.figure.file.clone(),
            cause: cause.to_string(),
        })?;
    }
    Ok(())
}

impl Bars<'_> {
    fn draw(&self, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
        const WIDTH: f64 = 0.8;
        let path = folder.join(&self.figure.file);
        let area = SVGBackend::new(&path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let most = self.series.iter().flat_map(|(_, values)| values).copied();
        let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.figure.title, ("sans-serif", 18))
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
            .y_desc(&self.figure.unit)
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
