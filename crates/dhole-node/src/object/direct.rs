//! Effects of the objects' machine that are carried out as it calls them, under the node's lock:
//! a call and its reply go to the port as bytes, and the result of the call that the worker waits
//! for lies where the worker looks for it, before the step is over.
//!
//! An effect goes *at once* where nothing is recorded or queued that comes before it; else it is
//! recorded, and carried out with the rest after the step, in its order.

#[cfg(test)]
pub(super) mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{MessageKind, NodeId, Notify};
use dhole_protocol::ProtocolError;
use dhole_protocol::group::{Group, GroupCommand, GroupError, GroupEvent};
use dhole_protocol::objects::codec::{self, OperationReply, OperationRequest, ParsedOperation};
use dhole_protocol::objects::{Objects, ObjectsCommand, ObjectsEffects, Ordered, Refusal};
use dhole_wire::Wire;
use smallvec::smallvec;

use super::copies::{self, Hosting};
use super::order::{self, Sent, notice_bytes};
use super::step::Turn;
use crate::node::State;
use crate::step::{Posts, Step};

/// Effects that are carried out as they come.
pub(crate) struct Direct<'a, 's> {
    commands: &'a mut Vec<ObjectsCommand>,
    /// The bytes of a message, but for arguments and results.
    head: &'a mut Vec<u8>,
    /// The call that the worker waits for, if its result may be told at once.
    awaited: Option<u64>,
    /// Its result.
    result: &'a mut Vec<u8>,
    posts: Posts<'a, 's>,
    me: NodeId,
    /// Nodes may be lost: then messages go with the others, for whom they are for is noted there.
    survives: bool,
    group: &'a mut Group<Arc<Ordered>>,
    pub(super) group_commands: &'a mut Vec<GroupCommand<Arc<Ordered>>>,
    pub(super) delivered: &'a mut VecDeque<Turn>,
    /// One message of the machine reaches all others.
    multicasts: bool,
    done: Done,
}

/// What was carried out, and is still to be counted.
#[derive(Default)]
struct Done {
    sent: Option<Sent>,
    broadcasts: u64,
    /// The call that is over.
    answered: Option<u64>,
}

impl<'s> Direct<'_, 's> {
    /// Sends a message of these bytes, behind those of its head, if it may go at once and the port
    /// has room; whether it went. One of a step does.
    #[inline]
    fn sends(&mut self, to: NodeId, behind: &[u8], notify: Notify) -> bool {
        let may = self.is_first() && self.posts.out.is_empty();
        let at_once = self.posts.at_once.as_mut().filter(|_| may);
        at_once.is_some_and(|at_once| at_once(to, [self.head, behind, &[]], notify))
    }

    /// Whether the step has sent and recorded nothing, and messages may be sent at once.
    #[inline]
    fn is_first(&self) -> bool {
        self.commands.is_empty() && self.done.sent.is_none() && !self.survives
    }

    /// The group, and what carries out its effects.
    #[inline]
    fn order(&mut self, waits: bool) -> (&mut Group<Arc<Ordered>>, order::Direct<'_, 's>) {
        let fx = order::Direct {
            commands: self.group_commands,
            delivered: self.delivered,
            head: self.head,
            sent: &mut self.done.sent,
            posts: self.posts.again(),
            me: self.me,
            awaited: self.awaited,
            waits,
            multicasts: self.multicasts,
            survives: self.survives,
        };
        (self.group, fx)
    }

    /// Multicasts this at once, if it may go and the group has nothing else under way.
    ///
    /// # Errors
    /// It, if not; then nothing has happened.
    #[inline]
    fn broadcast_at_once(&mut self, body: Arc<Ordered>) -> Result<(), Arc<Ordered>> {
        if !self.is_first() || !self.group_commands.is_empty() {
            return Err(body);
        }
        let bytes = body.wire_len();
        let (group, mut fx) = self.order(false);
        group.broadcast_uncontended(body, bytes, &mut fx)?;
        self.done.broadcasts += 1;
        Ok(())
    }

    /// Lets the group take a step. `waits` says whether its originator waits for a broadcast that
    /// is to be numbered.
    #[inline]
    pub(super) fn step_group(
        &mut self,
        event: GroupEvent<Arc<Ordered>>,
        waits: bool,
    ) -> Result<(), GroupError> {
        let (group, mut fx) = self.order(waits);
        group.step(event, 0, &mut fx)
    }
}

impl ObjectsEffects for Direct<'_, '_> {
    #[inline]
    fn commands(&mut self) -> &mut Vec<ObjectsCommand> {
        self.commands
    }

    #[inline]
    fn call(&mut self, to: NodeId, request: OperationRequest<'_>) {
        // Only what the worker waits for next goes in the way of what is waited for.
        if self.awaited == Some(request.call.id.number) && self.posts.from == self.me {
            self.head.clear();
            request.write_head(self.head);
            if self.sends(to, request.call.arguments, Notify::Now) {
                self.done.sent = Some(Sent {
                    to: smallvec![to],
                    kind: MessageKind::OperationRequest,
                    bytes: self.head.len() + request.call.arguments.len(),
                    notices: notice_bytes(request.news.as_deref()),
                });
                return;
            }
        }
        let message = request.into();
        self.commands.push(ObjectsCommand::Send { to, message });
    }

    #[inline]
    fn reply(&mut self, to: NodeId, reply: OperationReply<'_>) {
        // A worker that has executed something goes on, and whoever waits for that is woken.
        if self.posts.from != self.me {
            self.head.clear();
            reply.write_head(self.head);
            if self.sends(to, reply.result(), Notify::Lazy) {
                self.done.sent = Some(Sent {
                    to: smallvec![to],
                    kind: MessageKind::OperationReply,
                    bytes: self.head.len() + reply.result().len(),
                    notices: notice_bytes(reply.news.as_deref()),
                });
                return;
            }
        }
        let message = reply.into();
        self.commands.push(ObjectsCommand::Send { to, message });
    }

    #[inline]
    fn broadcast(&mut self, body: Arc<Ordered>) {
        if let Err(body) = self.broadcast_at_once(body) {
            self.commands.push(ObjectsCommand::Broadcast(body));
        }
    }

    #[inline]
    fn finished(&mut self, call: u64, outcome: Result<&[u8], Refusal>) {
        match outcome {
            Ok(result) if self.awaited == Some(call) && self.commands.is_empty() => {
                copies::empty(self.result);
                self.result.extend_from_slice(result);
                self.done.answered = Some(call);
            }
            outcome => {
                let outcome = outcome.map(Into::into);
                self.commands
                    .push(ObjectsCommand::Finished { call, outcome });
            }
        }
    }
}

impl State {
    /// Lets the objects' machine, or the group, take a step whose effects are carried out as they
    /// come. Then the machine takes what the group delivered, and what was recorded is carried out.
    #[inline]
    pub(super) fn objects_directly<A>(
        &mut self,
        step: &mut Step<'_, '_>,
        act: A,
    ) -> Result<(), ProtocolError>
    where
        A: FnOnce(
            &mut Objects,
            &mut Hosting<'_, '_>,
            &mut Direct<'_, '_>,
        ) -> Result<(), ProtocolError>,
    {
        let here = &mut self.here;
        let survives = self.membership.is_on();
        let awaited = here.awaited.filter(|_| !survives);
        let mut fx = Direct {
            commands: &mut here.commands,
            head: &mut self.object,
            awaited: awaited.filter(|call| !here.started.contains(*call)),
            result: &mut here.result,
            posts: Posts {
                from: step.from,
                out: step.out,
                at_once: &mut step.at_once,
            },
            me: self.id,
            survives,
            group: &mut here.group,
            group_commands: &mut here.group_commands,
            delivered: &mut here.delivered,
            multicasts: here.multicasts,
            done: Done::default(),
        };
        let mut host = Hosting {
            copies: &mut here.copies,
            protocol: &mut self.protocol,
            heap: step.heap,
            sections: &mut here.sections,
        };
        let mut stepped = act(&mut here.machine, &mut host, &mut fx);
        // What is recorded comes first, and whoever takes what is delivered goes on with it.
        while !here.taking && fx.commands.is_empty() && fx.group_commands.is_empty() {
            let is_ordered = |turn: &mut Turn| matches!(turn, Turn::Ordered(..));
            let Some(Turn::Ordered(sequence, from, body)) = fx.delivered.pop_front_if(is_ordered)
            else {
                break;
            };
            let (machine, turn) = (&mut here.machine, (sequence, from));
            stepped = stepped.and(machine.deliver_ordered(turn, &body, &mut host, &mut fx));
        }
        let Done {
            sent,
            broadcasts,
            answered,
        } = fx.done;
        // What is counted can be counted while the message is on its way.
        if let Some(sent) = sent {
            for to in sent.to {
                self.protocol.count_objects(to, true);
                self.counting.sent_as(sent.kind, sent.bytes);
                self.counting.all.write_notice_bytes += sent.notices;
            }
        }
        self.counting.all.broadcasts += broadcasts;
        if let Some(call) = answered {
            self.here.answered = Some(call);
            self.goes_on_after(call);
        }
        if self.here.sections.has_ran() {
            stepped = stepped.and(self.after_sections(step));
        }
        step.out.work().units += std::mem::take(&mut self.here.sections.units);
        step.out.work().operations_ns += std::mem::take(&mut self.here.copies.executed_ns);
        match self.here.is_carried_out() {
            true => stepped,
            false => self.carry_out_recorded(stepped, step),
        }
    }

    /// Whether a message about objects from this node may be taken by its bytes: no node may be
    /// lost.
    #[inline]
    pub(super) fn may_take_object_bytes(&self, from: NodeId) -> bool {
        self.ended().is_none() && !self.membership.is_on() && from.index() < self.nodes
    }

    /// Takes a call of an object here, or the reply to one, by its bytes. `None` where it is to be
    /// taken as a message; then nothing has happened.
    pub(crate) fn take_operation(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        step: &mut Step<'_, '_>,
    ) -> Option<Result<(), ProtocolError>> {
        if !self.may_take_object_bytes(from) {
            return None;
        }
        let parsed = codec::parse(bytes)?;
        self.protocol.count_objects(from, false);
        Some(match parsed {
            ParsedOperation::Request(request) => self
                .objects_directly(step, |machine, host, fx| {
                    machine.deliver_request(from, request, host, fx)
                }),
            ParsedOperation::Reply(reply) => self.objects_directly(step, |machine, _, fx| {
                machine.deliver_reply(from, reply, fx)
            }),
        })
    }
}
