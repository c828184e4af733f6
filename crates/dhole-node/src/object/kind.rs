//! What the engine knows of a type of objects: how an operation is found by its number.

use std::any::{Any, type_name};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dhole_heap::{Nullable, Share, Tag};
use dhole_model::unpoisoned;
use dhole_protocol::objects::Bytes;
use dhole_registry::{Ship, fnv1a};
use postcard::ser_flavors::Flavor;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

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

    /// The operation that the engine executes when a node is lost, with that node.
    #[doc(hidden)]
    const ON_LOSS: Option<u16> = None;

    /// Executes the operation of this number, if its guard is true, and appends the bytes of its
    /// result.
    #[doc(hidden)]
    fn apply(
        &mut self,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<Applied, Malformed>;
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationInfo {
    /// Its name, after that of its type.
    pub name: &'static str,
    /// Whether it takes `&mut self`.
    pub writes: bool,
    /// Whether it has a guard.
    pub guarded: bool,
    /// Its arguments and its result, as the program spells them.
    pub signature: &'static str,
}

/// What executing an operation came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)] // a byte that is looked at as part of a word is waited for
pub enum Applied {
    /// It was executed.
    Done,
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

/// Appends what postcard writes: numbers for the most part, of a byte or two.
struct Appending<'a>(&'a mut Vec<u8>);

impl Flavor for Appending<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        match *bytes {
            [one] => self.0.push(one),
            [one, two] => self.0.extend_from_slice(&[one, two]),
            // Of a known length, as most numbers are that are greater.
            [a, b, c] => self.0.extend_from_slice(&[a, b, c]),
            [a, b, c, d] => self.0.extend_from_slice(&[a, b, c, d]),
            [a, b, c, d, e] => self.0.extend_from_slice(&[a, b, c, d, e]),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Appends the bytes of a value.
///
/// # Errors
/// [`Malformed`] where it cannot be written; some may have been appended.
#[inline]
pub fn encode_to<V: Serialize + ?Sized>(
    what: &'static str,
    value: &V,
    bytes: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let cause = |cause: postcard::Error| Malformed {
        what,
        cause: cause.to_string().into(),
    };
    postcard::serialize_with_flavor(value, Appending(bytes)).map_err(cause)
}

/// Appends the bytes of the arguments of an operation, whatever they are.
///
/// # Errors
/// As [`encode_to`].
#[inline]
pub fn encode_arguments<A: Serialize>(arguments: &A, bytes: &mut Vec<u8>) -> Result<(), Malformed> {
    encode_to("the arguments", arguments, bytes)
}

/// The bytes of a value.
pub fn encode<V: Serialize + ?Sized>(what: &'static str, value: &V) -> Result<Bytes, Malformed> {
    let mut bytes = Vec::new();
    encode_to(what, value, &mut bytes)?;
    Ok(Bytes::from(&bytes[..]))
}

/// The value of these bytes, which are nothing else.
pub fn decode<'a, V: Deserialize<'a>>(what: &'static str, bytes: &'a [u8]) -> Result<V, Malformed> {
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

/// Decodes the result of an operation, of whose arguments nothing comes back, to where it stays.
#[inline]
pub fn decode_to<A, R: DeserializeOwned>(
    _: A,
    bytes: &[u8],
    result: &mut Option<R>,
) -> Result<(), Malformed> {
    *result = Some(decode("the result", bytes)?);
    Ok(())
}

/// A state whose type is not known.
pub(crate) trait AnyObject: Any + Send {
    /// As [`ObjectType::apply`]; what there is mostly comes back as a word.
    fn apply(
        &mut self,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<Applied, Box<Malformed>>;
    fn save(&self) -> Result<Bytes, Malformed>;
}

impl<T: ObjectType> AnyObject for T {
    fn apply(
        &mut self,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<Applied, Box<Malformed>> {
        ObjectType::apply(self, operation, arguments, result).map_err(Box::new)
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
    pub on_loss: Option<u16>,
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
        on_loss: T::ON_LOSS,
        restore: |bytes| Ok(Box::new(decode::<T>("the state of an object", bytes)?)),
    };
}

impl Kind {
    /// The kind of a type.
    pub fn of<T: ObjectType>() -> &'static Kind {
        dhole_registry::put::<Of<T>>();
        Of::<T>::IS
    }

    /// The name of the type.
    pub fn name(&self) -> &'static str {
        (self.name)()
    }

    /// Tells the type from others, the same in every process of one program: a hash of its
    /// name, and its operations and what they take and give.
    pub fn key(&self) -> u64 {
        let operations = self.operations.iter();
        let words = operations.flat_map(|it| [it.name, it.signature, ";"]);
        let bytes = [self.name()].into_iter().chain(words).flat_map(str::bytes);
        fnv1a(bytes)
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
    let mut kinds = unpoisoned::lock(&KINDS);
    kinds.entry(key).or_insert(kind);
    key
}

/// The type of this key, if the program has it.
pub(crate) fn find(key: u64) -> Option<&'static Kind> {
    let mut kinds = unpoisoned::lock(&KINDS);
    if !kinds.contains_key(&key) {
        for kind in dhole_registry::all().filter_map(|shipped| shipped.is::<Kind>()) {
            kinds.entry(kind.key()).or_insert(kind);
        }
    }
    kinds.get(&key).copied()
}
