//! Handles of shared objects, and making objects.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::panic::Location;

use dhole_heap::{Share, Tag};
use dhole_model::{CallSite, NodeId, ObjectId, WaitCause};
use dhole_protocol::objects::{Bytes, ObjectsEvent, Refusal, Strategy};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::invoke::{Wanted, malformed};
use super::kind::{self, Kind, Malformed, ObjectType, stays};
use crate::object_error::ObjectError;
use crate::worker::Worker;

/// A handle of a shared object of type `T`: 8 bytes, and so is `Option<Object<T>>`. It is copied
/// freely, and may be stored in shared objects of both kinds. Its operations are the public methods
/// of the `impl` that is marked `#[dhole::object]`, each with the worker before its arguments:
///
/// ```text
/// queue.push(w, job)?;
/// ```
///
/// Every operation is atomic, and all operations on all objects happen in one order on which all
/// nodes agree and which keeps the order of each node. A panic of an operation that writes makes
/// the object unusable: that and all later operations on it are [errors](ObjectError) that name it.
#[derive(Share)]
#[share(crate = "dhole_heap", nullable, bound = "T: ObjectType")]
#[repr(transparent)]
pub struct Object<T: ObjectType> {
    operations: T::Operations,
}

impl<T: ObjectType> Clone for Object<T> {
    fn clone(&self) -> Object<T> {
        *self
    }
}

impl<T: ObjectType> Copy for Object<T> {}

impl<T: ObjectType> PartialEq for Object<T> {
    fn eq(&self, other: &Object<T>) -> bool {
        Object::id(self) == Object::id(other)
    }
}

impl<T: ObjectType> Eq for Object<T> {}

impl<T: ObjectType> fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", Object::id(self).0)
    }
}

/// The operations.
impl<T: ObjectType> Deref for Object<T> {
    type Target = T::Operations;
    fn deref(&self) -> &T::Operations {
        &self.operations
    }
}

pub(super) fn id_of<T>(tag: Tag<T>) -> ObjectId {
    ObjectId(tag.number().get() - 1)
}

impl<T: ObjectType> Object<T> {
    /// The object of this id. An operation on an object of another type is refused.
    #[doc(hidden)]
    pub fn named(object: ObjectId) -> Object<T> {
        let tag = Tag::new(NonZeroU64::MIN.saturating_add(object.0));
        Object {
            operations: tag.into(),
        }
    }

    /// The object that the handle names.
    pub fn id(this: &Object<T>) -> ObjectId {
        id_of(this.operations.into())
    }

    /// The object that was made so many after this one, [in a row](Worker::new_row).
    #[doc(hidden)]
    pub fn nth(this: &Object<T>, w: &Worker<'_>, place: usize) -> Object<T> {
        Object::named(ObjectId(Object::id(this).0 + (place * w.nodes()) as u64))
    }

    /// Keeps the object as `strategy` says from here on. It goes there with its state and the
    /// operations that wait for their guards, in order with all operations. Should its state turn
    /// out not to be one that can be written and read again, the object is lost, and every later
    /// operation says why.
    ///
    /// # Errors
    /// [`ObjectError`] when there is no such object, or no such node.
    #[track_caller]
    pub fn strategy(
        this: &Object<T>,
        w: &mut Worker<'_>,
        strategy: Strategy,
    ) -> Result<(), ObjectError> {
        let (object, site) = (Object::id(this), CallSite::caller());
        let wanted = named(object, "Object::strategy", site);
        if let Some(clerk) = strategy.clerk() {
            let words = format!(
                "objects are made in a clerk: move it with `on({})`",
                clerk.node
            );
            return Err(w.refused(wanted, Refusal::Malformed(words.into())));
        }
        if let Some(cause) = outside(strategy, w.nodes()) {
            return Err(w.refused(wanted, *malformed(cause)));
        }
        if let Some(cause) = const { stays::<T>() } {
            return Err(w.refused(wanted, cause));
        }
        let event = |call| ObjectsEvent::Change {
            call,
            object,
            to: strategy,
        };
        w.order(wanted, event).map(drop)
    }

    /// Gives the object back, wherever it is kept; in order with all operations. Those that wait
    /// for their guards, and all that come later, are refused and told which node has freed it. Of
    /// what was freed hardly anything is kept: a range for objects that one node has made and one
    /// has freed one after the other.
    ///
    /// # Errors
    /// [`ObjectError`] when there is no such object, or it was freed before.
    #[track_caller]
    pub fn free(this: &Object<T>, w: &mut Worker<'_>) -> Result<(), ObjectError> {
        let (object, site) = (Object::id(this), CallSite::caller());
        let wanted = named(object, "Object::free", site);
        let event = |call| ObjectsEvent::Free { call, object };
        w.order(wanted, event).map(drop)
    }

    /// Whether all replicas of the object are alike, as they are when its operations are
    /// deterministic: they must not ask for the time, random numbers, addresses or the order of a
    /// map whose hasher is random ([`HashMap`](crate::HashMap) has none).
    ///
    /// # Errors
    /// [`ObjectError`] with [`Refusal::Diverged`] when they differ, and with [`Refusal::Resident`]
    /// of a type that is: there is one copy, and its state is not compared.
    #[track_caller]
    pub fn compare(this: &Object<T>, w: &mut Worker<'_>) -> Result<(), ObjectError> {
        let (object, site) = (Object::id(this), CallSite::caller());
        let wanted = named(object, "Object::compare", site);
        if T::RESIDENT {
            return Err(w.refused(wanted, Refusal::Resident));
        }
        let event = |call| ObjectsEvent::Compare { call, object };
        w.order(wanted, event).map(drop)
    }
}

fn named(object: ObjectId, name: &'static str, site: CallSite) -> Wanted {
    Wanted {
        object,
        name,
        site,
        cause: WaitCause::Operation,
    }
}

/// What is wrong with a place, in a cluster of so many nodes.
pub(super) fn outside(strategy: Strategy, nodes: usize) -> Option<Malformed> {
    let node = match strategy {
        Strategy::On(node) => node,
        Strategy::In(clerk) => clerk.node,
        Strategy::Replicated => return None,
    };
    (node.index() >= nodes).then(|| Malformed {
        what: "where it is to be kept",
        cause: format!("{node} is not one of {nodes} nodes").into(),
    })
}

/// A replica on every node: operations that read cost no message, those that write go to all.
pub const fn replicated() -> Strategy {
    Strategy::Replicated
}

/// One copy, on this node.
pub const fn on(node: NodeId) -> Strategy {
    Strategy::On(node)
}

impl Worker<'_> {
    /// Makes a shared object of this value, kept as `place` says: [`on`] a node, [`replicated`], or
    /// in a [`Clerk`](super::Clerk). The other nodes learn of it
    /// by its handle, through [`once`](Worker::once) or another object.
    ///
    /// # Errors
    /// [`ObjectError`] when the value cannot be written as bytes, or made of them again. A value of
    /// a resident type never can: one of its constructors makes the object.
    #[track_caller]
    pub fn new_object<T: ObjectType>(
        &mut self,
        place: impl Into<Strategy>,
        value: T,
    ) -> Result<Object<T>, ObjectError> {
        let object = self.new_ids(1);
        self.make_of((object, place.into()), value, Location::caller())
    }

    /// The program knows where an object is kept: this node need not ask the node that made it.
    #[doc(hidden)]
    pub fn suppose<T: ObjectType>(&mut self, object: &Object<T>, at: NodeId) {
        let mut node = self.link.node.monitor.lock();
        let machine = &mut node.split().1.here.machine;
        machine.suppose(Object::id(object), at);
    }

    /// Makes objects, at this line, that can be found from the first: see [`Object::nth`]. One that
    /// is to be kept on a node which is lost is not made, and calls of it are refused.
    ///
    /// # Errors
    /// As [`new_object`](Worker::new_object).
    #[doc(hidden)]
    pub fn new_row<T: ObjectType>(
        &mut self,
        at: &'static Location<'static>,
        all: impl ExactSizeIterator<Item = (Strategy, T)>,
    ) -> Result<Object<T>, ObjectError> {
        let first = Object::named(self.new_ids(all.len()));
        for (place, (strategy, value)) in all.enumerate() {
            let object = Object::id(&Object::nth(&first, self, place));
            match self.make_of((object, strategy), value, at) {
                Err(ObjectError::NotMade {
                    cause: Refusal::NoNode(_) | Refusal::Lost(_),
                    ..
                }) => {}
                made => drop(made?),
            }
        }
        Ok(first)
    }

    /// The first of so many ids for objects that this node makes.
    pub(super) fn new_ids(&mut self, count: usize) -> ObjectId {
        let mut node = self.link.node.monitor.lock();
        let machine = &mut node.split().1.here.machine;
        let first = machine.new_object();
        for _ in 1..count {
            machine.new_object();
        }
        first
    }

    fn make_of<T: ObjectType>(
        &mut self,
        where_to: (ObjectId, Strategy),
        value: T,
        at: &'static Location<'static>,
    ) -> Result<Object<T>, ObjectError> {
        let key = kind::register(Kind::of::<T>());
        let state = match T::RESIDENT {
            true => Err(Refusal::Resident),
            false => value.save().map_err(|cause| *malformed(cause)),
        };
        let made = self.make(where_to, (key, state), at);
        made.map(|(object, _)| object)
    }

    /// Makes an object in this way, of these bytes. Returns also what comes back.
    fn make<T: ObjectType>(
        &mut self,
        (object, strategy): (ObjectId, Strategy),
        (way, bytes): (u64, Result<Bytes, Refusal>),
        at: &'static Location<'static>,
    ) -> Result<(Object<T>, Bytes), ObjectError> {
        let (node, site) = (self.node(), CallSite::from(at));
        let not_made = |cause: Refusal| ObjectError::NotMade {
            type_name: Kind::of::<T>().name(),
            node,
            site,
            cause,
        };
        let bytes = match outside(strategy, self.nodes()) {
            Some(cause) => Err(*malformed(cause)),
            None => bytes,
        };
        if strategy == Strategy::Replicated
            && let Some(cause) = const { stays::<T>() }
        {
            return Err(not_made(cause));
        }
        let state = bytes.map_err(not_made)?;
        let wanted = named(object, "making it", site);
        let event = |call| ObjectsEvent::Create {
            call,
            object,
            kind: way,
            state,
            strategy,
        };
        let made = self.order(wanted, event);
        let mut node = self.link.node.monitor.lock();
        let here = &mut node.split().1.here;
        match made {
            Ok(comes_back) => {
                here.makes(object, at);
                Ok((Object::named(object), comes_back))
            }
            Err(error) => {
                here.machine.unmade(object);
                Err(match error {
                    ObjectError::Refused { cause, .. } => not_made(cause),
                    error => error,
                })
            }
        }
    }
}

/// Makes an object by a constructor, where it is kept. What code that `#[dhole::object]` writes
/// calls.
#[track_caller]
pub fn make<T: ObjectType, A: Serialize>(
    w: &mut Worker<'_>,
    place: impl Into<Strategy>,
    constructor: u16,
    arguments: A,
) -> Result<Object<T>, ObjectError> {
    construct(w, place.into(), constructor, arguments).map(|(object, _)| object)
}

/// The same of a constructor that gives a user half back: its bytes.
#[track_caller]
pub(super) fn construct<T: ObjectType, A: Serialize>(
    w: &mut Worker<'_>,
    strategy: Strategy,
    constructor: u16,
    arguments: A,
) -> Result<(Object<T>, Bytes), ObjectError> {
    let kind = Kind::of::<T>();
    kind::register(kind);
    let arguments = kind::encode("the arguments", &arguments);
    let arguments = arguments.map_err(|cause| *malformed(cause));
    let by = (kind.constructor_key(constructor), arguments);
    let object = w.new_ids(1);
    w.make((object, strategy), by, Location::caller())
}

impl<T: ObjectType> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Object::id(self).0.serialize(to)
    }
}

impl<'de, T: ObjectType> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object<T>, D::Error> {
        let number = u64::deserialize(from)?;
        Ok(Object::named(ObjectId(number)))
    }
}
