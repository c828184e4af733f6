//! The process's one reservation of address space: as much as the system lets it have.
//!
//! Where address space is not limited it is 64 TiB, which costs nothing but page tables of what is
//! touched. Where it is (`ulimit -v`) a smaller one is tried. Below 1 TiB it has no more slots than
//! the first cluster has nodes, rounded up to a power of two.

use std::ptr::NonNull;

use dhole_model::MAX_NODES;

#[cfg(not(miri))]
use crate::apart;
use crate::geometry::SLOT_BITS_PER_ID;

/// The log2 of the sizes to try, from the largest on.
const SIZES: [u32; 18] = [
    46, 45, 44, 42, 40, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26,
];

/// The log2 of the least size of which slots may be left over.
const ROOMY_BITS: u32 = 40;

/// The log2 of the slots that are there then, even if the first cluster is small.
const MIN_SLOT_BITS: u32 = 6;

/// The log2 of the least ids that a slot has room for: 2 million, with a store of 25 MiB.
const LEAST_INDEX_BITS: u32 = 21;

/// Why a cluster could not get its address space.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    /// A cluster has at least 1 and at most [`MAX_NODES`] nodes.
    #[error("a cluster of {nodes} nodes: a cluster has 1 to {MAX_NODES} nodes")]
    Nodes {
        /// Nodes asked for.
        nodes: usize,
    },
    /// The operating system refused to reserve address space.
    #[error(
        "reserving address space for shared objects: the system refuses {least_mib} MiB for \
         {nodes} nodes and as much for everything else, the least that will do{}: {cause}. The \
         process reserves addresses for all objects at once, so that none of them ever moves, and \
         takes memory only for what is stored. Raise the limit (`ulimit -v unlimited`), or run \
         fewer nodes in a process",
        limit(limit_kib)
    )]
    Space {
        /// Nodes of this process.
        nodes: usize,
        /// The least that they need, in MiB.
        least_mib: u64,
        /// KiB of address space that the process may have (`ulimit -v`), if that is limited.
        limit_kib: Option<u64>,
        /// The system's own words.
        cause: String,
    },
    /// The system refuses memory for the nodes within the address space that is reserved.
    #[error(
        "opening address space for the shared objects of {nodes} nodes: {cause}. The system counts \
         it as memory (`vm.overcommit_memory` is 2), or the process has too many mappings \
         (`vm.max_map_count`)"
    )]
    Opening {
        /// Nodes asked for.
        nodes: usize,
        /// The system's own words.
        cause: String,
    },
    /// The clusters that live in this process leave too few slots.
    #[error(
        "a cluster of {nodes} nodes: this process has room for {most} nodes at a time, {free} \
         of them free; its first cluster decides how many, and a process whose first cluster is \
         larger has room for up to {MAX_NODES}"
    )]
    Slots {
        /// Nodes asked for.
        nodes: usize,
        /// Slots not in use.
        free: usize,
        /// Slots in all.
        most: usize,
    },
    /// The system refuses what the detector `vm` needs.
    #[error(
        "mapping three views of each node's memory, for the detector vm: {cause}. Each takes as \
         much address space as a node's store: raise the limit (`ulimit -v unlimited`), or use the \
         detector check"
    )]
    Views {
        /// The system's own words.
        cause: String,
    },
    /// Which ids a cluster of several processes has is settled once, and only there.
    #[error("settling which object ids a cluster has: it has some already")]
    Settled,
    /// While processes agreed on the object ids of a run, another run of this process took some.
    #[error(
        "the object ids of this run, from {first} on, were taken by another run of this process \
         while its processes agreed on them: begin no other run in a process until one of several \
         processes has begun"
    )]
    Taken {
        /// The first of the ids.
        first: u64,
    },
    /// The run has used up its object ids, which are never used again.
    #[error(
        "object ids are used up: {ids} more wanted, {left} of {all} left, which are never used \
         again once they are freed; keep objects and change them instead of making new ones, put \
         many values into one array, or run fewer nodes in a process, which leaves more ids"
    )]
    Ids {
        /// Ids asked for.
        ids: u64,
        /// Ids left.
        left: u64,
        /// Ids that the process has, or the run where its nodes are in several.
        all: u64,
    },
}

dhole_model::debug_in_words!(ReserveError);

fn limit(limit_kib: &Option<u64>) -> String {
    let said = |kib| format!(" (`ulimit -v` says {kib} KiB)");
    limit_kib.map_or_else(String::new, said)
}

/// Address space for the slots of nodes.
pub(crate) struct Reservation {
    /// Where it begins.
    pub(crate) base: NonNull<u8>,
    /// The log2 of its bytes.
    pub(crate) bits: u32,
    /// The log2 of its slots.
    pub(crate) slot_bits: u32,
}

#[cfg(not(miri))]
impl Reservation {
    /// The largest that the system gives, for a process whose first cluster has so many nodes here,
    /// and that leaves room for everything else.
    pub(crate) fn map(nodes: usize) -> Result<Reservation, ReserveError> {
        let wanted = nodes.next_power_of_two().trailing_zeros();
        let least_bits = LEAST_INDEX_BITS + SLOT_BITS_PER_ID + wanted;
        let most_bits = if apart::is_on() { least_bits } else { SIZES[0] };
        let sizes = SIZES
            .into_iter()
            .filter(|bits| (least_bits..=most_bits).contains(bits));
        for bits in sizes {
            let slot_bits = match bits >= ROOMY_BITS {
                true => wanted.max(MIN_SLOT_BITS),
                false => wanted,
            };
            if let Some(base) = map(1 << bits, libc::PROT_READ | libc::PROT_WRITE) {
                if leaves_room(bits) {
                    // What no slot has taken is nobody's: an access there is a mistake.
                    // SAFETY: nobody knows of the mapping that was just made.
                    unsafe { libc::mprotect(base.as_ptr().cast(), 1 << bits, libc::PROT_NONE) };
                    return Ok(Reservation {
                        base,
                        bits,
                        slot_bits,
                    });
                }
                // SAFETY: nobody knows of the mapping that was just made.
                unsafe { libc::munmap(base.as_ptr().cast(), 1 << bits) };
            }
        }
        Err(ReserveError::Space {
            nodes,
            least_mib: (1 << least_bits) >> 20,
            limit_kib: limit_kib(),
            cause: std::io::Error::from_raw_os_error(libc::ENOMEM).to_string(),
        })
    }
}

/// Lets a slot of the reservation be touched.
///
/// # Safety
/// It is a part of the reservation.
#[cfg(not(miri))]
pub(crate) unsafe fn open(at: NonNull<u8>, bytes: u64) -> Result<(), String> {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the caller's. What is there stays as it is.
    match unsafe { libc::mprotect(at.as_ptr().cast(), bytes as usize, both) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().to_string()),
    }
}

/// Miri's reservation is open.
#[cfg(miri)]
pub(crate) unsafe fn open(_: NonNull<u8>, _: u64) -> Result<(), String> {
    Ok(())
}

/// A new mapping that takes no memory before it is touched.
pub(crate) fn map(bytes: usize, protection: libc::c_int) -> Option<NonNull<u8>> {
    #[cfg(not(miri))]
    let at = apart::hint(bytes).cast();
    #[cfg(miri)]
    let at = std::ptr::null_mut();
    // SAFETY: at an address of the kernel's choice, if the one that is wished for is taken, it
    // touches nothing else.
    unsafe { mapped(at, bytes, protection, 0) }
}

/// Memory that takes none before it is touched, in place of what is mapped at `at`; whether the
/// system gives it.
///
/// # Safety
/// So many bytes from `at` on are the caller's to map, and nothing refers to what is there.
pub unsafe fn map_over(at: NonNull<u8>, bytes: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as the caller promises.
    unsafe { mapped(at.as_ptr(), bytes, protection, libc::MAP_FIXED) }.is_some()
}

/// # Safety
/// What is mapped there, if it is fixed, is the caller's to replace.
unsafe fn mapped(
    at: *mut u8,
    bytes: usize,
    protection: libc::c_int,
    fixed: libc::c_int,
) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: as the caller promises.
    let at = unsafe { libc::mmap(at.cast(), bytes, protection, flags, -1, 0) };
    (at != libc::MAP_FAILED).then(|| NonNull::new(at.cast()))?
}

/// Whether the process can still get memory beside a reservation of this size: one that leaves
/// none, because address space is limited, would make the next allocation end it. 1 GiB will do,
/// and as much as is reserved where that is less.
pub(crate) fn leaves_room(bits: u32) -> bool {
    const MOST_ROOM: usize = 1 << 30;
    let room = MOST_ROOM.min(1 << bits);
    match map(room, libc::PROT_NONE) {
        // SAFETY: nobody knows of the mapping that was just made.
        Some(at) => unsafe { libc::munmap(at.as_ptr().cast(), room) == 0 },
        None => false,
    }
}

/// Why the system gives no addresses, with how many were asked for, and the limit if there is one.
pub(crate) fn refused(bytes: usize, cause: std::io::Error) -> std::io::Error {
    let limit = limit(&limit_kib());
    let why = format!("mapping {bytes} bytes: {cause}{limit}");
    std::io::Error::new(cause.kind(), why)
}

/// KiB of address space that the process may have, if that is limited.
fn limit_kib() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call writes into `limit`, and touches no other memory.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (read && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur >> 10)
}

/// Miri's reservation: 4 slots of 2^16 ids.
#[cfg(miri)]
impl Reservation {
    pub(crate) fn map(_: usize) -> Result<Reservation, ReserveError> {
        let (index_bits, slot_bits) = (16, 2);
        let bits = index_bits + SLOT_BITS_PER_ID + slot_bits;
        let layout = std::alloc::Layout::from_size_align(1 << bits, 4096).expect("a valid layout");
        // SAFETY: the layout has a size.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        let base = NonNull::new(base).expect("memory");
        Ok(Reservation {
            base,
            bits,
            slot_bits,
        })
    }
}
