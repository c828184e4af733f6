use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHasher;

/// A part of a state that many states share, with its hash computed once.
#[derive(Clone, Debug)]
pub struct Sealed<T>(Arc<(T, u64)>);

impl<T: Hash> Sealed<T> {
    /// Seals a value.
    pub fn new(value: T) -> Sealed<T> {
        let mut hasher = FxHasher::default();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        Sealed(Arc::new((value, hash)))
    }

    /// The hash of the value, the same in every run.
    pub fn fingerprint(&self) -> u64 {
        self.0.1
    }
}

impl<T> Deref for Sealed<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T> Hash for Sealed<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.0.1);
    }
}

impl<T: PartialEq> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.1 == other.0.1 && self.0.0 == other.0.0)
    }
}
