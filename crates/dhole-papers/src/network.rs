//! Networks that an evaluation makes, and what operations cost on one.

use dhole::sim::{Computation, Description, Primitive, Settings};
use dhole_cli::primitive;
use serde::Deserialize;

use crate::paper::Network;

/// A network like another, without some of its keys.
pub fn described(network: &Network) -> String {
    let text = Description::text(&network.like).unwrap_or_default();
    let left_out = |line: &&str| {
        let key = line.split(' ').next().unwrap_or_default();
        !network.without.iter().any(|one| one == key)
    };
    let lines = text.lines().filter(left_out);
    let lines = lines.map(|line| match line.starts_with("name = ") {
        true => format!("name = \"{}\"\n", network.name),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// An operation whose cost the paper has: an entry of the list `cost`.
#[derive(Deserialize, Debug)]
pub struct Cost {
    /// The key of the network's description that has it, of nanoseconds.
    pub key: Option<String>,
    /// The primitive that measures it in the simulator.
    pub primitive: Option<String>,
    /// How many of them the primitive is.
    pub of: Option<f64>,
}

/// The cost of an operation in the simulator, in microseconds.
pub fn simulated_us(cost: &Cost, network: &str) -> Option<f64> {
    let described = Description::find(network).ok()?;
    if let Some(key) = &cost.key {
        let table: toml::Table = Description::text(network)?.parse().ok()?;
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
    Some(measured / cost.of.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Paper;
    use crate::{MULTIVIEW, VOTE};

    #[test]
    fn the_network_without_sweeps_is_the_paper_s_but_for_them() {
        let paper = Paper::read(MULTIVIEW);
        let polling = &paper.network[0];
        let polling = Description::parse("polling", &described(polling)).unwrap();
        let mut own = Description::find(&paper.simulated.network).unwrap();
        assert_eq!(own.network.sweep_ns, 1_000_000);
        own.network.sweep_ns = 0;
        assert_eq!(polling.network, own.network);
        assert_eq!(polling.name, "millipage-polling");
    }

    #[test]
    fn every_cost_of_the_tables_is_simulated_within_15_percent() {
        let papers = [MULTIVIEW, VOTE].map(Paper::read);
        let costs = papers.iter().flat_map(|paper| {
            let network = &paper.simulated.network;
            paper.list["cost"].iter().map(move |entry| (entry, network))
        });
        for (entry, network) in costs {
            let cost = Cost::deserialize(entry).unwrap();
            assert!(cost.key.is_some() != cost.primitive.is_some(), "{cost:?}");
            let ours = simulated_us(&cost, network);
            let ours = ours.unwrap_or_else(|| panic!("{cost:?}"));
            let paper = entry["paper"].as_f64().unwrap();
            assert!((0.85..=1.15).contains(&(ours / paper)), "{cost:?}: {ours}");
        }
    }
}
