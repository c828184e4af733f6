//! Connections between processes, and what they come from: over TCP, or a Unix socket within a
//! machine.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, sendmsg, socket_with,
};

use super::Encrypts;
use super::handshake::Binding;
use dhole_net::Stream;
use dhole_net::tls::{Identity, Session};

/// Which connections over TCP are encrypted: both ends must decide alike.
#[derive(Clone, Debug)]
pub(crate) struct Encryption {
    /// What this process brings to it; without, none is.
    identity: Option<Identity>,
    /// Also those within a machine.
    always: bool,
}

impl Encryption {
    /// As the settings say.
    pub fn new(encrypts: Encrypts) -> io::Result<Encryption> {
        Ok(Encryption {
            identity: match encrypts {
                Encrypts::Never => None,
                Encrypts::BetweenMachines | Encrypts::Always => Some(Identity::new()?),
            },
            always: encrypts == Encrypts::Always,
        })
    }
}

/// Whether a connection stays within this machine, as both of its ends see it alike.
fn within_a_machine(here: IpAddr, there: IpAddr) -> bool {
    let (here, there) = (here.to_canonical(), there.to_canonical());
    here == there || here.is_loopback() && there.is_loopback()
}

/// A connection. No call blocks.
#[derive(Debug)]
pub(crate) enum Channel {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP, encrypted.
    Tls(Box<Session>),
    /// Within a machine.
    Unix(UnixStream),
}

impl Channel {
    /// Makes calls return at once, and bytes leave at once.
    pub fn tcp(stream: TcpStream) -> io::Result<Channel> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Channel::Tcp(stream))
    }

    /// Connects to the listener of this name on this machine. Where it has no room for one more
    /// that waits, that is an error: not to be waited for, since it may wait for this process too.
    pub fn unix(name: &str) -> io::Result<Channel> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(
            &socket,
            &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
        )?;
        Ok(Channel::Unix(socket.into()))
    }

    /// Reads what has come, as much as fits. 0 is the end.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Channel::Tcp(stream) => {
                let mut stream = stream;
                stream.read(buffer)
            }
            Channel::Tls(session) => session.read(buffer),
            Channel::Unix(stream) => {
                let mut stream = stream;
                stream.read(buffer)
            }
        }
    }

    /// Sends some of these bytes and says how many.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if let Channel::Tls(session) = self {
            return session.write(&[IoSlice::new(bytes)]);
        }
        // Not `write`, which raises SIGPIPE in a program that asks for it.
        let parts = [IoSlice::new(bytes)];
        let (mut none, flags) = (SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        Ok(sendmsg(self.as_fd(), &parts, &mut none, flags)?)
    }

    /// Says that nothing follows.
    pub fn end(&self) {
        // An error says that it has ended already.
        match self {
            Channel::Tcp(stream) => drop(stream.shutdown(Shutdown::Write)),
            Channel::Tls(session) => session.shutdown(Shutdown::Write),
            Channel::Unix(stream) => drop(stream.shutdown(Shutdown::Write)),
        }
    }

    /// What the proofs are bound to. None where the two ends have not agreed on a key yet.
    pub fn binding(&self) -> Option<Binding> {
        match self {
            Channel::Tls(session) => session.binding().map(Binding::Tls),
            Channel::Tcp(_) | Channel::Unix(_) => Some(Binding::Plain),
        }
    }

    /// Whether something is to be sent that was taken already.
    pub fn wants_write(&self) -> bool {
        matches!(self, Channel::Tls(session) if session.wants_write())
    }

    /// Encrypts what goes to another machine, if `encryption` says so.
    pub fn secured(self, encryption: &Encryption, connects: bool) -> io::Result<Channel> {
        let (Channel::Tcp(stream), Some(identity)) = (&self, &encryption.identity) else {
            return Ok(self);
        };
        let (here, there) = (stream.local_addr()?.ip(), stream.peer_addr()?.ip());
        if !encryption.always && within_a_machine(here, there) {
            return Ok(self);
        }
        let stream = stream.try_clone()?;
        let session = match connects {
            true => identity.connect(stream)?,
            false => identity.listen(stream)?,
        };
        Ok(Channel::Tls(Box::new(session)))
    }

    /// The address of the peer's end.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        let socket = match self {
            Channel::Tcp(stream) => stream,
            Channel::Tls(session) => session.socket(),
            Channel::Unix(_) => return Err(ErrorKind::Unsupported.into()),
        };
        socket.peer_addr()
    }

    /// The address that this machine has there.
    pub fn local(&self) -> io::Result<IpAddr> {
        let socket = match self {
            Channel::Tcp(stream) => stream,
            Channel::Tls(session) => session.socket(),
            Channel::Unix(_) => return Err(ErrorKind::Unsupported.into()),
        };
        Ok(socket.local_addr()?.ip().to_canonical())
    }

    /// For the port over TCP.
    pub fn into_stream(self) -> Option<Stream> {
        match self {
            Channel::Tcp(stream) => Some(Stream::Plain(stream)),
            Channel::Tls(session) => Some(Stream::Tls(session)),
            Channel::Unix(_) => None,
        }
    }

    /// For what only goes over a Unix socket.
    pub fn into_unix(self) -> Option<UnixStream> {
        match self {
            Channel::Unix(stream) => Some(stream),
            Channel::Tcp(_) | Channel::Tls(_) => None,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Channel::Tcp(stream) => stream.as_fd(),
            Channel::Tls(session) => session.as_fd(),
            Channel::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Where connections come in.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// Within the machine, under a name that is no file: nothing is left of it when the process
    /// ends.
    Unix(UnixListener),
}

impl Listener {
    /// Calls to it return at once.
    pub fn tcp(listener: TcpListener) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        Ok(Listener::Tcp(listener))
    }

    /// Listens under this name on this machine.
    pub fn unix(name: &str) -> io::Result<Listener> {
        let address = UnixAddr::from_abstract_name(name)?;
        let listener = UnixListener::bind_addr(&address)?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Unix(listener))
    }

    /// The next connection, and where it is from; nothing where none waits.
    pub fn accept(&self) -> io::Result<Option<(Channel, String)>> {
        let accepted = match self {
            Listener::Tcp(listener) => listener.accept().and_then(|(stream, address)| {
                let address = address.to_string();
                Ok((Channel::tcp(stream)?, address))
            }),
            Listener::Unix(listener) => listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                Ok((Channel::Unix(stream), "this machine".to_owned()))
            }),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(cause) => Err(cause),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }
}
