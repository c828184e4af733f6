//! Numbers, flags, options, lists and words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Pair, Tail, Wire, WireError, write_head};
use smallvec::{Array, SmallVec};

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            type Head = $number;

            #[inline]
            fn head(&self) -> $number {
                *self
            }

            #[inline]
            fn tail_len(&self) -> usize {
                0
            }

            #[inline]
            fn write_tail(&self, _: &mut Vec<u8>) {}

            #[inline]
            fn read(head: &$number, _: &mut Tail<'_>) -> Result<$number, WireError> {
                Ok(*head)
            }
        }
    )*};
}

number!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, ());

impl Wire for usize {
    type Head = u64;

    fn head(&self) -> u64 {
        *self as u64
    }

    fn tail_len(&self) -> usize {
        0
    }

    fn write_tail(&self, _: &mut Vec<u8>) {}

    fn read(head: &u64, _: &mut Tail<'_>) -> Result<usize, WireError> {
        usize::try_from(*head).map_err(|_| WireError::Value("a number beyond this machine's"))
    }
}

impl Wire for bool {
    type Head = u8;

    #[inline]
    fn head(&self) -> u8 {
        u8::from(*self)
    }

    #[inline]
    fn tail_len(&self) -> usize {
        0
    }

    #[inline]
    fn write_tail(&self, _: &mut Vec<u8>) {}

    #[inline]
    fn read(head: &u8, _: &mut Tail<'_>) -> Result<bool, WireError> {
        match head {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::Value("a flag that is neither 0 nor 1")),
        }
    }
}

/// The value is in the tail, if there is one.
impl<T: Wire> Wire for Option<T> {
    type Head = u8;

    #[inline]
    fn head(&self) -> u8 {
        u8::from(self.is_some())
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.as_ref().map_or(0, T::wire_len)
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(out);
        }
    }

    #[inline]
    fn read(head: &u8, tail: &mut Tail<'_>) -> Result<Option<T>, WireError> {
        match bool::read(head, tail)? {
            false => Ok(None),
            true => T::take(tail).map(Some),
        }
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    type Head = u8;

    #[inline]
    fn head(&self) -> u8 {
        u8::from(self.is_err())
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.as_ref().map_or_else(E::wire_len, T::wire_len)
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }

    #[inline]
    fn read(head: &u8, tail: &mut Tail<'_>) -> Result<Result<T, E>, WireError> {
        match bool::read(head, tail)? {
            false => T::take(tail).map(Ok),
            true => E::take(tail).map(Err),
        }
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    type Head = Pair<A::Head, B::Head>;

    #[inline]
    fn head(&self) -> Self::Head {
        Pair(self.0.head(), self.1.head())
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.0.tail_len() + self.1.tail_len()
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        self.0.write_tail(out);
        self.1.write_tail(out);
    }

    #[inline]
    fn read(Pair(a, b): &Self::Head, tail: &mut Tail<'_>) -> Result<(A, B), WireError> {
        Ok((A::read(a, tail)?, B::read(b, tail)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    type Head = Pair<A::Head, Pair<B::Head, C::Head>>;

    #[inline]
    fn head(&self) -> Self::Head {
        Pair(self.0.head(), Pair(self.1.head(), self.2.head()))
    }

    #[inline]
    fn tail_len(&self) -> usize {
        self.0.tail_len() + self.1.tail_len() + self.2.tail_len()
    }

    #[inline]
    fn write_tail(&self, out: &mut Vec<u8>) {
        self.0.write_tail(out);
        self.1.write_tail(out);
        self.2.write_tail(out);
    }

    #[inline]
    fn read(Pair(a, Pair(b, c)): &Self::Head, tail: &mut Tail<'_>) -> Result<Self, WireError> {
        Ok((A::read(a, tail)?, B::read(b, tail)?, C::read(c, tail)?))
    }
}

macro_rules! pointer {
    ($($pointer:ident),*) => {$(
        impl<T: Wire> Wire for $pointer<T> {
            type Head = T::Head;

            #[inline]
            fn head(&self) -> T::Head {
                (**self).head()
            }

            #[inline]
            fn tail_len(&self) -> usize {
                (**self).tail_len()
            }

            #[inline]
            fn write_tail(&self, out: &mut Vec<u8>) {
                (**self).write_tail(out);
            }

            #[inline]
            fn read(head: &T::Head, tail: &mut Tail<'_>) -> Result<$pointer<T>, WireError> {
                T::read(head, tail).map($pointer::new)
            }
        }
    )*};
}

pointer!(Box, Arc);

/// The head of a list of so many items.
///
/// # Panics
/// When there are 2^32 or more.
#[inline]
pub fn count(items: usize) -> u32 {
    u32::try_from(items).expect("a list of fewer than 2^32 items")
}

#[inline]
fn list_len<T: Wire>(items: &[T]) -> usize {
    let tails: usize = items.iter().map(T::tail_len).sum();
    T::HEAD_LEN * items.len() + tails
}

/// Appends the heads of all items, and then their tails.
#[inline]
fn write_list<T: Wire>(items: &[T], out: &mut Vec<u8>) {
    for item in items {
        write_head(&item.head(), out);
    }
    for item in items {
        item.write_tail(out);
    }
}

/// For how many of so many items room is made before they are read: for no more than twice as many
/// bytes as their heads have.
#[inline]
fn room<T: Wire>(items: usize) -> usize {
    let most = 2 * T::HEAD_LEN * items / size_of::<T>().max(1);
    most.min(items)
}

/// Lists, each with the type in which it is gathered and that of its items.
macro_rules! list {
    ($(<$parameter:ident: $bound:path> $list:ty as $gathered:ty as $item:ty),*) => {$(
        impl<$parameter: $bound> Wire for $list {
            type Head = u32;

            #[inline]
            fn head(&self) -> u32 {
                count(self.len())
            }

            #[inline]
            fn tail_len(&self) -> usize {
                list_len(self)
            }

            #[inline]
            fn write_tail(&self, out: &mut Vec<u8>) {
                write_list(self, out);
            }

            #[inline]
            fn read(head: &u32, tail: &mut Tail<'_>) -> Result<$list, WireError> {
                let heads = tail.heads(*head as usize)?;
                let mut list = <$gathered>::with_capacity(room::<$item>(heads.len()));
                for head in heads {
                    list.push(<$item>::read(&head, tail)?);
                }
                Ok(list.into())
            }
        }
    )*};
}

list!(
    <T: Wire> Vec<T> as Vec<T> as T,
    <T: Wire> Box<[T]> as Vec<T> as T,
    <T: Wire> Arc<[T]> as Vec<T> as T,
    <A: Array<Item: Wire>> SmallVec<A> as SmallVec<A> as A::Item
);

/// In ascending order.
impl<T: Wire + Ord> Wire for BTreeSet<T> {
    type Head = u32;

    fn head(&self) -> u32 {
        count(self.len())
    }

    fn tail_len(&self) -> usize {
        let tails: usize = self.iter().map(T::tail_len).sum();
        T::HEAD_LEN * self.len() + tails
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        for item in self {
            write_head(&item.head(), out);
        }
        for item in self {
            item.write_tail(out);
        }
    }

    fn read(head: &u32, tail: &mut Tail<'_>) -> Result<BTreeSet<T>, WireError> {
        let mut set = BTreeSet::new();
        for head in tail.heads(*head as usize)? {
            let item = T::read(&head, tail)?;
            if set.last().is_some_and(|last| *last >= item) {
                return Err(WireError::Value("items that are not in ascending order"));
            }
            set.insert(item);
        }
        Ok(set)
    }
}

/// In ascending order of the keys.
impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    type Head = u32;

    fn head(&self) -> u32 {
        count(self.len())
    }

    fn tail_len(&self) -> usize {
        let heads = K::HEAD_LEN + V::HEAD_LEN;
        let tails = self
            .iter()
            .map(|(key, value)| key.tail_len() + value.tail_len());
        heads * self.len() + tails.sum::<usize>()
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        for (key, value) in self {
            write_head(&key.head(), out);
            write_head(&value.head(), out);
        }
        for (key, value) in self {
            key.write_tail(out);
            value.write_tail(out);
        }
    }

    fn read(head: &u32, tail: &mut Tail<'_>) -> Result<BTreeMap<K, V>, WireError> {
        let mut map = BTreeMap::new();
        for head in tail.heads(*head as usize)? {
            let (key, value) = <(K, V)>::read(&head, tail)?;
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(WireError::Value("keys that are not in ascending order"));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}

macro_rules! words {
    ($($words:ty),*) => {$(
        impl Wire for $words {
            type Head = u32;

            fn head(&self) -> u32 {
                count(self.len())
            }

            fn tail_len(&self) -> usize {
                self.len()
            }

            fn write_tail(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_bytes());
            }

            fn read(head: &u32, tail: &mut Tail<'_>) -> Result<$words, WireError> {
                let words = std::str::from_utf8(tail.bytes(*head as usize)?);
                words.map(Into::into).map_err(|_| WireError::Value("words that are no UTF-8"))
            }
        }
    )*};
}

words!(String, Arc<str>);
