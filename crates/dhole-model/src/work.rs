/// Work of a node's processor beside messages, for a machine that prices it: consistency with
/// memory protection, and operations on objects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Work {
    /// Faults on pages that are not valid, or not writable.
    pub faults: u64,
    /// Accesses to objects and elements of arrays that memory protection would find: those that ask
    /// another node, and first writes. An access that asks and then writes counts once.
    pub object_faults: u64,
    /// Changes of a page's protection outside a fault of that page.
    pub protections: u64,
    /// Requests for minipages whose address the manager looked up.
    pub translations: u64,
    /// Threads that waited for a minipage and were woken.
    pub wakes: u64,
    /// Bytes of twins made, of pages and of objects.
    pub twin_bytes: u64,
    /// Bytes of objects' twins that were compared with the objects.
    pub compared_bytes: u64,
    /// Bytes of diffs made.
    pub made_bytes: u64,
    /// Bytes of diffs applied.
    pub applied_bytes: u64,
    /// Units of work of sections, which a machine prices as the program's own work.
    pub units: u64,
    /// Nanoseconds of operations on objects, if the machine measures computation.
    pub operations_ns: u64,
}
