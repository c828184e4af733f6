//! What the payload of a message holds.

use dhole_model::Elements;

use super::Message;
use crate::transfer::Sent;

/// What the payload of a message holds, and so how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadOf<'a> {
    /// So many bytes; none for a message without a payload.
    Bytes(u64),
    /// One page.
    Page,
    /// The bytes of these objects, one after the other. Their types say how many.
    Objects(&'a [Sent]),
    /// The bytes of these elements, one after the other. The types of the arrays say how many.
    Elements(&'a [Sent<Elements>]),
    /// A value of the program, or what a part of the node sends, of any length.
    Value,
}

impl Message {
    /// A payload of parts whose lengths the message names.
    pub(super) fn parts(bytes: impl Iterator<Item = u64>) -> PayloadOf<'static> {
        PayloadOf::Bytes(bytes.fold(0, u64::saturating_add))
    }
}
