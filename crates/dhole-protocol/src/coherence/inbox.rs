//! Inboxes: copies that were pushed to a node wait there until it reads them.
//!
//! A push never decides what is valid: notices do. A pushed copy is kept aside, and the object's
//! handle stays null, until a miss finds that the copy is new enough and takes it instead of asking
//! another node. So whether pushes are read is known at no cost on a hit, and a push that is late,
//! lost or dropped costs a fetch and nothing else.
//!
//! [Update](super::update), [propagation](super::propagating) and members push.

use dhole_model::{OidRange, Version};

use crate::RegionCommand;
use crate::coherence::kind::Kind;
use crate::coherence::region::{Region, RegionMap, push_region};
use crate::command::{Command, Commands};

/// The most bytes of pushed copies of one kind that wait on a node. A push beyond it is dropped.
pub(super) const MOST_KEPT_BYTES: u64 = 16 << 20;

/// So many pushes in a row that nobody read make their receiver drop out of the copyset.
const MOST_UNREAD: u8 = 2;

/// A pushed copy of a part of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Kept {
    /// Its version; none where nothing was pushed since it was read.
    version: Option<Version>,
    /// Bytes of each object or element kept aside; 0 where the copy was dropped.
    each: u64,
    /// Pushes before this one that were not read.
    unread: u8,
}

/// The pushes of a node since it last read what was pushed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Inbox<R: Region> {
    kept: RegionMap<R, Kept>,
    bytes: u64,
}

impl<R: Region> Default for Inbox<R> {
    fn default() -> Self {
        let kept = RegionMap::default();
        Inbox { kept, bytes: 0 }
    }
}

impl<R: Kind> Inbox<R> {
    /// Takes a push of a version that is news here, of so many bytes `each`; adds to `unread` what
    /// its sender should not push any more. No more than `limit` bytes are kept.
    pub fn receive(
        &mut self,
        (region, version): (R, Version),
        (each, limit): (u64, u64),
        unread: &mut Vec<R>,
        out: &mut Commands,
    ) {
        let all = &mut self.bytes;
        self.kept.update(region, |part, kept| {
            let bytes = each * part.units();
            if kept.version >= Some(version) {
                out.push(Command::PassOver { bytes });
                return;
            }
            let before = kept.version.map_or(0, |_| kept.unread + 1);
            discard(part, kept, all, out);
            let fits = bytes <= limit.saturating_sub(*all);
            out.push(match fits {
                true => R::command(RegionCommand::Keep {
                    region: part,
                    bytes,
                }),
                false => Command::PassOver { bytes },
            });
            *kept = Kept {
                version: Some(version),
                each: if fits { each } else { 0 },
                unread: before.min(MOST_UNREAD),
            };
            *all += kept.each * part.units();
            if kept.unread == MOST_UNREAD {
                push_region(unread, part);
            }
        });
    }

    /// Calls `taken` with the parts of which a kept copy may be taken, and its version; others are
    /// dropped.
    #[inline]
    pub fn take(
        &mut self,
        region: R,
        need: Version,
        out: &mut Commands,
        mut taken: impl FnMut(R, Version),
    ) {
        let all = &mut self.bytes;
        self.kept.change(region, |part, kept| {
            match kept.version.filter(|v| kept.each > 0 && *v >= need) {
                Some(version) => {
                    *all -= kept.each * part.units();
                    taken(part, version);
                }
                None => discard(part, kept, all, out),
            }
            *kept = Kept::default();
        });
    }

    /// Whether nothing was pushed since it was read.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether a push of the region waits, or of a part of it, with its bytes.
    pub fn has(&self, region: R) -> bool {
        self.kept.of(region).any(|(_, kept)| kept.each > 0)
    }

    /// A notice told of `version`: an older copy will never be read.
    pub fn outdate(&mut self, region: R, version: Version, out: &mut Commands) {
        let all = &mut self.bytes;
        self.kept.change(region, |part, kept| {
            if kept.version < Some(version) {
                discard(part, kept, all, out);
            }
        });
    }

    /// The region is kept consistent otherwise from now on, or was fetched.
    pub fn forget(&mut self, region: R, out: &mut Commands) {
        let all = &mut self.bytes;
        self.kept.change(region, |part, kept| {
            discard(part, kept, all, out);
            *kept = Kept::default();
        });
    }

    /// The regions with these ids were freed.
    pub fn freed(&mut self, ids: OidRange, out: &mut Commands) {
        let all = &mut self.bytes;
        self.kept
            .take_all(ids, |part, kept| discard(part, kept, all, out));
    }
}

fn discard<R: Kind>(part: R, kept: &mut Kept, all: &mut u64, out: &mut Commands) {
    if kept.each > 0 {
        *all -= std::mem::take(&mut kept.each) * part.units();
        out.push(R::command(RegionCommand::Discard(part)));
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::{NodeId, Oid};

    use super::*;

    fn version(lamport: u64) -> Version {
        let node = NodeId(1);
        Version { lamport, node }
    }

    /// Whether the sender of this push should stop, where 100 bytes are kept.
    fn receive(
        inbox: &mut Inbox<Oid>,
        [oid, lamport, bytes]: [u64; 3],
        out: &mut Commands,
    ) -> bool {
        let mut unread = Vec::new();
        inbox.receive((Oid(oid), version(lamport)), (bytes, 100), &mut unread, out);
        !unread.is_empty()
    }

    fn keep(region: Oid, bytes: u64) -> Command {
        Oid::command(RegionCommand::Keep { region, bytes })
    }

    fn take(inbox: &mut Inbox<Oid>, oid: u64, out: &mut Commands) -> Option<Version> {
        let mut found = None;
        inbox.take(Oid(oid), version(1), out, |_, version| {
            found = Some(version)
        });
        found
    }

    #[test]
    fn a_push_beyond_the_limit_is_dropped_and_room_comes_back_when_others_are_read() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        receive(&mut inbox, [64, 1, 60], &mut out);
        receive(&mut inbox, [65, 1, 60], &mut out);
        let oid = Oid(64);
        assert_eq!(out, [keep(oid, 60), Command::PassOver { bytes: 60 }]);
        assert_eq!(take(&mut inbox, 65, &mut out), None);
        assert_eq!(take(&mut inbox, 64, &mut out), Some(version(1)));
        assert_eq!(inbox, Inbox::default());
    }

    #[test]
    fn an_older_push_is_skipped_and_a_newer_one_replaces() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        receive(&mut inbox, [64, 2, 8], &mut out);
        out.clear();
        assert!(!receive(&mut inbox, [64, 1, 8], &mut out));
        assert_eq!(out, [Command::PassOver { bytes: 8 }]);
        out.clear();
        receive(&mut inbox, [64, 3, 8], &mut out);
        let oid = Oid(64);
        assert_eq!(
            out,
            [Oid::command(RegionCommand::Discard(oid)), keep(oid, 8)]
        );
    }

    #[test]
    fn only_pushes_unread_in_a_row_make_the_receiver_drop_out() {
        let (mut inbox, mut out) = (Inbox::default(), Vec::new());
        assert!(!receive(&mut inbox, [64, 1, 8], &mut out));
        assert!(!receive(&mut inbox, [64, 2, 8], &mut out));
        take(&mut inbox, 64, &mut out);
        assert!(!receive(&mut inbox, [64, 3, 8], &mut out));
        assert!(!receive(&mut inbox, [64, 4, 8], &mut out));
        assert!(receive(&mut inbox, [64, 5, 8], &mut out));
    }
}
