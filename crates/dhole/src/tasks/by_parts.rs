//! Elements of an array that are divided among the nodes.

use dhole_heap::{Array, ArrayRange, Scalar};
use dhole_node::{Result, Worker};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::schedule::own_part;

/// Elements of an array of which each node has a part: as many as each other in a row, node 0 the
/// first, as with [`Schedule::Static`](super::Schedule::Static).
///
/// ```
/// use dhole::Config;
/// use dhole::tasks::ByParts;
///
/// let run = Config::nodes(3).run(|w| {
///     let numbers = w.once(|w| Ok(w.alloc_array::<u64>(1_000)))?;
///     numbers.for_each_mut(w, |place, number| *number = place as u64)?;
///     Ok(numbers.reduce(w, |one, other| one + other)?)
/// })?;
/// assert_eq!(run.value, Some(499_500));
/// # Ok::<(), dhole::RunError>(())
/// ```
pub trait ByParts<T: Scalar>: Sized {
    /// The part of this node.
    fn part(self, w: &Worker<'_>) -> ArrayRange<T>;

    /// Calls `f` with each element and its place in the array, on the node whose part it is, and
    /// ends with a barrier. Every node calls it. A node that wrote its part last fetches nothing.
    ///
    /// # Errors
    /// As [`ArrayRange::try_get_mut`] and [`Worker::barrier`].
    #[track_caller]
    fn for_each_mut(self, w: &mut Worker<'_>, mut f: impl FnMut(usize, &mut T)) -> Result<()> {
        let part = self.part(w);
        let places = part.places();
        if !part.is_empty() {
            let elements = part.try_get_mut(w)?;
            places.zip(elements).for_each(|(place, it)| f(place, it));
        }
        Ok(w.barrier()?)
    }

    /// All elements combined, or `None` if there are none. Every node calls it and gets the same
    /// value, to the last bit: `op` must be associative, and combines the elements of a part, and
    /// then the parts, in their order. It is a barrier too, of 2(n-1) messages.
    ///
    /// Of floating-point numbers the last bits depend on the number of nodes.
    ///
    /// # Errors
    /// As [`ArrayRange::try_get`] and [`Worker::all_reduce`].
    #[track_caller]
    fn reduce(self, w: &mut Worker<'_>, mut op: impl FnMut(T, T) -> T) -> Result<Option<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let part = self.part(w);
        let own = match part.is_empty() {
            true => None,
            false => part.try_get(w)?.iter().copied().reduce(&mut op),
        };
        let combined = w.all_reduce(own, |one: Option<T>, other| match (one, other) {
            (Some(one), Some(other)) => Some(op(one, other)),
            (one, other) => one.or(other),
        });
        Ok(combined?)
    }
}

impl<T: Scalar> ByParts<T> for ArrayRange<T> {
    fn part(self, w: &Worker<'_>) -> ArrayRange<T> {
        let own = own_part(self.len() as u64, w.node(), w.nodes() as u64);
        let begins = self.places().start;
        let places = begins + own.start as usize..begins + own.end as usize;
        self.array().range(places)
    }
}

impl<T: Scalar> ByParts<T> for Array<T> {
    fn part(self, w: &Worker<'_>) -> ArrayRange<T> {
        self.range(..).part(w)
    }
}
