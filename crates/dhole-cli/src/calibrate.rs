use std::process::ExitCode;

use dhole::sim::{Description, Primitive, Settings};
use serde_json::{Map, Value, json};

use crate::error::SimError;
use crate::primitive;
use crate::say;

/// A primitive as the simulator measures it and as it was published.
struct Compared {
    primitive: Primitive,
    simulated: Option<f64>,
    published: Option<f64>,
}

impl Compared {
    fn ratio(&self) -> Option<f64> {
        Some(self.simulated? / self.published?)
    }
}

/// Measures all primitives of a network and prints each beside its published value.
///
/// # Errors
/// [`SimError::Calibration`] if one cannot be measured.
pub fn run(
    described: &Description,
    settings: &Settings,
    as_json: bool,
) -> Result<ExitCode, SimError> {
    let mut all = Vec::new();
    for primitive in Primitive::ALL {
        let simulated =
            primitive::measure(primitive, settings).map_err(|cause| SimError::Calibration {
                primitive: primitive.name(),
                network: settings.network_name.clone(),
                cause,
            })?;
        let of = |published: &&dhole::sim::Published| published.primitive == primitive;
        all.push(Compared {
            primitive,
            simulated,
            published: described.published.iter().find(of).map(|it| it.value),
        });
    }
    all.retain(|it| it.simulated.is_some() || it.published.is_some());
    let text = match as_json {
        true => json(described, settings, &all).to_string(),
        false => table(described, settings, &all),
    };
    say::print(format!("{text}\n").as_bytes()).map_err(SimError::Print)?;
    Ok(ExitCode::SUCCESS)
}

fn json(described: &Description, settings: &Settings, all: &[Compared]) -> Value {
    let primitives: Map<String, Value> = all
        .iter()
        .map(|it| {
            let of = json!({
                "simulated": it.simulated,
                "published": it.published,
                "ratio": it.ratio(),
            });
            (it.primitive.name(), of)
        })
        .collect();
    json!({
        "network": settings.network_name,
        "about": described.about,
        "primitives": primitives,
    })
}

fn table(described: &Description, settings: &Settings, all: &[Compared]) -> String {
    let shown = |value: Option<f64>, digits, none: &str| match value {
        Some(value) => format!("{value:.digits$}"),
        None => none.to_owned(),
    };
    let mut text = format!(
        "{}: {}\n\n{:<36} {:>10} {:>10} {:>6}",
        settings.network_name, described.about, "primitive", "simulated", "published", "ratio"
    );
    for it in all {
        let line = format!(
            "\n{:<36} {:>10} {:>10} {:>6}",
            it.primitive.name(),
            shown(it.simulated, 2, "-"),
            shown(it.published, 2, "-"),
            shown(it.ratio(), 3, "-"),
        );
        text.push_str(&line);
    }
    text
}
