//! Totally ordered groups: every member delivers the same broadcasts in the same order (Orca,
//! section 2.3.1, after Kaashoek's group communication of Amoeba).

mod body;
mod command;
mod message;
mod settings;

use std::collections::{BTreeMap, VecDeque};

use dhole_model::NodeId;

pub use body::Body;
pub use command::{Ending, GroupCommand, GroupError, GroupEvent};
pub use message::{GroupMessage, Part, ViewId};
pub use settings::{Method, Quorum, Settings};

/// One member of a group.
#[derive(Clone, Debug)]
pub struct Group<B> {
    me: NodeId,
    settings: Settings,
    view: ViewId,
    members: Vec<NodeId>,
    delivered: u64,
    next_number: u64,
    serial: u64,
    own: VecDeque<u64>,
    waiting: BTreeMap<u64, (Part, B)>,
}

impl<B: Body> Group<B> {
    /// A member of the group of nodes 0 to `nodes - 1`.
    pub fn new(me: NodeId, nodes: usize, settings: Settings) -> Group<B> {
        let members = settings::first_members(nodes);
        let view = ViewId {
            number: 0,
            sequencer: members[0],
        };
        Group {
            me,
            settings,
            view,
            members,
            delivered: 0,
            next_number: 1,
            serial: 0,
            own: VecDeque::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// The other members.
    pub fn others(&self) -> impl Iterator<Item = NodeId> {
        let me = self.me;
        self.members.iter().copied().filter(move |node| *node != me)
    }

    /// The members, by seniority.
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// The number up to which everything is delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// One step.
    ///
    /// # Errors
    /// [`GroupError`]; then nothing has changed.
    pub fn step(
        &mut self,
        event: GroupEvent<B>,
        _now_ns: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), GroupError> {
        match event {
            GroupEvent::Broadcast { body, .. } => self.broadcast(body, out),
            GroupEvent::Message { from, message } => self.receive(from, message, out),
            GroupEvent::Tick | GroupEvent::Lost(_) | GroupEvent::Leave => Ok(()),
        }
    }

    fn broadcast(&mut self, body: B, out: &mut Vec<GroupCommand<B>>) -> Result<(), GroupError> {
        let limit = self.settings.queue;
        if self.own.len() >= limit {
            return Err(GroupError::Full { limit });
        }
        let part = Part {
            origin: self.me,
            serial: self.serial,
            part: 0,
            parts: 1,
        };
        self.serial += 1;
        self.own.push_back(part.serial);
        let view = self.view;
        if view.sequencer == self.me {
            self.number(part, body, out);
        } else {
            let message = GroupMessage::Submit { view, part, body };
            let to = view.sequencer;
            out.push(GroupCommand::Send { to, message });
        }
        Ok(())
    }

    fn number(&mut self, part: Part, body: B, out: &mut Vec<GroupCommand<B>>) {
        let (view, number) = (self.view, self.next_number);
        self.next_number += 1;
        let message = GroupMessage::Data {
            view,
            number,
            part,
            body: body.clone(),
        };
        out.push(GroupCommand::SendAll { message });
        self.waiting.insert(number, (part, body));
        self.deliver(out);
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: GroupMessage<B>,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), GroupError> {
        match message {
            GroupMessage::Submit { part, body, .. } if self.view.sequencer == self.me => {
                self.number(part, body, out);
                Ok(())
            }
            GroupMessage::Data {
                number, part, body, ..
            } if from == self.view.sequencer => {
                self.waiting.insert(number, (part, body));
                self.deliver(out);
                Ok(())
            }
            _ => Err(GroupError::Message {
                from,
                what: "what only a sequencer says, or is told",
            }),
        }
    }

    fn deliver(&mut self, out: &mut Vec<GroupCommand<B>>) {
        while let Some((part, body)) = self.waiting.remove(&(self.delivered + 1)) {
            self.delivered += 1;
            if part.origin == self.me {
                self.own.pop_front();
            }
            out.push(GroupCommand::Deliver {
                sequence: self.delivered,
                from: part.origin,
                body,
            });
        }
    }
}
