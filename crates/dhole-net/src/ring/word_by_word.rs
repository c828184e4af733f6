//! Where there is no string move, words are moved one by one.

use crate::atomic::AtomicU64;

/// Never: no frame has as many words.
pub(super) const LEAST: usize = usize::MAX;

/// Is not called.
pub(super) fn into_words(_to: &[AtomicU64], _from: &[[u8; 8]]) {}

/// Is not called.
pub(super) fn out_of_words(_from: &[AtomicU64], _to: &mut [[u8; 8]]) {}
