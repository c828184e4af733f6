//! What a program is told of its races.

use std::fmt;
use std::sync::Arc;

use dhole_heap::Cluster;
use dhole_model::{CallSite, Elements, Oid};
use dhole_protocol::{Race, RacingWrite};
use serde::{Deserialize, Serialize};

/// A race: two nodes wrote one object, or the same elements of an array, and no synchronisation
/// orders the writes. A `free` counts as a write. One of the values has won, the same on all nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RaceReport {
    /// The object or array.
    pub oid: Oid,
    /// The type of the object, or of the array's elements.
    pub type_name: Arc<str>,
    /// The elements that both wrote, if it is an array.
    pub elements: Option<Elements>,
    /// The source line that allocated it.
    pub allocated_at: Option<CallSite>,
    /// The two nodes that wrote it, and their source lines, in the order of the nodes.
    pub writes: [RacingWrite; 2],
}

impl RaceReport {
    pub(crate) fn new(race: Race, cluster: &Cluster) -> RaceReport {
        let Race { raced, writes } = race;
        let oid = raced.oid();
        let of_array = || cluster.array_binding(oid).map(|array| array.info.name);
        let of_object = cluster.binding(oid).map(|binding| binding.to_string());
        let type_name = of_object.ok().or_else(|| of_array().map(str::to_owned));
        RaceReport {
            oid,
            type_name: type_name.unwrap_or_default().into(),
            elements: raced.elements(),
            allocated_at: cluster.allocated_at(oid),
            writes,
        }
    }
}

impl fmt::Display for RaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.elements {
            Some(elements) => write!(f, "a race for {elements} ({}", self.type_name)?,
            None => write!(f, "a race for {} ({}", self.oid, self.type_name)?,
        }
        if let Some(site) = self.allocated_at {
            write!(f, ", allocated at {site}")?;
        }
        f.write_str(")")?;
        let what = self.elements.map_or("it", |_| "them");
        for (side, before) in self.writes.iter().zip([":", " and"]) {
            let RacingWrite { node, site, freed } = side;
            let did = if *freed { "freed" } else { "wrote" };
            write!(f, "{before} {node} {did} {what}")?;
            match site {
                Some(site) => write!(f, " at {site}")?,
                None => f.write_str(" where it did so too often since to say")?,
            }
        }
        f.write_str(", neither before the other")
    }
}
