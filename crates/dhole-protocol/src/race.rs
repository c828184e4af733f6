//! What a race is for, and between whom.

use dhole_model::{CallSite, Elements, NodeId, Oid};
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// What two nodes race for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum Raced {
    /// An object.
    Object(Oid),
    /// Elements of an array: those that both wrote.
    Elements(Elements),
}

impl Raced {
    /// The object, or the array.
    pub const fn oid(self) -> Oid {
        match self {
            Raced::Object(oid) => oid,
            Raced::Elements(elements) => elements.array,
        }
    }

    /// The elements, of an array.
    pub const fn elements(self) -> Option<Elements> {
        match self {
            Raced::Object(_) => None,
            Raced::Elements(elements) => Some(elements),
        }
    }

    pub(crate) fn meets(self, other: Raced) -> bool {
        match (self, other) {
            (Raced::Elements(one), Raced::Elements(two)) => one.meets(two),
            _ => self == other,
        }
    }

    /// Whether the other is all here.
    pub(crate) fn covers(self, other: Raced) -> bool {
        match (self, other) {
            (Raced::Elements(all), Raced::Elements(some)) => {
                let (all_of, some_of) = (all.range(), some.range());
                let within = all_of.start <= some_of.start && some_of.end <= all_of.end;
                all.array == some.array && within
            }
            _ => self == other,
        }
    }

    /// Whether these are the first of the elements, or all.
    pub(crate) fn begins_with(self, first: Raced) -> bool {
        match (self, first) {
            (Raced::Elements(all), Raced::Elements(first)) => {
                let begin = (all.array, all.first) == (first.array, first.first);
                begin && first.count <= all.count
            }
            _ => self == first,
        }
    }

    /// What is left of the elements behind the first of them, if anything is.
    pub(crate) fn behind(self, first: Raced) -> Option<Raced> {
        let (all, first) = (self.elements()?, first.elements()?);
        let rest = Elements::new(all.array, first.range().end..all.range().end);
        (rest.count > 0).then_some(Raced::Elements(rest))
    }
}

/// Two writes of one object or of the same elements, or a write and a freeing, of which neither
/// happened before the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Race {
    /// What was written.
    pub raced: Raced,
    /// Who wrote it, in the order of the nodes.
    pub writes: [RacingWrite; 2],
}

/// One side of a race.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RacingWrite {
    /// The node that wrote.
    pub node: NodeId,
    /// Its first write of the object in the interval, if it still knows where that was: it keeps
    /// the last two places for each object.
    pub site: Option<CallSite>,
    /// It did not write the object but freed it.
    pub freed: bool,
}
