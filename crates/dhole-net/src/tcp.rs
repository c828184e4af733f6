//! The port over TCP: one connection to each peer, frames behind their lengths.

#[cfg(all(feature = "processes", not(loom)))]
pub(crate) mod decoders;
mod frame;
mod inbound;
mod outbound;
mod stream;
#[cfg(all(test, not(loom)))]
mod tests;

use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::{lock, try_lock};
use dhole_model::{NodeId, Notify};
use rustix::event::{PollFlags, epoll};

pub use self::stream::Stream;

use self::frame::{GOODBYE, LARGEST};
use self::inbound::{Inbound, Polled};
use self::outbound::{Outbound, Sent};
use crate::doorbell::{Doorbell, timespec};
use crate::parker::{Park, Parker, Wakers};
use crate::peers::{CLOSING_NAP, Peers};
use crate::{LARGEST_FRAME, Loss, Offers, Owed, Port, SendError};

/// Up to so many streams are read without being asked first: with few peers a read that finds
/// nothing costs less than the question who has sent.
const READ_UNASKED: usize = 2;
/// Streams that one question can name; the others come with the next.
const NAMED_AT_ONCE: usize = 64;

/// Limits of a TCP port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpLimits {
    /// The largest frame, in bytes; at most 1 GiB. All nodes must say the same.
    pub largest: usize,
    /// Bytes kept back for each peer that takes none. One frame that the kernel has begun to take
    /// may exceed it.
    pub kept_back: usize,
}

impl Default for TcpLimits {
    fn default() -> Self {
        TcpLimits {
            largest: LARGEST_FRAME,
            kept_back: 1 << 20,
        }
    }
}

/// One connection to each peer. Reliable and ordered, as TCP is.
pub struct Tcp {
    peers: Peers,
    limits: TcpLimits,
    links: Vec<Option<Link>>,
    /// What names the streams that can be read.
    readable: OwnedFd,
    doorbell: Arc<Doorbell>,
    /// What has come from each peer: of the one thread that polls.
    inbound: Mutex<Vec<Inbound>>,
    /// A stream held more than one read took.
    more: AtomicBool,
}

struct Link {
    stream: Stream,
    outbound: Mutex<Outbound>,
    /// Something is kept back.
    backlog: AtomicBool,
    /// The goodbye is sent, or kept back, and nothing follows it.
    goodbye_said: AtomicBool,
    /// A frame was refused, and nobody has slept since: the next who does is woken by room.
    refused: AtomicBool,
    /// Bytes have come since somebody asked.
    heard: AtomicBool,
}

impl Tcp {
    /// The port of node `me`, over a connection to each of the other nodes: `streams[n]` leads to
    /// node `n`, and there is none to `me`. A peer without a stream is lost from the beginning.
    ///
    /// # Errors
    /// What the kernel says when it cannot make a socket ready or has no descriptor left.
    pub fn new(me: NodeId, streams: Vec<Option<Stream>>) -> io::Result<Tcp> {
        Tcp::with_limits(me, streams, TcpLimits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// As [`Tcp::new`].
    pub fn with_limits(
        me: NodeId,
        streams: Vec<Option<Stream>>,
        limits: TcpLimits,
    ) -> io::Result<Tcp> {
        let largest = limits.largest.min(LARGEST);
        let peers = Peers::new(me, streams.len(), largest);
        let readable = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut links = Vec::new();
        for (node, stream) in streams.into_iter().enumerate() {
            let link = match stream {
                Some(stream) if node != me.index() => {
                    stream.prepare()?;
                    let data = epoll::EventData::new_u64(node as u64);
                    epoll::add(&readable, &stream, data, epoll::EventFlags::IN)?;
                    Some(Link {
                        stream,
                        outbound: Mutex::default(),
                        backlog: AtomicBool::new(false),
                        goodbye_said: AtomicBool::new(false),
                        refused: AtomicBool::new(false),
                        heard: AtomicBool::new(false),
                    })
                }
                Some(_) => None,
                None => {
                    if node != me.index() {
                        let loss = Loss::Broken("there never was one".into());
                        peers.lose(NodeId::at(node), loss);
                    }
                    None
                }
            };
            links.push(link);
        }
        Ok(Tcp {
            inbound: Mutex::new(links.iter().map(|_| Inbound::new()).collect()),
            peers,
            limits: TcpLimits { largest, ..limits },
            links,
            readable,
            doorbell: Arc::new(Doorbell::new()?),
            // An encrypted stream may have been read further than what was taken of it.
            more: AtomicBool::new(true),
        })
    }

    /// The links to peers that are not lost.
    fn living(&self) -> impl Iterator<Item = (NodeId, &Link)> {
        self.peers.living(&self.links)
    }

    /// From now on `doorbell` is this port's too.
    #[cfg(not(loom))]
    pub(crate) fn share(&mut self, doorbell: &Arc<Doorbell>) {
        self.doorbell = doorbell.clone();
    }

    /// Notes what a send has left. Whoever sleeps lay down without knowing of it, and waits for
    /// room only when it lies down again.
    fn note(&self, link: &Link, keeps: bool, refused: bool) {
        let kept = link.backlog.swap(keeps, Ordering::AcqRel);
        let was_refused = refused && link.refused.swap(true, Ordering::AcqRel);
        if keeps && !kept || refused && !was_refused {
            self.doorbell.ring();
        }
    }

    fn send_kept(&self) {
        for (_, link) in self.living() {
            if link.backlog.load(Ordering::Relaxed)
                && let Some(mut outbound) = try_lock(&link.outbound)
            {
                outbound.flush(&link.stream);
                link.backlog.store(outbound.kept() > 0, Ordering::Relaxed);
            }
        }
    }

    fn read(
        &self,
        node: NodeId,
        inbound: &mut Inbound,
        take: &mut dyn FnMut(NodeId, &[u8]),
    ) -> Polled {
        let Some(link) = &self.links[node.index()] else {
            return Polled::default();
        };
        if self.peers.loss(node).is_some() {
            return Polled::default();
        }
        let take = &mut |frame: &[u8]| take(node, frame);
        let mut polled = inbound.poll(&link.stream, self.limits.largest, take);
        if polled.read {
            link.heard.store(true, Ordering::Relaxed);
        }
        if let Some(loss) = polled.loss.take() {
            *inbound = Inbound::new();
            self.give_up(node, loss);
        }
        polled
    }

    /// Asks the kernel who has sent.
    fn readable(&self) -> impl Iterator<Item = NodeId> {
        let mut events = [const { MaybeUninit::uninit() }; NAMED_AT_ONCE];
        let none = timespec(Duration::ZERO);
        let named = match epoll::wait(&self.readable, &mut events, Some(&none)) {
            Ok((named, _)) => named.iter().map(|event| event.data.u64()).collect(),
            Err(_) => Vec::new(),
        };
        named.into_iter().map(|node| NodeId::at(node as usize))
    }
}

impl Parker for Tcp {
    /// What comes makes the socket readable, however it was sent: every park is fine.
    fn prepare_park<'a>(
        &'a self,
        _: Park,
        at_most: Duration,
        wakers: &mut Wakers<'a>,
    ) -> Option<Duration> {
        if self.more.load(Ordering::Relaxed) {
            return None;
        }
        wakers.push((self.readable.as_fd(), PollFlags::IN));
        let waiting = self.living().filter(|(_, link)| {
            // Whoever was refused tries again after this park, and is refused again if it must.
            let refused = link.refused.swap(false, Ordering::AcqRel);
            refused || link.backlog.load(Ordering::Relaxed)
        });
        wakers.extend(waiting.map(|(_, link)| (link.stream.as_fd(), PollFlags::OUT)));
        Some(at_most)
    }

    fn finish_park(&self, _: Park) {}
}

impl Port for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
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
            largest: self.limits.largest,
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], _: Notify) -> Result<(), SendError> {
        let bytes = self.peers.admit(to, parts)?;
        let broken = |how: String| SendError::Lost {
            to,
            loss: Loss::Broken(how),
        };
        let Some(link) = &self.links[to.index()] else {
            return Err(broken("there is none".into()));
        };
        let mut outbound = lock(&link.outbound);
        let header = (bytes as u32).to_le_bytes();
        let sent = outbound.send(&link.stream, header, parts, bytes, self.limits.kept_back);
        self.note(link, outbound.kept() > 0, sent == Sent::Busy);
        match sent {
            Sent::Yes => Ok(()),
            Sent::Busy => Err(SendError::Busy { to }),
            Sent::Broken(how) => Err(broken(how)),
        }
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut inbound) = try_lock(&self.inbound) else {
            return 0;
        };
        self.send_kept();
        // Should `take` panic, what was read and not taken waits for no socket.
        let more_was_left = self.more.swap(true, Ordering::Relaxed);
        let (mut frames, mut more) = (0, false);
        let mut read = |node: NodeId| {
            let polled = self.read(node, &mut inbound[node.index()], take);
            frames += polled.frames;
            more |= polled.more;
        };
        if more_was_left || self.links.len() <= 1 + READ_UNASKED {
            self.living().for_each(|(node, _)| read(node));
        } else {
            self.readable().for_each(read);
        }
        self.more.store(more, Ordering::Relaxed);
        frames
    }

    fn park(&self, at_most: Duration) {
        if self.doorbell.heard() {
            return;
        }
        let mut wakers = Vec::new();
        if let Some(at_most) = self.prepare_park(Park::Fine, at_most, &mut wakers) {
            // The kernel wakes for what comes.
            self.doorbell.wait(wakers, at_most, || false);
        }
        self.finish_park(Park::Fine);
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
            // Out of the set: a stream at its end is readable for ever.
            let _ = epoll::delete(&self.readable, &link.stream);
            link.stream.shutdown(Shutdown::Both);
        }
    }

    fn flush(&self) {
        self.send_kept();
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        for (peer, link) in self.living() {
            if link.heard.swap(false, Ordering::Relaxed) {
                tell(peer);
            }
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.peers.tell(tell);
    }

    fn close(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let speaks = self.peers.close();
        for (_, link) in self.living().filter(|_| speaks) {
            let mut outbound = lock(&link.outbound);
            let goodbye = GOODBYE.to_le_bytes();
            // Whatever the limit, for it is the last.
            outbound.send(&link.stream, goodbye, &[], 0, usize::MAX);
            link.backlog.store(outbound.kept() > 0, Ordering::Relaxed);
            link.goodbye_said.store(true, Ordering::Release);
        }
        // Until the peers have ended their side too: a socket that is closed while something
        // unread is in it breaks the connection, and what the peer has not yet read is gone.
        let mut ended = vec![false; self.links.len()];
        loop {
            self.poll(&mut |_, _| ());
            for (node, link) in self.living() {
                // Another thread may be about to say it.
                let said = link.goodbye_said.load(Ordering::Acquire);
                if said && !ended[node.index()] && !link.backlog.load(Ordering::Relaxed) {
                    link.stream.shutdown(Shutdown::Write);
                    ended[node.index()] = true;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.living().next().is_none() {
                return;
            }
            self.park(left.min(CLOSING_NAP));
        }
    }
}
