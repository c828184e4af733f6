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

use self::lane::{Lane, Target};
use self::library::{Come, Communicator, Finalise, Inside, inside};
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
/// The tag of everything between processes.
const TAG: i32 = 1;

/// The last byte of a frame says what it is.
const FRAME: u8 = 0;
const GOODBYE: u8 = 1;
const GIVEN_UP: u8 = 2;
const NO_MORE: u8 = 3;

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
    polling: Mutex<Vec<u8>>,
    bell: Bell,
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
        let shared = Shared {
            peers: Peers::new(NodeId::at(me), nodes, LARGEST),
            communicator,
            within,
            lanes: (0..nodes).map(|_| Mutex::default()).collect(),
            refused: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
            polling: Mutex::default(),
            bell: Bell::new()?,
        };
        let shared = Arc::new(shared);
        Ok(Mpi { shared })
    }
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
    /// Sources and tags under which messages come.
    fn sources(&self) -> impl Iterator<Item = (Option<usize>, i32)> + use<'_> {
        let (me, nodes) = (self.peers.me().index(), self.peers.nodes());
        let within = (0..if self.within { nodes } else { 0 })
            .filter(move |&from| from != me)
            .map(move |from| (Some(0), (from * nodes + me) as i32));
        let between = (!self.within).then_some((None, TAG));
        within.chain(between)
    }

    fn target(&self, to: NodeId) -> Target {
        let (me, nodes) = (self.peers.me().index(), self.peers.nodes());
        let (rank, tag) = match self.within {
            true => (0, (me * nodes + to.index()) as i32),
            false => (to.index(), TAG),
        };
        Target {
            communicator: self.communicator,
            rank,
            tag,
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
        }
    }

    /// Finds out what peers have taken; whether something is still on its way.
    fn flush(&self, inside: &Inside) -> bool {
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
        busy
    }

    /// Receives a message: how long it is without what it says of itself, and that.
    fn receive(
        &self,
        inside: &Inside,
        come: Come,
        from: NodeId,
        buffer: &mut Vec<u8>,
    ) -> Option<(usize, u8)> {
        let bytes = come.bytes;
        if bytes == 0 || bytes > LARGEST + 1 {
            // Its rest is dropped by the library.
            let _ = come.receive(inside, &mut []);
            let what = format!("a message of {bytes} bytes");
            self.peers.lose(from, Loss::CutOff(what));
            return None;
        }
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        match come.receive(inside, &mut buffer[..bytes]) {
            Ok(()) => Some((bytes - 1, buffer[bytes - 1])),
            Err(error) => {
                self.broken(from, &error);
                None
            }
        }
    }

    /// The next message under a tag.
    fn next(
        &self,
        source: (Option<usize>, i32),
        buffer: &mut Vec<u8>,
    ) -> Option<(NodeId, Option<(usize, u8)>)> {
        let inside = inside().ok()?;
        let come = match self.communicator.come(&inside, source.0, source.1) {
            Ok(come) => come?,
            Err(error) => {
                // Nobody in particular is at fault, and nobody can be heard any more.
                self.living()
                    .for_each(|peer| drop(self.broken(peer, &error)));
                return None;
            }
        };
        let from = match self.within {
            true => NodeId::at(source.1 as usize / self.peers.nodes()),
            false => NodeId::at(come.from),
        };
        Some((from, self.receive(&inside, come, from, buffer)))
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut buffer) = try_locked(&self.polling) else {
            return 0;
        };
        if let Ok(inside) = inside() {
            self.flush(&inside);
        }
        let mut frames = 0;
        // One of each source: to look in vain for a second costs as much as the first, and whoever
        // polls comes again.
        for source in self.sources() {
            let Some((from, frame)) = self.next(source, &mut buffer) else {
                continue;
            };
            if self.peers.loss(from).is_some() {
                continue;
            }
            let broken = |how: &str| Loss::Broken(how.into());
            let loss = match frame {
                None => continue,
                Some((bytes, FRAME)) => {
                    frames += 1;
                    take(from, &buffer[..bytes]);
                    continue;
                }
                Some((_, GOODBYE)) => Loss::Left,
                Some((_, GIVEN_UP)) => broken("it gave this node up"),
                Some((_, NO_MORE)) => broken("its port is no more"),
                Some((_, kind)) => Loss::CutOff(format!("a frame of the kind {kind}")),
            };
            self.peers.lose(from, loss);
            locked(&self.lanes[from.index()]).clear();
        }
        if buffer.len() > MOST_KEPT {
            *buffer = Vec::new();
        }
        frames
    }

    /// Whether there is something to do for whoever would sleep.
    fn has_something_to_do(&self) -> bool {
        let Ok(inside) = inside() else { return false };
        let mut sources = self.sources();
        let come = |(from, tag)| self.communicator.has_come(&inside, from, tag) != Ok(false);
        if sources.any(come) {
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

    /// Says goodbye at the end of the process, and whether all others will as well.
    fn leave(&self) -> Finalise {
        self.close(LAST_WORDS);
        let left = |peer| matches!(self.peers.loss(peer), None | Some(Loss::Left));
        match self.peers.others().all(left) {
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
        match lane.send(&inside, shared.target(to), parts, FRAME, false) {
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
