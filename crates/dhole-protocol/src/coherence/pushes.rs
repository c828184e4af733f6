//! The receiver's side of pushes, and the sender's where they are not read.

use dhole_model::{NodeId, Oid};
use smallvec::SmallVec;

use super::Protocols;
use crate::coherence::update::MOST_KEPT_BYTES;
use crate::command::{Command, Commands};
use crate::{Message, Pushed, Sent};

impl Protocols {
    /// Takes pushes of objects that this node read before.
    pub fn update(&mut self, from: NodeId, pushed: &[Pushed], out: &mut Commands) {
        let mut unread = SmallVec::new();
        for pushed in pushed {
            let Sent { oid, version } = pushed.sent;
            let object = self.objects.get(oid);
            let is_late = version.lamport < self.update.pushes_from || object.known(from) > version;
            if object.freed || object.held() >= Some(version) || is_late {
                let bytes = pushed.bytes;
                out.push(Command::PassOver { bytes });
            } else if self.update.inbox.receive(*pushed, MOST_KEPT_BYTES, out) {
                unread.push(oid);
            }
        }
        if !unread.is_empty() {
            let message = Message::DropOut { objects: unread };
            out.push(Command::Send { to: from, message });
        }
    }

    /// A node does not read what is pushed to it.
    pub fn drop_out(&mut self, from: NodeId, objects: &[Oid]) {
        for oid in objects {
            self.update.copysets.leave(*oid, from);
        }
    }
}
