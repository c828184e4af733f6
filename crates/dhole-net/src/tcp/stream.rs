use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::tls::Session;

/// A connection to a peer whose name was proved, over which nothing but frames will go.
#[derive(Debug)]
pub enum Stream {
    /// Bytes as they are.
    Plain(TcpStream),
    /// Bytes that nobody between the machines can read or change.
    Tls(Box<Session>),
}

impl Stream {
    /// Makes the connection ready for a port: no call blocks, nothing is held back to fill packets.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => {
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)
            }
            // It was made so that no call blocks.
            Stream::Tls(session) => session.socket().set_nodelay(true),
        }
    }

    /// Reads what has come, as much as fits. 0 is the end.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => {
                let mut socket = socket;
                socket.read(buffer)
            }
            Stream::Tls(session) => session.read(buffer),
        }
    }

    /// Takes some of the bytes of `parts`, from the front, and says how many.
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            // Not `write_vectored`, which raises SIGPIPE in a program that asks for it.
            Stream::Plain(socket) => Ok(sendmsg(
                socket,
                parts,
                &mut SendAncillaryBuffer::default(),
                SendFlags::NOSIGNAL,
            )?),
            Stream::Tls(session) => session.write(parts),
        }
    }

    /// Ends one direction or both.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        match self {
            // An error says that it has ended already.
            Stream::Plain(socket) => drop(socket.shutdown(how)),
            Stream::Tls(session) => session.shutdown(how),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Plain(socket) => socket.as_fd(),
            Stream::Tls(session) => session.as_fd(),
        }
    }
}
