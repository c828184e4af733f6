//! Calls that their caller withdraws, because its time is over. A call that has begun comes to its
//! end. One that waits for its guard, or for the monitor of its object, is over at once with
//! [`Refusal::Withdrawn`], and is never executed.
//!
//! The caller tells the node that has the only copy. Where each replica holds the call back, the
//! withdrawal has its place in the order of multicasts, behind the call. The caller sees each
//! change of the object's place in that order, and withdraws again at the new place.
//!
//! Messages may overtake each other. So a node that does not know a call which is withdrawn says
//! so, and the caller withdraws again while it has no answer to the call.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId};

use super::call::{Call, CallId, Refusal};
use super::entry::{Deferred, Place};
use super::host::Host;
use super::message::{ObjectsMessage, Ordered};
use super::{Objects, ObjectsCommand, Out};

impl Objects {
    /// The worker withdraws a call of its own, which is not over.
    pub(super) fn withdraw_own(
        &mut self,
        (call, object): (u64, ObjectId),
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        self.withdrawn.insert(call, object);
        self.withdraw(self.own(call), object, host, out);
    }

    /// The worker has seen the end of a call that it may have withdrawn.
    pub fn forget_withdrawal(&mut self, call: u64) {
        self.no_longer_withdrawn(call);
    }

    /// Whether the worker has withdrawn this call of its own.
    pub(super) fn is_withdrawn(&self, call: u64) -> bool {
        self.withdrawn.contains_key(&call)
    }

    /// The object is kept elsewhere, or otherwise, now: withdraws the calls of the worker's again.
    pub(super) fn withdraw_again(&mut self, object: ObjectId, host: &mut dyn Host, out: Out<'_>) {
        let of_it = self.withdrawn.iter().filter(|(_, of)| **of == object);
        let calls: Vec<u64> = of_it.map(|(call, _)| *call).collect();
        for call in calls {
            self.withdraw(self.own(call), object, host, out);
        }
    }

    /// A call that was multicast has its turn where the object has one copy. If the worker has
    /// withdrawn the call before, it is withdrawn there.
    pub(super) fn withdraw_once_placed(&mut self, call: &Call, host: &mut dyn Host, out: Out<'_>) {
        if call.id.node == self.me && self.is_withdrawn(call.id.number) {
            self.withdraw(call.id, call.object, host, out);
        }
    }

    /// A call is withdrawn as far as this node can do that.
    pub(super) fn withdraw(
        &mut self,
        by: CallId,
        object: ObjectId,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let is_own = by.node == self.me;
        if let Some((_, home)) = object.lock() {
            if home == self.me {
                self.withdraw_blocked(by, object, out);
                return self.forget_idle_lock(object, host);
            }
            return self.ask_to_withdraw(home, by, object, host, out);
        }
        let delivered = self.delivered;
        let Some(entry) = self.table.get_mut(&object) else {
            return self.not_withdrawn(by, object, out);
        };
        match entry.place {
            Place::Here => self.withdraw_blocked(by, object, out),
            Place::Monitored => {
                if self.clerk.withdraw(object, by) {
                    self.finish(by, Err(Refusal::Withdrawn), out);
                    self.admit(object, host, out);
                } else if !self.clerk.knows(object, by) {
                    self.not_withdrawn(by, object, out);
                }
            }
            // The node that was asked answers, or says that the object has gone elsewhere.
            Place::Replicated if is_own && self.pending.contains(by.number) => {}
            // What only reads waits with the caller's replica, and what writes with all replicas.
            Place::Replicated if is_own => {
                let mut blocked = entry.blocked.iter();
                match blocked.find(|it| it.call.id == by) {
                    Some(waiting) if !waiting.call.writes => {
                        self.withdraw_blocked(by, object, out);
                    }
                    _ => {
                        let withdraw = Ordered::Withdraw { by, object };
                        out.push(ObjectsCommand::Broadcast(Arc::new(withdraw)));
                    }
                }
            }
            Place::At(_) | Place::Unknown if is_own => {
                if let Some(to) = self.asked_at(object) {
                    self.ask_to_withdraw(to, by, object, host, out);
                }
            }
            Place::Coming | Place::Spreading(_) => {
                let calls = [&mut entry.postponed, &mut entry.requests];
                let taken = calls.into_iter().find_map(|all| {
                    let place = all.iter().position(|call| call.id == by)?;
                    Some(all.remove(place))
                });
                match taken {
                    Some(_) => self.finish(by, Err(Refusal::Withdrawn), out),
                    // The worker's own are withdrawn again when the object is there.
                    None if is_own => {}
                    None => {
                        let withdraw = Deferred::Withdraw(by);
                        entry.deferred.push_back((delivered, withdraw));
                    }
                }
            }
            Place::Replicated | Place::At(_) | Place::Unknown | Place::Lost(_) => {
                self.not_withdrawn(by, object, out);
            }
        }
    }

    /// A withdrawal has its turn in the order: whoever has the copy carries it out.
    pub(super) fn withdraw_in_order(
        &mut self,
        by: CallId,
        object: ObjectId,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        let Some(entry) = self.table.get_mut(&object) else {
            return;
        };
        match entry.place {
            Place::Replicated => {
                let waiting = entry.blocked.len();
                entry.blocked.retain(|it| it.call.id != by);
                let is_found = entry.blocked.len() < waiting;
                if is_found {
                    self.over(by, Err(Refusal::Withdrawn), out);
                } else if by.node == self.me && self.is_withdrawn(by.number) {
                    // The call is yet to have its turn.
                    let withdraw = Ordered::Withdraw { by, object };
                    out.push(ObjectsCommand::Broadcast(Arc::new(withdraw)));
                }
            }
            Place::At(_) | Place::Unknown => {}
            _ => self.withdraw(by, object, host, out),
        }
    }

    /// Takes a call from those that wait for their guards here, if it is one.
    fn withdraw_blocked(&mut self, by: CallId, object: ObjectId, out: Out<'_>) {
        let entry = self.table.get_mut(&object);
        let taken = entry.and_then(|entry| {
            let place = entry.blocked.iter().position(|it| it.call.id == by)?;
            entry.blocked.remove(place)
        });
        match taken {
            Some(_) => self.finish(by, Err(Refusal::Withdrawn), out),
            None => self.not_withdrawn(by, object, out),
        }
    }

    /// Tells another node that a call is not known here which it withdraws.
    fn not_withdrawn(&mut self, by: CallId, object: ObjectId, out: Out<'_>) {
        if by.node == self.me {
            return;
        }
        let message = ObjectsMessage::NotWithdrawn {
            call: by.number,
            object,
            delivered: self.delivered,
        };
        let to = by.node;
        out.push(ObjectsCommand::Send { to, message });
    }

    /// A call of the worker's is over.
    #[inline]
    pub(super) fn no_longer_withdrawn(&mut self, call: u64) {
        if !self.withdrawn.is_empty() {
            self.withdrawn.remove(&call);
        }
    }

    fn ask_to_withdraw(
        &mut self,
        to: NodeId,
        by: CallId,
        object: ObjectId,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        if by.node != self.me || !self.pending.contains(by.number) {
            return;
        }
        // The call may wait here to go with others.
        self.send_batches(host, out);
        let message = ObjectsMessage::Withdraw {
            by,
            object,
            delivered: self.delivered,
        };
        out.push(ObjectsCommand::Send { to, message });
    }
}
