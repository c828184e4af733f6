//! Reading from several threads of one node at once.

use std::marker::PhantomData;
use std::panic::Location;

use dhole_model::{CallSite, Oid};

use crate::borrow::Target;
use crate::handle::HandleTable;
use crate::{Access, Token};

/// The right to read what is present on a node, lent by [`readers`] for as long as its closure
/// runs. Unlike the worker it may be copied and go to scoped threads; it fetches nothing.
///
/// # Why it is sound
/// The token is borrowed mutably for `'r`, and the worker is not in a call: its
/// [presence](crate::monitor) is `Computing`, and stays so, for a call takes the token. While it
/// computes, nobody stores a handle, nobody writes a clean object, and the one who may write the
/// others is the worker, through the token that is lent. So handles and bytes do not change
/// during `'r`. What was stored before came to the worker's thread under the node lock, and from
/// there to the scoped threads when they were spawned, so relaxed loads find it.
#[derive(Clone, Copy)]
pub struct Readers<'r> {
    read: HandleTable,
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
        // SAFETY: every id in a reference was allocated, so it is below the table's size.
        let object = unsafe { self.read.load_unchecked(target.oid().0) };
        match std::ptr::NonNull::new(object) {
            // SAFETY: a set handle points to a valid object of the type and length that the id
            // was allocated as, which nobody writes during 'r (see the type).
            Some(object) => Ok(unsafe { target.shared(object) }),
            None => Err(absent(target, Location::caller())),
        }
    }
}

#[cold]
#[inline(never)]
fn absent<R: Target>(target: R, site: &'static Location<'static>) -> Absent {
    let miss = target.miss(site);
    Absent {
        oid: miss.oid,
        type_name: miss.ty.info().name,
        site: miss.call_site(),
    }
}

/// A scoped thread would read an object of which its node has no valid copy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("reading {oid} ({type_name}) at {site} without the worker: no valid copy is present")]
pub struct Absent {
    /// The object.
    pub oid: Oid,
    /// Its type.
    pub type_name: &'static str,
    /// Where in the program.
    pub site: CallSite,
}
