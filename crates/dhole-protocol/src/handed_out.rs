//! Ids that node 0 hands out.

/// Ids that node 0 hands out, or none where too few are left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, dhole_wire::Wire)]
pub struct HandedOut {
    /// The first.
    pub first: u64,
    /// How many; 0 for none.
    pub count: u64,
    /// How many were left before.
    pub left: u64,
}
