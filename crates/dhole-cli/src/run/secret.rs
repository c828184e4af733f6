//! The secret of a run. This command makes it, hands it to each node in memory without a name, and
//! stores it nowhere.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::FdFlags;

/// 256 random bits, in hexadecimal.
pub struct Secret(String);

impl Secret {
    /// Makes a secret.
    pub fn new() -> io::Result<Secret> {
        Ok(Secret(random_hex()?))
    }

    /// A secret that another `dhole run` has made.
    pub fn from_hex(hex: String) -> Secret {
        Secret(hex)
    }

    /// The secret for an order that goes to another machine through an encrypted channel.
    pub fn as_hex(&self) -> &str {
        &self.0
    }

    /// A descriptor of a file with the secret, which children inherit. The file cannot be changed,
    /// and is gone with the last of them. Several programs of one script can all read it.
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

/// Lets children inherit a descriptor. Nodes start one after the other, and the descriptor is
/// closed before the next starts. So none inherits another's.
pub fn inherit(descriptor: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// A descriptor in the form of `DHOLE_INHERITED`: its number, and which file it is. So the node
/// cannot mistake another file for it.
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
