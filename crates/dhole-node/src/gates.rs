//! Exclusive objects behind gates: neighbours read them, without a message, while the worker does
//! not write them.

use dhole_heap::HeapMut;
use dhole_model::Oid;

use crate::node::State;
use crate::step::{Step, must};

impl State {
    /// An object that has become exclusive goes behind the gate of its chunk. Where neighbours do
    /// not see it, it is expected to be written, as exclusive objects are that have no gate.
    pub(crate) fn put_behind_gate(&mut self, oid: Oid, heap: &mut HeapMut<'_>) {
        let why = "whose interval ends is in a call with `&mut w`";
        let put = self.protocol.gated(oid).map(|version| {
            let put = heap.put_behind_gate(oid, version);
            put.unwrap_or_else(|refused| panic!("{why}: {refused}"))
        });
        if put != Some(true) {
            must(heap.expect_again(oid), why);
        }
    }

    /// The worker writes an object that is behind a shut gate: the gate is opened. What neighbours
    /// may have read there leaves it, and is written with a notice, when it is.
    pub(crate) fn open_gate(&mut self, oid: Oid, step: &mut Step<'_, '_>) {
        let mut read = Vec::new();
        let opened = step.heap.open_gate(oid, |oid| read.push(oid));
        must(opened, "who writes is in a call with `&mut w`");
        self.protocol.opened_gate(oid);
        self.counting.all.gates_opened += 1;
        step.out.work().object_faults += 1;
        self.faulted = true;
        for oid in read {
            // Its reader's bit may be missing, if its second look will find the change.
            self.protocol.was_read(oid, std::iter::empty());
            self.leave_gate(oid, step.heap);
            must(step.heap.make_clean(oid), "who writes is in a call");
            self.publish(oid, step.heap);
        }
    }

    /// An object is made clean next, and leaves the gate if it is behind one: the protocol is told
    /// who may have read it there.
    pub(crate) fn leave_gate(&mut self, oid: Oid, heap: &mut HeapMut<'_>) {
        if heap.is_behind_gate(oid) {
            self.unpublish(oid, heap);
        }
    }
}
