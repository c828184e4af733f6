//! Reading from several threads of one node at once.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::{CallSite, Elements, Oid};
use dhole_space::touch;

use crate::extent::Extents;
use crate::handle::HandleTable;
use crate::target::Target;
use crate::{Access, ArrayMiss, ArrayRange, Miss, Share, Token, TypeInfo};

/// The right to read what is present on a node, lent by `Worker::readers` for as long as its
/// closure runs. Unlike the worker it may be copied and go to scoped threads; it fetches nothing.
///
/// # Why it is sound
/// The token is borrowed mutably for `'r`, and the worker is not in a call: its
/// presence (`monitor`) is `Computing`, and stays so, for a call takes the token. While it
/// computes, nobody stores a handle, nobody writes a clean object, and the one who may write the
/// others is the worker, through the token that is lent. So handles, extents and bytes do not
/// change during `'r`. What was stored before came to the worker's thread under the node lock, and
/// from there to the scoped threads when they were spawned, so relaxed loads find it.
#[derive(Clone, Copy)]
pub struct Readers<'r> {
    read: HandleTable,
    extents: &'r Extents,
    of: PhantomData<&'r ()>,
}

/// Lends what is present on the worker's node to `f`:
///
/// ```
/// # use dhole_heap::{Access, Ref, readers};
/// fn copied<'w, 'id: 'w, W: Access<'id>>(r: Ref<u64>, w: &'w mut W) -> u64 {
///     readers(w, |present| *present.get(r).unwrap())
/// }
/// ```
///
/// No reference leaves `f`:
///
/// ```compile_fail
/// # use dhole_heap::{Access, Ref, readers};
/// fn escaping<'w, 'id: 'w, W: Access<'id>>(r: Ref<u64>, w: &'w mut W) -> &'w u64 {
///     readers(w, |present| present.get(r).unwrap())
/// }
/// ```
///
/// and the worker, which would fetch and so store handles, is not used within:
///
/// ```compile_fail,E0502
/// # use dhole_heap::{Access, Ref, readers};
/// fn both<'id, W: Access<'id>>(r: Ref<u64>, w: &mut W) -> u64 {
///     readers(w, |present| *present.get(r).unwrap() + *r.get(w))
/// }
/// ```
#[inline]
pub fn readers<'id, W: Access<'id>, R>(w: &mut W, f: impl for<'r> FnOnce(Readers<'r>) -> R) -> R {
    f(w.token_mut().readers())
}

impl Token<'_> {
    fn readers(&mut self) -> Readers<'_> {
        Readers {
            read: self.read_table(),
            extents: self.read_extents(),
            of: PhantomData,
        }
    }
}

impl<'r> Readers<'r> {
    /// What a [`Ref`](crate::Ref) or a [`Row`](crate::Row) refers to.
    ///
    /// # Errors
    /// [`Absent`] when the node has no valid copy.
    #[inline(always)]
    #[track_caller]
    pub fn get<R: Target>(self, target: R) -> Result<R::Shared<'r>, Absent> {
        // SAFETY: a target is a reference (the contract of `Target`), whose id is below the size of
        // every table; and the token is borrowed for 'r (see the type).
        match unsafe { touch::to_read(self.read.load_unchecked(target.oid().0)) } {
            // SAFETY: what was found is a valid object of the type and length that the id is bound
            // to (the contract of `HandleTable::set`), which nobody writes during 'r (see the
            // type).
            Some(found) => Ok(unsafe { target.shared(found.object()) }),
            None => Err(absent(target, Location::caller())),
        }
    }

    /// Elements of an array: `present.slice(a.range(3..8))`, `present.slice(grid.row(i))`.
    ///
    /// # Errors
    /// [`Absent`] when the node has not all of them.
    #[inline(always)]
    #[track_caller]
    pub fn slice<T: Share>(self, elements: ArrayRange<T>) -> Result<&'r [T], Absent> {
        // SAFETY: `in_blocks` asks for blocks of the array alone, whose ids are below the size of
        // every table (the type `Array`); and the token is borrowed for 'r (see the type).
        let handle = |block: Oid| unsafe { touch::to_read(self.read.load_unchecked(block.0)) };
        // SAFETY: the handles are those of the blocks.
        let found = unsafe { elements.in_blocks(handle) };
        match found.or_else(|| self.in_parts(elements)) {
            // SAFETY: the elements were found: they are valid and follow on each other. Nobody
            // writes them during 'r (see the type).
            Some(at) => Ok(unsafe { NonNull::slice_from_raw_parts(at, elements.len()).as_ref() }),
            None => Err(absent_elements(elements, Location::caller())),
        }
    }

    #[inline(never)]
    fn in_parts<T>(self, elements: ArrayRange<T>) -> Option<NonNull<T>> {
        // SAFETY: nobody changes the extents during 'r (see the type).
        let base = unsafe { self.extents.find(elements.elements()) };
        // SAFETY: an array with these elements begins there.
        base.map(|base| unsafe { elements.within(base) })
    }
}

#[cold]
#[inline(never)]
fn absent<R: Target>(target: R, site: &'static Location<'static>) -> Absent {
    (&target.miss(site)).into()
}

#[cold]
#[inline(never)]
fn absent_elements<T: Share>(range: ArrayRange<T>, site: &'static Location<'static>) -> Absent {
    Absent {
        oid: range.array.oid(),
        elements: Some(range.elements()),
        type_name: TypeInfo::of::<T>().name,
        site: site.into(),
    }
}

impl From<&Miss> for Absent {
    fn from(miss: &Miss) -> Absent {
        Absent {
            oid: miss.oid,
            elements: None,
            type_name: miss.ty.info().name,
            site: miss.call_site(),
        }
    }
}

impl From<&ArrayMiss> for Absent {
    fn from(miss: &ArrayMiss) -> Absent {
        Absent {
            oid: miss.elements.array,
            elements: Some(miss.elements),
            type_name: miss.ty.info().name,
            site: miss.call_site(),
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reading ")?;
        match self.elements {
            Some(elements) => write!(f, "{elements}")?,
            None => write!(f, "{}", self.oid)?,
        }
        let Absent {
            type_name, site, ..
        } = self;
        write!(
            f,
            " ({type_name}) at {site} without the worker: no valid copy is present"
        )
    }
}

impl std::error::Error for Absent {}

/// A scoped thread, or an item in a pass, would read what its node has no valid copy of.
#[derive(Clone, PartialEq, Eq)]
pub struct Absent {
    /// The object, or the array.
    pub oid: Oid,
    /// The elements of the array.
    pub elements: Option<Elements>,
    /// Its type, or that of its elements.
    pub type_name: &'static str,
    /// Where in the program.
    pub site: CallSite,
}

dhole_model::debug_in_words!(Absent);
