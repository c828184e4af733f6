//! Short lists on a wire: as any sequence, read without trusting the length that it claims.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use smallvec::{Array, SmallVec};

pub(crate) fn serialize<A, S>(few: &SmallVec<A>, to: S) -> Result<S::Ok, S::Error>
where
    A: Array<Item: Serialize>,
    S: Serializer,
{
    to.collect_seq(few.iter())
}

pub(crate) fn deserialize<'de, A, D>(from: D) -> Result<SmallVec<A>, D::Error>
where
    A: Array<Item: Deserialize<'de>>,
    D: Deserializer<'de>,
{
    struct Few<A>(PhantomData<A>);

    impl<'de, A: Array<Item: Deserialize<'de>>> Visitor<'de> for Few<A> {
        type Value = SmallVec<A>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<SmallVec<A>, S::Error> {
            // It grows with what is really there.
            let mut few = SmallVec::new();
            while let Some(item) = items.next_element()? {
                few.push(item);
            }
            Ok(few)
        }
    }

    from.deserialize_seq(Few(PhantomData))
}
