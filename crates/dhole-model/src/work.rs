/// What takes a node's processor beside messages, for a machine that says what that costs: keeping
/// pages consistent, where page protection finds what a program touches, and executing operations.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Work {
    /// Faults on pages that are not valid, or not writable.
    pub faults: u64,
    /// Changes of a page's protection that no fault of that page is part of.
    pub protections: u64,
    /// Bytes of twins made.
    pub twin_bytes: u64,
    /// Bytes of diffs made.
    pub made_bytes: u64,
    /// Bytes of diffs applied.
    pub applied_bytes: u64,
    /// Nanoseconds of operations on objects, where the machine measures what is computed.
    pub operations_ns: u64,
}
