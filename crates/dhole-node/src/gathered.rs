//! Updates of elements, gathered until the worker synchronises.

use dhole_heap::{Combinable, Combining, Operator, bits_of};
use dhole_model::Oid;
use dhole_protocol::{MOST_UPDATES, UpdateBatch};

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

/// Updates of one array by one operator.
struct Kind {
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

    /// Gathers updates of an array with so many elements.
    pub(crate) fn add<T: Combinable>(
        &mut self,
        (batch, len, operator): (UpdateBatch, u64, Operator),
        (indices, values): (&[usize], &[T]),
    ) {
        let same = |kind: &Kind| kind.is_of(batch.array, batch.combining);
        let place = self.kinds.iter().position(same).unwrap_or_else(|| {
            self.kinds.push(Kind::new::<T>(batch, len, operator));
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

    /// Takes all, in parts that each fit one message to each owner: of each element that an update
    /// changes one update, in ascending order of places.
    pub(crate) fn take(&mut self) -> Vec<Vec<UpdateBatch>> {
        let mut parts = Parts::default();
        for kind in self.kinds.drain(..) {
            let changes = |(_, bits): &(u64, u64)| *bits != kind.identity;
            match kind.updates {
                Updates::Places(updates) => {
                    parts.add(&kind.batch, (0..).zip(updates).filter(changes));
                }
                Updates::List(list) => {
                    let list = one_of_each(list, kind.merge).into_iter();
                    parts.add(&kind.batch, list.filter(changes));
                }
            }
        }
        parts.parts
    }
}

/// Updates in parts that each fit one message.
#[derive(Default)]
struct Parts {
    parts: Vec<Vec<UpdateBatch>>,
    /// Of the last one.
    room: usize,
}

impl Parts {
    /// Adds updates of an array in ascending order, of which `batch` is the rest.
    fn add(&mut self, batch: &UpdateBatch, updates: impl Iterator<Item = (u64, u64)>) {
        let mut updates = updates.peekable();
        while updates.peek().is_some() {
            if self.room == 0 {
                self.parts.push(Vec::new());
                self.room = MOST_UPDATES;
            }
            let part = self.parts.last_mut().expect("just pushed, or before");
            let these: Vec<(u64, u64)> = updates.by_ref().take(self.room).collect();
            self.room -= these.len();
            part.push(UpdateBatch {
                updates: these,
                ..batch.clone()
            });
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
    fn new<T: Combinable>(batch: UpdateBatch, len: u64, operator: Operator) -> Kind {
        let merge: fn(u64, u64) -> u64 = match operator {
            Operator::Add => |one, other| Combining::merge::<T>(Operator::Add, one, other),
            Operator::Min => |one, other| Combining::merge::<T>(Operator::Min, one, other),
            Operator::Max => |one, other| Combining::merge::<T>(Operator::Max, one, other),
            Operator::Or => |one, other| Combining::merge::<T>(Operator::Or, one, other),
        };
        let identity = Combining::identity::<T>(operator);
        let updates = match len <= MOST_PLACES {
            true => Updates::Places(vec![identity; len as usize]),
            false => Updates::List(Vec::new()),
        };
        Kind {
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
