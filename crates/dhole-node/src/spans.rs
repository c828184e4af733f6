//! Spans for the crate `tracing`, where the feature of this name is on: one for the program of a
//! node, and one for each time in which its worker waits.

use dhole_model::NodeId;
use tracing::span::EnteredSpan;

use crate::machine::Machine;
use crate::waits::Waiting;

/// The span of a node's program, which is entered until it is dropped.
///
/// A machine that runs all nodes by one thread has none. A span belongs to the thread that
/// enters it, and that thread would go on with another node.
pub(crate) fn program(machine: &dyn Machine, node: NodeId) -> Option<EnteredSpan> {
    let enter = || tracing::debug_span!(target: "dhole", "program", node = node.index()).entered();
    machine.has_threads().then(enter)
}

/// The span of a wait. The caller holds no lock, for a subscriber is code of the user's.
pub(crate) fn wait(machine: &dyn Machine, node: NodeId, waiting: &Waiting) -> Option<EnteredSpan> {
    let enter = || {
        let (awaited, site) = waiting.what();
        let phase = awaited.phase().name();
        let what = awaited.what();
        tracing::trace_span!(target: "dhole", "wait", node = node.index(), phase, what, at = %site)
            .entered()
    };
    machine.has_threads().then(enter)
}
