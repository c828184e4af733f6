//! What stands for TLS in a program that is built without it: no session begins.

use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

#[cfg(feature = "processes")]
use dhole_model::MissingFeature;

#[cfg(feature = "processes")]
const MISSING: MissingFeature = MissingFeature {
    feature: "tls",
    asked: "a connection between two machines is to be encrypted (DHOLE_TLS=never, where the \
            network is trusted, sends bytes as they are)",
};

/// Begins no session: each try is an error that names the feature.
#[cfg(feature = "processes")]
#[derive(Clone, Debug)]
pub struct Identity;

#[cfg(feature = "processes")]
impl Identity {
    /// Nothing is needed for it.
    pub fn new() -> io::Result<Identity> {
        Ok(Identity)
    }

    /// The error.
    pub fn connect(&self, _: TcpStream) -> io::Result<Session> {
        Err(io::Error::other(MISSING))
    }

    /// The error.
    pub fn listen(&self, _: TcpStream) -> io::Result<Session> {
        Err(io::Error::other(MISSING))
    }
}

/// There is none.
#[derive(Debug)]
pub enum Session {}

impl Session {
    pub fn read(&self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn write(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub fn shutdown(&self, _: Shutdown) {
        match *self {}
    }

    pub fn binding(&self) -> Option<[u8; 32]> {
        match *self {}
    }

    pub fn wants_write(&self) -> bool {
        match *self {}
    }

    pub fn socket(&self) -> &TcpStream {
        match *self {}
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
