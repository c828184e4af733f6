//! Where a node's worker is, which decides what the heap allows.

use std::fmt;

/// Where a node's worker is. See the module `monitor`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// In the user's program.
    Computing,
    /// In a call with `&Token`.
    Shared,
    /// In a call with `&mut Token`, or no token is lent.
    Exclusive,
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Presence::Computing => "the worker is computing",
            Presence::Shared => "the worker is in a call that shares its token",
            Presence::Exclusive => "the worker is in a call that owns its token",
        })
    }
}
