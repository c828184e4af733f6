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
}

enum Updates {
    /// A place for each element, and whether there is an update of it.
    Places(Vec<u64>, Vec<bool>),
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
            Updates::Places(..) => false,
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
            Updates::Places(updates, are) => {
                for (i, value) in each {
                    let (update, bits) = (&mut updates[*i], bits_of(*value));
                    *update = match are[*i] {
                        true => Combining::merge::<T>(operator, *update, bits),
                        false => bits,
                    };
                    are[*i] = true;
                }
            }
            Updates::List(updates) => {
                updates.extend(each.map(|(i, value)| (*i as u64, bits_of(*value))));
            }
        }
    }

    /// Takes all, in parts that each fit one message to each owner.
    pub(crate) fn take(&mut self) -> Vec<Vec<UpdateBatch>> {
        let (mut parts, mut room) = (Vec::<Vec<UpdateBatch>>::new(), 0);
        for kind in self.kinds.drain(..) {
            let updates = kind.updates.sorted(kind.merge);
            let mut rest = &updates[..];
            while !rest.is_empty() {
                if room == 0 {
                    parts.push(Vec::new());
                    room = MOST_UPDATES;
                }
                let part = parts.last_mut().expect("just pushed, or before");
                let (these, behind) = rest.split_at(rest.len().min(room));
                (room, rest) = (room - these.len(), behind);
                let batch = UpdateBatch {
                    updates: these.to_vec(),
                    ..kind.batch.clone()
                };
                part.push(batch);
            }
        }
        parts
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
        let updates = match len <= MOST_PLACES {
            true => Updates::Places(vec![0; len as usize], vec![false; len as usize]),
            false => Updates::List(Vec::new()),
        };
        Kind {
            batch,
            updates,
            merge,
        }
    }

    fn is_of(&self, array: Oid, combining: u8) -> bool {
        (self.batch.array, self.batch.combining) == (array, combining)
    }
}

impl Updates {
    /// One update of each element that has any, in ascending order of places.
    fn sorted(self, merge: fn(u64, u64) -> u64) -> Vec<(u64, u64)> {
        match self {
            Updates::Places(updates, are) => {
                let all = (0..).zip(updates).zip(are);
                all.filter_map(|(update, is)| is.then_some(update))
                    .collect()
            }
            Updates::List(mut list) => {
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
        }
    }
}
