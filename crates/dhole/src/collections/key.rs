//! Keys whose hash is the same on all nodes.

use std::hash::{BuildHasher, Hash};

use dhole_model::{NodeId, SplitMix64};
use dhole_node::HashMap;

use crate::job_queue::ByValue;

/// A type of keys whose [`Hash`] depends on the value alone, so that all processes agree on the
/// node to which a key belongs: numbers, `bool`, `char`, `String`, [`NodeId`], and tuples, arrays,
/// `Vec`s, `Option`s and `Box`es of these.
///
/// A struct or an enum of keys derives it:
///
/// ```
/// use dhole::collections::DistHash;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, DistHash)]
/// enum Place {
///     Nowhere,
///     At { row: u32, column: u32 },
///     Named(String),
/// }
/// ```
///
/// Addresses and what each process numbers by itself are no keys: other processes hash them to
/// other numbers, and would not find them. So a field that holds such a value does not compile:
///
/// ```compile_fail,E0277
/// use dhole::collections::DistHash;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, DistHash)]
/// struct Handler {
///     called: fn(u32) -> u32, // hashed by its address
/// }
/// ```
///
/// A type whose `Hash` you have written yourself, so that it depends on the value alone, is one by
/// `impl DistHash for Place {}`. A type that is neither is refused:
///
/// ```compile_fail,E0277
/// use dhole::collections::DistMap;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
/// struct Named(usize);
///
/// let run = dhole::Config::nodes(2).run(|w| {
///     DistMap::<Named, u64>::new(w)?;
///     Ok(())
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key of a `DistMap`: it is not known that all nodes hash it alike",
    label = "no key of a `DistMap`",
    note = "keys are numbers, `bool`, `char`, `String`, `NodeId`, and tuples, arrays, `Vec`s, \
            `Option`s and `Box`es of these",
    note = "a struct or an enum of such fields is one by \
            `#[derive(dhole::collections::DistHash)]`, beside `Clone, PartialEq, Eq, Hash, \
            Serialize, Deserialize`",
    note = "a floating-point number is none, because a NaN does not equal itself: take its bits, \
            `x.to_bits()`; for a reference take the value, as a `String` in place of a `&str`"
)]
pub trait DistHash: ByValue + Eq + Hash {}

macro_rules! keys {
    ($($key:ty)*) => { $(impl DistHash for $key {})* };
}
keys! {
    () bool char String NodeId
    u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize
}

impl<K: DistHash> DistHash for Vec<K> {}
impl<K: DistHash> DistHash for Box<K> {}
impl<K: DistHash> DistHash for Option<K> {}
impl<K: DistHash, const N: usize> DistHash for [K; N] where [K; N]: ByValue {}
impl<A: DistHash, B: DistHash> DistHash for (A, B) {}
impl<A: DistHash, B: DistHash, C: DistHash> DistHash for (A, B, C) {}
impl<A: DistHash, B: DistHash, C: DistHash, D: DistHash> DistHash for (A, B, C, D) {}

/// The hash of a key, mixed. The map of a node hashes keys without that, so its buckets do not
/// follow from the owner.
#[inline]
fn mixed<K: DistHash>(key: &K) -> u64 {
    SplitMix64::after(HashMap::<(), ()>::default().hasher().hash_one(key))
}

/// The node, of so many, to which a key belongs.
#[inline]
pub(super) fn owner<K: DistHash>(key: &K, nodes: usize) -> usize {
    ((u128::from(mixed(key)) * nodes as u128) >> 64) as usize
}

/// The place of a key among so many, a power of two, of its owner: of the low bits, for the owner
/// follows from the high ones. The lower bits of a place are the place among fewer.
#[inline]
pub(super) fn place_among<K: DistHash>(key: &K, places: usize) -> usize {
    match places.checked_next_power_of_two() {
        Some(places) => mixed(key) as usize & (places - 1),
        None => mixed(key) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spread_over_all_nodes_alike() {
        for nodes in [1, 2, 3, 64] {
            let mut counts = vec![0; nodes];
            (0..64_000_u32).for_each(|key| counts[owner(&key, nodes)] += 1);
            let even = 64_000 / nodes;
            assert!(
                counts.iter().all(|it: &usize| it.abs_diff(even) < 200),
                "{counts:?}"
            );
        }
        // Of another process, perhaps.
        assert_eq!(owner(&"a word".to_owned(), 1_000), 973);
    }
}
