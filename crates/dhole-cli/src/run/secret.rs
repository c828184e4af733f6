//! The secret of one run: made here, handed to each process through a pipe, kept nowhere.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::io::FdFlags;
use rustix::pipe::{PipeFlags, pipe_with};

/// 256 random bits, in hexadecimal.
pub struct Secret(String);

impl Secret {
    /// A fresh one.
    pub fn new() -> io::Result<Secret> {
        Ok(Secret(random_hex()?))
    }

    /// One that another `dhole run` has made.
    pub fn from_hex(hex: String) -> Secret {
        Secret(hex)
    }

    /// For an order that goes to another machine through an encrypted channel.
    pub fn as_hex(&self) -> &str {
        &self.0
    }

    /// A descriptor, which children inherit, from which the secret can be read once.
    pub fn to_be_read(&self) -> io::Result<OwnedFd> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // A pipe holds far more than this.
        std::fs::File::from(write).write_all(self.0.as_bytes())?;
        inherit(&read)?;
        Ok(read)
    }
}

/// Lets children inherit a descriptor. Nodes are started one after the other, and the descriptor is
/// closed before the next, so that none inherits what is another's.
pub fn inherit(descriptor: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// 256 random bits, in hexadecimal.
pub fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
