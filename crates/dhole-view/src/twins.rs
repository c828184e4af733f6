//! Copies of minipages from before the node wrote them together with others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_protocol::memory::Minipage;

use crate::arena::Arena;
use crate::minipage_diff;

/// Twins, by the addresses of their minipages, and whether the node owes flushes.
#[derive(Default)]
pub(crate) struct Twins {
    all: Mutex<BTreeMap<u64, Vec<u8>>>,
    /// Set before a thread may write; cleared where the machine owes none.
    owes: AtomicBool,
}

impl Twins {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<u8>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a thread that releases has to look what the node owes.
    pub fn owes(&self) -> bool {
        self.owes.load(Ordering::SeqCst)
    }

    /// The node owes a flush from here on.
    pub fn owes_one(&self) {
        self.owes.store(true, Ordering::SeqCst);
    }

    /// The node owes no flush.
    pub fn owes_nothing(&self) {
        self.owes.store(false, Ordering::SeqCst);
    }

    pub fn make(&self, minipage: Minipage, arena: &Arena) {
        let mut twin = Vec::new();
        arena.gather(minipage, &mut twin);
        self.all().insert(minipage.at, twin);
    }

    /// The twin is not needed any more.
    pub fn forget(&self, minipage: Minipage) {
        self.all().remove(&minipage.at);
    }

    /// What the node wrote into a minipage since its twin was made, which is forgotten.
    ///
    /// # Panics
    /// When it has none.
    pub fn diff(&self, minipage: Minipage, arena: &Arena) -> Vec<u8> {
        let twin = self.all().remove(&minipage.at);
        let twin = twin.expect("a minipage that is written together has a twin");
        let mut new = Vec::with_capacity(twin.len());
        arena.gather(minipage, &mut new);
        minipage_diff::diff(&twin, &new)
    }
}
