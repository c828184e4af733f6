//! Gates: exclusive objects of a node whose memory others see stay readable there.
//!
//! The worker writes an [exclusive](super::exclusive) object without a call and without a notice,
//! so nobody may read it meanwhile. But between the end of an interval and the next write the
//! worker writes none. So such objects are kept *behind the gate* of their chunk:
//!
//! - The end of an interval shuts the gates that are open.
//! - A node that reads behind a shut gate leaves a mark there.
//! - The first write behind a gate opens it. The engine takes the marks, and passes on what they
//!   name as [read](Protocols::was_read). These objects are exclusive no longer, and the next write
//!   of each is announced. All others behind the gate become writable together.
//!
//! So what nobody reads costs no notice, no record and no state, and may be exclusive after two
//! versions that nobody has read.
//!
//! The bytes behind a gate are newer than their version says. Nobody else has bytes of that
//! version: who reads them, or is sent them, makes the object leave the gate before it is written.
//!
//! A node that finds a gate open asks by message, and waits for the worker. An object that was
//! asked for so stays clean from then on, as in a program that reads and writes the objects of one
//! chunk in one phase. Once a quarter of a chunk has left so, all of it does.

use dhole_model::{CHUNK, Oid, OidRange, Version};

use super::Protocols;
use crate::command::{Command, Commands};

/// Versions that nobody has read, besides the first, before an object goes behind a gate. A wrong
/// guess costs as much as the write of an object that is published by itself.
const GATED_AFTER: u8 = 1;

/// So many objects of a chunk that were asked for while their gate was open end it.
const MOST_LEFT: usize = CHUNK as usize / 4;

/// The gates of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Gates {
    /// Whether exclusive objects are behind gates.
    pub are_kept: bool,
    /// The chunks whose gates are open.
    open: Vec<u64>,
}

impl Gates {
    pub fn are_shut(&self) -> bool {
        self.open.is_empty()
    }

    fn is_open(&self, oid: Oid) -> bool {
        self.open.contains(&oid.chunk())
    }
}

impl Protocols {
    /// From now on exclusive objects are kept behind gates.
    pub fn keep_gates(&mut self) {
        self.lazy.gates.are_kept = true;
        self.lazy.exclusive_after = GATED_AFTER;
    }

    /// The version in which others read an object behind the gate of its chunk.
    pub fn gated(&self, oid: Oid) -> Option<Version> {
        let object = self.objects.get(oid);
        let is_gated = self.lazy.gates.are_kept && object.exclusive && object.is_held_by(self.me);
        object.held().filter(|_| is_gated)
    }

    /// The worker has opened the gate of an object's chunk.
    pub fn opened_gate(&mut self, oid: Oid) {
        self.lazy.gates.open.push(oid.chunk());
    }

    /// The interval ends: nothing behind a gate is written until the gate is opened again.
    pub(super) fn shut_gates(&mut self, out: &mut Commands) {
        let first = |chunk| Oid(chunk * CHUNK);
        let open = self.lazy.gates.open.drain(..);
        out.extend(open.map(|chunk| Command::ShutGate(first(chunk))));
    }

    /// Somebody has asked for an exclusive object, which has left the gate of its chunk. Whether
    /// the other objects of the chunk are to leave it too, and to stay clean.
    pub(super) fn ends_gate(&mut self, oid: Oid) -> bool {
        if !self.lazy.gates.is_open(oid) {
            return false;
        }
        self.objects.get_mut(oid).stay_clean();
        let chunk = OidRange {
            first: Oid(oid.0 - oid.slot() as u64),
            count: CHUNK as u32,
        };
        let mut left = 0;
        self.objects.for_each(&[chunk], |_, object| {
            left += usize::from(object.stays_clean())
        });
        left >= MOST_LEFT
    }
}
