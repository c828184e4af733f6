//! The machine of objects in a node: its events, its messages, and what it wants done.

use std::any::TypeId;

use dhole_model::NodeId;
use dhole_net::Payload;
use dhole_protocol::objects::{Objects, ObjectsCommand, ObjectsEvent, ObjectsMessage, Outcome};
use dhole_protocol::{Message, ProtocolError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::copies::{Copies, Hosting};
use super::kind::{self, Kind, ObjectType};
use crate::node::{State, Step};

/// A node's objects with operations.
pub(crate) struct ObjectsHere {
    pub machine: Objects,
    pub copies: Copies,
    commands: Vec<ObjectsCommand>,
    /// What calls came to that their worker has not looked at.
    finished: FxHashMap<u64, Outcome>,
    /// The types of objects that the worker has named.
    met: FxHashSet<TypeId>,
    /// The call that the worker waits for.
    pub awaited: Option<u64>,
}

impl ObjectsHere {
    pub fn new(me: NodeId, nodes: usize) -> ObjectsHere {
        ObjectsHere {
            machine: Objects::new(me, nodes),
            copies: Copies::default(),
            commands: Vec::new(),
            finished: FxHashMap::default(),
            met: FxHashSet::default(),
            awaited: None,
        }
    }

    /// The worker names a type: whoever keeps a copy of one finds it from here on.
    pub fn meet<T: ObjectType>(&mut self) {
        if self.met.insert(TypeId::of::<T>()) {
            kind::register(Kind::of::<T>());
        }
    }

    /// What a call came to, if it is over.
    pub fn take_finished(&mut self, call: u64) -> Option<Outcome> {
        self.finished.remove(&call)
    }
}

impl State {
    /// A message about objects has come.
    pub(crate) fn deliver_to_objects(
        &mut self,
        from: NodeId,
        message: ObjectsMessage,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        if from.index() >= self.nodes {
            let what = "its sender is not in the cluster";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.protocol.count_objects(message.kind(), false);
        let delivered = ObjectsEvent::Deliver { from, message };
        self.step_objects(delivered, step)
    }

    /// Takes an event of the objects and does what it leads to.
    pub(crate) fn step_objects(
        &mut self,
        event: ObjectsEvent,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut commands = std::mem::take(&mut self.here.commands);
        let here = &mut self.here;
        let mut host = Hosting {
            copies: &mut here.copies,
            protocol: &self.protocol,
        };
        let stepped = here.machine.step(event, &mut host, &mut commands);
        for command in commands.drain(..) {
            match command {
                ObjectsCommand::Send { to, message } => {
                    self.protocol.count_objects(message.kind(), true);
                    let message = Message::Objects(Box::new(message));
                    self.send(to, message, Payload::NONE, step.out);
                }
                ObjectsCommand::Broadcast(_) => {}
                ObjectsCommand::Finished { call, outcome } => {
                    self.here.finished.insert(call, outcome);
                    if self.here.awaited == Some(call) {
                        self.here.awaited = None;
                        self.protocol.operation_over();
                        self.woken();
                    }
                }
            }
        }
        self.here.commands = commands;
        stepped
    }
}
