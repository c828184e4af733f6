//! Finding replicas that differ: an operation that is not deterministic leaves different states
//! behind, and nothing else shows it.

use std::sync::Arc;

use dhole_model::{NodeId, NodeMap, ObjectId};

use super::bytes::Bytes;
use super::call::{CallId, Outcome, Refusal};
use super::entry::Place;
use super::host::Host;
use super::message::{ObjectsMessage, Ordered};
use super::{Objects, ObjectsCommand, Out};
use crate::ProtocolError;

type Digests = Vec<(u64, u16, u64)>;

/// A comparison under way: what the nodes have told.
#[derive(Clone, Debug)]
pub(super) struct Comparing {
    object: ObjectId,
    told: NodeMap<Digests>,
}

impl Objects {
    /// Keeps the digest of every replica after each of its last operations, so that a comparison
    /// can name the operation that made them differ.
    pub fn keep_digests(&mut self) {
        self.digests = true;
    }

    pub(super) fn compare(&mut self, call: u64, object: ObjectId, out: Out<'_>) {
        let told = NodeMap::new();
        self.comparing.insert(call, Comparing { object, told });
        let by = self.own(call);
        let compare = Ordered::Compare { by, object };
        out.push(ObjectsCommand::Broadcast(Arc::new(compare)));
    }

    pub(super) fn send_digests(
        &mut self,
        by: CallId,
        object: ObjectId,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let entry = self.table.get(&object);
        let replica = entry.filter(|entry| entry.place == Place::Replicated);
        let Some(replica) = replica else {
            // One copy is like itself.
            if by.node == self.me {
                self.comparing.remove(&by.number);
                let unheard_of = entry.is_none_or(|entry| entry.place == Place::Unknown);
                let unknown = unheard_of && object.creator(self.nodes) == self.me;
                let outcome = if let why @ Refusal::Freed(_) = self.why_not(object) {
                    Err(why)
                } else if unknown {
                    Objects::nowhere()
                } else {
                    Ok(Bytes::default())
                };
                self.over(by, outcome, out);
            }
            return;
        };
        let mut digests: Digests = replica.digests.iter().copied().collect();
        digests.push((self.delivered, u16::MAX, host.digest(object)));
        let message = ObjectsMessage::Digests {
            call: by.number,
            digests,
        };
        out.push(ObjectsCommand::Send {
            to: by.node,
            message,
        });
    }

    pub(super) fn told_digests(
        &mut self,
        from: NodeId,
        call: u64,
        digests: Digests,
        host: &dyn Host,
        out: Out<'_>,
    ) -> Result<(), ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        let Some(comparing) = self.comparing.get_mut(&call) else {
            return bad("digests that nobody asked for");
        };
        if digests.is_empty() || comparing.told.insert(from, digests).is_some() {
            return bad("no digests, or digests told twice");
        }
        self.compare_if_all_told(call, host, out);
        Ok(())
    }

    fn compare_if_all_told(&mut self, call: u64, host: &dyn Host, out: Out<'_>) {
        let told = self.comparing.get(&call).map(|comparing| &comparing.told);
        let all = told.is_some_and(|told| {
            let mut all = (0..self.nodes).map(NodeId::at);
            all.all(|node| told.contains_key(&node) || self.gone.contains_key(&node))
        });
        if all && let Some(all) = self.comparing.remove(&call) {
            let outcome = all.outcome(self.me, host);
            out.push(ObjectsCommand::Finished { call, outcome });
        }
    }

    /// Nodes are gone that will tell nothing.
    pub(super) fn compare_without_gone(&mut self, host: &dyn Host, out: Out<'_>) {
        for call in self.comparing.keys().copied().collect::<Vec<_>>() {
            self.compare_if_all_told(call, host, out);
        }
    }
}

impl Comparing {
    fn outcome(&self, me: NodeId, host: &dyn Host) -> Outcome {
        let last = |digests: &Digests| digests.last().map(|(_, _, digest)| *digest);
        let mine = self.told.get(&me);
        let present = mine.and_then(last);
        let others = self.told.iter();
        let differing: Vec<NodeId> = others
            .filter(|(_, digests)| last(digests) != present)
            .map(|(node, _)| *node)
            .collect();
        if differing.is_empty() {
            return Ok(Bytes::default());
        }
        let first = differing.iter().filter_map(|node| {
            let theirs = self.told.get(node)?;
            let mut pairs = mine?.iter().zip(theirs);
            let differ = pairs.find(|(mine, theirs)| mine != theirs)?.0;
            Some((differ.0, differ.1))
        });
        let operation = match first.min() {
            Some((_, u16::MAX)) | None => Arc::from("(digests of operations are not kept)"),
            Some((_, operation)) => host.name_of(self.object, operation),
        };
        let nodes: Vec<String> = differing.iter().map(NodeId::to_string).collect();
        let nodes = Arc::from(nodes.join(", "));
        Err(Refusal::Diverged { nodes, operation })
    }
}
