//! Accesses that find no handle.

use std::panic::Location;

use dhole_model::{CallSite, Oid};

use crate::reference::Ref;
use crate::row::{Row, Scalar};
use crate::share::Share;
use crate::share::type_map::TypeRef;

/// An access that found no handle: which object, taken for what, from where.
#[derive(Clone, Debug)]
pub struct Miss {
    /// The object.
    pub oid: Oid,
    /// The type that the reference takes it for.
    pub ty: TypeRef,
    /// Scalars in the row, or 1.
    pub len: usize,
    /// Whether it is a row, which starts as zeros that nobody needs to send.
    pub row: bool,
    /// Where the program accessed it.
    pub site: &'static Location<'static>,
}

impl Miss {
    /// An access to `r` from `site`.
    #[inline]
    pub fn of<T: Share>(r: Ref<T>, site: &'static Location<'static>) -> Miss {
        Miss {
            oid: r.oid(),
            ty: TypeRef::of::<T>(),
            len: 1,
            row: false,
            site,
        }
    }

    /// An access to the row `r` from `site`.
    #[inline]
    pub fn of_row<T: Scalar>(r: Row<T>, site: &'static Location<'static>) -> Miss {
        Miss {
            oid: r.oid(),
            ty: TypeRef::of::<T>(),
            len: r.len(),
            row: true,
            site,
        }
    }

    /// Where the program accessed the object.
    pub fn call_site(&self) -> CallSite {
        self.site.into()
    }
}
