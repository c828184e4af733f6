use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::error::ShmError;
use super::segment::Segment;

/// What goes with descriptors.
type Greeting = [u8; 8];
/// With the memory of both rings.
const OFFERS: Greeting = *b"dholeshm";
/// With what a process shows of its own memory.
const SHOWS: Greeting = *b"dholesee";
/// The most descriptors that go together.
const MOST: usize = 3;

/// Memory shared with one peer, and a Unix socket to it: over the socket comes the memory's
/// descriptor, then a byte for each ring of the doorbell, and at last the end, by which the peer
/// is known to be gone.
///
/// Of each two nodes one [offers](ShmLink::offer) and the other [accepts](ShmLink::accept), over a
/// connected Unix stream socket whose peer was authenticated before; by convention the node with
/// the lower number offers. The memory's file passes over it (`SCM_RIGHTS`). Then each may
/// [show](ShmLink::show) the other files of its own memory, which the other
/// [sees](ShmLink::see): both do, or neither.
pub struct ShmLink {
    pub(super) stream: UnixStream,
    pub(super) segment: Segment,
    /// The ring that this side writes: 0 of who made the memory.
    pub(super) writes: usize,
    /// What the peer has shown, if it was asked.
    pub(super) shown: Option<Vec<OwnedFd>>,
}

impl ShmLink {
    /// Makes memory with a ring of about `ring_bytes` for each direction (rounded up to a power of
    /// two, at least 4 KiB, at most 128 MiB), and sends it over `stream`. Does not wait for the
    /// peer. [`ShmLink::RING_BYTES`] is a good size.
    ///
    /// # Errors
    /// [`ShmError::Os`] when there is no memory, no descriptor or no peer.
    pub fn offer(stream: UnixStream, ring_bytes: usize) -> Result<ShmLink, ShmError> {
        let (segment, file) = Segment::make(ring_bytes)?;
        send(&stream, OFFERS, &[file.as_fd()])?;
        Ok(ShmLink {
            stream,
            segment,
            writes: 0,
            shown: None,
        })
    }

    /// Waits for the memory that the peer [offers](ShmLink::offer), as long as `stream`'s read
    /// timeout says, and checks that the peer cannot take it away again.
    ///
    /// # Errors
    /// [`ShmError::Unsound`] when something else comes, [`ShmError::Os`].
    pub fn accept(stream: UnixStream) -> Result<ShmLink, ShmError> {
        let mut files = receive(&stream, OFFERS)?;
        let (Some(file), true) = (files.pop(), files.is_empty()) else {
            return Err(ShmError::Unsound("no shared memory".into()));
        };
        Ok(ShmLink {
            stream,
            segment: Segment::open(file)?,
            writes: 1,
            shown: None,
        })
    }

    /// Shows the peer files of this process's own memory, at most three; none where it has none to
    /// show. Does not wait for the peer.
    ///
    /// # Errors
    /// [`ShmError::Os`] when there is no peer, or there are more files.
    pub fn show(&self, files: &[OwnedFd]) -> Result<(), ShmError> {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(OwnedFd::as_fd).collect();
        send(&self.stream, SHOWS, &files)
    }

    /// Waits for what the peer [shows](ShmLink::show), as [`accept`](ShmLink::accept) waits. What
    /// the files are is not looked at.
    ///
    /// # Errors
    /// As of [`accept`](ShmLink::accept).
    pub fn see(&mut self) -> Result<(), ShmError> {
        self.shown = Some(receive(&self.stream, SHOWS)?);
        Ok(())
    }

    /// The socket to the peer.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// A size for rings: as large as the nearest cache that both processes have of their own.
    pub const RING_BYTES: usize = 1 << 20;
}

/// Sends files to the peer.
fn send(stream: &UnixStream, greeting: Greeting, files: &[BorrowedFd<'_>]) -> Result<(), ShmError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sending = ShmError::os("sending shared memory to the peer");
    let rights = SendAncillaryMessage::ScmRights(files);
    let fit = files.is_empty() || files.len() <= MOST && control.push(rights);
    if !fit {
        return Err(sending(Errno::TOOMANYREFS));
    }
    let parts = [IoSlice::new(&greeting)];
    let sent = sendmsg(stream, &parts, &mut control, SendFlags::NOSIGNAL);
    match sent.map_err(sending)? {
        bytes if bytes == greeting.len() => Ok(()),
        _ => Err(sending(Errno::MSGSIZE)),
    }
}

/// Waits for files of the peer.
fn receive(stream: &UnixStream, wanted: Greeting) -> Result<Vec<OwnedFd>, ShmError> {
    let mut greeting: Greeting = Default::default();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut greeting)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    );
    let receiving = ShmError::os("waiting for the peer's shared memory");
    let received = received.map_err(receiving)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files: Vec<OwnedFd> = files.flatten().collect();
    if received.bytes == 0 {
        return Err(receiving(Errno::CONNRESET));
    }
    if received.bytes != greeting.len() || greeting != wanted {
        return Err(ShmError::Unsound("another greeting than it should".into()));
    }
    Ok(files)
}
