//! One-sided reads, as in the engine: what an owner publishes, and a read in its three parts, which
//! fall between any two steps of the owner.

use dhole_model::{NodeId, Oid, OidRange, Version};
use dhole_protocol::{Commands, Sent, Wanted, WantedList};

use crate::Bug;
use crate::model::node::{Around, Failed};
use crate::model::worker::unread;
use crate::model::{Fault, Node, Phase, Presence, Program, Wait, WriteId};

/// How often an object is read that changes meanwhile.
const ATTEMPTS: u8 = 2;

/// What a node publishes of one of its objects.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Published {
    /// Odd while the object is published.
    word: u8,
    version: Option<Version>,
    /// Whether the object is behind the gate.
    is_gated: bool,
    /// The nodes that read, as bits.
    readers: u8,
    /// A ghost: the values of the published version.
    values: Vec<WriteId>,
}

/// A first look at what a node published.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Found {
    word: u8,
    version: Version,
    values: Vec<WriteId>,
    /// The word of the gate, if the object is behind it.
    gate: Option<u8>,
}

impl Published {
    /// The object is behind the gate, in this version.
    pub(crate) fn publish_gated(&mut self, version: Version) -> Result<(), Fault> {
        let is_free = self.word.is_multiple_of(2);
        self.word += 1;
        (self.version, self.is_gated) = (Some(version), true);
        is_free.then_some(()).ok_or(Fault::Heap)
    }
}

/// A one-sided read under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Seeing {
    wanted: Wanted,
    left: u8,
    part: ReadPart,
    /// What is read ahead after it.
    ahead: Option<OidRange>,
    /// It is read ahead itself, and these are next.
    next: Option<WantedList>,
}

/// The next part of a one-sided read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ReadPart {
    Look,
    LookAtGate(Found),
    MarkGate(Found),
    Mark(Found),
    Copy(Found, Vec<WriteId>),
    LookAgain(Found, Vec<WriteId>),
}

impl Seeing {
    /// Whose memory is read.
    pub(crate) fn of(&self) -> usize {
        self.wanted.need.node.index()
    }

    /// Whether the bytes were copied, and how the second look will find them: unchanged or not.
    pub(crate) fn finds(&self, owner: &Node) -> Option<bool> {
        match &self.part {
            ReadPart::LookAgain(found, _) => {
                let is_record = owner.published[self.wanted.region.slot()].word == found.word;
                Some(is_record && found.gate.is_none_or(|word| owner.gate.word == word))
            }
            _ => None,
        }
    }

    /// Whether the bytes of an object behind a gate were copied.
    pub(crate) fn copies_gated(&self) -> bool {
        matches!(&self.part, ReadPart::LookAgain(found, _) if found.gate.is_some())
    }
}

impl Node {
    /// Others may read an object, if it is clean and this node wrote it last.
    pub(crate) fn publish(&mut self, oid: Oid, program: &Program) {
        let version = self.protocol.published(oid);
        let mut leaves = program.leaves(oid);
        let is_clean = |leaf| self.heap.readable(leaf).is_some() && !self.heap.is_writable(leaf);
        let Some(version) = version.filter(|_| program.sees && leaves.all(is_clean)) else {
            return;
        };
        let values = program
            .leaves(oid)
            .filter_map(|leaf| self.heap.readable(leaf));
        let values = values.collect();
        let published = &mut self.published[oid.slot()];
        if published.word.is_multiple_of(2) {
            published.word += 1;
            (published.version, published.is_gated) = (Some(version), false);
            published.values = values;
        }
    }

    /// Others cannot read an object any more. Who may have, as bits.
    pub(crate) fn unpublish(&mut self, oid: Oid) -> u8 {
        let Some(published) = self.published.get_mut(oid.slot()) else {
            return 0;
        };
        if published.word.is_multiple_of(2) {
            return 0;
        }
        published.word += 1;
        std::mem::take(&mut published.readers)
    }

    /// As the engine before a write and a merge: the protocol is told who has read. Whether the
    /// object is to stay clean.
    pub(crate) fn ends_version(&mut self, oid: Oid) -> bool {
        let readers = self.unpublish(oid);
        let all = (0..8).filter(|node| readers >> node & 1 == 1);
        readers != 0 && self.protocol.was_read(oid, all.map(NodeId::at))
    }

    /// As above, unless the bug leaves it out.
    pub(crate) fn ends_unless(&mut self, oid: Oid, around: &Around<'_>) -> bool {
        around.bug != Some(Bug::WritePublished) && self.ends_version(oid)
    }

    /// A miss begins with a one-sided read, if the last writer can be seen; whether it does.
    pub(crate) fn begins_to_see(
        &mut self,
        object: u8,
        presence: Presence,
        around: &Around<'_>,
    ) -> bool {
        if !around.program.sees {
            return false;
        }
        let missed = unread(object, around.program);
        let Some(wanted) = self.protocol.wants_there(&missed) else {
            return false;
        };
        self.seeing = Some(Seeing {
            wanted,
            left: ATTEMPTS,
            part: ReadPart::Look,
            ahead: self.dense_around(&missed, around.program),
            next: None,
        });
        self.phase = Phase::Seeing(presence);
        true
    }

    /// The next part of a one-sided read in the memory of `owner`.
    pub(crate) fn see(&mut self, owner: &mut Node, around: &mut Around<'_>) -> Result<(), Failed> {
        let mut seeing = self.seeing.take().expect("a read is under way");
        let oid = seeing.wanted.region;
        let published = &mut owner.published[oid.slot()];
        seeing.part = match std::mem::replace(&mut seeing.part, ReadPart::Look) {
            ReadPart::Look => match published.version.filter(|_| published.word % 2 == 1) {
                Some(version) if self.protocol.is_wanted(seeing.wanted, version) => {
                    let found = Found {
                        word: published.word,
                        version,
                        values: published.values.clone(),
                        gate: None,
                    };
                    match published.is_gated {
                        true => ReadPart::LookAtGate(found),
                        false => ReadPart::Mark(found),
                    }
                }
                _ => return self.asks_instead(seeing, around),
            },
            ReadPart::LookAtGate(_) if owner.gate.word.is_multiple_of(2) => {
                self.has_found_open = true;
                return self.asks_instead(seeing, around);
            }
            ReadPart::LookAtGate(found) => {
                // What is behind a shut gate stays as it is.
                let leaves = around.program.leaves(oid);
                ReadPart::MarkGate(Found {
                    values: leaves.map(|leaf| owner.heap.stored(leaf)).collect(),
                    gate: Some(owner.gate.word),
                    ..found
                })
            }
            ReadPart::MarkGate(found) => {
                if around.bug != Some(Bug::SkipGateMark) {
                    owner.gate.marks |= 1 << oid.slot();
                }
                ReadPart::Mark(found)
            }
            ReadPart::Mark(found) => {
                if around.bug != Some(Bug::SkipMark) {
                    published.readers |= 1 << self.me;
                }
                ReadPart::Copy(found, Vec::new())
            }
            ReadPart::Copy(found, mut copied) => {
                let mut leaves = around.program.leaves(oid);
                let all = leaves.len();
                let leaf = leaves.nth(copied.len()).expect("a leaf is left");
                copied.push(owner.heap.stored(leaf));
                match copied.len() == all {
                    true => ReadPart::LookAgain(found, copied),
                    false => ReadPart::Copy(found, copied),
                }
            }
            ReadPart::LookAgain(found, copied) => {
                let is_shut = found.gate.is_none_or(|word| owner.gate.word == word)
                    || around.bug == Some(Bug::SkipGateLook);
                let is_whole = published.word == found.word && is_shut;
                if is_whole || around.bug == Some(Bug::SkipSecondLook) {
                    self.takes_seen(oid, found, &copied, around)?;
                    self.sees_next(seeing, around.program);
                    return Ok(());
                }
                seeing.left -= 1;
                if seeing.left == 0 {
                    return self.asks_instead(seeing, around);
                }
                ReadPart::Look
            }
        };
        self.seeing = Some(seeing);
        Ok(())
    }

    fn takes_seen(
        &mut self,
        oid: Oid,
        found: Found,
        copied: &[WriteId],
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        let words = || format!("{copied:?} as {found:?} of {oid}");
        if copied != found.values {
            return Err((Fault::TornRead, words()));
        }
        self.call(None, around)?;
        let presence = self.presence();
        for (leaf, value) in around.program.leaves(oid).zip(copied) {
            let installed = self.heap.install(leaf, *value, presence);
            installed.map_err(|fault| (fault, words()))?;
        }
        let (version, mut commands) = (found.version, Commands::new());
        self.protocol.read_there(
            Sent {
                region: oid,
                version,
            },
            &mut commands,
        );
        for command in commands {
            let done = self.carry_out(command, &mut std::iter::empty(), around);
            done.map_err(|fault| (fault, words()))?;
        }
        self.phase = Phase::Call(presence, None);
        Ok(())
    }

    /// What is read ahead is read after what was missed, one by one.
    fn sees_next(&mut self, seeing: Seeing, program: &Program) {
        let presence = self.presence();
        let mut next = seeing.next.unwrap_or_else(|| {
            let object = program.leaves(seeing.wanted.region).start as u8;
            let missed = unread(object, program);
            let wanted = |range| self.protocol.wants_ahead(&missed, range);
            seeing.ahead.map(wanted).unwrap_or_default()
        });
        let Some(wanted) = next.pop() else {
            self.phase = Phase::Call(presence, None);
            return;
        };
        self.came_ahead.push(wanted.region);
        self.seeing = Some(Seeing {
            wanted,
            left: 1,
            part: ReadPart::Look,
            ahead: None,
            next: Some(next),
        });
        self.phase = Phase::Seeing(presence);
    }

    /// What cannot be read is asked for by message, if it was missed.
    fn asks_instead(&mut self, seeing: Seeing, around: &mut Around<'_>) -> Result<(), Failed> {
        if seeing.next.is_some() {
            self.sees_next(seeing, around.program);
            return Ok(());
        }
        let oid = seeing.wanted.region;
        self.phase = Phase::Call(self.presence(), Some(Wait::Object));
        let object = around.program.leaves(oid).start as u8;
        let missed = unread(object, around.program);
        self.call(Some(dhole_protocol::Event::ReadMiss(missed)), around)
    }
}
