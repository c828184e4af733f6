//! Fetching what can be reached by references, level by level.

use std::panic::Location;

use dhole_heap::{ForeignKind, HeapMut, Miss, Name, Names};
use dhole_model::Oid;
use rustc_hash::FxHashSet;

use crate::error::AccessError;
use crate::node::State;
use crate::worker::Worker;

impl Worker<'_> {
    /// Makes readable here what is named, and what can be reached from there by references: a tree
    /// from its root, a list from its head. Returns how many objects that is, those among it that
    /// were here already.
    ///
    /// It goes breadth first, and each level takes one round: every node that has some of its
    /// objects is asked once, for all of them at the same time. So a balanced tree of n objects
    /// takes log2 n rounds, where a walk takes one for each object that is not here, and a list
    /// takes as many as it has objects. Cycles and shared parts are followed once. It stops after
    /// `most` objects, those nearest to what is named. Arrays that are referred to are not
    /// fetched, and references to freed objects are passed over where this node knows of that.
    ///
    /// ```
    /// # use dhole_node::{Result, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let root = w.once(|w| {
    ///     let leaves = [w.alloc(1_u64), w.alloc(2)];
    ///     Ok(w.alloc(leaves))
    /// })?;
    /// assert_eq!(w.prefetch_reachable(root, 1_000)?, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`prefetch`](Worker::prefetch): why one of them cannot be had; then others may be here.
    #[track_caller]
    pub fn prefetch_reachable(&self, from: impl Names, most: usize) -> Result<usize, AccessError> {
        let site = Location::caller();
        let (mut seen, mut level, mut elements) = (FxHashSet::default(), Vec::new(), Vec::new());
        from.each(site, &mut |name| match name {
            Name::Object(miss) => {
                if seen.len() < most && seen.insert(miss.oid) {
                    level.push(miss);
                }
            }
            Name::Elements(miss) if self.token.are_readable(&miss) => {}
            Name::Elements(miss) => elements.push(miss),
        });
        while let Some(first) = level.first().cloned() {
            let is_absent = |miss: &&Miss| !self.token.is_readable(miss);
            let absent: Vec<Miss> = level.iter().filter(is_absent).cloned().collect();
            self.bring(&absent)?;
            level = self.referred(&first, &level, (&mut seen, most))?;
        }
        self.bring_elements(&elements, false)?;
        Ok(seen.len())
    }

    /// The objects to which those of a level refer, which begins with `first`, and that were not
    /// seen before.
    fn referred(
        &self,
        first: &Miss,
        level: &[Miss],
        (seen, most): (&mut FxHashSet<Oid>, usize),
    ) -> Result<Vec<Miss>, AccessError> {
        let (mut next, mut packed, site) = (Vec::new(), Vec::new(), first.site);
        let called = self.shared(site, |_, call| {
            let (heap, state) = call.split();
            for miss in level {
                heap.references_of(miss.oid, site, &mut packed, &mut |miss| {
                    if seen.len() == most {
                        return false;
                    }
                    if !seen.contains(&miss.oid) && !is_freed(miss.oid, &heap, state) {
                        seen.insert(miss.oid);
                        next.push(miss);
                    }
                    true
                });
            }
            Ok(Ok(()))
        });
        self.accessed(first, called).map(|()| next)
    }
}

/// Whether this node knows that an object was freed.
fn is_freed(oid: Oid, heap: &HeapMut<'_>, state: &State) -> bool {
    if heap.is_present(oid) {
        return false;
    }
    let known = || heap.cluster().creator(oid);
    state.protocol.check_not_freed(oid).is_err()
        || known().is_err_and(|foreign| foreign.kind == ForeignKind::Freed)
}
