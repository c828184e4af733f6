//! Gates, as in the engine: exclusive objects that others read while their owner does not write
//! them. All objects of a program are of one chunk.

use dhole_model::{NodeId, Oid};

use crate::Bug;
use crate::model::node::{Around, Failed};
use crate::model::{Fault, Node, Program};

/// The gate of a node.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Gate {
    /// Odd while the gate is shut.
    pub(crate) word: u8,
    /// The objects that somebody reads, as bits.
    pub(crate) marks: u8,
}

impl Gate {
    fn shut(&mut self) {
        self.word += u8::from(self.word.is_multiple_of(2));
    }

    /// The marks, which are taken.
    fn open(&mut self) -> u8 {
        self.word += self.word % 2;
        std::mem::take(&mut self.marks)
    }
}

impl Node {
    /// An object goes behind the gate, and the gate is shut.
    pub(crate) fn put_behind_gate(&mut self, oid: Oid, program: &Program) -> Result<(), Fault> {
        let at = self.presence();
        // A notice that came in the same step may have ended it.
        let Some(version) = self.protocol.gated(oid) else {
            return Ok(());
        };
        let mut leaves = program.leaves(oid);
        leaves.try_for_each(|leaf| self.heap.put_behind_gate(leaf, at))?;
        self.published[oid.slot()].publish_gated(version)?;
        self.gate.shut();
        Ok(())
    }

    /// What is behind the gate is not written any more.
    pub(crate) fn shut_gate(&mut self, around: &Around<'_>) -> Result<(), Fault> {
        self.gate.shut();
        if around.bug != Some(Bug::ShutForReadersAlone) {
            self.heap.shut_gate(self.presence())?;
        }
        Ok(())
    }

    /// Whether an object is behind the gate, which is shut.
    pub(crate) fn is_behind_shut_gate(&self, oid: Oid, program: &Program) -> bool {
        let mut leaves = program.leaves(oid);
        leaves.any(|leaf| self.heap.is_gated(leaf) && !self.heap.is_writable(leaf))
    }

    /// The worker writes an object behind the gate: the gate is opened, and what was marked leaves
    /// it.
    pub(crate) fn open_gate(&mut self, oid: Oid, around: &Around<'_>) -> Result<(), Failed> {
        let marks = match around.bug {
            Some(Bug::KeepMarked) => {
                self.gate.open();
                0
            }
            _ => self.gate.open(),
        };
        let at = self.presence();
        for oid in around.program.all().iter() {
            let is_marked = marks >> oid.slot() & 1 == 1;
            let mut leaves = around.program.leaves(oid);
            if !leaves.clone().any(|leaf| self.heap.is_gated(leaf)) {
                continue;
            }
            let opened = match is_marked {
                true => {
                    // Its reader's bit may be missing, if its second look will find the change.
                    self.protocol.was_read(oid, std::iter::empty::<NodeId>());
                    self.leaves_gate(oid, around.program);
                    let cleaned = leaves.try_for_each(|leaf| self.heap.make_clean(leaf, at));
                    self.publish(oid, around.program);
                    cleaned
                }
                false => leaves.try_for_each(|leaf| self.heap.open_gate(leaf, at)),
            };
            opened.map_err(|fault| (fault, format!("the gate of {oid} is opened")))?;
        }
        self.protocol.opened_gate(oid);
        Ok(())
    }

    /// An object that is behind the gate leaves it: its record is taken back, and the protocol told
    /// who has read it.
    pub(crate) fn leaves_gate(&mut self, oid: Oid, program: &Program) {
        let mut leaves = program.leaves(oid);
        if leaves.any(|leaf| self.heap.is_gated(leaf)) {
            self.ends_version(oid);
        }
    }
}
