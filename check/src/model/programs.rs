//! The programs that are explored.

mod blocks;
mod collectives;
mod family;
mod gates;
mod handing;
mod lifetimes;
mod litmus;
mod parts;
mod racing;
mod rounds;
mod sections;
mod seen;
mod sharing;
mod together;
mod turnstiles;
mod waits;

pub use blocks::*;
pub use collectives::*;
pub use family::*;
pub use gates::*;
pub use handing::*;
pub use lifetimes::*;
pub use litmus::*;
pub use parts::*;
pub use racing::*;
pub use rounds::*;
pub use sections::*;
pub use seen::*;
pub use sharing::*;
pub use together::*;
pub use turnstiles::*;
pub use waits::*;

use crate::model::Op::{self, *};

/// A lock held around what `body` does.
fn locked(lock: u8, body: &[Op]) -> Vec<Op> {
    [&[Acquire(lock)], body, &[Release(lock)]].concat()
}
