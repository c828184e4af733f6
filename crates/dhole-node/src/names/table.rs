//! The table of names and its operations.

use std::collections::BTreeMap;

use dhole_model::{CallSite, NodeId};
use serde::{Deserialize, Serialize};

/// The most names of a run, those included for which a node makes a value.
pub const MOST_NAMES: usize = 65_536;

/// The most bytes of a name.
pub const LONGEST_NAME: usize = 256;

/// The most bytes of a value that is bound to a name.
pub const LARGEST_VALUE: usize = 4096;

/// A name that differs from another by so many letters is similar to it.
const SIMILAR: usize = 2;

/// The names of a run.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct NameTable {
    names: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
enum Entry {
    Bound(Bound),
    /// A node makes the value.
    Claimed {
        by: NodeId,
        at: CallSite,
    },
}

/// A value that is bound to a name.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    pub value: Vec<u8>,
    /// The fingerprint of its type.
    pub of: u64,
    pub type_name: String,
    /// The node that has bound it, and where in the program.
    pub by: NodeId,
    pub site: CallSite,
}

/// Why the table does not do what it was asked.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    Taken { by: NodeId, at: CallSite },
    NoSuch { similar: Option<String> },
    TooMany,
}

#[dhole_macros::object(crate = "crate")]
impl NameTable {
    pub fn bind(&mut self, name: &str, bound: Bound) -> Result<(), Refused> {
        self.is_free(name)?;
        self.names.insert(name.into(), Entry::Bound(bound));
        Ok(())
    }

    pub fn unbind(&mut self, name: &str) -> Result<(), Refused> {
        if !self.is_bound(name) {
            return Err(self.no_such(name));
        }
        self.names.remove(name);
        Ok(())
    }

    /// The value, or `None` if the caller is to make it: the name is claimed by its node then.
    #[when(!self.is_claimed(name))]
    pub fn claim(
        &mut self,
        name: &str,
        by: NodeId,
        at: CallSite,
    ) -> Result<Option<Bound>, Refused> {
        if let Some(Entry::Bound(bound)) = self.names.get(name) {
            return Ok(Some(bound.clone()));
        }
        self.is_free(name)?;
        self.names.insert(name.into(), Entry::Claimed { by, at });
        Ok(None)
    }

    /// Binds a name that its node has claimed.
    pub fn fulfil(&mut self, name: &str, bound: Bound) -> Result<(), Refused> {
        self.give_up(name, bound.by);
        self.bind(name, bound)
    }

    /// Takes back a claim of this node.
    pub fn give_up(&mut self, name: &str, node: NodeId) {
        if matches!(self.names.get(name), Some(Entry::Claimed { by, .. }) if *by == node) {
            self.names.remove(name);
        }
    }

    pub fn lookup(&self, name: &str) -> Result<Bound, Refused> {
        match self.names.get(name) {
            Some(Entry::Bound(bound)) => Ok(bound.clone()),
            _ => Err(self.no_such(name)),
        }
    }

    #[when(self.is_bound(name))]
    pub fn await_bound(&self, name: &str) -> Result<Bound, Refused> {
        self.lookup(name)
    }

    pub fn names(&self) -> Vec<String> {
        let names = self.names.iter();
        let bound = names.filter(|(_, entry)| matches!(entry, Entry::Bound(_)));
        bound.map(|(name, _)| name.clone()).collect()
    }

    /// Takes back what the lost node has claimed. What it has bound stays.
    #[on_loss]
    fn lose(&mut self, node: NodeId) {
        let claimed = |entry: &Entry| matches!(entry, Entry::Claimed { by, .. } if *by == node);
        self.names.retain(|_, entry| !claimed(entry));
    }

    pub(super) fn is_bound(&self, name: &str) -> bool {
        matches!(self.names.get(name), Some(Entry::Bound(_)))
    }

    pub(super) fn is_claimed(&self, name: &str) -> bool {
        matches!(self.names.get(name), Some(Entry::Claimed { .. }))
    }

    fn is_free(&self, name: &str) -> Result<(), Refused> {
        match self.names.get(name) {
            Some(Entry::Bound(Bound { by, site: at, .. }) | Entry::Claimed { by, at }) => {
                let (by, at) = (*by, *at);
                Err(Refused::Taken { by, at })
            }
            None if self.names.len() >= MOST_NAMES => Err(Refused::TooMany),
            None => Ok(()),
        }
    }

    #[cold]
    fn no_such(&self, name: &str) -> Refused {
        let bound = self.names.iter();
        let bound = bound.filter(|(_, entry)| matches!(entry, Entry::Bound(_)));
        let similar = bound.map(|(bound, _)| bound);
        let similar = similar.min_by_key(|bound| distance(name, bound));
        let similar = similar.filter(|bound| distance(name, bound) <= SIMILAR);
        Refused::NoSuch {
            similar: similar.cloned(),
        }
    }
}

/// How many bytes must be put in, left out or replaced to make one text of the other; more than
/// [`SIMILAR`] if it is more. Looks at no more than that many places to each side of the diagonal.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len().abs_diff(other.len()) > SIMILAR || one.len() > LONGEST_NAME {
        return SIMILAR + 1;
    }
    // Of the texts up to `i` and up to `i + place - SIMILAR`.
    let far = SIMILAR + 1;
    let mut last = [far; 2 * SIMILAR + 1];
    for (place, cost) in last.iter_mut().enumerate().skip(SIMILAR) {
        *cost = place - SIMILAR;
    }
    for i in 1..=one.len() {
        let mut next = [far; 2 * SIMILAR + 1];
        for place in 0..next.len() {
            let Some(j) = (i + place)
                .checked_sub(SIMILAR)
                .filter(|j| *j <= other.len())
            else {
                continue;
            };
            let replaced = match j.checked_sub(1) {
                Some(before) => last[place] + usize::from(one[i - 1] != other[before]),
                None => i,
            };
            let left_out = last.get(place + 1).map_or(far, |cost| cost + 1);
            let put_in = place.checked_sub(1).map_or(far, |place| next[place] + 1);
            next[place] = replaced.min(left_out).min(put_in);
        }
        if next.iter().all(|cost| *cost > SIMILAR) {
            return far;
        }
        last = next;
    }
    let place = (other.len() + SIMILAR).checked_sub(one.len());
    place
        .and_then(|place| last.get(place))
        .map_or(far, |cost| *cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(node: u16) -> Bound {
        Bound {
            value: vec![1, 2],
            of: 7,
            type_name: "u16".into(),
            by: NodeId(node),
            site: CallSite::runtime("here"),
        }
    }

    #[test]
    fn a_name_is_bound_once_until_it_is_unbound() {
        let mut table = NameTable::default();
        assert_eq!(table.bind("a", bound(0)), Ok(()));
        let taken = table.bind("a", bound(1));
        assert!(matches!(taken, Err(Refused::Taken { by, .. }) if by == NodeId(0)));
        assert_eq!(table.lookup("a"), Ok(bound(0)));
        assert_eq!(table.unbind("a"), Ok(()));
        assert_eq!(table.bind("a", bound(1)), Ok(()));
        assert_eq!(table.names(), ["a"]);
    }

    #[test]
    fn a_claim_is_given_up_by_its_node_alone_or_lost_with_it() {
        let mut table = NameTable::default();
        let at = CallSite::runtime("here");
        assert_eq!(table.claim("a", NodeId(1), at), Ok(None));
        assert!(table.lookup("a").is_err() && table.names().is_empty());
        assert!(matches!(
            table.bind("a", bound(0)),
            Err(Refused::Taken { .. })
        ));
        table.give_up("a", NodeId(0));
        assert!(table.is_claimed("a"));
        table.lose(NodeId(1));
        assert!(!table.is_claimed("a"));
        assert_eq!(table.claim("a", NodeId(2), at), Ok(None));
        assert_eq!(table.fulfil("a", bound(2)), Ok(()));
        table.lose(NodeId(2));
        assert_eq!(table.claim("a", NodeId(0), at), Ok(Some(bound(2))));
    }

    #[test]
    fn a_table_has_so_many_names_and_no_more() {
        let mut table = NameTable::default();
        for number in 0..MOST_NAMES {
            assert_eq!(table.bind(&number.to_string(), bound(0)), Ok(()));
        }
        assert_eq!(table.bind("one more", bound(0)), Err(Refused::TooMany));
        let claim = table.claim("one more", NodeId(0), CallSite::runtime("here"));
        assert_eq!(claim, Err(Refused::TooMany));
        assert!(table.bind("7", bound(0)).is_err());
    }

    /// The distance by definition.
    fn defined(one: &[u8], other: &[u8]) -> usize {
        match (one, other) {
            ([], rest) | (rest, []) => rest.len(),
            ([a, one @ ..], [b, other @ ..]) if a == b => defined(one, other),
            ([_, rest @ ..], [_, others @ ..]) => {
                let put_in = defined(one, others);
                let left_out = defined(rest, other);
                1 + defined(rest, others).min(put_in).min(left_out)
            }
        }
    }

    #[test]
    fn a_similar_name_differs_by_two_letters_at_most() {
        let words = [
            "", "a", "ab", "ba", "abc", "acb", "jobs", "job", "jbos", "bosj", "obs", "jobsxx",
        ];
        for (one, other) in words
            .iter()
            .flat_map(|one| words.map(|other| (*one, other)))
        {
            let wanted = defined(one.as_bytes(), other.as_bytes()).min(SIMILAR + 1);
            assert_eq!(
                distance(one, other).min(SIMILAR + 1),
                wanted,
                "{one:?} {other:?}"
            );
        }
        let mut table = NameTable::default();
        for name in ["results", "jobs"] {
            table.bind(name, bound(0)).expect("it is free");
        }
        let similar = |name| match table.lookup(name) {
            Err(Refused::NoSuch { similar }) => similar,
            other => panic!("{other:?}"),
        };
        assert_eq!(similar("jbos").as_deref(), Some("jobs"));
        assert_eq!(similar("queue"), None);
    }
}
