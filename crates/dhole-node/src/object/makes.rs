//! What constructors return.

use std::fmt;

use super::client::ClientType;
use super::kind::{ObjectType, encode};

/// What a constructor returns: the object, with or without a user half, or why there is none.
#[diagnostic::on_unimplemented(
    message = "a constructor of `{T}` does not return `{Self}`",
    note = "it returns `Self`, or a `Result<Self, E>` whose error can be displayed; or `(Self, \
            User)` in the place of `Self`, if `{T}` has clients"
)]
pub trait Makes<T> {
    /// The object, and the bytes of the user half of the client that comes back, if one does.
    ///
    /// # Errors
    /// The words of the constructor's error.
    fn made(self) -> Result<(T, Vec<u8>), String>;
}

impl<T: ObjectType> Makes<T> for T {
    fn made(self) -> Result<(T, Vec<u8>), String> {
        Ok((self, Vec::new()))
    }
}

impl<T: ObjectType, E: fmt::Display> Makes<T> for Result<T, E> {
    fn made(self) -> Result<(T, Vec<u8>), String> {
        self.map_err(|error| error.to_string())?.made()
    }
}

impl<T: ClientType> Makes<T> for (T, T::User) {
    fn made(self) -> Result<(T, Vec<u8>), String> {
        let (object, user) = self;
        let bytes = encode("the user half", &user).map_err(|cause| cause.to_string())?;
        Ok((object, bytes.to_vec()))
    }
}

impl<T: ClientType, E: fmt::Display> Makes<T> for Result<(T, T::User), E> {
    fn made(self) -> Result<(T, Vec<u8>), String> {
        self.map_err(|error| error.to_string())?.made()
    }
}
