//! The port over MPI: between processes that an MPI launcher started (`mpirun`, `srun`).
//!
//! MPI offers nothing to sleep on, so [`park`](Port::park) looks from time to time. Who a peer is
//! and that it is no stranger the launcher answers for.

mod lane;
mod library;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dhole_model::NodeId;

pub use self::library::MpiError;

use self::lane::{Lane, SMALL, Target};
use self::library::{Communicator, Finalise, Inside, Posted, inside};
use crate::bell::Bell;
use crate::peers::Peers;
use crate::sync::{locked, try_locked};
use crate::{Loss, Offers, Port, SendError};

/// The largest frame.
const LARGEST: usize = 64 << 20;
/// A buffer larger than this is not kept for the next frame.
const MOST_KEPT: usize = 4 << 20;
/// How long a sleep between two looks is, the first time and at most.
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_micros(250);
/// How long the goodbyes may take when the process exits.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The tags of everything between processes: what is small, and what is not.
const TAG: i32 = 1;
const LARGE_TAG: i32 = 2;

/// The last byte of a frame says what it is.
const FRAME: u8 = 0;
const GOODBYE: u8 = 1;
const GIVEN_UP: u8 = 2;
const NO_MORE: u8 = 3;
/// What follows is not small, and comes by itself.
const ANNOUNCED: u8 = 4;

/// MPI between the processes of a cluster. Reliable and ordered.
///
/// The library is finalised when the process exits, after a goodbye. Where a peer was lost, or has
/// not joined, it is not, and the launcher ends what is left.
pub struct Mpi {
    shared: Arc<Shared>,
}

struct Shared {
    peers: Peers,
    communicator: Communicator,
    /// All nodes are in this process, and lanes differ by their tags.
    within: bool,
    lanes: Vec<Mutex<Lane>>,
    /// A frame was refused to this peer.
    refused: Vec<AtomicBool>,
    /// Something may be on its way.
    busy: AtomicBool,
    polling: Mutex<Polling>,
    bell: Bell,
}

/// What whoever polls has.
struct Polling {
    sources: Vec<Source>,
    /// Where what is not small is received.
    large: Vec<u8>,
}

/// Where messages come from: one node, or all.
struct Source {
    small: Posted,
    /// The node, if all are in this process.
    node: Option<NodeId>,
    large_tag: i32,
    /// Who has announced what is not small.
    announced: Option<NodeId>,
}

/// What has come.
enum Message {
    /// So many bytes, and what it says of itself.
    Small(usize, u8),
    Large(usize, u8),
    /// Nothing that could be received.
    Nothing,
}

/// Why no port over MPI could be made.
#[derive(Debug, thiserror::Error)]
pub enum MpiStartError {
    /// The library's own error.
    #[error(transparent)]
    Library(#[from] MpiError),
    /// The system's.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl Mpi {
    /// The port of this process to all that the launcher started with it, each of which has to
    /// call this as well within `within`, and what each of them says, in the order of the nodes.
    ///
    /// # Errors
    /// [`MpiStartError`].
    pub fn of_all(says: &[u8], within: Duration) -> Result<(Mpi, Vec<Vec<u8>>), MpiStartError> {
        library::initialise()?;
        let all = inside()?;
        let communicator = Communicator::of_all(&all, within).inspect_err(|_| never_finalise())?;
        let (rank, size) = communicator.rank_and_size(&all)?;
        let said = communicator.gather(&all, says, size, within);
        let said = said.inspect_err(|_| never_finalise())?;
        let mpi = Mpi::new(communicator, false, rank, size)?;
        let shared = Arc::clone(&mpi.shared);
        library::at_exit(move || shared.leave());
        Ok((mpi, said))
    }

    /// The ports of a cluster within this process, in the order of the nodes: what tests of the
    /// port run on.
    ///
    /// # Errors
    /// [`MpiStartError`].
    pub fn cluster(nodes: usize) -> Result<Vec<Mpi>, MpiStartError> {
        library::initialise()?;
        let communicator = Communicator::own(&inside()?)?;
        let ports = (0..nodes).map(|me| Mpi::new(communicator, true, me, nodes));
        ports.collect()
    }

    fn new(
        communicator: Communicator,
        within: bool,
        me: usize,
        nodes: usize,
    ) -> Result<Mpi, MpiStartError> {
        let peers = Peers::new(NodeId::at(me), nodes, LARGEST);
        let from = |node: Option<NodeId>| {
            let (rank, (tag, large_tag)) = match node {
                Some(node) => (Some(0), tags_within(node.index(), me, nodes)),
                None => (None, (TAG, LARGE_TAG)),
            };
            let small = communicator.post(&inside()?, rank, tag, SMALL)?;
            Ok(Source {
                small,
                node,
                large_tag,
                announced: None,
            })
        };
        let sources: Result<Vec<Source>, MpiError> = match within {
            true => peers.others().map(|node| from(Some(node))).collect(),
            false => from(None).map(|all| vec![all]),
        };
        let polling = Polling {
            sources: sources?,
            large: Vec::new(),
        };
        let shared = Shared {
            peers,
            communicator,
            within,
            lanes: (0..nodes).map(|_| Mutex::default()).collect(),
            refused: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
            busy: AtomicBool::new(false),
            polling: Mutex::new(polling),
            bell: Bell::new()?,
        };
        let shared = Arc::new(shared);
        Ok(Mpi { shared })
    }
}

/// The tags of what goes from one node of this process to another.
fn tags_within(from: usize, to: usize, nodes: usize) -> (i32, i32) {
    let tag = (from * nodes + to) as i32;
    (tag, tag + (nodes * nodes) as i32)
}

/// A process that waits for others in vain does not wait for them at its end again.
fn never_finalise() {
    library::at_exit(|| Finalise::No);
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.shared.tell_all(NO_MORE);
    }
}

impl Shared {
    /// The process in which a node is.
    fn rank_of(&self, node: NodeId) -> usize {
        if self.within { 0 } else { node.index() }
    }

    fn target(&self, to: NodeId) -> Target {
        let (me, nodes) = (self.peers.me().index(), self.peers.nodes());
        let (tag, large_tag) = match self.within {
            true => tags_within(me, to.index(), nodes),
            false => (TAG, LARGE_TAG),
        };
        Target {
            communicator: self.communicator,
            rank: self.rank_of(to),
            tag,
            large_tag,
        }
    }

    fn broken(&self, peer: NodeId, error: &MpiError) -> Loss {
        let loss = Loss::Broken(error.to_string());
        self.peers.lose(peer, loss.clone());
        loss
    }

    /// The peers that are not lost.
    fn living(&self) -> impl Iterator<Item = NodeId> + use<'_> {
        let others = self.peers.others();
        others.filter(|&peer| self.peers.loss(peer).is_none())
    }

    /// Says something that needs no room to all that are there. Whoever cannot be told is gone.
    fn tell_all(&self, what: u8) {
        self.living().for_each(|peer| self.tell(peer, what));
    }

    fn tell(&self, peer: NodeId, what: u8) {
        if let Ok(inside) = inside() {
            let mut lane = locked(&self.lanes[peer.index()]);
            let _ = lane.send(&inside, self.target(peer), &[], what, true);
            self.busy.store(true, Ordering::SeqCst);
        }
    }

    /// Finds out what peers have taken; whether something is still on its way.
    fn flush(&self, inside: &Inside) -> bool {
        // Before the lanes are looked at: who sends meanwhile says it again.
        self.busy.store(false, Ordering::SeqCst);
        let mut busy = false;
        for peer in self.living() {
            let Some(mut lane) = try_locked(&self.lanes[peer.index()]) else {
                continue;
            };
            if lane.is_busy() {
                if let Err(error) = lane.progress(inside) {
                    self.broken(peer, &error);
                }
                busy |= lane.is_busy();
            }
        }
        if busy {
            self.busy.store(true, Ordering::SeqCst);
        }
        busy
    }

    /// The next message of a source.
    fn next(&self, source: &mut Source, large: &mut Vec<u8>) -> Option<(NodeId, Message)> {
        let inside = inside().ok()?;
        let next = match source.announced {
            Some(from) => self.next_large(&inside, from, source.large_tag, large),
            None => source.small.come(&inside).map(|come| {
                let (rank, bytes) = come?;
                let from = source.node.unwrap_or_else(|| NodeId::at(rank));
                let kind = bytes.checked_sub(1).map(|at| source.small.bytes()[at]);
                let small = kind.map_or(Message::Nothing, |kind| Message::Small(bytes - 1, kind));
                Some((from, small))
            }),
        };
        match next {
            Ok(next) => {
                if next.is_some() {
                    source.announced = None;
                }
                next
            }
            Err(MpiError::Over) => None,
            Err(error) => {
                // Nobody in particular is at fault, and nobody can be heard any more.
                self.living()
                    .for_each(|peer| drop(self.broken(peer, &error)));
                None
            }
        }
    }

    /// The message that was announced, when it has come.
    fn next_large(
        &self,
        inside: &Inside,
        from: NodeId,
        tag: i32,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<(NodeId, Message)>, MpiError> {
        if self.peers.loss(from).is_some() {
            // It may never come.
            return Ok(Some((from, Message::Nothing)));
        }
        let rank = self.rank_of(from);
        let Some(come) = self.communicator.come(inside, rank, tag)? else {
            return Ok(None);
        };
        let bytes = come.bytes;
        if bytes == 0 || bytes > LARGEST + 1 {
            // Its rest is dropped by the library.
            let _ = come.receive(inside, &mut []);
            let what = format!("a message of {bytes} bytes");
            self.peers.lose(from, Loss::CutOff(what));
            return Ok(Some((from, Message::Nothing)));
        }
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let received = come.receive(inside, &mut buffer[..bytes]);
        Ok(Some(match received {
            Ok(()) => (from, Message::Large(bytes - 1, buffer[bytes - 1])),
            Err(error) => {
                self.broken(from, &error);
                (from, Message::Nothing)
            }
        }))
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut polling) = try_locked(&self.polling) else {
            return 0;
        };
        if self.busy.load(Ordering::Relaxed)
            && let Ok(inside) = inside()
        {
            self.flush(&inside);
        }
        let mut frames = 0;
        let Polling { sources, large } = &mut *polling;
        // One of each source: to look in vain for a second costs as much as the first, and whoever
        // polls comes again.
        for source in sources {
            let Some((from, message)) = self.next(source, large) else {
                continue;
            };
            let (frame, kind) = match message {
                Message::Small(bytes, kind) => (&source.small.bytes()[..bytes], kind),
                Message::Large(bytes, kind) => (&large[..bytes], kind),
                Message::Nothing => continue,
            };
            if self.peers.loss(from).is_none() {
                match kind {
                    FRAME => {
                        frames += 1;
                        take(from, frame);
                    }
                    ANNOUNCED => source.announced = Some(from),
                    kind => self.ended(from, kind),
                }
            }
            // What comes next may come there from here on.
            if source.announced.is_none()
                && let Ok(inside) = inside()
            {
                let _ = source.small.wait(&inside);
            }
        }
        if large.len() > MOST_KEPT {
            *large = Vec::new();
        }
        frames
    }

    /// A peer says that nothing will follow.
    fn ended(&self, peer: NodeId, how: u8) {
        let broken = |how: &str| Loss::Broken(how.into());
        let loss = match how {
            GOODBYE => Loss::Left,
            GIVEN_UP => broken("it gave this node up"),
            NO_MORE => broken("its port is no more"),
            kind => Loss::CutOff(format!("a frame of the kind {kind}")),
        };
        self.peers.lose(peer, loss);
        locked(&self.lanes[peer.index()]).clear();
    }

    /// Whether something has come that nobody has taken.
    fn has_come(&self, inside: &Inside) -> bool {
        // Who polls takes it.
        let Some(mut polling) = try_locked(&self.polling) else {
            return false;
        };
        polling.sources.iter_mut().any(|source| {
            let come = match source.announced {
                Some(from) if self.peers.loss(from).is_some() => Ok(true),
                Some(from) => {
                    let (rank, tag) = (self.rank_of(from), source.large_tag);
                    self.communicator.has_come(inside, rank, tag)
                }
                None => source.small.has_come(inside),
            };
            !matches!(come, Ok(false) | Err(MpiError::Over))
        })
    }

    /// Whether there is something to do for whoever would sleep.
    fn has_something_to_do(&self) -> bool {
        let Ok(inside) = inside() else { return false };
        if self.has_come(&inside) {
            return true;
        }
        self.flush(&inside);
        let mut room = false;
        for peer in self.peers.others() {
            let refused = &self.refused[peer.index()];
            if refused.load(Ordering::Relaxed)
                && (self.peers.loss(peer).is_some()
                    || locked(&self.lanes[peer.index()]).has_some_room())
            {
                refused.store(false, Ordering::Relaxed);
                room = true;
            }
        }
        room
    }

    fn close(&self, at_most: Duration) {
        if self.peers.close() {
            self.tell_all(GOODBYE);
        }
        let until = Instant::now() + at_most;
        loop {
            // Who says goodbye takes nothing any more, and is not waited for.
            while self.poll(&mut |_, _| ()) > 0 {}
            let Ok(inside) = inside() else { return };
            if !self.flush(&inside) || Instant::now() >= until {
                return;
            }
            drop(inside);
            std::thread::yield_now();
        }
    }

    /// Nothing is received any more; whether that came about.
    fn end_receives(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut polling = loop {
            match try_locked(&self.polling) {
                Some(polling) => break polling,
                None if Instant::now() >= until => return false,
                None => std::thread::yield_now(),
            }
        };
        let Ok(inside) = inside() else { return false };
        let mut sources = polling.sources.iter_mut();
        let left = || until.saturating_duration_since(Instant::now());
        sources.all(|source| source.small.end(&inside, left()).is_ok())
    }

    /// Says goodbye at the end of the process, and whether all others will as well.
    fn leave(&self) -> Finalise {
        self.close(LAST_WORDS);
        let left = |peer| matches!(self.peers.loss(peer), None | Some(Loss::Left));
        // The library would wait for what others never send.
        let ended = self.end_receives(LAST_WORDS);
        match ended && self.peers.others().all(left) {
            true => Finalise::Yes,
            false => Finalise::No,
        }
    }
}

impl Port for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn me(&self) -> NodeId {
        self.shared.peers.me()
    }

    fn nodes(&self) -> usize {
        self.shared.peers.nodes()
    }

    fn offers(&self) -> Offers {
        Offers {
            reliable: true,
            ordered: true,
            largest: LARGEST,
        }
    }

    fn send(&self, to: NodeId, parts: &[&[u8]]) -> Result<(), SendError> {
        let shared = &*self.shared;
        shared.peers.admit(to, parts)?;
        let Ok(inside) = inside() else {
            return Err(SendError::Closed { to });
        };
        let mut lane = locked(&shared.lanes[to.index()]);
        let sent = lane.send(&inside, shared.target(to), parts, FRAME, false);
        if lane.is_busy() {
            shared.busy.store(true, Ordering::SeqCst);
        }
        match sent {
            Ok(true) => Ok(()),
            Ok(false) => {
                shared.refused[to.index()].store(true, Ordering::Relaxed);
                Err(SendError::Busy { to })
            }
            Err(error) => {
                let loss = shared.broken(to, &error);
                Err(SendError::Lost { to, loss })
            }
        }
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.shared.poll(take)
    }

    fn park(&self, at_most: Duration) {
        let shared = &*self.shared;
        let begun = Instant::now();
        let mut nap = FIRST_NAP;
        while !shared.has_something_to_do() {
            let left = at_most.saturating_sub(begun.elapsed());
            if left.is_zero() || shared.bell.wait([], nap.min(left)) {
                return;
            }
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }

    fn unpark(&self) {
        self.shared.bell.ring();
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        let shared = &*self.shared;
        if shared.peers.lose(peer, loss) {
            shared.tell(peer, GIVEN_UP);
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.shared.peers.tell(tell);
    }

    fn close(&self, at_most: Duration) {
        self.shared.close(at_most);
    }
}
