/// What keeping pages consistent takes of a node's processor beside messages, where page protection
/// finds what a program touches: for a machine that says what that costs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageWork {
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
}
