//! The abstract heap of one node. The protocol's commands change it, and rules say when the worker
//! may touch which bytes.

use crate::model::{Fault, WriteId};

/// The worker's state, as far as the heap needs it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Presence {
    /// Running the program: any `&T` may live, or one set of `&mut`.
    Computing,
    /// In a call with `&w`: only `&T` may live.
    Shared,
    /// In a call with `&mut w`: no reference lives.
    Exclusive,
}

/// One node's copy of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Copy {
    value: WriteId,
    readable: bool,
    writable: bool,
    /// The worker may write it, as was expected, and has not.
    expected: bool,
    /// It is behind the gate: the worker may write it while the gate is open.
    gated: bool,
    pre_image: Option<WriteId>,
}

/// One node's copies. Every method for a command of the protocol returns [`Fault::Presence`] if the
/// worker's state forbids it, and [`Fault::Heap`] if it is impossible.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Heap {
    copies: Vec<Option<Copy>>,
    /// Pushed values that wait to be read.
    kept: Vec<Option<WriteId>>,
    /// Objects that were freed, as bits.
    freed: u8,
}

fn only(allowed: bool, otherwise: Fault) -> Result<(), Fault> {
    allowed.then_some(()).ok_or(otherwise)
}

impl Heap {
    /// A heap with room for as many objects, without a copy of any.
    pub fn new(objects: usize) -> Heap {
        Heap {
            copies: vec![None; objects],
            kept: vec![None; objects],
            freed: 0,
        }
    }

    /// The object was allocated here.
    pub fn allocate(&mut self, object: usize) {
        self.put(object, WriteId::INITIAL);
    }

    /// As [`allocate`](Heap::allocate), of an object that may be written.
    pub fn bear(&mut self, object: usize) -> Result<(), Fault> {
        self.allocate(object);
        self.make_writable(object, false, Presence::Exclusive)
    }

    fn put(&mut self, object: usize, value: WriteId) {
        self.copies[object] = Some(Copy {
            value,
            readable: true,
            writable: false,
            expected: false,
            gated: false,
            pre_image: None,
        });
    }

    fn copy(&mut self, object: usize) -> Result<&mut Copy, Fault> {
        self.copies[object].as_mut().ok_or(Fault::Heap)
    }

    /// The object is freed: nothing is left of it.
    pub fn free(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        only(at == Presence::Exclusive, Fault::Presence)?;
        self.copies[object] = None;
        self.kept[object] = None;
        self.freed |= 1 << object;
        Ok(())
    }

    /// Whether the object was freed.
    pub fn is_freed(&self, object: usize) -> bool {
        self.freed >> object & 1 == 1
    }

    /// The value of a copy that the worker may read.
    pub fn readable(&self, object: usize) -> Option<WriteId> {
        self.copies[object]
            .filter(|copy| copy.readable)
            .map(|copy| copy.value)
    }

    /// The bytes where the object is stored, or those of another one where it was freed, as who
    /// reads there by itself finds them.
    pub fn stored(&self, object: usize) -> WriteId {
        self.copies[object].map_or(WriteId::UNCHANGED, |copy| copy.value)
    }

    /// Whether the worker may write the object without asking.
    pub fn is_writable(&self, object: usize) -> bool {
        self.copies[object].is_some_and(|copy| copy.writable)
    }

    /// Whether there is a copy that may be written.
    pub fn has_writable(&self) -> bool {
        self.copies.iter().flatten().any(|copy| copy.writable)
    }

    /// Whether a pushed value waits to be read.
    pub fn has_kept(&self) -> bool {
        self.kept.iter().any(Option::is_some)
    }

    /// Whether the object was here and may not be read.
    pub fn is_invalid(&self, object: usize) -> bool {
        self.copies[object].is_some_and(|copy| !copy.readable)
    }

    /// Whether there is a copy that may not be read.
    pub fn has_invalid(&self) -> bool {
        self.copies.iter().flatten().any(|copy| !copy.readable)
    }

    /// The worker, computing, writes an object.
    pub fn write(&mut self, object: usize, value: WriteId) {
        let copy = self.copies[object].as_mut();
        let copy = copy.expect("a written object has a copy");
        (copy.value, copy.expected) = (value, false);
    }

    /// Bytes that came replace what is here. They may come while `&T` to other objects live.
    pub fn install(&mut self, object: usize, value: WriteId, at: Presence) -> Result<(), Fault> {
        only(at != Presence::Computing, Fault::Presence)?;
        only(self.readable(object).is_none(), Fault::Presence)?;
        self.put(object, value);
        Ok(())
    }

    /// Zeros are the copy of a page that may not be read yet.
    pub fn store_zero(&mut self, object: usize) -> Result<(), Fault> {
        let zero = self.copies[object].is_none_or(|copy| copy.value == WriteId::INITIAL);
        only(zero, Fault::Heap)?;
        self.put(object, WriteId::INITIAL);
        self.copy(object)?.readable = false;
        Ok(())
    }

    /// Bytes that came, or a diff, replace what is here of a page that may not be read yet.
    pub fn store(&mut self, object: usize, value: WriteId, at: Presence) -> Result<(), Fault> {
        self.install(object, value, at)?;
        self.copy(object)?.readable = false;
        Ok(())
    }

    /// The page may be read.
    pub fn make_readable(&mut self, object: usize) -> Result<(), Fault> {
        self.copy(object)?.readable = true;
        Ok(())
    }

    /// As [`make_writable`](Heap::make_writable), of a page that has a twin.
    pub fn make_twinned_writable(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        let twin = self.gather_pre_image(object)?;
        self.make_writable(object, true, at)?;
        self.copy(object)?.pre_image = Some(twin);
        Ok(())
    }

    /// Makes a page read-only. Its twin stays where `keeps_twin` says so.
    pub fn protect(&mut self, object: usize, keeps_twin: bool) -> Result<(), Fault> {
        let copy = self.copy(object)?;
        copy.writable = false;
        copy.pre_image = copy.pre_image.filter(|_| keeps_twin);
        Ok(())
    }

    /// Forgets the copy of a page that may not be read.
    pub fn drop_copy(&mut self, object: usize) -> Result<(), Fault> {
        only(self.readable(object).is_none(), Fault::Heap)?;
        self.copies[object] = None;
        Ok(())
    }

    /// Keeps a pushed value aside, or drops the one that is kept.
    pub fn keep(&mut self, object: usize, value: Option<WriteId>) {
        self.kept[object] = value;
    }

    /// Makes the value that is kept aside the readable one.
    pub fn install_kept(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        let value = self.kept[object].take().ok_or(Fault::Heap)?;
        self.install(object, value, at)
    }

    /// The writes since the pre-image was taken.
    pub fn diff(&self, object: usize, at: Presence) -> Result<WriteId, Fault> {
        let (old, new) = (self.gather_pre_image(object)?, self.gather(object, at)?);
        Ok(if old == new { WriteId::UNCHANGED } else { new })
    }

    /// Takes what another node wrote, if it wrote this object.
    pub fn merge(&mut self, object: usize, value: WriteId, at: Presence) -> Result<(), Fault> {
        only(at == Presence::Exclusive, Fault::Presence)?;
        if self.is_freed(object) {
            return Ok(());
        }
        let copy = self.copy(object)?;
        only(copy.readable, Fault::Heap)?;
        if value != WriteId::UNCHANGED {
            copy.value = value;
        }
        copy.pre_image = copy.pre_image.map(|_| copy.value);
        Ok(())
    }

    /// Makes a copy unreadable. A node that was writing it has lost a race.
    pub fn invalidate(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        only(at == Presence::Exclusive, Fault::Presence)?;
        let copy = self.copy(object)?;
        only(copy.readable, Fault::Heap)?;
        (copy.readable, copy.writable, copy.pre_image) = (false, false, None);
        (copy.expected, copy.gated) = (false, false);
        Ok(())
    }

    /// Makes a copy writable, and keeps its bytes where `pre_image` says so.
    pub fn make_writable(
        &mut self,
        object: usize,
        pre_image: bool,
        at: Presence,
    ) -> Result<(), Fault> {
        only(at == Presence::Exclusive, Fault::Presence)?;
        let copy = self.copy(object)?;
        only(copy.readable && !copy.writable, Fault::Heap)?;
        copy.writable = true;
        copy.pre_image = pre_image.then_some(copy.value);
        Ok(())
    }

    /// Makes a copy writable that the worker is expected to write, and keeps its bytes where
    /// `pre_image` says so.
    pub fn expect_write(
        &mut self,
        object: usize,
        pre_image: bool,
        at: Presence,
    ) -> Result<(), Fault> {
        self.make_writable(object, pre_image, at)?;
        self.copy(object)?.expected = true;
        Ok(())
    }

    /// The worker is expected to write a writable copy again.
    pub fn expect_again(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        only(at == Presence::Exclusive, Fault::Presence)?;
        let copy = self.copy(object)?;
        copy.expected = copy.writable;
        Ok(())
    }

    /// Makes a writable copy read-only, whatever the worker does. It may have a `&mut` to what it
    /// has written.
    pub fn withdraw(&mut self, object: usize) -> Result<(), Fault> {
        let copy = self.copy(object)?;
        only(copy.writable || copy.gated, Fault::Heap)?;
        only(copy.expected || !copy.writable, Fault::Presence)?;
        (copy.writable, copy.expected, copy.gated) = (false, false, false);
        copy.pre_image = None;
        Ok(())
    }

    /// Whether the worker could write the object, as was expected, and has not; or could once it
    /// has opened the gate.
    pub fn is_untouched(&self, object: usize) -> bool {
        self.copies[object].is_some_and(|copy| match copy.writable {
            true => copy.expected,
            false => copy.gated,
        })
    }

    /// A writable copy is not written before the gate is opened.
    pub fn put_behind_gate(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        only(at != Presence::Computing, Fault::Presence)?;
        let copy = self.copy(object)?;
        only(copy.readable && copy.writable, Fault::Heap)?;
        (copy.writable, copy.expected, copy.gated) = (false, false, true);
        copy.pre_image = None;
        Ok(())
    }

    /// Whether a copy is behind the gate.
    pub fn is_gated(&self, object: usize) -> bool {
        self.copies[object].is_some_and(|copy| copy.gated)
    }

    /// A copy behind the gate may be written.
    pub fn open_gate(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        only(at == Presence::Exclusive, Fault::Presence)?;
        let copy = self.copy(object)?;
        only(copy.readable && copy.gated, Fault::Heap)?;
        copy.writable = true;
        Ok(())
    }

    /// No copy behind the gate may be written.
    pub fn shut_gate(&mut self, at: Presence) -> Result<(), Fault> {
        only(at != Presence::Computing, Fault::Presence)?;
        let copies = self.copies.iter_mut().flatten();
        copies.for_each(|copy| copy.writable &= !copy.gated);
        Ok(())
    }

    /// Makes a copy read-only that is writable, or behind the gate.
    pub fn make_clean(&mut self, object: usize, at: Presence) -> Result<(), Fault> {
        only(at != Presence::Computing, Fault::Presence)?;
        let copy = self.copy(object)?;
        only(copy.readable && (copy.writable || copy.gated), Fault::Heap)?;
        (copy.writable, copy.expected, copy.gated) = (false, false, false);
        copy.pre_image = None;
        Ok(())
    }

    /// The bytes of an object as it is stored. While the worker computes, those of a writable
    /// object may be under its `&mut`.
    pub fn gather(&self, object: usize, at: Presence) -> Result<WriteId, Fault> {
        let copy = self.copies[object].ok_or(Fault::Heap)?;
        only(at != Presence::Computing || !copy.writable, Fault::Presence)?;
        Ok(copy.value)
    }

    /// The bytes of an object before the first write of the interval.
    pub fn gather_pre_image(&self, object: usize) -> Result<WriteId, Fault> {
        let copy = self.copies[object].ok_or(Fault::Heap)?;
        copy.pre_image.ok_or(Fault::Heap)
    }
}
