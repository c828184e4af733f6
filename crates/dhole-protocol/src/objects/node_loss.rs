//! What becomes of objects when nodes are lost and the run goes on.
//!
//! A loss has a place in the order of multicasts, the same on all nodes that are left; where each
//! copy is they know from that order alone. So all agree on what is lost. Replicas live on. A copy
//! that was the only one is lost with its node, also while it was on its way there or from there:
//! whoever waits for it, and whoever calls it later, is told so. What a lost node waited for is
//! never executed.
//!
//! A type may say what a loss means for its objects ([`Host::lose`]). Every copy does that at the
//! loss's place in the order, so replicas stay alike; then the calls that wait are tried again. A
//! copy that is on its way does it when it has come, in its turn among what was ordered meanwhile.

use dhole_model::{NodeId, ObjectId};

use super::call::Refusal;
use super::entry::{Deferred, Place};
use super::host::Host;
use super::{Objects, ObjectsCommand, Out};

impl Objects {
    /// Makes this the part of a node in a run that goes on when nodes are lost.
    pub fn survive(&mut self) {
        self.survives = true;
    }

    /// The nodes that are lost.
    pub fn gone(&self) -> impl Iterator<Item = NodeId> {
        self.gone.keys().copied()
    }

    /// These nodes are lost, at this place in the order.
    pub(super) fn lose(&mut self, nodes: &[NodeId], host: &mut dyn Host, out: Out<'_>) {
        for node in nodes {
            self.gone.get_or_insert(*node, self.delivered);
        }
        let gone = self.gone.clone();
        self.held.retain(|(from, _)| !gone.contains_key(from));
        let mut objects: Vec<ObjectId> = self.table.keys().copied().collect();
        objects.sort_unstable();
        for object in objects {
            if let Some(entry) = self.table.get_mut(&object) {
                let waits = |by: NodeId| !gone.contains_key(&by);
                entry.blocked.retain(|waiting| waits(waiting.call.id.node));
                entry.requests.retain(|call| waits(call.id.node));
            }
            self.lose_state(object, host, out);
            self.lose_copy(object);
            self.hear_of_loss(self.delivered, object, nodes, host, out);
            self.take_postponed(object, host, out);
        }
        self.lose_callers(nodes, host, out);
        self.give_up_calls(out);
        self.compare_without_gone(host, out);
        self.go_if_all_met(out);
    }

    /// The state of an object was on its way from a node that is gone.
    fn lose_state(&mut self, object: ObjectId, host: &mut dyn Host, out: Out<'_>) {
        let Some(entry) = self.table.get(&object) else {
            return;
        };
        match (entry.place, entry.comes_from) {
            (Place::Coming, Some(from)) if self.gone.contains_key(&from) => {
                let (state, blocked) = (Err(Refusal::Lost(from)), Vec::new());
                self.arrived(object, state, blocked, host, out);
            }
            (Place::Spreading(from), _) if self.gone.contains_key(&from) => {
                let state = Err(Refusal::Lost(from));
                self.install(self.delivered, object, &state, &[], host, out);
            }
            _ => {}
        }
    }

    /// The copy here, if there is one, does what a loss of these nodes means for it; if it is to
    /// come, it does so then.
    pub(super) fn hear_of_loss(
        &mut self,
        sequence: u64,
        object: ObjectId,
        nodes: &[NodeId],
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let Some(entry) = self.table.get_mut(&object) else {
            return;
        };
        let place = entry.place;
        match place {
            Place::Here | Place::Replicated => {}
            Place::Coming | Place::Spreading(_) => {
                let gone = Deferred::Gone(nodes.to_vec());
                entry.deferred.push_back((sequence, gone));
                return;
            }
            // Its type has no operation for a loss.
            Place::Unknown | Place::At(_) | Place::Lost(_) | Place::Monitored => return,
        }
        // What was deferred before the loss may have come to wait since.
        let waits = |by: NodeId| !nodes.contains(&by);
        entry.blocked.retain(|waiting| waits(waiting.call.id.node));
        let losses = nodes.iter().map(|node| host.lose(object, *node));
        let Some(operation) = losses.fold(None, Option::or) else {
            return;
        };
        self.acquire_due = true;
        if place == Place::Replicated {
            self.remember(object, sequence, operation, host);
            self.retry_replica(sequence, object, host, out);
        } else {
            self.retry(object, host, out);
        }
    }

    /// An object that was just made hears of the nodes that are gone already.
    pub(super) fn hear_of_earlier_losses(&self, object: ObjectId, host: &mut dyn Host) {
        for node in self.gone.keys() {
            host.lose(object, *node);
        }
    }

    /// The only copy of an object was on a node that is gone, if it was.
    pub(super) fn lose_copy(&mut self, object: ObjectId) {
        if let Some(entry) = self.table.get_mut(&object)
            && let Place::At(node) = entry.place
            && self.gone.contains_key(&node)
        {
            entry.place = Place::Lost(node);
        }
    }

    /// Whoever was asked to execute calls of this node's worker is gone.
    fn give_up_calls(&mut self, out: Out<'_>) {
        let gone = &self.gone;
        self.batches.retain(|to, _| !gone.contains_key(to));
        for (call, to) in self.pending.of(|to| gone.contains_key(&to)) {
            let object = self.pending.call(call, self.me).map(|call| call.object);
            self.pending.forget(call);
            let place = object.and_then(|object| self.place(object));
            let outcome = Err(match place {
                // It may have gone on with the object, or come back.
                Some(Place::Lost(node)) if node == to => Refusal::Lost(node),
                Some(_) => Refusal::Unanswered(to),
                None => Refusal::Lost(to),
            });
            out.push(ObjectsCommand::Finished { call, outcome });
        }
    }
}
