//! Which nodes are left in a run that goes on when nodes are [lost](crate::losses).

use std::sync::Arc;

use dhole_model::NodeId;
use dhole_protocol::objects::ObjectsMessage;
use dhole_protocol::{Message, ProtocolError};
use smallvec::SmallVec;

use crate::machine::LostNode;

/// What a node knows of losses.
#[derive(Default)]
pub(crate) struct Membership {
    /// Whether the run goes on when nodes are lost.
    pub on: bool,
    /// The nodes that the group has gone on without, and how they were lost, in order.
    pub gone: Vec<LostNode>,
    /// How the port here lost nodes.
    pub told: Vec<(NodeId, Arc<str>)>,
    /// The worker waits.
    pub waits: bool,
    /// Steps of the worker send, and not those of a handler.
    pub worker_steps: bool,
    /// Whom the worker's last step sent something.
    pub sent_to: SmallVec<[NodeId; 4]>,
    /// What ended a wait of the worker for anything but objects with operations. The protocol has
    /// given up, and waits for nothing else.
    pub cut: Option<ProtocolError>,
}

impl Membership {
    /// Nobody is lost, and the run goes on or not when somebody is.
    pub fn new(on: bool) -> Membership {
        Membership {
            on,
            ..Membership::default()
        }
    }

    /// Whether the run goes on when nodes are lost.
    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn is_gone(&self, node: NodeId) -> bool {
        self.gone.iter().any(|gone| gone.node == node)
    }

    /// The worker's next step begins, or has ended.
    pub fn worker_steps(&mut self, steps: bool) {
        self.worker_steps = steps;
    }

    pub fn worker_begins(&mut self) {
        self.sent_to.clear();
    }

    /// A message goes to a node; whether it is worth the while.
    pub fn sends(&mut self, to: NodeId, message: &Message) -> bool {
        // Objects know themselves whom they wait for.
        if self.on && self.worker_steps && !matches!(message, Message::Objects(_)) {
            self.sent_to.push(to);
        }
        // Whoever is gone and lives has to hear of that from the group.
        !self.is_gone(to) || is_of_group(message)
    }

    /// The worker's wait is over.
    pub fn waited(&mut self) {
        self.waits = false;
    }

    /// What made it useless to wait for anything but objects with operations.
    pub fn cut(&self) -> Result<(), ProtocolError> {
        self.cut.clone().map_or(Ok(()), Err)
    }
}

pub(crate) fn is_of_group(message: &Message) -> bool {
    matches!(message, Message::Objects(about) if matches!(**about, ObjectsMessage::Group(_)))
}
