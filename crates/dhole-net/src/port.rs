use std::os::fd::OwnedFd;
use std::time::Duration;

use dhole_model::{NodeId, Notify};
use thiserror::Error;

use crate::{Incoming, Owed};

/// Carries frames, which are bytes, between processes: one end of it, that of node [`me`].
///
/// What a port does not [offer](Port::offers) is supplied by a layer above it, which is a port
/// again. No method but [`park`](Port::park) blocks; all may be called from any thread.
///
/// [`me`]: Port::me
pub trait Port: Send + Sync {
    /// What the port is called in reports and by `--transport`: `tcp`, `shm`, `udp`.
    fn name(&self) -> &'static str;

    /// The node at this end.
    fn me(&self) -> NodeId;

    /// Nodes of the cluster, this one included.
    fn nodes(&self) -> usize;

    /// What frames may rely on.
    fn offers(&self) -> Offers;

    /// Sends one frame, which is `parts` one after the other. When this returns, the bytes are
    /// copied or gone. What could not go at once goes when somebody [polls](Port::poll).
    ///
    /// A frame that is sent lazily (`Notify::Lazy`) does not wake a thread that is
    /// [parked coarsely](Port::park_coarse) there, where the sender can tell: the receiver needs it
    /// only when it waits or polls by itself.
    ///
    /// # Errors
    /// [`SendError::Busy`] when there is no room now: nothing was sent, and the caller should
    /// [`poll`](Port::poll) before it tries again, for the peer may be in the same position.
    /// [`SendError::Lost`] when the peer is gone, [`SendError::TooLarge`],
    /// [`SendError::ToItself`], [`SendError::NoSuchNode`], [`SendError::Closed`].
    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError>;

    /// Sends one frame, and notifies its receiver at once.
    ///
    /// # Errors
    /// As [`send_with`](Port::send_with).
    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        self.send_with(to, parts, Notify::Now)
    }

    /// Wakes the receiver of frames that were [sent lazily](Port::send_with) as
    /// [`send`](Port::send) would have: their sender has waited in vain for it to poll.
    fn notify(&self, _to: NodeId) {}

    /// Whether a frame that [`send_each`](Port::send_each) sends to all others costs about as much
    /// as one to one of them.
    fn multicasts(&self) -> bool {
        false
    }

    /// Sends one frame to each of `to`, as [`send`](Port::send) would, and takes the nodes out of
    /// it to which it is sent, or which are lost.
    ///
    /// # Errors
    /// [`SendError::Busy`] when there was no room for some, which are left in `to`; otherwise as
    /// [`send`](Port::send), but for [`SendError::Lost`].
    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        send_one_by_one(self, to, parts)
    }

    /// Takes what has come, in the order in which it came from each peer, and returns how many
    /// frames that were. `take` may send. While one thread polls, another that tries gets 0 at
    /// once.
    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize;

    /// As [`poll`](Port::poll), but `take` gets a frame in place, in the port's memory, and says
    /// where its bytes go, if the port can do that.
    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        self.poll(&mut |from, frame| take(from, Incoming::of(frame)))
    }

    /// Whether a frame may have come that was [sent lazily](Port::send_with) and wakes no thread.
    /// Costs a few loads, so a thread may ask that does not wait.
    fn peek(&self) -> bool {
        false
    }

    /// Whether [`peek`](Port::peek) tells of every frame that comes, so that a waiting
    /// thread need not [`poll`](Port::poll) to learn that none has. From time to time it must, for
    /// what is not a frame.
    fn can_peek(&self) -> bool {
        false
    }

    /// The files that a peer on this machine showed of its own memory when the two joined: none
    /// where it has none to show. `None` where this end sees no memory of the peer.
    fn shown_by(&self, _peer: NodeId) -> Option<&[OwnedFd]> {
        None
    }

    /// Blocks until something may have come, there may be room for a frame that was refused,
    /// [`unpark`](Port::unpark) is called (also before), or `at_most` is over. May return early for
    /// no reason. One thread at a time: of two, one may sleep on.
    fn park(&self, at_most: Duration);

    /// As [`park`](Port::park), for a thread that waits for no frame: one that is
    /// [sent lazily](Port::send_with) does not end it at once. The port polls for those every
    /// `looks`, at the price of a system call.
    fn park_coarse(&self, at_most: Duration, _looks: Duration) {
        self.park(at_most);
    }

    /// Ends the [`park`](Port::park) of the thread that is in it, or the next.
    fn unpark(&self);

    /// From here on the port counts the parks that end only because their time is over, though
    /// [`unpark`](Port::unpark) or the sender of a frame was to end them. What is said last counts.
    fn owe(&self, _owed: Owed) {}

    /// How many parks [ended so](Port::owe).
    fn lost_doorbells(&self) -> u64 {
        0
    }

    /// Does what is due by time alone, such as heartbeats, for a thread that neither polls nor
    /// parks; how long it may take until that is due again.
    fn beat(&self) -> Duration {
        Duration::MAX
    }

    /// Gives a peer up, for a reason that was found above: it is lost, nothing of it is taken any
    /// more, and it learns that the connection is gone. Does nothing where it is lost already.
    fn give_up(&self, peer: NodeId, loss: Loss);

    /// Sends what is kept back, as far as there is room now, for a thread that does not
    /// [poll](Port::poll).
    fn flush(&self) {}

    /// Tells each peer that has shown a sign of life since the last call: bytes of it have come,
    /// also where no frame is whole yet, or it has taken bytes by itself. A kernel that takes bytes
    /// for a peer is no sign of it.
    fn heard(&self, _tell: &mut dyn FnMut(NodeId)) {}

    /// Tells each peer that was lost since the last call, once.
    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss));

    /// A peer that is lost is missed above, in the words of `how`, also where it has said goodbye:
    /// the launcher of this process hears it.
    fn missed(&self, _peer: NodeId, _how: &str) {}

    /// The program here fails by itself, in the words of `how`: the launcher of this process hears
    /// it, before the other nodes do, which fail in consequence. Of a run it hears the first.
    fn failed(&self, _how: &str) {}

    /// The program here ends the run with an exit code, which is the program's own word and no
    /// failure: the launcher of this process hears it, before the other nodes do.
    fn exits(&self, _code: u8) {}

    /// The program here begins a run: if it has [failed](Port::failed), it has taken that, and goes
    /// on. The launcher of this process hears that, and whether the run `survives` the loss of
    /// nodes.
    fn begins(&self, _survives: bool) {}

    /// The run here is over, and its program has what came of it: no other node does the work of
    /// this one if it is lost from here on. The launcher of this process hears it.
    fn ends(&self) {}

    /// Sends what is still kept back and says goodbye, so that the peers do not take the end for a
    /// loss. Blocks for `at_most`; then what could not be sent is dropped. Other threads may go on
    /// to poll meanwhile. A second call says no second goodbye.
    fn close(&self, at_most: Duration);
}

/// The largest frame of every port, unless something else is said when it is made. All nodes must
/// say the same. What is longer goes in several frames.
pub const LARGEST_FRAME: usize = 64 << 20;

/// Sends a frame to each of `to` by itself.
pub(crate) fn send_one_by_one<P: Port + ?Sized>(
    port: &P,
    to: &mut Vec<NodeId>,
    parts: &[&[u8]],
) -> Result<(), SendError> {
    let mut failed = None;
    to.retain(|&peer| match port.send(peer, parts) {
        Ok(()) | Err(SendError::Lost { .. }) => false,
        Err(error) => {
            failed.get_or_insert(error);
            true
        }
    });
    failed.map_or(Ok(()), Err)
}

/// What a port does for the frames that are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offers {
    /// Each frame arrives once, or the peer is lost.
    pub reliable: bool,
    /// Frames from one peer arrive in the order in which it sent them.
    pub ordered: bool,
    /// The largest frame, in bytes.
    pub largest: usize,
}

/// Why a peer is lost.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum Loss {
    /// The connection ended without a goodbye.
    #[error("its connection broke: {0}")]
    Broken(String),
    /// Nothing was heard of it for longer than the bound.
    #[error("nothing was heard of it for {0:?}")]
    Silent(Duration),
    /// The same, of a process that a signal has stopped.
    #[error("nothing was heard of it for {silent:?}: its {how}")]
    Stopped {
        /// The bound.
        silent: Duration,
        /// Which process is stopped, in the launcher's words.
        how: String,
    },
    /// It sent what no sound peer sends.
    #[error("it was cut off, for it sent {0}")]
    CutOff(String),
    /// It said goodbye while it was still needed.
    #[error("it left early")]
    Left,
}

dhole_model::debug_in_words!(Loss);

/// Why a frame could not be sent.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum SendError {
    /// There is no room now.
    #[error("there is no room for a frame to {to} now")]
    Busy {
        /// The receiver.
        to: NodeId,
    },
    /// The receiver is gone.
    #[error("sending to {to}: {loss}")]
    Lost {
        /// The receiver.
        to: NodeId,
        /// How it was lost.
        loss: Loss,
    },
    /// The port carries no frame of this size.
    #[error("sending {bytes} bytes to {to} in one frame: the port carries at most {largest}")]
    TooLarge {
        /// The receiver.
        to: NodeId,
        /// The frame's bytes.
        bytes: usize,
        /// The most there can be.
        largest: usize,
    },
    /// This end of the port was closed before.
    #[error("sending to {to} through a port that is closed")]
    Closed {
        /// The receiver.
        to: NodeId,
    },
    /// A node needs no port to itself.
    #[error("sending from {node} to itself")]
    ToItself {
        /// The node.
        node: NodeId,
    },
    /// The receiver is not in the cluster.
    #[error("sending to {to}: the cluster has only {nodes} nodes")]
    NoSuchNode {
        /// The receiver that does not exist.
        to: NodeId,
        /// Nodes in the cluster.
        nodes: usize,
    },
}

dhole_model::debug_in_words!(SendError);
