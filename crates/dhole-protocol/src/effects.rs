//! What a step of the state machine does: it calls effects.
//!
//! There are two kinds of them. A list of commands *records* them, for models, tests, and machines
//! on which messages are values. A live node *carries them out* as they come: it sends bytes and
//! installs objects before the step is over, where nothing is queued that goes before. A step
//! validates, then changes the state, then calls effects: a step that fails has called none.

use dhole_model::{NodeId, Oid};

use crate::command::{Command, Commands};
use crate::{BarrierRound, Fetch, Message, RegionCommand, Reply, Sent};

/// The effects of a step, in their order. The methods that are given here record them.
pub trait Effects {
    /// Where those effects are recorded that have no method of their own. What comes after a
    /// recorded effect is carried out after it.
    fn commands(&mut self) -> &mut Commands;

    /// Sends a [`Message::Fetch`].
    #[inline]
    fn fetch(&mut self, to: NodeId, fetch: Fetch) {
        let message = Message::Fetch(fetch);
        self.commands().push(Command::Send { to, message });
    }

    /// Sends a [`Message::BarrierRound`].
    #[inline]
    fn round(&mut self, to: NodeId, said: BarrierRound) {
        let message = Message::BarrierRound(said);
        self.commands().push(Command::Send { to, message });
    }

    /// Gathers the bytes of objects and sends them.
    #[inline]
    fn reply(&mut self, reply: Reply) {
        let command = RegionCommand::Reply(reply);
        self.commands().push(Command::Objects(command));
    }

    /// Makes the next bytes of the payload the readable copy of an object.
    #[inline]
    fn install(&mut self, sent: Sent) {
        let command = RegionCommand::Install(sent);
        self.commands().push(Command::Objects(command));
    }

    /// Makes a writable copy read-only.
    #[inline]
    fn make_clean(&mut self, oid: Oid) {
        let command = RegionCommand::MakeClean(oid);
        self.commands().push(Command::Objects(command));
    }

    /// What the worker waits for has come.
    #[inline]
    fn done(&mut self) {
        self.commands().push(Command::Done);
    }
}

impl Effects for Commands {
    #[inline]
    fn commands(&mut self) -> &mut Commands {
        self
    }
}
