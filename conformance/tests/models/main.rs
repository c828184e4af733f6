//! The protocols that run, explored exhaustively.

mod arrays;
mod bugs;
mod collection;
mod family;
mod freeing;
mod large;
mod objects;
mod races;
mod random;
mod turnstiles;
mod waits;
