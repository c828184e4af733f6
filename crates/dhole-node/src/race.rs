//! What a program is told of its races.

use std::fmt;
use std::sync::Arc;

use dhole_heap::Cluster;
use dhole_model::{CallSite, Oid};
use dhole_protocol::{Race, RacingWrite};

/// Two nodes wrote one object, and neither write happened before the other: nothing that
/// synchronises lies between them. One of the values has won, the same on all nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RaceReport {
    /// The object.
    pub oid: Oid,
    /// What it is.
    pub type_name: Arc<str>,
    /// Where in the program it was allocated.
    pub allocated_at: Option<CallSite>,
    /// Who wrote it and where, in the order of the nodes.
    pub writes: [RacingWrite; 2],
}

impl RaceReport {
    pub(crate) fn new(race: Race, cluster: &Cluster) -> RaceReport {
        let Race { oid, writes } = race;
        let type_name = cluster.binding(oid).map(|binding| binding.to_string());
        RaceReport {
            oid,
            type_name: type_name.unwrap_or_default().into(),
            allocated_at: cluster.allocated_at(oid).map(CallSite::from),
            writes,
        }
    }
}

impl fmt::Display for RaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a race for {} ({}", self.oid, self.type_name)?;
        if let Some(site) = self.allocated_at {
            write!(f, ", allocated at {site}")?;
        }
        f.write_str(")")?;
        for (RacingWrite { node, site }, before) in self.writes.iter().zip([":", " and"]) {
            write!(f, "{before} {node} wrote it")?;
            match site {
                Some(site) => write!(f, " at {site}")?,
                None => f.write_str(" where it wrote too often since to say")?,
            }
        }
        f.write_str(", neither before the other")
    }
}
