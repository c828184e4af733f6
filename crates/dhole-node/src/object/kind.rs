//! What the engine knows of a type of objects: how an operation is found by its number.

use std::any::{Any, type_name};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dhole_heap::{Nullable, Share, Tag};
use dhole_protocol::objects::Bytes;
use dhole_ship::Ship;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose values can be shared as objects with operations. Implemented by
/// [`#[dhole::object]`](macro@dhole_macros::object), which see; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no operations, so it cannot be a shared object",
    label = "not a type of shared objects",
    note = "mark the `impl` whose public methods are the operations: `#[dhole::object] impl {Self}`"
)]
pub trait ObjectType: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What a handle can be asked to do: the operations, each with the worker before its arguments.
    type Operations: Share + Nullable + Copy + From<Tag<Self>> + Into<Tag<Self>>;

    /// The operations, in the order of their numbers.
    #[doc(hidden)]
    const OPERATIONS: &'static [OperationInfo];

    /// Executes the operation of this number, if its guard is true.
    #[doc(hidden)]
    fn apply(&mut self, operation: u16, arguments: &[u8]) -> Result<Applied, Malformed>;
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationInfo {
    /// Its name, after that of its type.
    pub name: &'static str,
    /// Whether it takes `&mut self`.
    pub writes: bool,
    /// Its arguments and its result, as the program spells them.
    pub signature: &'static str,
}

/// What executing an operation came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Its result.
    Result(Bytes),
    /// Its guard is false; nothing was done.
    Blocked,
}

/// Bytes that are not what they should be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct Malformed {
    /// What they should be.
    pub what: &'static str,
    /// Why they are not.
    pub cause: Cow<'static, str>,
}

impl Malformed {
    /// A number of an operation that the type does not have.
    pub const NO_OPERATION: Malformed = Malformed {
        what: "the operation",
        cause: Cow::Borrowed("the type has none of this number"),
    };
}

/// Whoever is named here can be an argument or a result of an operation.
#[doc(hidden)]
#[inline]
pub const fn travels<V: Serialize + DeserializeOwned>() {}

/// So many bytes are gathered in place, which costs no allocation.
const FEW: usize = 64;

/// The bytes of a value.
pub fn encode<V: Serialize + ?Sized>(what: &'static str, value: &V) -> Result<Bytes, Malformed> {
    let cause = |cause: postcard::Error| Malformed {
        what,
        cause: cause.to_string().into(),
    };
    let gathered = Gathered {
        few: [0; FEW],
        length: 0,
        many: Vec::new(),
    };
    postcard::serialize_with_flavor(value, gathered).map_err(cause)
}

/// The bytes of a value, before it is known how many they become: the last few in place, those
/// before them in a vector. What comes as a slice goes there at once.
struct Gathered {
    few: [u8; FEW],
    length: usize,
    many: Vec<u8>,
}

impl Gathered {
    fn spill(&mut self) {
        self.many.extend_from_slice(&self.few[..self.length]);
        self.length = 0;
    }
}

impl Flavor for Gathered {
    type Output = Bytes;

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        if self.length == FEW {
            self.spill();
        }
        self.few[self.length] = byte;
        self.length += 1;
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        let end = self.length + bytes.len();
        match self.few.get_mut(self.length..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length = end;
            }
            None => {
                self.spill();
                self.many.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn finalize(mut self) -> postcard::Result<Bytes> {
        if self.many.is_empty() {
            return Ok(Bytes::from(&self.few[..self.length]));
        }
        self.spill();
        Ok(Bytes::from(&self.many[..]))
    }
}

/// The value of these bytes, which are nothing else.
pub fn decode<V: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<V, Malformed> {
    let malformed = |cause: String| Malformed {
        what,
        cause: cause.into(),
    };
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(malformed(format!("{} bytes are left over", rest.len()))),
        Err(cause) => Err(malformed(cause.to_string())),
    }
}

/// A state whose type is not known.
pub(crate) trait AnyObject: Any + Send {
    fn apply(&mut self, operation: u16, arguments: &[u8]) -> Result<Applied, Malformed>;
    fn save(&self) -> Result<Bytes, Malformed>;
}

impl<T: ObjectType> AnyObject for T {
    fn apply(&mut self, operation: u16, arguments: &[u8]) -> Result<Applied, Malformed> {
        ObjectType::apply(self, operation, arguments)
    }

    fn save(&self) -> Result<Bytes, Malformed> {
        encode("the state of an object", self)
    }
}

/// Makes a state of its bytes.
type Restore = fn(&[u8]) -> Result<Box<dyn AnyObject>, Malformed>;

/// A type of objects, as data.
#[derive(Debug)]
pub(crate) struct Kind {
    name: fn() -> &'static str,
    pub operations: &'static [OperationInfo],
    pub restore: Restore,
}

struct Of<T>(T);

/// Every type that the program makes objects of is in the linker's table, so that a process finds
/// those too that its own worker never names.
impl<T: ObjectType> Ship for Of<T> {
    type Is = Kind;
    const IS: &'static Kind = &Kind {
        name: type_name::<T>,
        operations: T::OPERATIONS,
        restore: |bytes| Ok(Box::new(decode::<T>("the state of an object", bytes)?)),
    };
}

impl Kind {
    /// The kind of a type.
    pub fn of<T: ObjectType>() -> &'static Kind {
        dhole_ship::put::<Of<T>>();
        Of::<T>::IS
    }

    /// The name of the type.
    pub fn name(&self) -> &'static str {
        (self.name)()
    }

    /// Tells the type from others, the same in every process of one program: FNV-1a over its
    /// name, and its operations and what they take and give.
    pub fn key(&self) -> u64 {
        let operations = self.operations.iter();
        let words = operations.flat_map(|it| [it.name, it.signature, ";"]);
        let bytes = [self.name()].into_iter().chain(words).flat_map(str::bytes);
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The name of an operation.
    pub fn operation(&self, operation: u16) -> Arc<str> {
        let info = self.operations.get(usize::from(operation));
        info.map_or("an operation that it does not have", |info| info.name)
            .into()
    }
}

/// The kinds that this process has met, by key: whoever makes an object, or uses the handle of one,
/// names its type.
static KINDS: Mutex<BTreeMap<u64, &'static Kind>> = Mutex::new(BTreeMap::new());

/// Makes a type known to this process.
pub(crate) fn register(kind: &'static Kind) -> u64 {
    let key = kind.key();
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    kinds.entry(key).or_insert(kind);
    key
}

/// The type of this key, if the program has it.
pub(crate) fn find(key: u64) -> Option<&'static Kind> {
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    if !kinds.contains_key(&key) {
        for kind in dhole_ship::all().filter_map(|shipped| shipped.is::<Kind>()) {
            kinds.entry(kind.key()).or_insert(kind);
        }
    }
    kinds.get(&key).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that says itself what it is, as dates and versions do.
    struct Said(usize);

    impl Serialize for Said {
        fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(&format_args!("{:>1$}", "x", self.0))
        }
    }

    #[test]
    fn a_value_has_the_same_bytes_wherever_they_are_gathered() {
        for length in 0..3 * FEW {
            let numbers: Vec<u32> = (0..length as u32).map(|it| it << (it % 23)).collect();
            let texts = [Said(length), Said(1), Said(FEW - 1)];
            let bytes = vec![7_u8; length];
            let value = (&numbers[..], &texts, 300_u16, &bytes[..], "end");
            let expected = postcard::to_allocvec(&value).unwrap();
            assert_eq!(
                &*encode("a value", &value).unwrap(),
                &expected[..],
                "{length}"
            );
        }
    }
}
