//! Updates of elements, gathered until the worker synchronises.

use dhole_heap::{ArrayMiss, Combinable, Combining, Operator, bits_of};
use dhole_model::Oid;
use dhole_protocol::{MOST_UPDATES, UnreadElements, UpdateBatch};

/// An array with at most so many elements has a place for an update of each.
const MOST_PLACES: u64 = 1 << 22;
/// So many updates of a larger array are sent before more are gathered.
const MOST_LISTED: usize = 1 << 20;
/// Updates of so many arrays and operators are sent before more are gathered.
const MOST_KINDS: usize = 16;

/// The updates that a worker has gathered.
#[derive(Default)]
pub(crate) struct Gathered {
    kinds: Vec<Kind>,
}

/// The array that updates are of.
#[derive(Clone)]
pub(crate) struct UpdatedArray {
    /// All its elements, and the line that updates them.
    pub all: ArrayMiss,
    /// What is known of it.
    pub unread: UnreadElements,
    /// Elements of a block.
    pub per_block: u64,
    /// Whether its elements have owners that combine them with updates.
    pub has_owners: bool,
}

/// Gathered updates that are combined at once.
pub(crate) enum Part {
    /// By the owners of the elements: one message to each. The array of the first of them.
    Owners(UpdatedArray, Vec<UpdateBatch>),
    /// By this node, which writes the elements under the array's lock.
    Locked(UpdatedArray, UpdateBatch),
}

/// Updates of one array by one operator.
struct Kind {
    of: UpdatedArray,
    /// Without the updates.
    batch: UpdateBatch,
    updates: Updates,
    merge: fn(u64, u64) -> u64,
    /// The bits of the update that leaves each element as it is.
    identity: u64,
}

enum Updates {
    /// A place for each element, with the bits of its update, or of the operator's identity.
    Places(Vec<u64>),
    /// In the order of their coming.
    List(Vec<(u64, u64)>),
}

impl Gathered {
    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether these must be sent before more are gathered.
    pub(crate) fn is_full(&self, array: Oid, combining: u8) -> bool {
        let is_long = |kind: &Kind| match &kind.updates {
            Updates::List(list) => list.len() >= MOST_LISTED,
            Updates::Places(_) => false,
        };
        let is_known = self.kinds.iter().any(|kind| kind.is_of(array, combining));
        self.kinds.iter().any(is_long) || !is_known && self.kinds.len() >= MOST_KINDS
    }

    /// Gathers updates of an array.
    pub(crate) fn add<T: Combinable>(
        &mut self,
        of: UpdatedArray,
        (batch, operator): (UpdateBatch, Operator),
        (indices, values): (&[usize], &[T]),
    ) {
        let same = |kind: &Kind| kind.is_of(batch.array, batch.combining);
        let place = self.kinds.iter().position(same).unwrap_or_else(|| {
            self.kinds.push(Kind::new::<T>(of, batch, operator));
            self.kinds.len() - 1
        });
        let each = indices.iter().zip(values);
        match &mut self.kinds[place].updates {
            // One access of memory for each; with the operator known in the loop.
            Updates::Places(updates) => match operator {
                Operator::Add => merge_all::<T>(Operator::Add, updates, each),
                Operator::Min => merge_all::<T>(Operator::Min, updates, each),
                Operator::Max => merge_all::<T>(Operator::Max, updates, each),
                Operator::Or => merge_all::<T>(Operator::Or, updates, each),
            },
            Updates::List(updates) => {
                updates.extend(each.map(|(i, value)| (*i as u64, bits_of(*value))));
            }
        }
    }

    /// Takes all: of each element that an update changes one update, in ascending order of places.
    /// Those for owners are in parts that each fit one message to each.
    pub(crate) fn take(&mut self) -> Vec<Part> {
        let mut parts = Parts::default();
        for kind in self.kinds.drain(..) {
            let changes = |(_, bits): &(u64, u64)| *bits != kind.identity;
            let of = (&kind.of, &kind.batch);
            match kind.updates {
                Updates::Places(updates) => parts.add(of, (0..).zip(updates).filter(changes)),
                Updates::List(list) => {
                    let list = one_of_each(list, kind.merge).into_iter();
                    parts.add(of, list.filter(changes));
                }
            }
        }
        parts.parts
    }
}

/// Updates in parts that are combined at once.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    /// Of the last one, if that is for owners.
    room: usize,
}

impl Parts {
    /// Adds updates of an array in ascending order, of which `batch` is the rest.
    fn add(
        &mut self,
        (of, batch): (&UpdatedArray, &UpdateBatch),
        updates: impl Iterator<Item = (u64, u64)>,
    ) {
        let mut updates = updates.peekable();
        let batch_of = |updates| UpdateBatch {
            updates,
            ..batch.clone()
        };
        while updates.peek().is_some() {
            if !of.has_owners {
                let all = batch_of(updates.by_ref().collect());
                self.parts.push(Part::Locked(of.clone(), all));
                self.room = 0;
                continue;
            }
            if self.room == 0 {
                self.parts.push(Part::Owners(of.clone(), Vec::new()));
                self.room = MOST_UPDATES;
            }
            let these: Vec<(u64, u64)> = updates.by_ref().take(self.room).collect();
            self.room -= these.len();
            if let Some(Part::Owners(_, part)) = self.parts.last_mut() {
                part.push(batch_of(these));
            }
        }
    }
}

/// One update of each element, in ascending order of places.
fn one_of_each(mut list: Vec<(u64, u64)>, merge: fn(u64, u64) -> u64) -> Vec<(u64, u64)> {
    // Those of one element stay in their order.
    list.sort_by_key(|(place, _)| *place);
    list.dedup_by(|(next, more), (place, bits)| {
        let same = place == next;
        if same {
            *bits = merge(*bits, *more);
        }
        same
    });
    list
}

/// Merges each update with the one of its place.
#[inline(always)]
fn merge_all<'a, T: Combinable>(
    operator: Operator,
    updates: &mut [u64],
    each: impl Iterator<Item = (&'a usize, &'a T)>,
) {
    for (i, value) in each {
        let update = &mut updates[*i];
        *update = Combining::merge::<T>(operator, *update, bits_of(*value));
    }
}

impl Kind {
    fn new<T: Combinable>(of: UpdatedArray, batch: UpdateBatch, operator: Operator) -> Kind {
        let merge: fn(u64, u64) -> u64 = match operator {
            Operator::Add => |one, other| Combining::merge::<T>(Operator::Add, one, other),
            Operator::Min => |one, other| Combining::merge::<T>(Operator::Min, one, other),
            Operator::Max => |one, other| Combining::merge::<T>(Operator::Max, one, other),
            Operator::Or => |one, other| Combining::merge::<T>(Operator::Or, one, other),
        };
        let (len, identity) = (of.all.len, Combining::identity::<T>(operator));
        let updates = match len <= MOST_PLACES {
            true => Updates::Places(vec![identity; len as usize]),
            false => Updates::List(Vec::new()),
        };
        Kind {
            of,
            batch,
            updates,
            merge,
            identity,
        }
    }

    fn is_of(&self, array: Oid, combining: u8) -> bool {
        (self.batch.array, self.batch.combining) == (array, combining)
    }
}
