//! What an object refers to.

use std::panic::Location;

use dhole_model::Oid;

use crate::heap::HeapMut;
use crate::miss::Miss;

/// An object that another one names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedObject {
    /// The object.
    pub oid: Oid,
    /// The name in other processes of the type of the one that names it, if it has one.
    pub shipped: Option<u32>,
    /// Which of that type's [references](crate::TypeInfo::references) name it.
    pub slot: usize,
    /// Whether they own it.
    pub owned: bool,
    /// Whether objects of its type name no others.
    pub ends: bool,
}

impl HeapMut<'_> {
    /// Calls `f` with each object that the object `oid` names, whose packed bytes are given: of
    /// each reference to several ones the first `most`; of references to arrays none. Nothing where
    /// the bytes are not whole. They need not have been tested: an id is no reference, and whatever
    /// is done with it asks the directory.
    pub fn named_in(&self, oid: Oid, packed: &[u8], most: u64, f: &mut dyn FnMut(NamedObject)) {
        let Some(binding) = self.binding(oid) else {
            return;
        };
        let (info, whole) = (binding.info, packed.len() as u64 == binding.packed_bytes());
        let slots = info.references.iter().enumerate();
        for (slot, of_slot) in slots.filter(|_| whole) {
            let named = (0..of_slot.count).filter_map(|i| of_slot.named(packed, i).ok()?);
            let mut named = named.filter(|named| !named.array).peekable();
            let ends = named.peek().is_some() && of_slot.target.info().references.is_empty();
            for named in named {
                for place in 0..named.count.min(most) {
                    f(NamedObject {
                        oid: Oid(named.first.0.saturating_add(place)),
                        shipped: info.shipped,
                        slot,
                        owned: of_slot.owned,
                        ends,
                    });
                }
            }
        }
    }

    /// Calls `f` with an access from `site` to each object that the copy of `oid` on this node
    /// refers to, until `f` answers `false`; `packed` is a buffer. Ranges and rows count as all
    /// their objects, and arrays are left out. Nothing where no bytes of it are here, or where the
    /// worker may be writing it at this moment.
    pub fn references_of(
        &self,
        oid: Oid,
        site: &'static Location<'static>,
        packed: &mut Vec<u8>,
        f: &mut dyn FnMut(Miss) -> bool,
    ) {
        let Some(binding) = self.binding(oid) else {
            return;
        };
        packed.clear();
        if binding.info.references.is_empty() || self.gather(oid, packed).is_err() {
            return;
        }
        for slot in &binding.info.references {
            let named = (0..slot.count).filter_map(|i| slot.named(packed, i).ok()?);
            for named in named.filter(|named| !named.array) {
                for place in 0..named.count {
                    let miss = Miss {
                        oid: Oid(named.first.0 + place),
                        ty: slot.target,
                        len: named.len as usize,
                        row: named.row,
                        site,
                    };
                    if !f(miss) {
                        return;
                    }
                }
            }
        }
    }
}
