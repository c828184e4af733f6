//! What `?` turns into an error of a program.

use std::error::Error as StdError;

use dhole_heap::{
    Absent, AllocError, ArrayError, BadIndices, BindError, BorrowError, Foreign, NotRows,
    OutOfBounds, PutError, ReserveError,
};
use dhole_model::UnknownValue;

use crate::collective_error::CollectiveError;
use crate::error::{AccessError, ConfigError, Error, MixedProtocols, ProtocolLacks, RunError};
use crate::machine::StartError;
use crate::object_error::ObjectError;
use crate::process_error::ProcessError;
use crate::sync_error::SyncError;

/// An error that `?` turns into an [`Error`] where a program runs: those of dhole, of the standard
/// library, boxed errors and strings.
///
/// ```
/// # use dhole_node::Result;
/// fn rows(argument: &str) -> Result<usize> {
///     let rows = argument.parse()?;
///     if rows == 0 {
///         return Err("a grid has a row at least".into());
///     }
///     Ok(rows)
/// }
/// assert!(rows("7").is_ok() && rows("seven").is_err() && rows("0").is_err());
/// ```
///
/// An error of your own becomes one with a line:
///
/// ```
/// # use dhole_node::{IntoError, Result};
/// #[derive(Debug)]
/// struct NoColour(char);
/// # impl std::fmt::Display for NoColour {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
/// #         write!(f, "{} is no colour", self.0)
/// #     }
/// # }
/// # impl std::error::Error for NoColour {}
/// impl IntoError for NoColour {}
///
/// fn colour(name: char) -> Result<u8> {
///     Ok("rgb".find(name).ok_or(NoColour(name))? as u8)
/// }
/// assert_eq!(colour('x').unwrap_err().to_string(), "x is no colour");
/// ```
///
/// Any other error, one of `anyhow` say, goes through [`Error::program`]:
/// `work().map_err(Error::program)?`.
#[diagnostic::on_unimplemented(
    message = "`?` does not turn `{Self}` into `dhole::Error`",
    label = "wrap this error: `.map_err(dhole::Error::program)?`; or, if `{Self}` is your own, \
             add `impl dhole::IntoError for {Self} {{}}`"
)]
pub trait IntoError: Into<Box<dyn StdError + Send + Sync>> {
    /// The error as one of a program's.
    fn into_error(self) -> Error {
        Error::program(self)
    }
}

impl<E: IntoError> From<E> for Error {
    fn from(error: E) -> Error {
        error.into_error()
    }
}

macro_rules! variants {
    ($($error:ty => $variant:ident;)*) => {$(
        impl IntoError for $error {
            fn into_error(self) -> Error {
                Error::$variant(self)
            }
        }
    )*};
}

variants! {
    AccessError => Access;
    SyncError => Sync;
    ObjectError => Object;
    CollectiveError => Collective;
    ProcessError => Process;
    BorrowError<AccessError> => Borrow;
    Absent => Absent;
    AllocError => Alloc;
    MixedProtocols => Mixed;
    ProtocolLacks => Lacks;
}

impl IntoError for ArrayError<AccessError> {
    fn into_error(self) -> Error {
        match self {
            ArrayError::Access(error) => Error::Access(error),
            outside @ (ArrayError::OutOfBounds(_) | ArrayError::Indices(_)) => {
                Error::program(outside)
            }
        }
    }
}

impl IntoError for PutError<AccessError> {
    fn into_error(self) -> Error {
        match self {
            PutError::Access(error) => Error::Access(error),
            refused => Error::program(refused),
        }
    }
}

macro_rules! programs {
    ($($error:ty),* $(,)?) => {$(
        impl IntoError for $error {}
    )*};
}

programs! {
    // dhole's.
    OutOfBounds,
    BadIndices,
    NotRows,
    BindError,
    Foreign,
    ReserveError,
    ConfigError,
    StartError,
    RunError,
    UnknownValue,
    dhole_join::JoinError,
    dhole_net::EnvironmentError,
    dhole_net::SendError,
    dhole_rpc::GrantError,
    dhole_rpc::RpcError,
    dhole_rpc::RpcRefusal,
    dhole_rpc::UnfitPort,
    // The standard library's.
    std::array::TryFromSliceError,
    std::char::CharTryFromError,
    std::char::ParseCharError,
    std::convert::Infallible,
    std::env::VarError,
    std::ffi::FromBytesUntilNulError,
    std::ffi::FromBytesWithNulError,
    std::ffi::IntoStringError,
    std::ffi::NulError,
    std::fmt::Error,
    std::io::Error,
    std::net::AddrParseError,
    std::num::ParseFloatError,
    std::num::ParseIntError,
    std::num::TryFromIntError,
    std::path::StripPrefixError,
    std::str::ParseBoolError,
    std::str::Utf8Error,
    std::string::FromUtf16Error,
    std::string::FromUtf8Error,
    std::sync::mpsc::RecvError,
    std::sync::mpsc::RecvTimeoutError,
    std::sync::mpsc::TryRecvError,
    std::thread::AccessError,
    std::time::SystemTimeError,
    // Words, and what is boxed already.
    Box<dyn StdError + Send + Sync>,
    std::borrow::Cow<'_, str>,
    String,
    &str,
}
