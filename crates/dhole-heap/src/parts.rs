//! Which ids are whose: a cluster's ids are cut into parts, each of one node.
//!
//! Every node begins with a small part, and gets another when it has used that up. Each part is
//! twice as large as the one before. So a node that allocates much has many ids, and one that
//! allocates nothing keeps few.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use dhole_model::{CHUNK, IdSet, NodeId, Oid};

use dhole_space::IDS_PER_PAGE;

/// Ids of a node's first part.
pub(crate) const FIRST_PER_NODE: u64 = 4096;

/// Ids of a part at most, unless one allocation needs more.
const MOST_PER_PART: u64 = 1 << 22;

/// Who may allocate which ids.
#[derive(Default)]
pub(crate) struct Parts {
    /// By first id: the end, and whose it is. Neighbours of one node are joined.
    parts: BTreeMap<u64, (u64, NodeId)>,
    /// The ids of all parts.
    taken: IdSet,
    /// The ids of the last part of each node.
    last: BTreeMap<NodeId, u64>,
}

impl Parts {
    /// How many ids the next part of a node should have, which needs so many; both are whole pages
    /// of handles. `None` where that are more than there can be.
    pub(crate) fn next_size(&self, node: NodeId, needed: u64) -> Option<Range<u64>> {
        let needed = needed.checked_next_multiple_of(IDS_PER_PAGE)?;
        let last = self.last.get(&node).copied().unwrap_or(0);
        let usual = (2 * last).clamp(FIRST_PER_NODE, MOST_PER_PART);
        Some(needed..usual.max(needed))
    }

    /// Adds a part of a node, of ids that no part has.
    pub(crate) fn add(&mut self, ids: Range<u64>, node: NodeId) {
        debug_assert!(self.is_free(ids.clone()), "ids are of one node for ever");
        self.taken.add(ids.clone());
        self.last
            .insert(node, (ids.end - ids.start).min(MOST_PER_PART));
        let Range { mut start, mut end } = ids;
        if let Some((&before, &(its_end, its_node))) = self.parts.range(..start).next_back()
            && (its_end, its_node) == (start, node)
        {
            start = before;
        }
        if let Some(&(next_end, next_node)) = self.parts.get(&end)
            && next_node == node
        {
            self.parts.remove(&end);
            end = next_end;
        }
        self.parts.insert(start, (end, node));
    }

    /// Whether no part has any of these ids.
    pub(crate) fn is_free(&self, ids: Range<u64>) -> bool {
        self.taken.within(ids).count() == 0
    }

    /// Whether each of these ids is in a part of some node.
    pub(crate) fn have(&self, ids: Range<u64>) -> bool {
        self.taken.covers(ids)
    }

    /// The node whose this id is, and the end of its ids there.
    pub(crate) fn of(&self, oid: Oid) -> Option<(NodeId, u64)> {
        let (_, &(end, node)) = self.parts.range(..=oid.0).next_back()?;
        (oid.0 < end).then_some((node, end))
    }

    /// The node whose all these ids are.
    pub(crate) fn of_all(&self, ids: &Range<u64>) -> Option<NodeId> {
        let (node, end) = self.of(Oid(ids.start))?;
        (ids.start < ids.end && ids.end <= end).then_some(node)
    }

    /// The parts of a node.
    pub(crate) fn of_node(&self, node: NodeId) -> impl Iterator<Item = Range<u64>> {
        let of_node = self.parts.iter().filter(move |(_, (_, its))| *its == node);
        of_node.map(|(start, (end, _))| *start..*end)
    }

    /// What of these ids lies in parts, and whose it is.
    pub(crate) fn within(&self, ids: Range<u64>) -> impl Iterator<Item = (Range<u64>, NodeId)> {
        let before = self.parts.range(..=ids.start).next_back();
        let from = before.map_or(ids.start, |(start, _)| *start);
        let parts = self.parts.range(from..ids.end);
        parts.filter_map(move |(start, (end, node))| {
            let part = ids.start.max(*start)..ids.end.min(*end);
            (part.start < part.end).then_some((part, *node))
        })
    }

    /// The ids of all parts, in as few ranges as they fill.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Range<u64>> {
        self.taken.ranges()
    }

    /// How many parts there are.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }
}

/// The chunks of ids that a node may still allocate from.
#[derive(Default)]
pub(crate) struct IdParts {
    parts: VecDeque<Range<u64>>,
    /// Ids of a chunk that is left to arrays of one block.
    pub(crate) of_small_arrays: Range<u64>,
}

impl IdParts {
    /// The part that has so many chunks, if one does.
    pub(crate) fn position_of(&self, chunks: u64) -> Option<usize> {
        let fits = |part: &Range<u64>| part.end - part.start >= chunks;
        self.parts.iter().position(fits)
    }

    /// So many chunks that follow on each other, if a part has them.
    pub(crate) fn take(&mut self, chunks: u64) -> Option<u64> {
        let found = self.position_of(chunks)?;
        let part = &mut self.parts[found];
        let first = part.start;
        part.start += chunks;
        if part.is_empty() {
            self.parts.remove(found);
        }
        Some(first)
    }

    /// Adds a part of the ids.
    pub(crate) fn add(&mut self, ids: Range<u64>) {
        self.parts.push_back(ids.start / CHUNK..ids.end / CHUNK);
    }
}

#[cfg(test)]
mod tests {
    use dhole_space::space::size_of_part;

    use super::*;

    #[test]
    fn each_id_is_of_one_node_and_neighbours_of_a_node_are_one_part() {
        let mut parts = Parts::default();
        for (ids, node) in [
            (512..1024, 0),
            (1024..2048, 1),
            (2048..4096, 1),
            (8192..8704, 0),
        ] {
            assert!(parts.is_free(ids.clone()));
            parts.add(ids, NodeId(node));
        }
        assert_eq!(parts.len(), 3);
        assert_eq!(parts.of(Oid(1024)), Some((NodeId(1), 4096)));
        assert_eq!(parts.of(Oid(4095)), Some((NodeId(1), 4096)));
        for nobodys in [0, 511, 4096, 8191, 8704, u64::MAX] {
            assert_eq!(parts.of(Oid(nobodys)), None);
        }
        assert_eq!(parts.of_all(&(1500..2100)), Some(NodeId(1)));
        assert_eq!(parts.of_all(&(1000..1100)), None);
        assert!(!parts.is_free(4000..5000) && parts.is_free(4096..8192));
        assert!(parts.taken().eq([512..4096, 8192..8704]));
    }

    #[test]
    fn parts_grow_and_the_last_ids_are_for_all() {
        let mut parts = Parts::default();
        let (node, mut next) = (NodeId(3), 512);
        let mut sizes = Vec::new();
        for _ in 0..14 {
            let size = parts.next_size(node, 64).unwrap();
            let size = size_of_part(size, 1 << 40).unwrap();
            parts.add(next..next + size, node);
            (next, _) = (next + size, sizes.push(size));
        }
        assert_eq!(sizes[..3], [4096, 8192, 16384]);
        assert_eq!(sizes[10..], [1 << 22; 4]);
        let size = |needed| parts.next_size(node, needed).unwrap();
        assert_eq!(size_of_part(size(64), 1 << 20), Some(1 << 14));
        assert_eq!(size_of_part(size(64), 512), Some(512));
        assert_eq!(size_of_part(size(65_000), 65_024), Some(65_024));
        assert_eq!(size_of_part(size(65_025), 65_024), None);
        assert_eq!(parts.next_size(node, u64::MAX), None);
    }
}
