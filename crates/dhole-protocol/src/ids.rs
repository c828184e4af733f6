//! Where nodes get more object ids: from node 0.
//!
//! Between processes each node begins with a part of the ids of its own. A node that has used it up
//! asks node 0 for another and waits for it; parts grow, so that it seldom asks. Which ids they are
//! is the heap's to say: here is who may say what, and when.

use dhole_model::NodeId;

use crate::Message;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::handed_out::HandedOut;

/// The node that hands parts of the ids out.
const MANAGER: NodeId = NodeId(0);

/// One node's part in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ids {
    me: NodeId,
    /// How many ids this node has asked for, while it waits for them.
    asked: Option<u64>,
}

impl Ids {
    pub fn new(me: NodeId) -> Ids {
        Ids { me, asked: None }
    }

    /// The worker needs so many ids that follow on each other, and waits for them.
    pub fn ask(&mut self, ids: u64, out: &mut Commands) {
        if self.me == MANAGER {
            out.extend([Command::HandOutIds { to: self.me, ids }, Command::Done]);
            return;
        }
        self.asked = Some(ids);
        let (to, message) = (MANAGER, Message::AskIds { ids });
        out.push(Command::Send { to, message });
    }

    /// Another node asks.
    pub fn asked(&self, from: NodeId, ids: u64, out: &mut Commands) -> Result<(), ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        if self.me != MANAGER {
            return bad("a request for ids at a node that hands none out");
        }
        if ids == 0 {
            return bad("a request for no ids");
        }
        out.push(Command::HandOutIds { to: from, ids });
        Ok(())
    }

    /// The answer.
    pub fn got(
        &mut self,
        from: NodeId,
        handed: HandedOut,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        let Some(asked) = self.asked.filter(|_| from == MANAGER) else {
            return bad("ids that were not asked for");
        };
        let ends = handed.first.checked_add(handed.count).is_some();
        if handed.count != 0 && (handed.count < asked || !ends) {
            return bad("fewer ids than were asked for");
        }
        self.asked = None;
        out.extend([Command::TakeIds(handed), Command::Done]);
        Ok(())
    }
}
