//! What is broadcast.

use std::ops::Range;
use std::sync::Arc;

/// Something that a group can broadcast.
///
/// What is larger than the port's frames travels in parts if it can be cut; a body that cannot, as
/// the numbers that models broadcast, always travels whole.
pub trait Body: Clone {
    /// Whether it can be cut.
    const DIVISIBLE: bool = false;

    /// The bytes of this range as a body of its own.
    fn cut(&self, _bytes: Range<usize>) -> Self {
        self.clone()
    }

    /// What was cut into these parts, given in order; `None` when there is none.
    fn join(mut parts: Vec<Self>) -> Option<Self> {
        parts.pop()
    }
}

impl Body for Arc<[u8]> {
    const DIVISIBLE: bool = true;

    fn cut(&self, bytes: Range<usize>) -> Self {
        let end = bytes.end.min(self.len());
        self[bytes.start.min(end)..end].into()
    }

    fn join(mut parts: Vec<Self>) -> Option<Self> {
        match parts.len() {
            0 | 1 => parts.pop(),
            _ => Some(parts.concat().into()),
        }
    }
}

/// A body that is shared travels whole.
impl<B: Body> Body for Arc<B> {}

impl Body for u8 {}
impl Body for u32 {}
impl Body for u64 {}
