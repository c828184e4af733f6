//! Objects with monitors in the machine of objects: calls ask the [clerk](super::clerk) before they
//! begin. A call that takes a worker is executed by a process of the object's node.

use dhole_model::{NodeId, ObjectId};
use dhole_wire::WireError;

use super::call::{Call, CallId, CallRef, Outcome, Refusal, Waiting};
use super::chain::{Chain, ChainLink};
use super::host::{Admitted, Host};
use super::{Objects, ObjectsCommand, ObjectsEffects, Out};

impl Objects {
    /// Whether a call of the object here would begin at once.
    pub fn would_begin(&self, object: ObjectId, writes: bool) -> bool {
        self.clerk.is_free(object, writes)
    }

    /// A call comes to an object here that has a monitor.
    pub(super) fn comes(
        &mut self,
        call: CallRef<'_>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        let most = self.most_calls();
        if self.clerk.waiting(call.object) >= most {
            return self.finish(call.id, Err(Refusal::TooMany(most)), fx);
        }
        if let Err(why) = self.check_chain(call, host) {
            return self.finish(call.id, Err(why), fx);
        }
        if !self.clerk.comes(call.into()) {
            return self.finish(call.id, Err(Refusal::Unknown), fx);
        }
        self.admit(call.object, host, fx);
        // The next synchronisation of its caller waits for what executes at once, and for no other.
        if call.started && self.clerk.knows(call.object, call.id) {
            self.started_is_blocked(call.id, fx.commands());
        }
    }

    /// Refuses a call that waits for its own callers.
    fn check_chain(&self, call: CallRef<'_>, host: &dyn Host) -> Result<(), Refusal> {
        if call.chain.is_empty() {
            return Ok(());
        }
        let malformed = |cause: WireError| Refusal::Malformed(cause.to_string().into());
        let chain = Chain::of(call.chain).map_err(malformed)?;
        if !self.clerk.waits_for(call.object, chain.links()) {
            return Ok(());
        }
        let operation = host.name_of(call.object, call.operation);
        let holds = |link: &ChainLink| self.clerk.are_beside(link.object, call.object);
        let chain = chain.circle(holds, (call.object, operation));
        Err(Refusal::Reentrant { chain })
    }

    /// Lets all calls begin that may, of this object and of those that are in a clerk with it.
    pub(super) fn admit(
        &mut self,
        object: ObjectId,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        while let Some(call) = self.clerk.begin(object) {
            self.begins(call, host, fx);
        }
    }

    /// A call holds the monitor of its object.
    fn begins(&mut self, call: Call, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        match host.admits(call.by_ref()) {
            Ok(Admitted::AtOnce) => self.executes_at_once(&call, host, fx),
            Ok(Admitted::ByProcess) => fx.commands().push(ObjectsCommand::Execute(call)),
            Ok(Admitted::Blocked) => self.clerk.is_blocked(call.object, call.id),
            Err(refusal) => {
                self.clerk.over(call.object, call.id);
                self.finish(call.id, Err(refusal), fx);
            }
        }
    }

    fn executes_at_once(&mut self, call: &Call, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        if call.id.node == self.me && call.writes {
            self.hear_own(host);
        }
        let (executed, result) = self.apply(call.by_ref(), host);
        match executed.map(|done| done.then_some(&result[..])).transpose() {
            None => self.clerk.is_blocked(call.object, call.id),
            Some(outcome) => {
                self.clerk.over(call.object, call.id);
                self.finish(call.id, outcome, fx);
            }
        }
        self.keep_room(result);
    }

    /// A process has executed a call here, after the end of its last interval.
    pub(super) fn executed_by_process(
        &mut self,
        (id, object): (CallId, ObjectId),
        outcome: &Outcome,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        self.hear_own(host);
        let beside = self.clerk.over(object, id);
        if !self.gone.contains_key(&id.node) {
            let outcome = match outcome {
                Ok(result) => Ok(&result[..]),
                // The object was freed before the process began.
                Err(Refusal::Unknown) => Err(self.why_not(object)),
                Err(refusal) => Err(refusal.clone()),
            };
            self.finish(id, outcome, fx);
        }
        self.admit(object, host, fx);
        if let Some(group) = beside {
            while let Some(call) = self.clerk.begin_beside(group) {
                self.begins(call, host, fx);
            }
        }
    }

    /// These nodes are lost: their calls that wait for monitors never begin.
    pub(super) fn lose_callers(&mut self, nodes: &[NodeId], host: &mut dyn Host, out: Out<'_>) {
        self.clerk.lose(|node| nodes.contains(&node));
        for object in self.clerk.objects() {
            self.admit(object, host, out);
        }
    }

    /// The object goes elsewhere, out of its clerk. The calls that wait go along, unless the object
    /// is lost, for its type stays.
    pub(super) fn leave_clerk(&mut self, object: ObjectId, host: &dyn Host, out: Out<'_>) {
        if let Some(why) = host.stays(object) {
            return self.dissolve(object, &why, out);
        }
        let told_by = &self.told_by;
        let waits = |call: Call| Waiting {
            time: told_by.get(&call.id.node).cloned(),
            call,
        };
        let calls = self.clerk.remove(object).into_iter().map(waits);
        if let Some(entry) = self.table.get_mut(&object) {
            entry.blocked.extend(calls);
        }
    }

    /// The object has no monitor any more: the calls that wait for it are refused.
    pub(super) fn dissolve(&mut self, object: ObjectId, why: &Refusal, out: Out<'_>) {
        for call in self.clerk.remove(object) {
            self.finish(call.id, Err(why.clone()), out);
        }
    }
}
