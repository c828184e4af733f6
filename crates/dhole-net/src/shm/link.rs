use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::error::ShmError;
use super::segment::Segment;

/// What goes with the descriptor.
const GREETING: [u8; 8] = *b"dholeshm";

/// Memory shared with one peer, and a Unix socket to it: over the socket comes the memory's
/// descriptor, then a byte for each ring of the doorbell, and at last the end, by which the peer
/// is known to be gone.
///
/// Of each two nodes one [offers](ShmLink::offer) and the other [accepts](ShmLink::accept), over a
/// connected Unix stream socket whose peer was authenticated before; by convention the node with
/// the lower number offers. The memory's file is the one descriptor that passes (`SCM_RIGHTS`).
pub struct ShmLink {
    pub(super) stream: UnixStream,
    pub(super) segment: Segment,
    /// The ring that this side writes: 0 of who made the memory.
    pub(super) writes: usize,
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
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let sending = ShmError::os("sending shared memory to the peer");
        let greeting = [IoSlice::new(&GREETING)];
        let sent = sendmsg(&stream, &greeting, &mut control, SendFlags::NOSIGNAL);
        let sent = sent.map_err(sending)?;
        if sent != GREETING.len() {
            return Err(sending(Errno::MSGSIZE));
        }
        Ok(ShmLink {
            stream,
            segment,
            writes: 0,
        })
    }

    /// Waits for the memory that the peer [offers](ShmLink::offer), as long as `stream`'s read
    /// timeout says, and checks that the peer cannot take it away again.
    ///
    /// # Errors
    /// [`ShmError::Unsound`] when something else comes, [`ShmError::Os`].
    pub fn accept(stream: UnixStream) -> Result<ShmLink, ShmError> {
        let mut greeting = [0; GREETING.len()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &stream,
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
        let mut files: Vec<OwnedFd> = files.flatten().collect();
        if received.bytes == 0 {
            return Err(receiving(Errno::CONNRESET));
        }
        if received.bytes != GREETING.len() || greeting != GREETING {
            return Err(ShmError::Unsound("another greeting than it should".into()));
        }
        let (Some(file), true) = (files.pop(), files.is_empty()) else {
            return Err(ShmError::Unsound("no shared memory".into()));
        };
        Ok(ShmLink {
            stream,
            segment: Segment::open(file)?,
            writes: 1,
        })
    }

    /// A size for rings: as large as the nearest cache that both processes have of their own.
    pub const RING_BYTES: usize = 1 << 20;
}
