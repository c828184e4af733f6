//! What the engine knows of a type of objects: how an operation is found by its number.

use std::any::{Any, type_name};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dhole_heap::{Nullable, Share, Tag};
use dhole_model::unpoisoned;
use dhole_protocol::objects::{Bytes, Refusal};
use dhole_registry::{Ship, fnv1a};
use postcard::ser_flavors::{Flavor, Size};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::worker::Worker;

/// A type whose values can be shared as objects with operations. Implemented by
/// [`#[dhole::object]`](macro@dhole_macros::object), which see; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no operations, so it cannot be a shared object",
    label = "not a type of shared objects",
    note = "mark the `impl` whose public methods are the operations: `#[dhole::object] impl {Self}`"
)]
pub trait ObjectType: Send + Sync + Sized + 'static {
    /// What a handle can be asked to do: the operations, each with the worker before its arguments.
    type Operations: Share + Nullable + Copy + From<Tag<Self>> + Into<Tag<Self>>;

    /// The operations, in the order of their numbers.
    #[doc(hidden)]
    const OPERATIONS: &'static [OperationInfo];

    /// The operation that the engine executes when a node is lost, with that node.
    #[doc(hidden)]
    const ON_LOSS: Option<u16> = None;

    /// The constructors, in the order of their numbers.
    #[doc(hidden)]
    const CONSTRUCTORS: &'static [ConstructorInfo] = &[];

    /// Whether objects of the type stay where they are made: their state never becomes bytes.
    #[doc(hidden)]
    const RESIDENT: bool = false;

    /// The state as bytes. A resident one has none.
    #[doc(hidden)]
    fn save(&self) -> Result<Bytes, Malformed> {
        Err(Malformed::RESIDENT)
    }

    /// The state that has these bytes.
    #[doc(hidden)]
    fn restore(bytes: &[u8]) -> Result<Self, Malformed> {
        let _ = bytes;
        Err(Malformed::RESIDENT)
    }

    /// Executes the constructor of this number: it makes an object, or says why not.
    #[doc(hidden)]
    fn construct(constructor: u16, arguments: &[u8]) -> Result<Constructed<Self>, Malformed> {
        let _ = (constructor, arguments);
        Err(Malformed::NO_CONSTRUCTOR)
    }

    /// Says what is left of the object at the end of a run, if that is a mistake of the program.
    #[doc(hidden)]
    fn left(&self) -> Option<String> {
        None
    }

    /// As [`apply`](ObjectType::apply), of an operation that only reads. Objects whose operations
    /// take a worker have this.
    #[doc(hidden)]
    fn look(
        &self,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<Applied, Malformed> {
        let _ = (operation, arguments, result);
        Err(Malformed::NO_OPERATION)
    }

    /// Whether the guard of an operation that takes a worker is true.
    #[doc(hidden)]
    fn may(&self, operation: u16, arguments: &[u8]) -> Result<bool, Malformed> {
        let _ = (operation, arguments);
        Err(Malformed::NO_OPERATION)
    }

    /// Executes an operation that takes a worker and only reads, and appends the bytes of its
    /// result.
    #[doc(hidden)]
    fn execute_shared(
        &self,
        w: &mut Worker<'_>,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<crate::Result<()>, Malformed> {
        let _ = (w, operation, arguments, result);
        Err(Malformed::NO_OPERATION)
    }

    /// The same of one that writes.
    #[doc(hidden)]
    fn execute(
        &mut self,
        w: &mut Worker<'_>,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<crate::Result<()>, Malformed> {
        let _ = (w, operation, arguments, result);
        Err(Malformed::NO_OPERATION)
    }

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
    /// Whether it takes a worker: then a process of the object's node executes it.
    pub takes_worker: bool,
    /// Its arguments and its result, as the program spells them.
    pub signature: &'static str,
}

/// A constructor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConstructorInfo {
    /// Its name, after that of its type.
    pub name: &'static str,
    /// Its arguments and what it returns, as the program spells them.
    pub signature: &'static str,
}

/// What a constructor made: the object, and the bytes of the user half that comes back.
pub type Constructed<T> = Result<(T, Vec<u8>), String>;

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

/// Why the bytes of a state are looked at.
const STATE: &str = "the state of an object";

impl Malformed {
    /// A number of a constructor that the type does not have.
    pub const NO_CONSTRUCTOR: Malformed = Malformed {
        what: "the constructor",
        cause: Cow::Borrowed("the type has none of this number"),
    };
    /// The bytes of a state that stays where it is.
    pub const RESIDENT: Malformed = Malformed {
        what: STATE,
        cause: Cow::Borrowed("its type is resident: it has none"),
    };
    /// A number of an operation that the type does not have.
    pub const NO_OPERATION: Malformed = Malformed {
        what: "the operation",
        cause: Cow::Borrowed("the type has none of this number"),
    };
}

/// A type that can be an argument or a result of an operation.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not travel between nodes, so it is no argument and no result of an \
               operation",
    label = "serde does not write and read it",
    note = "a type of your own travels by `#[derive(serde::Serialize, serde::Deserialize)]`, with \
            serde's feature `derive`; the compiler's other errors of this type go with this one"
)]
pub trait Travels: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<V: Serialize + DeserializeOwned> Travels for V {}

/// Tests that a type can be an argument or a result of an operation.
#[doc(hidden)]
#[inline]
pub const fn travels<V: Travels>() {}

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

/// How many bytes a value has; none where it cannot be written.
#[doc(hidden)]
pub fn encoded_len<V: Serialize + ?Sized>(value: &V) -> usize {
    postcard::serialize_with_flavor(value, Size::default()).unwrap_or(0)
}

/// A state that becomes bytes, and is made of them again.
#[diagnostic::on_unimplemented(
    message = "the state of `{Self}` does not become bytes",
    label = "objects of this type could not go to another node",
    note = "derive serde's `Serialize` and `Deserialize` for it and what it holds; or mark it \
            `#[dhole::object(resident)]`: its constructors make it on its node, and it stays there"
)]
#[doc(hidden)]
pub trait State: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> State for T {}

/// The bytes of a state.
#[doc(hidden)]
pub fn save<T: State>(state: &T) -> Result<Bytes, Malformed> {
    encode(STATE, state)
}

/// The state that has these bytes.
#[doc(hidden)]
pub fn restore<T: State>(bytes: &[u8]) -> Result<T, Malformed> {
    decode(STATE, bytes)
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
    fn left(&self) -> Option<String>;

    /// Whether the guard of an operation that takes a worker is true.
    fn may(&self, operation: u16, arguments: &[u8]) -> Result<bool, Malformed> {
        let _ = (operation, arguments);
        Err(Malformed::NO_OPERATION)
    }

    /// Lends the state to a process, alone or with others that only read.
    fn lend(&mut self, writes: bool) -> Option<Box<dyn Lent>> {
        let _ = writes;
        None
    }

    /// Takes back what was lent.
    fn give_back(&mut self, state: Box<dyn Any + Send>) {
        drop(state);
    }
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
        ObjectType::save(self)
    }

    fn left(&self) -> Option<String> {
        ObjectType::left(self)
    }
}

/// A state that is lent to a process.
pub(crate) trait Lent: Send {
    /// Executes an operation that takes a worker, and appends the bytes of its result.
    fn execute(
        &mut self,
        w: &mut Worker<'_>,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<crate::Result<()>, Malformed>;

    /// The state, to be given back.
    fn into_state(self: Box<Self>) -> Box<dyn Any + Send>;
}

/// The state of an object that has a monitor, in an `Arc`. Operations that only read share it while
/// they run. One that writes takes it out until it is over, for it holds the monitor alone.
pub(crate) struct Monitored<T>(Option<Arc<T>>);

impl<T> Monitored<T> {
    pub fn new(state: T) -> Monitored<T> {
        Monitored(Some(Arc::new(state)))
    }
}

/// A state, as a process has it: alone, where its operation writes.
struct Taken<T> {
    state: Arc<T>,
    writes: bool,
}

const IN_USE: Malformed = Malformed {
    what: STATE,
    cause: Cow::Borrowed("an operation that takes a worker has it"),
};

impl<T: ObjectType> AnyObject for Monitored<T> {
    fn apply(
        &mut self,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<Applied, Box<Malformed>> {
        let state = self.0.as_mut().ok_or_else(|| Box::new(IN_USE))?;
        let info = T::OPERATIONS.get(usize::from(operation));
        let applied = match info.is_some_and(|info| info.writes) {
            true => Arc::get_mut(state)
                .ok_or_else(|| Box::new(IN_USE))?
                .apply(operation, arguments, result),
            false => state.look(operation, arguments, result),
        };
        applied.map_err(Box::new)
    }

    fn save(&self) -> Result<Bytes, Malformed> {
        self.0.as_ref().ok_or(IN_USE)?.save()
    }

    fn left(&self) -> Option<String> {
        self.0.as_ref()?.left()
    }

    fn may(&self, operation: u16, arguments: &[u8]) -> Result<bool, Malformed> {
        self.0.as_ref().ok_or(IN_USE)?.may(operation, arguments)
    }

    fn lend(&mut self, writes: bool) -> Option<Box<dyn Lent>> {
        let state = match writes {
            true => self.0.take(),
            false => self.0.clone(),
        };
        state.map(|state| Box::new(Taken { state, writes }) as _)
    }

    fn give_back(&mut self, state: Box<dyn Any + Send>) {
        if let Ok(state) = state.downcast::<Arc<T>>()
            && self.0.is_none()
        {
            self.0 = Some(*state);
        }
    }
}

impl<T: ObjectType> Lent for Taken<T> {
    fn execute(
        &mut self,
        w: &mut Worker<'_>,
        operation: u16,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> Result<crate::Result<()>, Malformed> {
        match self.writes {
            true => Arc::get_mut(&mut self.state)
                .ok_or(IN_USE)?
                .execute(w, operation, arguments, result),
            false => self.state.execute_shared(w, operation, arguments, result),
        }
    }

    fn into_state(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(self.state)
    }
}

/// Whether objects of the type have monitors: some of its operations take a worker.
pub(crate) const fn has_monitor<T: ObjectType>() -> bool {
    let mut number = 0;
    while number < T::OPERATIONS.len() {
        if T::OPERATIONS[number].takes_worker {
            return true;
        }
        number += 1;
    }
    false
}

/// Why objects of the type are kept as one copy, on the node on which they are made; none if they
/// may be replicated and moved.
pub(crate) const fn stays<T: ObjectType>() -> Option<Refusal> {
    match (T::RESIDENT, has_monitor::<T>()) {
        (true, _) => Some(Refusal::Resident),
        (false, true) => Some(Refusal::TakesWorker),
        (false, false) => None,
    }
}

/// Makes a state of its bytes.
type Restore = fn(&[u8]) -> Result<Box<dyn AnyObject>, Malformed>;

/// Executes a constructor.
type Construct = fn(u16, &[u8]) -> Result<Constructed<Box<dyn AnyObject>>, Malformed>;

/// A type of objects, as data.
#[derive(Debug)]
pub(crate) struct Kind {
    name: fn() -> &'static str,
    pub operations: &'static [OperationInfo],
    pub on_loss: Option<u16>,
    constructors: &'static [ConstructorInfo],
    restore: Restore,
    construct: Construct,
    /// Whether objects of the type have monitors, for some operations take a worker.
    pub has_monitor: bool,
    /// Why objects of the type stay where they are, if they do.
    pub stays: Option<Refusal>,
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
        constructors: T::CONSTRUCTORS,
        construct: |constructor, bytes| {
            let made = T::construct(constructor, bytes)?;
            Ok(made.map(|(state, comes_back)| (kept(state), comes_back)))
        },
        restore: |bytes| Ok(kept(T::restore(bytes)?)),
        has_monitor: has_monitor::<T>(),
        stays: stays::<T>(),
    };
}

/// A state, as a node keeps it.
fn kept<T: ObjectType>(state: T) -> Box<dyn AnyObject> {
    match const { has_monitor::<T>() } {
        true => Box::new(Monitored::new(state)),
        false => Box::new(state),
    }
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
        fnv1a(self.words().flat_map(str::bytes))
    }

    fn words(&self) -> impl Iterator<Item = &'static str> {
        let operations = self.operations.iter();
        let words = operations.flat_map(|it| [it.name, it.signature, ";"]);
        [self.name()].into_iter().chain(words)
    }

    /// Tells a constructor of the type from those of others, and from the type, as
    /// [`key`](Kind::key) does.
    pub fn constructor_key(&self, constructor: u16) -> u64 {
        let info = self.constructors.get(usize::from(constructor));
        let words = info
            .into_iter()
            .flat_map(|it| ["#[new]", it.name, it.signature]);
        fnv1a(self.words().chain(words).flat_map(str::bytes))
    }

    /// The ways to make an object of the type, by their keys.
    fn ways(&'static self) -> impl Iterator<Item = (u64, Way)> {
        let (kind, key) = (self, self.key());
        let way = move |constructor| Way {
            kind,
            key,
            constructor,
        };
        let constructors = (0..self.constructors.len() as u16)
            .map(move |number| (kind.constructor_key(number), way(Some(number))));
        constructors.chain([(key, way(None))])
    }

    /// The name of an operation.
    pub fn operation(&self, operation: u16) -> Arc<str> {
        let info = self.operations.get(usize::from(operation));
        info.map_or("an operation that it does not have", |info| info.name)
            .into()
    }
}

/// A way to make an object: of its state, or by a constructor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub kind: &'static Kind,
    /// The key of the kind.
    pub key: u64,
    constructor: Option<u16>,
}

impl Way {
    /// The state that is made of these bytes: they are the state, or the constructor's arguments.
    /// Also what comes back to the node that makes the object.
    pub fn make(&self, bytes: &[u8]) -> Result<(Box<dyn AnyObject>, Vec<u8>), Refusal> {
        let malformed = |cause: Malformed| Refusal::Malformed(cause.to_string().into());
        let Some(constructor) = self.constructor else {
            let state = (self.kind.restore)(bytes).map_err(malformed)?;
            return Ok((state, Vec::new()));
        };
        let made = (self.kind.construct)(constructor, bytes).map_err(malformed)?;
        made.map_err(|words| Refusal::Failed(words.into()))
    }
}

/// The ways to make objects of the types that this process has met, by key: whoever makes an
/// object, or uses the handle of one, names its type.
static WAYS: Mutex<BTreeMap<u64, Way>> = Mutex::new(BTreeMap::new());

/// Makes a type known to this process.
pub(crate) fn register(kind: &'static Kind) -> u64 {
    let key = kind.key();
    let mut ways = unpoisoned::lock(&WAYS);
    if !ways.contains_key(&key) {
        ways.extend(kind.ways());
    }
    key
}

/// The way to make an object that has this key, if the program has it.
pub(crate) fn find(key: u64) -> Option<Way> {
    let mut ways = unpoisoned::lock(&WAYS);
    if !ways.contains_key(&key) {
        for kind in dhole_registry::all().filter_map(|shipped| shipped.is::<Kind>()) {
            ways.extend(kind.ways());
        }
    }
    ways.get(&key).copied()
}
