//! The port through shared memory: a ring for each direction between each two processes of one
//! machine. See [`ring`](crate::ring) for how they meet in it.

mod barrier;
#[cfg(all(feature = "processes", not(loom)))]
pub(crate) mod decoders;
mod error;
mod inbound;
mod link;
mod outbound;
mod segment;
#[cfg(test)]
mod tests;

use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::{lock, try_lock};
use dhole_model::{NodeId, Notify};
use rustix::event::{PollFlags, epoll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

pub use self::error::ShmError;
pub use self::link::ShmLink;

use self::barrier::Barriers;
use self::inbound::{Behind, Inbound};
use self::outbound::{Outbound, PIECE, Sent};
use self::segment::Segment;
use crate::doorbell::{Doorbell, timespec};
use crate::parker::{Park, Parker, Wakers};
use crate::peers::{CLOSING_NAP, Peers};
use crate::ring::parked::ParkedThreads;
use crate::ring::{Impossible, LARGEST, Ring};
use crate::{Incoming, LARGEST_FRAME, Loss, Offers, Owed, Port, SendError};

/// Polls that find nothing before one looks whether a peer has died.
const LOOK_AFTER: u32 = 4_096;
/// Doorbells that one look can name; the others come with the next.
const NAMED_AT_ONCE: usize = 64;
/// A frame of at most so many bytes is short: written by few stores, one by one.
const SHORT: usize = 256;
/// How long a park may be when it cannot be made sure that the others see it.
const UNSURE: Duration = Duration::from_millis(1);

/// Memory shared with each peer. Reliable and ordered.
///
/// A frame is copied in by the sender and out by the receiver, to where it belongs
/// ([`poll_in_place`](Port::poll_in_place)); nobody looks at bytes that another process may still
/// write.
pub struct Shm {
    peers: Peers,
    largest: usize,
    links: Vec<Option<Link>>,
    /// What names the peers that have rung or are gone.
    doorbells: OwnedFd,
    doorbell: Arc<Doorbell>,
    parked: ParkedThreads,
    barriers: Barriers,
    polling: Mutex<Vec<Inbound>>,
    /// Polls in a row that found nothing.
    idle: AtomicU32,
}

struct Link {
    segment: Segment,
    stream: UnixStream,
    writes: usize,
    outbound: Mutex<Outbound>,
    /// Up to where was read from the peer, for whoever looks without reading.
    read_to: AtomicU64,
    /// A frame was refused, or its rest is kept: room is waited for.
    short_of_room: AtomicBool,
    /// The peer's end of the socket is closed: it will write nothing more.
    gone: AtomicBool,
    /// Up to where was read from the peer, and the peer had read, when somebody asked last who has
    /// shown a sign of life.
    heard_to: AtomicU64,
    taken_to: AtomicU64,
    /// What the peer has shown of its own memory, if both did.
    shown: Option<Vec<OwnedFd>>,
}

impl Link {
    #[inline]
    fn outgoing(&self) -> Ring<'_> {
        self.segment.ring(self.writes)
    }

    #[inline]
    fn incoming(&self) -> Ring<'_> {
        self.segment.ring(1 - self.writes)
    }

    /// Whether a poll has nothing to do here.
    #[inline]
    fn is_quiet(&self) -> bool {
        let read_to = self.read_to.load(Ordering::Relaxed);
        self.incoming().has_nothing_at(read_to)
            && !self.short_of_room.load(Ordering::Relaxed)
            && !self.gone.load(Ordering::Acquire)
    }

    /// Rings at the peer, which sleeps or is about to.
    #[cold]
    fn ring(&self) {
        // Where no byte fits, many wait to be read; where the peer is gone, nobody needs waking.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(&self.stream, &[0], flags);
    }
}

impl Shm {
    /// The port of node `me`, over a link to each of the other nodes: `links[n]` leads to node
    /// `n`, and there is none to `me`. A peer without a link is lost from the beginning.
    ///
    /// # Errors
    /// What the kernel says when no descriptor is left.
    pub fn new(me: NodeId, links: Vec<Option<ShmLink>>) -> io::Result<Shm> {
        Shm::with_largest(me, links, LARGEST_FRAME)
    }

    /// The same with another limit of a frame's bytes, at most 1 GiB. All nodes must say the same.
    ///
    /// # Errors
    /// As [`Shm::new`].
    pub fn with_largest(
        me: NodeId,
        links: Vec<Option<ShmLink>>,
        largest: usize,
    ) -> io::Result<Shm> {
        let largest = largest.min(LARGEST);
        let peers = Peers::new(me, links.len(), largest);
        let doorbells = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut own = Vec::new();
        for (node, link) in links.into_iter().enumerate() {
            if node == me.index() {
                own.push(None);
                continue;
            }
            let Some(link) = link else {
                peers.lose(NodeId::at(node), Loss::Broken("there never was one".into()));
                own.push(None);
                continue;
            };
            let data = epoll::EventData::new_u64(node as u64);
            epoll::add(&doorbells, &link.stream, data, epoll::EventFlags::IN)?;
            own.push(Some(Link {
                segment: link.segment,
                stream: link.stream,
                writes: link.writes,
                outbound: Mutex::new(Outbound::new()),
                read_to: AtomicU64::new(0),
                short_of_room: AtomicBool::new(false),
                gone: AtomicBool::new(false),
                heard_to: AtomicU64::new(0),
                taken_to: AtomicU64::new(0),
                shown: link.shown,
            }));
        }
        let inbound = own.iter().map(|_| Inbound::new()).collect();
        Ok(Shm {
            peers,
            largest,
            links: own,
            doorbells,
            doorbell: Arc::new(Doorbell::new()?),
            parked: ParkedThreads::new(),
            barriers: Barriers::new(),
            polling: Mutex::new(inbound),
            idle: AtomicU32::new(0),
        })
    }

    /// The links to peers that are not lost.
    fn living(&self) -> impl Iterator<Item = (NodeId, &Link)> {
        self.peers.living(&self.links)
    }

    fn incoming(&self) -> impl Iterator<Item = Ring<'_>> {
        self.living().map(|(_, link)| link.incoming())
    }

    /// After something was written for `link`'s peer: wakes it if it is parked at most so coarsely.
    #[inline]
    fn wake_reader(&self, link: &Link, at_most: Park) {
        self.barriers.light();
        if link.outgoing().notifies_reader(at_most) {
            link.ring();
        }
    }

    /// After something was read from `link`'s peer: wakes it if it is parked for want of room.
    #[inline]
    fn wake_writer(&self, link: &Link) {
        self.barriers.light();
        if link.incoming().notifies_writer() {
            link.ring();
        }
    }

    /// What ends a park here, for a port of which this one is a part.
    pub(crate) fn doorbell(&self) -> Arc<Doorbell> {
        self.doorbell.clone()
    }

    /// Notes that a send has found no room. A parked thread parked without knowing of it, and
    /// waits for room only when it parks again. A peer that is parked coarsely has much to read.
    #[cold]
    fn note_no_room(&self, link: &Link) {
        self.wake_reader(link, Park::Coarse);
        if !link.short_of_room.swap(true, Ordering::AcqRel) {
            self.doorbell.ring();
        }
    }

    fn cut_off(&self, node: NodeId, Impossible(what): Impossible) -> SendError {
        let loss = Loss::CutOff(what);
        self.give_up(node, loss.clone());
        SendError::Lost { to: node, loss }
    }

    /// Sends a frame that is long, or that something stands in the way of.
    #[cold]
    fn send_any(&self, to: NodeId, parts: &[&[u8]], at_most: Park) -> Result<(), SendError> {
        let bytes = self.peers.admit(to, parts)?;
        // Of what goes in pieces the first are read while the others are written.
        let at_most = if bytes > PIECE { Park::Coarse } else { at_most };
        let Some(link) = &self.links[to.index()] else {
            let loss = Loss::Broken("there is none".into());
            return Err(SendError::Lost { to, loss });
        };
        let mut outbound = lock(&link.outbound);
        let ring = link.outgoing();
        let sent = outbound.send(ring, parts, bytes, &mut || self.wake_reader(link, at_most));
        match sent {
            Ok(Sent::Yes) if !outbound.keeps() => Ok(()),
            Ok(Sent::Yes) => {
                self.note_no_room(link);
                Ok(())
            }
            Ok(Sent::Busy) => {
                self.note_no_room(link);
                Err(SendError::Busy { to })
            }
            Err(what) => Err(self.cut_off(to, what)),
        }
    }

    fn park_as(&self, park: Park, at_most: Duration, looks: Duration) {
        if self.doorbell.heard() {
            return;
        }
        let mut wakers = Vec::new();
        if let Some(at_most) = self.prepare_park(park, at_most, &mut wakers) {
            let look = || self.peek();
            let has_come = || self.owes_ring(park);
            self.doorbell
                .wait_looking(wakers, at_most, (looks, look), has_come);
        }
        self.finish_park(park);
    }

    /// Whether a frame has come whose sender rings, or has, for a thread that is parked so and has
    /// not looked since.
    pub(crate) fn owes_ring(&self, park: Park) -> bool {
        // A frame that is sent lazily does not wake a thread that is parked coarsely.
        park == Park::Fine && self.peek() && self.barriers.heavy()
    }

    /// Hears who has rung, and who is gone.
    fn look(&self) {
        let mut events = [const { MaybeUninit::uninit() }; NAMED_AT_ONCE];
        let none = timespec(Duration::ZERO);
        let Ok((named, _)) = epoll::wait(&self.doorbells, &mut events, Some(&none)) else {
            return;
        };
        for event in named {
            let node = NodeId::at(event.data.u64() as usize);
            let Some(link) = &self.links[node.index()] else {
                continue;
            };
            match recv(&link.stream, &mut [0u8; 64], RecvFlags::DONTWAIT) {
                Ok((rings, _)) if rings > 0 => {}
                Err(e) if e == rustix::io::Errno::AGAIN || e == rustix::io::Errno::INTR => {}
                _ => {
                    link.gone.store(true, Ordering::Release);
                    let _ = epoll::delete(&self.doorbells, &link.stream);
                }
            }
        }
    }

    /// A poll has found nothing: from time to time one looks who is gone. A thread that is parked
    /// looks itself when it wakes, and would sleep on without the rings that are taken here.
    fn idles(&self) {
        let idle = self.idle.load(Ordering::Relaxed) + 1;
        self.idle.store(idle % LOOK_AFTER, Ordering::Relaxed);
        if idle >= LOOK_AFTER {
            self.parked.unless_any(|| self.look());
        }
    }

    /// Takes what has come over a link; how many frames.
    fn poll_link(
        &self,
        node: NodeId,
        link: &Link,
        inbound: &mut Inbound,
        take: &mut dyn FnMut(NodeId, Incoming<'_>),
    ) -> usize {
        if link.short_of_room.load(Ordering::Relaxed) {
            self.send_kept(node, link);
            if self.peers.loss(node).is_some() {
                return 0;
            }
        }
        // Before the ring is read: what was written before the end is in it.
        let gone = link.gone.load(Ordering::Acquire);
        let ring = link.incoming();
        let brought = inbound.poll(ring, self.largest, &mut |frame| {
            // What `take` sends may show that the peer is to be cut off.
            if self.peers.loss(node).is_none() {
                take(node, frame);
            }
        });
        link.read_to.store(inbound.position(), Ordering::Relaxed);
        if brought.freed {
            self.wake_writer(link);
        }
        match brought.behind {
            Behind::Lost(loss) => self.give_up(node, *loss),
            Behind::Nothing if gone => {
                let how = match inbound.of_a_frame() {
                    0 => "it is gone".to_owned(),
                    bytes => format!("it is gone after {bytes} bytes of a frame"),
                };
                self.give_up(node, Loss::Broken(how));
            }
            Behind::Nothing | Behind::More => {}
        }
        brought.frames
    }

    /// Sends what was kept of a frame, as far as there is room now.
    #[cold]
    fn send_kept(&self, node: NodeId, link: &Link) {
        let Some(mut outbound) = try_lock(&link.outbound) else {
            return;
        };
        if outbound.keeps() {
            let wake = &mut || self.wake_reader(link, Park::Coarse);
            let flushed = outbound.flush(link.outgoing(), wake);
            link.short_of_room
                .store(outbound.keeps(), Ordering::Relaxed);
            if !outbound.keeps() && outbound.refused() {
                // There may be room for it now, of which no peer will tell.
                self.doorbell.ring();
            }
            if let Err(what) = flushed {
                self.cut_off(node, what);
            }
        }
    }

    /// Whether a park should not begin. The flags that tell the others of it are set.
    fn has_something_to_do(&self) -> bool {
        let Some(polling) = try_lock(&self.polling) else {
            return true;
        };
        let mut something = false;
        for (node, link) in self.living() {
            something |= link.gone.load(Ordering::Acquire)
                || !polling[node.index()].is_empty(link.incoming());
            if link.short_of_room.load(Ordering::Relaxed) {
                let outbound = lock(&link.outbound);
                if outbound.has_moved(link.outgoing()) {
                    something = true;
                    // Whoever was refused tries again now, and is refused again if it must.
                    link.short_of_room
                        .store(outbound.keeps(), Ordering::Relaxed);
                }
            }
        }
        something
    }
}

impl Parker for Shm {
    fn prepare_park<'a>(
        &'a self,
        park: Park,
        at_most: Duration,
        wakers: &mut Wakers<'a>,
    ) -> Option<Duration> {
        self.parked.prepare_park(park, self.incoming());
        for (_, link) in self.living() {
            if link.short_of_room.load(Ordering::Relaxed) {
                link.outgoing().writer_waits().store(1, Ordering::Relaxed);
            }
        }
        let at_most = match self.barriers.heavy() {
            true => at_most,
            false => at_most.min(UNSURE),
        };
        wakers.push((self.doorbells.as_fd(), PollFlags::IN));
        (!self.has_something_to_do()).then_some(at_most)
    }

    fn finish_park(&self, park: Park) {
        // Before others are asked to ring: a ring for a thread that is still parked is not taken
        // from it.
        self.look();
        if self.parked.finish_park(park, self.incoming()) {
            // What comes from now on wakes another. Where the barrier does not reach everybody, no
            // park is long.
            let _ = self.barriers.heavy();
        }
    }
}

impl Port for Shm {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn me(&self) -> NodeId {
        self.peers.me()
    }

    fn nodes(&self) -> usize {
        self.peers.nodes()
    }

    fn offers(&self) -> Offers {
        Offers {
            reliable: true,
            ordered: true,
            largest: self.largest,
        }
    }

    /// Sends a frame. Most are short, and nothing stands in their way.
    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        let at_most = match notify {
            Notify::Now => Park::Coarse,
            Notify::Lazy => Park::Fine,
        };
        let bytes = parts.iter().fold(0, |bytes, part| bytes + part.len());
        if bytes <= SHORT.min(self.largest)
            && let Some(Some(link)) = self.links.get(to.index())
            && self.peers.may_send(to)
            && let Some(mut outbound) = try_lock(&link.outbound)
            && outbound.send_on(link.outgoing(), parts, bytes)
        {
            drop(outbound);
            self.wake_reader(link, at_most);
            return Ok(());
        }
        self.send_any(to, parts, at_most)
    }

    fn notify(&self, to: NodeId) {
        if let Some(link) = self.links.get(to.index()).and_then(Option::as_ref) {
            self.wake_reader(link, Park::Coarse);
        }
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.poll_in_place(&mut |from, mut frame| take(from, frame.bytes()))
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        let (mut frames, mut polling) = (0, None);
        for (node, link) in self.links.iter().enumerate() {
            let Some(link) = link else {
                continue;
            };
            // Most looks are in vain, and take no lock.
            if link.is_quiet() || self.peers.loss(NodeId::at(node)).is_some() {
                continue;
            }
            if polling.is_none() {
                polling = try_lock(&self.polling);
            }
            let Some(polling) = &mut polling else {
                return 0;
            };
            frames += self.poll_link(NodeId::at(node), link, &mut polling[node], take);
        }
        drop(polling);
        match frames {
            0 => self.idles(),
            _ => self.idle.store(0, Ordering::Relaxed),
        }
        frames
    }

    #[inline]
    fn peek(&self) -> bool {
        self.living().any(|(_, link)| {
            let read_to = link.read_to.load(Ordering::Relaxed);
            !link.incoming().has_nothing_at(read_to)
        })
    }

    fn can_peek(&self) -> bool {
        true
    }

    fn shown_by(&self, peer: NodeId) -> Option<&[OwnedFd]> {
        let link = self.links.get(peer.index())?.as_ref()?;
        link.shown.as_deref()
    }

    fn park(&self, at_most: Duration) {
        self.park_as(Park::Fine, at_most, Duration::MAX);
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        self.park_as(Park::Coarse, at_most, looks);
    }

    fn unpark(&self) {
        self.doorbell.ring();
    }

    fn owe(&self, owed: Owed) {
        self.doorbell.owe(owed);
    }

    fn lost_doorbells(&self) -> u64 {
        self.doorbell.lost()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        if self.peers.lose(peer, loss)
            && let Some(link) = &self.links[peer.index()]
        {
            let _ = epoll::delete(&self.doorbells, &link.stream);
            // The peer may be alive; then this is how it learns of it.
            let _ = link.stream.shutdown(Shutdown::Both);
        }
    }

    fn flush(&self) {
        for (node, link) in self.living() {
            if link.short_of_room.load(Ordering::Relaxed) {
                self.send_kept(node, link);
            }
        }
    }

    /// A peer writes and reads the memory itself: either is a sign of life.
    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        for (peer, link) in self.living() {
            let read_to = link.read_to.load(Ordering::Relaxed);
            let taken_to = link.outgoing().read_up_to();
            let has_written = link.heard_to.swap(read_to, Ordering::Relaxed) != read_to;
            let has_taken = link.taken_to.swap(taken_to, Ordering::Relaxed) != taken_to;
            if has_written || has_taken {
                tell(peer);
            }
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.peers.tell(tell);
    }

    fn close(&self, at_most: Duration) {
        self.peers.close();
        let until = Instant::now() + at_most;
        loop {
            let mut unsaid = false;
            for (node, link) in self.living() {
                let mut outbound = lock(&link.outbound);
                match outbound.goodbye(link.outgoing(), &mut || {
                    self.wake_reader(link, Park::Coarse)
                }) {
                    Ok(true) => {}
                    Ok(false) => {
                        unsaid = true;
                        link.short_of_room.store(true, Ordering::Relaxed);
                    }
                    Err(what) => drop(self.cut_off(node, what)),
                }
            }
            // What was said stays in the memory for as long as the peer has it.
            let left = until.saturating_duration_since(Instant::now());
            if !unsaid || left.is_zero() {
                return;
            }
            if self.poll(&mut |_, _| ()) == 0 {
                self.park(left.min(CLOSING_NAP));
            }
        }
    }
}
