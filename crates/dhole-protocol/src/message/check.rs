//! What no sound node says, whatever has happened.

use dhole_model::{Elements, OidRange, VectorTime};

use super::News;
use crate::round::MOST_WANTED;

impl News {
    /// What makes no sense in a cluster of `nodes`.
    pub(super) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        check_time(&self.time, nodes)?;
        for interval in &self.intervals {
            if interval.node.index() >= nodes {
                return Err("an interval of a node that is not in the cluster");
            }
            if interval.first == 0 || interval.first > interval.index {
                return Err("an interval that ends before it begins");
            }
            let ends = |range: &OidRange| range.first.0.checked_add(u64::from(range.count));
            let freed = interval.freed.iter().chain(&interval.freed_arrays);
            let mut ranges = interval.written.iter().chain(freed);
            if !ranges.all(|range| range.count > 0 && ends(range).is_some()) {
                return Err("a range of objects beyond all ids");
            }
            interval.elements.iter().try_for_each(check_elements)?;
        }
        Ok(())
    }
}

pub(super) fn check_time(time: &VectorTime, nodes: usize) -> Result<(), &'static str> {
    match time.nodes() == nodes {
        true => Ok(()),
        false => Err("a vector time of a cluster of another size"),
    }
}

pub(super) fn check_elements(elements: &Elements) -> Result<(), &'static str> {
    match elements.first.checked_add(elements.count) {
        Some(_) if elements.count > 0 => Ok(()),
        _ => Err("no elements, or elements beyond every array"),
    }
}

pub(super) fn check_bytes(elements: Elements, bytes: u64) -> Result<(), &'static str> {
    check_elements(&elements)?;
    match bytes > 0 && bytes.is_multiple_of(elements.count) {
        true => Ok(()),
        false => Err("elements that are not all of one length"),
    }
}

pub(super) fn check_wanted(wanted: usize) -> Result<(), &'static str> {
    match (1..=MOST_WANTED).contains(&wanted) {
        true => Ok(()),
        false => Err("a fetch of nothing, or of more than one message may ask for"),
    }
}
