//! Clients: handles of shared objects with a user half of their own.

use std::fmt;
use std::ops::{Deref, DerefMut};

use dhole_model::CallSite;
use dhole_protocol::objects::{Refusal, Strategy};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::handle::{Object, construct};
use super::kind::{ObjectType, decode};
use crate::object_error::ObjectError;
use crate::worker::Worker;

/// A type of shared objects with a *user half*, which each client has for itself. Implemented by
/// `#[dhole::object(client = User)]`; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no user half, so it has no clients",
    label = "not a service with clients",
    note = "name the type of the user half: `#[dhole::object(client = User)] impl {Self}`"
)]
pub trait ClientType: ObjectType {
    /// What a client has of its own.
    type User: Serialize + DeserializeOwned;

    /// What a client can be asked to do: the operations, and the methods of the user half alone.
    type Methods: From<ClientParts<Self>> + AsRef<ClientParts<Self>> + AsMut<ClientParts<Self>>;
}

/// What a client consists of.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ClientParts<T: ClientType> {
    pub object: Object<T>,
    pub user: T::User,
}

/// A handle of a shared object of type `T` with a *user half*: a value that is this client's own.
/// Objects with a user half are the dual objects of VOTE (Cordsen and others, section 3.1). The
/// signature of a method says where it runs and what travels:
///
/// | method of `T` | on a client | the user half travels |
/// |---|---|---|
/// | `fn (user: &User, ..)`, `fn (user: &mut User, ..)` | runs at the client | not |
/// | `fn (&self, user: &User, ..)` | an operation that reads it | to the object |
/// | `fn (&self, user: &mut User, ..)` | an operation that changes it | there and back |
/// | `fn (&self, ..)` | an operation without it | not |
///
/// So the object keeps nothing of its clients. A clone has a user half of its own, and the same
/// object. A client is given to other nodes by value.
pub struct Client<T: ClientType> {
    methods: T::Methods,
}

impl<T: ClientType> Client<T> {
    /// A client of this object, with this user half.
    pub fn of(object: Object<T>, user: T::User) -> Client<T> {
        let methods = ClientParts { object, user }.into();
        Client { methods }
    }

    /// The object.
    pub fn object(this: &Client<T>) -> Object<T> {
        this.methods.as_ref().object
    }

    /// The user half.
    pub fn user(this: &Client<T>) -> &T::User {
        &this.methods.as_ref().user
    }

    /// The user half, to change it.
    pub fn user_mut(this: &mut Client<T>) -> &mut T::User {
        &mut this.methods.as_mut().user
    }
}

/// Makes an object by a constructor that gives a user half back, and a client of it. What code that
/// `#[dhole::object]` writes calls.
#[track_caller]
pub fn make_client<T: ClientType, A: Serialize>(
    w: &mut Worker<'_>,
    place: impl Into<Strategy>,
    constructor: u16,
    arguments: A,
) -> Result<Client<T>, ObjectError> {
    let (node, site) = (w.node(), CallSite::caller());
    let (object, user) = construct(w, place.into(), constructor, arguments)?;
    let user = decode("the user half", &user).map_err(|cause| ObjectError::NotMade {
        type_name: std::any::type_name::<T>(),
        node,
        site,
        cause: Refusal::Malformed(cause.to_string().into()),
    })?;
    Ok(Client::of(object, user))
}

/// The methods.
impl<T: ClientType> Deref for Client<T> {
    type Target = T::Methods;
    fn deref(&self) -> &T::Methods {
        &self.methods
    }
}

impl<T: ClientType> DerefMut for Client<T> {
    fn deref_mut(&mut self) -> &mut T::Methods {
        &mut self.methods
    }
}

impl<T: ClientType<User: Clone>> Clone for Client<T> {
    fn clone(&self) -> Client<T> {
        Client::of(Client::object(self), Client::user(self).clone())
    }
}

impl<T: ClientType<User: fmt::Debug>> fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, user) = (Object::id(&Client::object(self)).0, Client::user(self));
        f.debug_tuple("Client").field(&object).field(user).finish()
    }
}

impl<T: ClientType> Serialize for Client<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.methods.as_ref().serialize(to)
    }
}

impl<'de, T: ClientType> Deserialize<'de> for Client<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Client<T>, D::Error> {
        let methods = ClientParts::deserialize(from)?.into();
        Ok(Client { methods })
    }
}
