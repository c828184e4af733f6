//! The port over MPI: between processes that an MPI launcher started (`mpirun`, `srun`).
//!
//! MPI offers nothing to sleep on, so [`park`](dhole_net::Port::park) looks from time to time. Who
//! a peer is and that it is no stranger the launcher answers for.
#![cfg(feature = "mpi")]
#![deny(unsafe_code)]

mod library;
mod send_channel;
#[cfg(test)]
mod tests;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::{lock, try_lock};
use dhole_model::{NodeId, Notify};

pub use self::library::MpiError;

use self::library::{Communicator, Finalise, Inside, Posted, Receiving, inside};
use self::send_channel::{PIECE, SMALL, SendChannel, Target};
use dhole_net::doorbell::Doorbell;
use dhole_net::peers::Peers;
use dhole_net::{LARGEST_FRAME, Loss, Offers, Owed, Port, SendError};

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
/// A frame's beginning: the next message goes on with it.
const MORE: u8 = 5;

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
    /// All nodes are in this process, and channels differ by their tags.
    within: bool,
    channels: Vec<Mutex<SendChannel>>,
    /// A frame was refused to this peer.
    refused: Vec<AtomicBool>,
    /// A peer has sent or taken something since somebody asked.
    heard: Vec<AtomicBool>,
    /// Something may be on its way.
    busy: AtomicBool,
    polling: Mutex<Polling>,
    doorbell: Doorbell,
}

/// What whoever polls has.
struct Polling {
    /// Where what is small is received, of each source.
    small: Posted,
    sources: Vec<Source>,
    /// Where the next message that is not small is received.
    large: Vec<u8>,
}

/// Another node.
struct Source {
    node: NodeId,
    large_tag: i32,
    long: Option<Long>,
    /// The frame that comes in pieces, as far as it has come.
    begun: Vec<u8>,
}

/// A message that is not small. Until it is there, nothing else of its sender is taken, and all of
/// the others is.
enum Long {
    Announced,
    /// Some of its bytes may lie with the sender.
    Coming(Receiving),
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
        let peers = Peers::new(NodeId::at(me), nodes, LARGEST_FRAME);
        let from = |node: NodeId| match within {
            true => (0, tags_within(node.index(), me, nodes)),
            false => (node.index(), (TAG, LARGE_TAG)),
        };
        let small = |node| {
            let (rank, (tag, _)) = from(node);
            (rank, tag)
        };
        let senders: Vec<_> = peers.others().map(small).collect();
        let source = |node| Source {
            node,
            large_tag: from(node).1.1,
            long: None,
            begun: Vec::new(),
        };
        let polling = Polling {
            small: communicator.post(&inside()?, &senders, SMALL)?,
            sources: peers.others().map(source).collect(),
            large: Vec::new(),
        };
        let shared = Shared {
            peers,
            communicator,
            within,
            channels: (0..nodes).map(|_| Mutex::default()).collect(),
            refused: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
            heard: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
            busy: AtomicBool::new(false),
            polling: Mutex::new(polling),
            doorbell: Doorbell::new()?,
        };
        let shared = Arc::new(shared);
        Ok(Mpi { shared })
    }
}

/// An error is something that whoever polls finds out.
fn is_something(come: Result<bool, MpiError>) -> bool {
    !matches!(come, Ok(false) | Err(MpiError::Over))
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
            let mut channel = lock(&self.channels[peer.index()]);
            let _ = channel.send(&inside, self.target(peer), &[], what, true);
            self.busy.store(true, Ordering::SeqCst);
        }
    }

    /// Notes that a peer has shown a sign of life, if it has.
    fn hears(&self, peer: NodeId, something: bool) {
        if something {
            self.heard[peer.index()].store(true, Ordering::Relaxed);
        }
    }

    /// Finds out what peers have taken; whether something is still on its way.
    fn flush(&self, inside: &Inside) -> bool {
        // Before the channels are looked at: who sends meanwhile says it again.
        self.busy.store(false, Ordering::SeqCst);
        let mut busy = false;
        for peer in self.living() {
            let Some(mut channel) = try_lock(&self.channels[peer.index()]) else {
                continue;
            };
            if channel.is_busy() {
                match channel.progress(inside) {
                    Ok(taken) => self.hears(peer, taken),
                    Err(error) => drop(self.broken(peer, &error)),
                }
                busy |= channel.is_busy();
            }
        }
        if busy {
            self.busy.store(true, Ordering::SeqCst);
        }
        busy
    }

    /// The long message that a source has announced, when all of it is there, and how long it is.
    fn next_long(&self, source: &mut Source, spare: &mut Vec<u8>) -> Option<(Vec<u8>, usize)> {
        let long = source.long.take()?;
        if self.peers.loss(source.node).is_some() {
            // It may never come, or never end.
            return None;
        }
        let inside = inside().ok()?;
        match self.proceed(&inside, source, long, spare) {
            Ok(come) => come,
            Err(error) => {
                self.broken(source.node, &error);
                None
            }
        }
    }

    fn proceed(
        &self,
        inside: &Inside,
        source: &mut Source,
        long: Long,
        spare: &mut Vec<u8>,
    ) -> Result<Option<(Vec<u8>, usize)>, MpiError> {
        let mut receiving = match long {
            Long::Coming(receiving) => receiving,
            Long::Announced => {
                let rank = self.rank_of(source.node);
                let Some(come) = self.communicator.come(inside, rank, source.large_tag)? else {
                    source.long = Some(Long::Announced);
                    return Ok(None);
                };
                if come.bytes == 0 || come.bytes > PIECE + 1 {
                    let what = format!("a message of {} bytes", come.bytes);
                    self.peers.lose(source.node, Loss::CutOff(what));
                    return Ok(None);
                }
                come.receive(inside, std::mem::take(spare))?
            }
        };
        if receiving.is_complete(inside)? {
            return Ok(receiving.into_buffer());
        }
        source.long = Some(Long::Coming(receiving));
        Ok(None)
    }

    /// Has the library put what comes next of each source where it is read.
    fn wait_for_more(&self, inside: &Inside, polling: &mut Polling) {
        for (at, source) in polling.sources.iter().enumerate() {
            // What follows on a long message is taken behind it.
            if source.long.is_none()
                && let Err(error) = polling.small.wait(inside, at)
                && error != MpiError::Over
            {
                self.broken(source.node, &error);
            }
        }
    }

    /// Whether something small has come.
    fn small_has_come(&self, inside: &Inside, small: &mut Posted) -> bool {
        let come = small.has_come(inside);
        if let Err(error) = &come {
            // Nobody in particular is at fault, and nobody can be heard any more.
            self.living()
                .for_each(|peer| drop(self.broken(peer, error)));
        }
        come == Ok(true)
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut polling) = try_lock(&self.polling) else {
            return 0;
        };
        let Ok(inside) = library::inside() else {
            return 0;
        };
        if self.busy.load(Ordering::Relaxed) {
            self.flush(&inside);
        }
        self.wait_for_more(&inside, &mut polling);
        let is_long = polling.sources.iter().any(|source| source.long.is_some());
        let is_small = self.small_has_come(&inside, &mut polling.small);
        drop(inside);
        if !is_small && !is_long {
            return 0;
        }
        let mut frames = 0;
        // Before what is small, which may announce another.
        let Polling {
            small,
            sources,
            large,
        } = &mut *polling;
        for source in sources.iter_mut() {
            if let Some((buffer, bytes)) = self.next_long(source, large) {
                frames += self.take_one(source, &buffer[..bytes], take);
                if buffer.len() <= MOST_KEPT {
                    *large = buffer;
                }
            }
        }
        // One of each source at most: none of them waits for more meanwhile.
        while let Some((at, bytes)) = small.take() {
            frames += self.take_one(&mut sources[at], &small.bytes(at)[..bytes], take);
            if let Ok(inside) = library::inside() {
                self.small_has_come(&inside, small);
            }
        }
        // What comes next may come there from here on.
        if let Ok(inside) = library::inside() {
            self.wait_for_more(&inside, &mut polling);
        }
        frames
    }

    /// Takes what a source has said; how many frames that is.
    fn take_one(
        &self,
        source: &mut Source,
        said: &[u8],
        take: &mut dyn FnMut(NodeId, &[u8]),
    ) -> usize {
        let Some((kind, frame)) = said.split_last() else {
            return 0;
        };
        if self.peers.loss(source.node).is_some() {
            return 0;
        }
        self.hears(source.node, true);
        match *kind {
            FRAME if source.begun.is_empty() => {
                take(source.node, frame);
                return 1;
            }
            FRAME | MORE if source.begun.len() + frame.len() > LARGEST_FRAME => {
                let bytes = source.begun.len() + frame.len();
                let what = format!("a frame of {bytes} bytes where {LARGEST_FRAME} are allowed");
                self.peers.lose(source.node, Loss::CutOff(what));
                source.begun = Vec::new();
            }
            FRAME => {
                let mut whole = std::mem::take(&mut source.begun);
                whole.extend_from_slice(frame);
                take(source.node, &whole);
                return 1;
            }
            MORE => source.begun.extend_from_slice(frame),
            ANNOUNCED => source.long = Some(Long::Announced),
            kind => {
                source.begun = Vec::new();
                self.ended(source.node, kind);
            }
        }
        0
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
        lock(&self.channels[peer.index()]).clear();
    }

    /// Whether something has come that nobody has taken.
    fn has_come(&self, inside: &Inside) -> bool {
        // Who polls takes it.
        let Some(mut polling) = try_lock(&self.polling) else {
            return false;
        };
        self.wait_for_more(inside, &mut polling);
        let come = polling.sources.iter_mut().any(|source| {
            let come = match &mut source.long {
                None => Ok(false),
                Some(_) if self.peers.loss(source.node).is_some() => Ok(true),
                Some(Long::Announced) => {
                    let rank = self.rank_of(source.node);
                    self.communicator.has_come(inside, rank, source.large_tag)
                }
                Some(Long::Coming(receiving)) => receiving.is_complete(inside),
            };
            is_something(come)
        });
        come || is_something(polling.small.has_come(inside))
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
                    || lock(&self.channels[peer.index()]).has_some_room())
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
            match try_lock(&self.polling) {
                Some(polling) => break polling,
                None if Instant::now() >= until => return false,
                None => std::thread::yield_now(),
            }
        };
        let Ok(inside) = inside() else { return false };
        let left = until.saturating_duration_since(Instant::now());
        let coming = |source: &Source| matches!(source.long, Some(Long::Coming(_)));
        !polling.sources.iter().any(coming) && polling.small.end(&inside, left).is_ok()
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
            largest: LARGEST_FRAME,
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], _: Notify) -> Result<(), SendError> {
        let shared = &*self.shared;
        shared.peers.admit(to, parts)?;
        let Ok(inside) = inside() else {
            return Err(SendError::Closed { to });
        };
        let mut channel = lock(&shared.channels[to.index()]);
        let sent = channel.send(&inside, shared.target(to), parts, FRAME, false);
        if channel.is_busy() {
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
            if left.is_zero() || shared.doorbell.wait([], nap.min(left), || false) {
                return;
            }
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }

    fn unpark(&self) {
        self.shared.doorbell.ring();
    }

    fn owe(&self, owed: Owed) {
        self.shared.doorbell.owe(owed);
    }

    fn lost_doorbells(&self) -> u64 {
        self.shared.doorbell.lost()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        let shared = &*self.shared;
        if shared.peers.lose(peer, loss) {
            shared.tell(peer, GIVEN_UP);
        }
    }

    fn flush(&self) {
        if let Ok(inside) = inside() {
            self.shared.flush(&inside);
        }
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        for peer in self.shared.living() {
            if self.shared.heard[peer.index()].swap(false, Ordering::Relaxed) {
                tell(peer);
            }
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.shared.peers.tell(tell);
    }

    fn close(&self, at_most: Duration) {
        self.shared.close(at_most);
    }
}
