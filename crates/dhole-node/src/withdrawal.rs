//! Exclusive objects are withdrawn from a worker that computes, if it has not written them since it
//! synchronised last. So who asks for one does not wait for the worker's next call.

use dhole_heap::{HeapMut, Presence};
use dhole_model::{CHUNK, Oid};
use dhole_protocol::Fetch;

use crate::node::State;
use crate::step::must;

impl State {
    /// A fetch has come: the exclusive objects that its asker waits for are withdrawn.
    #[inline]
    pub(crate) fn withdraw_missed(&mut self, fetch: &Fetch, heap: &mut HeapMut<'_>) {
        if heap.presence() == Presence::Computing {
            let missed = fetch.wanted.len().saturating_sub(fetch.beside.into());
            for wanted in &fetch.wanted[..missed] {
                if !self.withdraw(wanted.region, heap) && !heap.publishes() {
                    self.written_alone.is_waited_for();
                }
            }
        }
    }

    /// Withdraws an object, if it is exclusive; whether it is not exclusive now. Where neighbours
    /// read what is clean and not what is exclusive, those of its chunk are withdrawn with it.
    pub(crate) fn withdraw(&mut self, oid: Oid, heap: &mut HeapMut<'_>) -> bool {
        if !self.protocol.is_exclusive(oid) {
            return true;
        }
        if !self.withdraw_one(oid, heap) {
            return false;
        }
        if self.protocol.withdraws_beside() {
            let first = oid.0 - oid.slot() as u64;
            for beside in (first..first + CHUNK).map(Oid) {
                if self.protocol.is_exclusive(beside) {
                    self.withdraw_one(beside, heap);
                }
            }
        }
        true
    }

    fn withdraw_one(&mut self, oid: Oid, heap: &mut HeapMut<'_>) -> bool {
        let is_gated = heap.is_behind_gate(oid);
        if !heap.withdraw(oid) {
            return false;
        }
        if is_gated {
            self.unpublish(oid, heap);
        }
        self.protocol.withdrawn(oid);
        self.publish(oid, heap);
        true
    }

    /// The worker has synchronised: its exclusive objects are expected to be written from here on.
    pub(crate) fn expect_exclusive(&mut self, heap: &mut HeapMut<'_>) {
        let became = self.protocol.take_written_alone();
        let State {
            protocol,
            written_alone,
            ..
        } = self;
        let is_exclusive = |oid| protocol.is_exclusive(oid);
        let publishes = heap.publishes();
        written_alone.ends_interval(became, publishes, is_exclusive, |oid| {
            let why = "who synchronises is in a call with `&mut w`";
            must(heap.expect_again(oid), why);
        });
    }
}
