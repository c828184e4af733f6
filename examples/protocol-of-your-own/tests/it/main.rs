//! The protocol is sound, and the checks would find it if it were not.

mod checked;
mod mistakes;
