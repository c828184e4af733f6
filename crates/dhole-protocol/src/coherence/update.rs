//! The receiver's side of the update protocol: pushed copies that wait to be read.
//!
//! A push never decides what is valid: notices do, as in the lazy protocol. A pushed copy is kept
//! aside, and the object's handle stays null, until a miss finds that the copy is new enough and
//! takes it instead of asking another node. So whether pushes are read is known at no cost on a
//! hit, and a push that is late, lost or dropped costs a fetch and nothing else.

use std::collections::BTreeMap;

use dhole_model::{Oid, OidRange, Version};

use crate::coherence::copyset::CopySets;
use crate::command::{Command, Commands};
use crate::{Pushed, Sent};

/// The most bytes of pushed copies that wait on a node. A push beyond it is dropped.
pub(crate) const MOST_KEPT_BYTES: u64 = 16 << 20;

/// So many pushes in a row that nobody read make their receiver drop out of the copyset.
pub(crate) const MOST_UNREAD: u8 = 2;

/// One node's part of the update protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Update {
    /// Who reads what is written here.
    pub copysets: CopySets,
    /// What was pushed here.
    pub inbox: Inbox,
    /// Pushes of older versions are of no use: objects have changed protocol since.
    pub pushes_from: u64,
}

impl Update {
    /// An object is kept consistent otherwise from now on, or was freed.
    pub fn forget(&mut self, oid: Oid, out: &mut Commands) {
        self.copysets.forget(oid);
        self.inbox.forget(oid, out);
    }
}

/// The pushes of a node since it last read what was pushed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Inbox {
    pushes: BTreeMap<Oid, Push>,
    bytes: u64,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Push {
    version: Version,
    /// Bytes kept aside; 0 where the copy was dropped.
    bytes: u64,
    /// Pushes before this one that were not read.
    unread: u8,
}

impl Inbox {
    /// Takes a push of a version that is news here, and says whether its sender should stop.
    pub fn receive(&mut self, pushed: Pushed, limit: u64, out: &mut Commands) -> bool {
        let Pushed { sent, bytes } = pushed;
        let Sent { oid, version } = sent;
        let before = self.pushes.get(&oid);
        if before.is_some_and(|before| before.version >= version) {
            out.push(Command::PassOver { bytes });
            return false;
        }
        let unread = before.map_or(0, |before| before.unread + 1);
        self.discard(oid, out);
        let fits = bytes <= limit.saturating_sub(self.bytes);
        out.push(match fits {
            true => Command::Keep { oid, bytes },
            false => Command::PassOver { bytes },
        });
        let bytes = if fits { bytes } else { 0 };
        self.bytes += bytes;
        let unread = unread.min(MOST_UNREAD);
        let push = Push {
            version,
            bytes,
            unread,
        };
        self.pushes.insert(oid, push);
        unread == MOST_UNREAD
    }

    /// The version of a kept copy that a miss may take; any other one is dropped.
    pub fn take(&mut self, oid: Oid, need: Version, out: &mut Commands) -> Option<Version> {
        let push = self.pushes.get(&oid)?;
        let fits = push.bytes > 0 && push.version >= need;
        let version = push.version;
        if fits {
            self.bytes -= push.bytes;
        } else {
            self.discard(oid, out);
        }
        self.pushes.remove(&oid);
        fits.then_some(version)
    }

    /// Whether a push of the object waits, with its bytes.
    pub fn has(&self, oid: Oid) -> bool {
        self.pushes.get(&oid).is_some_and(|push| push.bytes > 0)
    }

    /// A notice told of `version`: an older copy will never be read.
    pub fn outdate(&mut self, oid: Oid, version: Version, out: &mut Commands) {
        let push = self.pushes.get(&oid);
        if push.is_some_and(|push| push.version < version) {
            self.discard(oid, out);
        }
    }

    /// The object is kept consistent otherwise from now on, or was fetched.
    pub fn forget(&mut self, oid: Oid, out: &mut Commands) {
        if !self.pushes.is_empty() {
            self.discard(oid, out);
            self.pushes.remove(&oid);
        }
    }

    /// The objects with these ids were freed.
    pub fn forget_all(&mut self, ids: OidRange, out: &mut Commands) {
        while let Some((&oid, _)) = self.pushes.range(ids.first..=ids.last()).next() {
            self.forget(oid, out);
        }
    }

    fn discard(&mut self, oid: Oid, out: &mut Commands) {
        if let Some(push) = self.pushes.get_mut(&oid)
            && push.bytes > 0
        {
            self.bytes -= std::mem::take(&mut push.bytes);
            out.push(Command::Discard(oid));
        }
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::NodeId;

    use super::*;

    fn push(oid: u64, lamport: u64, bytes: u64) -> Pushed {
        let node = NodeId(1);
        let version = Version { lamport, node };
        let oid = Oid(oid);
        Pushed {
            sent: Sent { oid, version },
            bytes,
        }
    }

    #[test]
    fn a_push_beyond_the_limit_is_dropped_and_room_comes_back_when_others_are_read() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        inbox.receive(push(64, 1, 60), 100, &mut out);
        inbox.receive(push(65, 1, 60), 100, &mut out);
        let (oid, need) = (Oid(64), push(64, 1, 0).sent.version);
        assert_eq!(
            out,
            [
                Command::Keep { oid, bytes: 60 },
                Command::PassOver { bytes: 60 }
            ]
        );
        assert_eq!(inbox.take(Oid(65), need, &mut out), None);
        assert_eq!(inbox.take(Oid(64), need, &mut out), Some(need));
        assert_eq!(inbox, Inbox::default());
    }

    #[test]
    fn an_older_push_is_skipped_and_a_newer_one_replaces() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        inbox.receive(push(64, 2, 8), 100, &mut out);
        out.clear();
        assert!(!inbox.receive(push(64, 1, 8), 100, &mut out));
        assert_eq!(out, [Command::PassOver { bytes: 8 }]);
        out.clear();
        inbox.receive(push(64, 3, 8), 100, &mut out);
        let oid = Oid(64);
        assert_eq!(
            out,
            [Command::Discard(oid), Command::Keep { oid, bytes: 8 }]
        );
    }

    #[test]
    fn only_pushes_unread_in_a_row_make_the_receiver_drop_out() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        assert!(!inbox.receive(push(64, 1, 8), 100, &mut out));
        assert!(!inbox.receive(push(64, 2, 8), 100, &mut out));
        inbox.take(Oid(64), push(64, 2, 8).sent.version, &mut out);
        assert!(!inbox.receive(push(64, 3, 8), 100, &mut out));
        assert!(!inbox.receive(push(64, 4, 8), 100, &mut out));
        assert!(inbox.receive(push(64, 5, 8), 100, &mut out));
    }
}
