//! Shared objects with operations (Orca, section 2.1).
//!
//! | module | what |
//! |---|---|
//! | `borrowed` | arguments that are lent: their bytes, and what comes back in them |
//! | `kind` | types of objects, found by their keys; arguments and states as bytes |
//! | `makes` | what constructors return |
//! | `monitored` | executing operations that take a worker |
//! | `clerk` | clerks of the program's, which group objects |
//! | `client` | handles with a user half |
//! | `copies` | a node's copies, and running operations on them |
//! | `deadlines` | when calls are withdrawn whose time is limited |
//! | `invoke` | the worker's calls |
//! | `direct` | effects of the machine of objects, carried out as it calls them |
//! | `pending` | calls that are under way while the worker goes on |
//! | `abandoned_calls` | those of them whose `Pending` was dropped |
//! | `rendezvous` | barriers of runs that survive the loss of nodes |
//! | `order` | the effects of the group, carried out as it calls them |
//! | `section`, `in_section`, `sections_here`, `at_home` | sections: their functions, what they touch, what a node knows of them, running them at a home |
//! | `step` | the machine of objects in a node: messages, and what it wants done |

mod abandoned_calls;
mod at_home;
mod borrowed;
mod clerk;
mod client;
pub(crate) mod copies;
mod deadlines;
mod direct;
mod handle;
mod in_section;
pub(crate) mod invoke;
pub(crate) mod kind;
mod makes;
mod monitored;
mod order;
mod pending;
mod rendezvous;
pub(crate) mod section;
mod sections_here;
mod step;

pub use crate::object_error::ObjectError;
pub use borrowed::{
    Borrows, GoesOn, NumberBytes, Numbers, Zeros, check_length, check_out, put, zeroed,
};
pub use clerk::{Clerk, Concurrency};
pub use client::{Client, ClientParts, ClientType, make_client};
pub(crate) use deadlines::Deadline;
pub use handle::{Object, make, on, replicated};
pub use in_section::InSection;
pub use invoke::{Calling, Travel, call_as, call_by_process, read, write};
pub use kind::{
    Applied, Constructed, ConstructorInfo, Malformed, ObjectType, OperationInfo, decode, decode_to,
    encode, encode_arguments, encode_to, encoded_len, restore, save, travels,
};
pub use makes::Makes;
pub(crate) use monitored::SITE as EXECUTION;
pub use pending::{Pending, start, start_numbered};
pub(crate) use step::ObjectsHere;
