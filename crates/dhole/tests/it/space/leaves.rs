//! Objects that show whether they are read whole.

use dhole::{Ref, Refs, Share, Worker};

#[derive(Share, Clone, Copy)]
pub struct Leaf {
    pub value: u64,
    pub flag: bool,
    pub next: Option<Ref<Leaf>>,
}

pub const OBJECTS: u64 = 100;

pub fn leaf(value: u64) -> Leaf {
    let flag = value.is_multiple_of(2);
    let next = None;
    Leaf { value, flag, next }
}

/// What the leaves are together, each of which is whole.
pub fn sum(w: &Worker<'_>, leaves: Refs<Leaf>) -> u64 {
    let read = |leaf: Ref<Leaf>| {
        let Leaf { value, flag, .. } = *leaf.get(w);
        assert_eq!(flag, value.is_multiple_of(2), "one version, whole");
        value
    };
    leaves.iter().map(read).sum()
}
