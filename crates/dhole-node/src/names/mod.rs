//! Names: values that any node finds under a text (VOTE, section 3.3: the name service).
//!
//! The table of names is an object with operations, of which every node has a replica from the
//! start. So a binding is one ordered write, and a lookup is a read of the own replica.

mod error;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dhole_model::{CallSite, NodeId, ObjectId, kept_words};
use dhole_protocol::objects::Predefined;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::NameError;
use table::{Bound, NameTable, Refused};
pub use table::{LARGEST_VALUE, LONGEST_NAME, MOST_NAMES};

use crate::error::Result;
use crate::fingerprint::fingerprint;
use crate::object::kind::{self, Kind};
use crate::object::{Calling, Object, ObjectError, call_as, decode, encode};
use crate::sync_error::SyncError;
use crate::worker::Worker;

type Named<T> = std::result::Result<T, NameError>;

/// The table of names, as every node has it from the start.
pub(crate) fn predefined() -> Predefined {
    let state = encode("the names", &NameTable::default());
    Predefined {
        object: ObjectId::NAMES,
        kind: kind::register(Kind::of::<NameTable>()),
        state: state.unwrap_or_default(),
    }
}

fn table() -> Object<NameTable> {
    Object::named(ObjectId::NAMES)
}

/// What is asked of a name, and where in the program.
#[derive(Clone, Copy)]
struct Asked<'a> {
    name: &'a str,
    node: NodeId,
    site: CallSite,
}

impl Asked<'_> {
    /// A value as it is bound.
    fn bound<T: Serialize>(&self, value: &T) -> Named<Bound> {
        let value = encode("the value", value).map_err(|cause| self.no_value(cause.to_string()))?;
        self.fits("value", value.len(), LARGEST_VALUE)?;
        Ok(Bound {
            value: value.to_vec(),
            of: of::<T>(),
            type_name: std::any::type_name::<T>().into(),
            by: self.node,
            site: self.site,
        })
    }

    /// The value that is bound.
    fn value<T: DeserializeOwned>(&self, bound: Bound) -> Named<T> {
        if bound.of != of::<T>() {
            return Err(NameError::OtherType {
                name: self.name.into(),
                node: self.node,
                site: self.site,
                bound_as: bound.type_name.into(),
                asked_as: std::any::type_name::<T>(),
                by: bound.by,
                at: bound.site,
            });
        }
        decode("the value", &bound.value).map_err(|cause| self.no_value(cause.to_string()))
    }

    fn has_a_name(&self) -> Named<()> {
        self.fits("name", self.name.len(), LONGEST_NAME)
    }

    fn fits(&self, what: &'static str, bytes: usize, most: usize) -> Named<()> {
        if bytes <= most {
            return Ok(());
        }
        Err(NameError::TooLong {
            what,
            name: error::shortened(self.name),
            node: self.node,
            site: self.site,
            bytes,
            most,
        })
    }

    fn no_value(&self, cause: String) -> NameError {
        NameError::Value {
            name: self.name.into(),
            node: self.node,
            site: self.site,
            cause: cause.into(),
        }
    }

    /// The table's answer as one of this call.
    fn answer<T>(
        &self,
        answer: std::result::Result<std::result::Result<T, Refused>, ObjectError>,
    ) -> Named<T> {
        let (name, node, site) = (self.name.into(), self.node, self.site);
        answer?.map_err(|refused| match refused {
            Refused::Taken { by, at } => NameError::Taken {
                name,
                node,
                site,
                by,
                at,
            },
            Refused::NoSuch { similar } => NameError::NoSuch {
                name,
                node,
                site,
                similar: similar.map(Into::into),
            },
            Refused::TooMany => NameError::TooMany { name, node, site },
        })
    }

    /// The same of a call that waits: a deadlock is an error of the name.
    fn waited<T>(
        &self,
        answer: std::result::Result<std::result::Result<T, Refused>, ObjectError>,
    ) -> Named<T> {
        match answer {
            Err(ObjectError::Sync(cause @ SyncError::Deadlock { .. })) => Err(NameError::Endless {
                name: self.name.into(),
                node: self.node,
                site: self.site,
                cause: Box::new(cause),
            }),
            answer => self.answer(answer),
        }
    }

    /// The name, as an edge of the wait-for graph tells it.
    fn in_words(&self) -> &'static str {
        kept_words(&format!("the name {:?}", self.name)).unwrap_or("a name")
    }
}

/// Tells a type from others, the same on every node.
fn of<T>() -> u64 {
    u64::from_le_bytes(fingerprint::<T>())
}

impl<'id> Worker<'id> {
    /// Binds a value to a name: all nodes find it from then on. It is one ordered write.
    ///
    /// The value is anything that serde writes: a handle of an object, a client, a reference, a
    /// lock, a number. It has at most 4 KiB, and the name 256 bytes; a run has 65,536 names. What
    /// the value leads to is not kept alive by the name.
    ///
    ///
    /// # Errors
    /// [`NameError::Taken`] if the name is bound, or a node makes a value for it;
    /// [`NameError::TooLong`] and [`NameError::TooMany`] beyond the limits;
    /// [`NameError::Value`] if the value cannot be written as bytes.
    #[track_caller]
    pub fn bind<T: Serialize>(&mut self, name: &str, value: &T) -> Named<()> {
        let asked = self.asks(name);
        asked.has_a_name()?;
        let bound = asked.bound(value)?;
        asked.answer(table().bind(self, name, bound))
    }

    /// The value that is bound to a name. It is a read of the own replica of the table, without a
    /// message. A client that was bound comes with a clone of its user half.
    ///
    /// # Errors
    /// [`NameError::NoSuch`] if no value is bound to the name, with a similar name if there is one;
    /// [`NameError::OtherType`] if a value of another type is.
    #[track_caller]
    pub fn lookup<T: DeserializeOwned>(&mut self, name: &str) -> Named<T> {
        let asked = self.asks(name);
        let bound = asked.answer(table().lookup(self, name))?;
        asked.value(bound)
    }

    /// The value that is bound to a name, as soon as there is one.
    ///
    /// # Errors
    /// [`NameError::Endless`] if no node can bind it any more; [`NameError::OtherType`] if a value
    /// of another type is bound to it.
    #[track_caller]
    pub fn await_name<T: DeserializeOwned>(&mut self, name: &str) -> Named<T> {
        let asked = self.asks(name);
        asked.has_a_name()?;
        let bound = match table().lookup(self, name)? {
            Ok(bound) => bound,
            Err(_) => {
                let calling = Calling::of("NameTable::await_bound", asked.in_words());
                let found = call_as(
                    self,
                    table(),
                    calling,
                    (name,),
                    |table: &NameTable, (name,)| table.is_bound(name),
                    |table, (name,)| table.await_bound(name),
                );
                asked.waited(found)?
            }
        };
        asked.value(bound)
    }

    /// Takes a name back: it can be bound again. It is one ordered write.
    ///
    /// # Errors
    /// [`NameError::NoSuch`] if no value is bound to the name.
    #[track_caller]
    pub fn unbind(&mut self, name: &str) -> Named<()> {
        let asked = self.asks(name);
        asked.answer(table().unbind(self, name))
    }

    /// The names that are bound, in the order of their bytes. It is a read of the own replica.
    ///
    /// # Errors
    /// [`NameError::Object`] if the run has ended.
    #[track_caller]
    pub fn names(&mut self) -> Named<Vec<String>> {
        Ok(table().names(self)?)
    }

    /// The value that is bound to a name. If none is, the first node that asks makes it with
    /// `make` and binds it; the others wait for it. So `make` runs once, whichever nodes ask at
    /// once. If it fails, or its node is lost, the next node that asks makes the value.
    ///
    /// If a value is bound already, this is a read of the own replica. Else the node that makes the
    /// value writes the table twice: it claims the name, and binds it.
    ///
    /// # Errors
    /// Those of `make`, and [`NameError`]: as [`bind`](Worker::bind) and
    /// [`await_name`](Worker::await_name).
    #[track_caller]
    pub fn bind_or_get<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let asked = self.asks(name);
        asked.has_a_name()?;
        if let Ok(bound) = table().lookup(self, name)? {
            return Ok(asked.value(bound)?);
        }
        let claimed = call_as(
            self,
            table(),
            Calling::of("NameTable::claim", asked.in_words()),
            (name, asked.node, asked.site),
            |table: &NameTable, (name, ..)| !table.is_claimed(name),
            |table, (name, by, at)| table.claim(name, by, at),
        );
        if let Some(bound) = asked.waited(claimed)? {
            return Ok(asked.value(bound)?);
        }
        let made = catch_unwind(AssertUnwindSafe(|| make(self)));
        let value = match made {
            Ok(Ok(value)) => value,
            Ok(Err(error)) => {
                table().give_up(self, name, asked.node)?;
                return Err(error);
            }
            Err(panic) => {
                // The panic ends the run or the process. It says more than an error of this call.
                let _ = table().give_up(self, name, asked.node);
                resume_unwind(panic)
            }
        };
        match asked.bound(&value) {
            Ok(bound) => asked.answer(table().fulfil(self, name, bound))?,
            Err(error) => {
                table().give_up(self, name, asked.node)?;
                return Err(error.into());
            }
        }
        Ok(value)
    }

    #[track_caller]
    fn asks<'a>(&self, name: &'a str) -> Asked<'a> {
        Asked {
            name,
            node: self.node(),
            site: CallSite::caller(),
        }
    }
}
