//! What the papers' programs share: command lines, files, pictures, the table and JSON that they
//! print, and vectors.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod digest;
pub mod input;
pub mod mistake;
pub mod options;
pub mod picture;
pub mod pool;
pub mod program;
pub mod progress;
pub mod random;
pub mod report;
pub mod solve;
pub mod vector;
