//! What an object refers to.

use std::panic::Location;

use dhole_model::Oid;

use crate::heap::HeapMut;
use crate::miss::Miss;

impl HeapMut<'_> {
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
