//! References as values that travel in the arguments, results and states of objects with
//! operations.
//!
//! Whoever makes a reference of bytes must know that it is one: its type is looked up in the
//! directory of the cluster whose id it is, which is found without any node's help.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cluster::check_anywhere;
use crate::value::{pack, unpack_checked};
use crate::{Array, Ref, Refs, Row, Rows, Scalar, Share};

/// Makes a value of its bytes.
struct Packed<T>(PhantomData<fn() -> T>);

impl<T: Share + Copy> Visitor<'_> for Packed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a {}", type_name::<T>())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        // SAFETY: what the directory of its cluster knows allocation gave out as that type; ids of
        // clusters that have ended are null everywhere for ever.
        unsafe { unpack_checked(bytes, check_anywhere) }.map_err(E::custom)
    }
}

macro_rules! travels {
    ($($name:ident: $of:ident;)*) => {$(
        impl<T: $of> Serialize for $name<T> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut packed = Vec::new();
                pack(self, &mut packed);
                to.serialize_bytes(&packed)
            }
        }

        impl<'de, T: $of> Deserialize<'de> for $name<T> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_bytes(Packed(PhantomData))
            }
        }
    )*};
}
travels! {
    Ref: Share;
    Refs: Share;
    Row: Scalar;
    Rows: Scalar;
    Array: Share;
}
