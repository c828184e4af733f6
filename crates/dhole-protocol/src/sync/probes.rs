//! The probe that visits all nodes in search of a deadlock, as a message carries it.

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_sync::Probe;
use dhole_wire::Wire;

use crate::waiting::Waiter;

/// A probe of the wait-for graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct DeadlockProbe {
    /// The edges that it has found.
    pub edges: Probe<Waiter>,
    /// Where objects were made for whose operations nodes wait, as far as the nodes that made them
    /// were visited in the second round.
    pub made: Vec<(ObjectId, CallSite)>,
}

impl DeadlockProbe {
    /// A probe of a thread that has waited for long.
    pub fn begin(asker: Waiter) -> DeadlockProbe {
        DeadlockProbe {
            edges: Probe::begin(asker),
            made: Vec::new(),
        }
    }

    /// Says where objects were made that threads wait for, those of which `made` knows it.
    pub fn say_made(&mut self, made: impl Fn(ObjectId) -> Option<CallSite>) {
        let Some(first) = &self.edges.first else {
            return;
        };
        for wait in &first.waits {
            let object = wait.waiting_for.object();
            let known = object.and_then(|object| Some((object, made(object)?)));
            self.made.extend(known.filter(|it| !self.made.contains(it)));
        }
    }

    /// Processes of a node that wait and cannot begin.
    pub fn finds_unbegun(&mut self, unbegun: Option<Waiter>) {
        if !self.edges.is_over {
            self.edges.round.waits.extend(unbegun);
        }
    }

    /// The waits that never end, the asker's among them, if its probe has found that.
    pub fn found(&self) -> Option<Arc<[Waiter]>> {
        let in_words = |mut wait: Waiter| {
            for &(object, site) in &self.made {
                wait.waiting_for = wait.waiting_for.made(object, site);
            }
            wait
        };
        Some(self.edges.found()?.into_iter().map(in_words).collect())
    }

    /// The node whose thread asks, where it ends.
    pub fn asker(&self) -> NodeId {
        self.edges.asker.node
    }
}
