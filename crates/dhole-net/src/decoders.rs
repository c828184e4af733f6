//! What turns a stranger's bytes into something, one function each, for fuzzers and for the replay
//! of what they found. Each takes any bytes and panics where one of its promises is broken.

pub use crate::reliable::decoders::datagrams;
pub use crate::shm::decoders::ring;
pub use crate::tcp::decoders::frames;
