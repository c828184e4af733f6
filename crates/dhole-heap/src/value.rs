//! Single values as bytes, for those that travel beside objects.

use std::mem::MaybeUninit;

use crate::foreign::Unheard;
use crate::share::type_map::Named;
use crate::transfer::check_each_reference;
use crate::{BindError, HeapMut, Invalid, Scalar, Share, TypeInfo, TypeRef};

/// Why bytes are not a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnpackError {
    /// Too few or too many.
    #[error("{bytes} bytes for a value of {wanted}")]
    Length {
        /// Bytes that came.
        bytes: usize,
        /// Bytes of the type without its padding.
        wanted: usize,
    },
    /// They are no value of the type.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// They contain a reference that nobody can have.
    #[error("a reference in it: {0}")]
    Reference(#[from] BindError),
}

/// Appends the bytes of a value to `out`, packed, without padding.
pub fn pack<T: Share>(value: &T, out: &mut Vec<u8>) {
    let from = std::ptr::from_ref(value).cast::<u8>();
    for range in &TypeInfo::of::<T>().data {
        // SAFETY: the ranges lie within the value and are initialised in every value (the contract
        // of `Share`, by which the type is described).
        let bytes = unsafe { std::slice::from_raw_parts(from.add(range.offset), range.bytes) };
        out.extend_from_slice(bytes);
    }
}

/// Another value with the same bytes. References in it refer to the same objects.
pub fn copy_of<T: Share>(value: &T) -> T {
    // SAFETY: the type has no drop glue, no pointers and no interior mutability, and a value of it
    // is valid wherever its bytes are (the contract of `Share`).
    unsafe { std::ptr::read(value) }
}

/// Appends the bytes of numbers to `out`.
pub fn pack_scalars<T: Scalar>(values: &[T], out: &mut Vec<u8>) {
    // SAFETY: a number has no padding, so all bytes of the slice are initialised.
    let bytes = unsafe {
        std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), std::mem::size_of_val(values))
    };
    out.extend_from_slice(bytes);
}

/// The numbers that [`pack_scalars`] made these bytes from. `None` if the bytes are not those of
/// `len` numbers.
pub fn unpack_scalars<T: Scalar>(packed: &[u8], len: usize) -> Option<Vec<T>> {
    if Some(packed.len()) != len.checked_mul(size_of::<T>()) {
        return None;
    }
    let mut values = Vec::<T>::with_capacity(len);
    // SAFETY: there is room for `len` numbers, which have as many bytes as `packed`. Every bit
    // pattern is a number (`Scalar`), so all `len` are valid once the bytes are there.
    unsafe {
        let to = values.as_mut_ptr().cast::<u8>();
        to.copy_from_nonoverlapping(packed.as_ptr(), packed.len());
        values.set_len(len);
    }
    Some(values)
}

impl HeapMut<'_> {
    /// The value that [`pack`] made these bytes from, on any node of this cluster.
    ///
    /// # Errors
    /// [`UnpackError`] when the bytes are no value of the type, or hold a reference that this
    /// cluster did not give out.
    pub fn unpack<T: Share>(&self, packed: &[u8]) -> Result<T, UnpackError> {
        // SAFETY: what the node has seen, or the directory knows, allocation gave out as that type.
        unsafe {
            unpack_checked(packed, |named, of| {
                self.heap.check_reference(named, of, Unheard::IsGone)
            })
        }
    }
}

/// The value that [`pack`] made these bytes from, if `check` finds nothing wrong with any of the
/// references in it.
///
/// # Safety
/// `check` accepts only what allocation gave out as that type, or what is null everywhere for ever
/// and below the size of every handle table.
pub(crate) unsafe fn unpack_checked<T: Share>(
    packed: &[u8],
    check: impl FnMut(&Named, TypeRef) -> Result<(), BindError>,
) -> Result<T, UnpackError> {
    let info = TypeInfo::of::<T>();
    if packed.len() != info.packed_size {
        return Err(UnpackError::Length {
            bytes: packed.len(),
            wanted: info.packed_size,
        });
    }
    info.check(packed)?;
    check_each_reference(info, packed, check)?;
    let mut value = MaybeUninit::<T>::uninit();
    let mut from = packed;
    for range in &info.data {
        let (bytes, rest) = from.split_at(range.bytes);
        // SAFETY: the ranges lie within the value (the type `TypeInfo`), and `bytes` has as many.
        unsafe {
            let to = value.as_mut_ptr().cast::<u8>().add(range.offset);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        from = rest;
    }
    // SAFETY: every byte that is not padding was written, and all leaves and references were
    // tested: so it is a valid value (the contract of `Share`), as far as `check` is what the
    // caller promises.
    Ok(unsafe { value.assume_init() })
}
