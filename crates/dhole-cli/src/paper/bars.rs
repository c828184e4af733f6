//! Groups of bars, as SVG.

use std::path::Path;

use plotters::prelude::*;

use super::PaperError;

const SIZE: (u32, u32) = (960, 420);

/// A figure: groups of bars.
pub struct Bars {
    pub file: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub groups: Vec<String>,
    /// Series with a bar in every group; an unknown value is 0.
    pub series: Vec<(String, Vec<f64>)>,
}

/// Draws figures into `folder`.
///
/// # Errors
/// [`PaperError::Figure`].
pub fn draw_all(folder: &Path, figures: &[Bars]) -> Result<(), PaperError> {
    for figure in figures {
        figure.draw(folder).map_err(|cause| PaperError::Figure {
            figure: figure.file.to_owned(),
            cause: cause.to_string(),
        })?;
    }
    Ok(())
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
