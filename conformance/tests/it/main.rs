//! Checks over seeds and the suite, on threads and simulated.
#![forbid(unsafe_code)]

mod by_time;
mod decoders;
mod groups;
mod history;
mod mail;
mod maps;
mod names;
mod objects;
mod oracle;
mod random_programs;
mod sections;
mod suite;
mod survivors;
mod tampered;
