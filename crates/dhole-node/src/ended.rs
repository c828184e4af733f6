//! How a run ended early.

use std::sync::Arc;

use dhole_protocol::group::Ending;
use dhole_protocol::{ProtocolError, Waiter};

use crate::race::RaceReport;
use crate::sync_error::RunEnded;

/// How a run ended early, as this node sees it.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// Another node ended it.
    Elsewhere(RunEnded),
    /// This node lies on a cycle of waits.
    Deadlock(Arc<[Waiter]>),
    /// This node found a race, and races are errors.
    Race(Arc<RaceReport>),
    /// The protocol here met something that must not be.
    Broken(ProtocolError),
    /// The others go on without this node, or could.
    Out(Ending),
}
