//! Checks over seeds, and over every run of small programs, that share a process.
#![forbid(unsafe_code)]

mod counted;
mod decoders;
mod groups;
mod multicast;
mod objects;
mod oracle;
mod survivors;
mod tampered;
