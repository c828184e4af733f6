//! Keys of values that each thread has (`pthread_key_create`), and what is called for such values
//! when a thread ends. They are the same on all nodes: the table is in shared memory, as the
//! program's globals are.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use dhole::memory::sync;

use crate::sync::{key as of, must};
use crate::{exit, site};

/// Most keys at once: as the C library (`PTHREAD_KEYS_MAX`).
const MOST: usize = 1024;

/// A key.
struct Key {
    /// Counts its uses, of which each begins and ends: an odd number is one that is on.
    uses: AtomicU64,
    destructor: AtomicU64,
}

/// All of them. The table lies where the linker's script finds the program's own globals.
#[unsafe(link_section = ".dhole.data.keys")]
static KEYS: [Key; MOST] = [const {
    Key {
        uses: AtomicU64::new(0),
        destructor: AtomicU64::new(0),
    }
}; MOST];

/// Does something that no other thread does meanwhile.
fn alone<R>(does: impl FnOnce() -> R) -> R {
    let at: *const c_void = (&raw const KEYS).cast();
    must(sync::lock(of(at), site::UNKNOWN), &"using keys", at);
    let done = does();
    must(sync::unlock(of(at)), &"using keys", at);
    done
}

/// Makes a key, unless there are too many.
pub(crate) fn make(destructor: u64) -> Option<c_uint> {
    if exit::is_child() {
        return None;
    }
    alone(|| {
        let is_free = |key: &Key| key.uses.load(SeqCst).is_multiple_of(2);
        let number = KEYS.iter().position(is_free)?;
        let key = &KEYS[number];
        key.destructor.store(destructor, SeqCst);
        key.uses.fetch_add(1, SeqCst);
        Some(number as c_uint)
    })
}

/// Deletes a key; whether there was one.
pub(crate) fn delete(number: c_uint) -> bool {
    alone(|| {
        let is = use_of(number).is_some();
        if is {
            KEYS[number as usize].uses.fetch_add(1, SeqCst);
        }
        is
    })
}

/// Which use of it is on, if the key was made. A child of `fork` has none of the shared memory: it
/// makes no keys, and those of its parent are as they were.
pub(crate) fn use_of(number: c_uint) -> Option<u64> {
    let key = KEYS.get(number as usize)?;
    if exit::is_child() {
        return Some(0);
    }
    let uses = key.uses.load(SeqCst);
    (!uses.is_multiple_of(2)).then_some(uses)
}

/// Whether that use of a key is on.
pub(crate) fn is_on(number: c_uint, then: u64) -> bool {
    exit::is_child() || use_of(number) == Some(then)
}

/// What is called for values that were set in this use of a key.
pub(crate) fn destructor(number: c_uint, then: u64) -> Option<u64> {
    if exit::is_child() || !is_on(number, then) {
        return None;
    }
    let destructor = KEYS[number as usize].destructor.load(SeqCst);
    (destructor != 0).then_some(destructor)
}
