//! The secret of one run: made here, handed to each node in memory that has no name, kept nowhere.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::FdFlags;

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

    /// A descriptor, which children inherit, of a file with the secret that cannot be changed and
    /// is gone with the last of them. Programs that follow each other in one script all read it.
    pub fn to_be_read(&self) -> io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("dhole-secret", flags)?);
        file.write_all(self.0.as_bytes())?;
        file.rewind()?;
        let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, all)?;
        inherit(&file)?;
        Ok(file.into())
    }
}

/// Lets children inherit a descriptor. Nodes are started one after the other, and the descriptor is
/// closed before the next, so that none inherits what is another's.
pub fn inherit(descriptor: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// A descriptor that is handed over, in the words of `DHOLE_INHERITED`: its number, and which file
/// it is, so that the node takes no other one for it.
pub fn handed_over(descriptor: &impl AsFd) -> io::Result<String> {
    let file = rustix::fs::fstat(descriptor)?;
    let number = descriptor.as_fd().as_raw_fd();
    Ok(format!("{number}:{}:{}", file.st_dev, file.st_ino))
}

/// 256 random bits, in hexadecimal.
pub fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
