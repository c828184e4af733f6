//! How all processes of a cluster meet: everybody connects to node 0, which tells everybody where the
//! others are; then each connects to those of lower numbers. When all are connected with all, node 0 lets
//! them go. One thread, one loop, one deadline.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags};

use super::address;
use super::error::{HandshakeError, JoinError, Refused};
use super::frame::{Body, Kind, Reader, put_run};
use super::handshake::{Binding, Handshake, Met, Nonce, Party, Session};
use super::poll;
use super::secret::Secret;
use super::terms::Terms;
use super::wire::{Came, Wire};
use crate::tcp::Stream;

/// Connections beyond those of the cluster that are heard at one time.
const MOST_STRANGERS: usize = 64;
/// How long a handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// How long the last words of a node that cannot join may take.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(200);
/// Between two tries to connect.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

const NODE_0: NodeId = NodeId(0);

/// A node on its way into its cluster.
pub(crate) struct Meeting<'a> {
    me: NodeId,
    nodes: usize,
    secret: &'a Secret,
    /// The name by which others reach this node, where it is not the address it sees itself.
    host: Option<&'a str>,
    terms: Terms,
    began: Instant,
    deadline: Instant,
    listener: Option<TcpListener>,
    /// Who has connected, or is being connected to, and has not proved anything yet.
    waiting: Vec<Waiting>,
    links: Vec<Option<Link>>,
    refused: Refused,
    /// Where everybody is, when node 0 has said it.
    table: Option<Vec<String>>,
    /// Who is connected with all, as node 0 hears it.
    ready: BTreeSet<NodeId>,
    /// Node 0 says that all are.
    go: bool,
}

/// A connection whose other end has not proved who it is.
struct Waiting {
    wire: Wire,
    handshake: Handshake,
    nonce: Nonce,
    since: Instant,
    /// Whom this node connects to.
    wanted: Option<NodeId>,
}

/// A connection with a node that proved who it is.
struct Link {
    wire: Wire,
    session: Session,
    reader: Reader,
    /// Where it listens.
    address: String,
}

impl<'a> Meeting<'a> {
    pub fn new(
        me: NodeId,
        secret: &'a Secret,
        host: Option<&'a str>,
        terms: Terms,
        within: Duration,
    ) -> Meeting<'a> {
        let began = Instant::now();
        Meeting {
            me,
            nodes: terms.nodes,
            secret,
            host,
            began,
            deadline: began + within,
            listener: None,
            waiting: Vec::new(),
            links: (0..terms.nodes).map(|_| None).collect(),
            refused: Refused::default(),
            table: None,
            ready: BTreeSet::new(),
            go: false,
            terms,
        }
    }

    /// Node 0's part: `listener` is where all meet.
    pub fn receive(mut self, listener: TcpListener) -> Result<Vec<Option<Stream>>, JoinError> {
        self.listen(listener)?;
        let ended = self.gather();
        self.end(ended)
    }

    fn gather(&mut self) -> Result<(), JoinError> {
        self.turn_until(|m| m.missing().is_empty())?;
        let mut table = Vec::new();
        for link in &self.links {
            let address = link.as_ref().map_or("", |link| &link.address);
            put_run(address.as_bytes(), &mut table);
        }
        self.tell_all(Kind::Table, &table)?;
        self.turn_until(|m| m.ready.len() + 1 == m.nodes)?;
        self.tell_all(Kind::Go, &[])
    }

    /// The part of all others: `meeting` is where node 0 listens.
    pub fn attend(mut self, meeting: &str) -> Result<Vec<Option<Stream>>, JoinError> {
        let ended = self.go_there(meeting).and_then(|()| self.spread());
        self.end(ended)
    }

    /// Connects to node 0, however long it takes to come to life.
    fn go_there(&mut self, meeting: &str) -> Result<(), JoinError> {
        loop {
            let (stream, address) = self.connect(NODE_0, meeting)?;
            if self.listener.is_none() {
                // Whoever can reach node 0 can reach this node where it reaches node 0.
                let here = stream.local_addr().map_err(|e| self.system(e))?;
                let here = SocketAddr::new(here.ip(), 0);
                let listener = TcpListener::bind(here).map_err(|cause| JoinError::Listen {
                    me: self.me,
                    address: here.to_string(),
                    cause,
                })?;
                self.listen(listener)?;
            }
            self.greet(NODE_0, stream, address)?;
            self.turn_until(|m| m.links[0].is_some() || m.waiting_for(NODE_0).is_none())?;
            if self.links[0].is_some() {
                return self.turn_until(|m| m.table.is_some());
            }
        }
    }

    /// Connects to the nodes below, lets those above connect, and waits for all to have done so.
    fn spread(&mut self) -> Result<(), JoinError> {
        let table = self.table.take().unwrap_or_default();
        while !self.missing().is_empty() {
            for peer in (1..self.me.index()).map(NodeId::at) {
                if self.links[peer.index()].is_none() && self.waiting_for(peer).is_none() {
                    let (stream, address) = self.connect(peer, &table[peer.index()])?;
                    self.greet(peer, stream, address)?;
                }
            }
            let lost_one = |m: &Meeting<'_>| {
                let mut below = (1..m.me.index()).map(NodeId::at);
                below.any(|p| m.links[p.index()].is_none() && m.waiting_for(p).is_none())
            };
            self.turn_until(|m| m.missing().is_empty() || lost_one(m))?;
        }
        self.tell(NODE_0, Kind::Ready, &[])?;
        self.turn_until(|m| m.go)
    }

    fn listen(&mut self, listener: TcpListener) -> Result<(), JoinError> {
        let at = listener.local_addr();
        let ready = at.and_then(|at| listener.set_nonblocking(true).map(|()| at));
        let at = ready.map_err(|e| self.system(e))?;
        self.terms.address = match self.host {
            Some(host) => address::with_port(host, at),
            None => at.to_string(),
        };
        self.listener = Some(listener);
        Ok(())
    }

    /// A connection to where `peer` listens; tries again until the deadline.
    fn connect(&self, peer: NodeId, at: &str) -> Result<(TcpStream, SocketAddr), JoinError> {
        loop {
            let left = self.left();
            let cause = match address::connect(at, left) {
                Ok(connected) => return Ok(connected),
                Err(cause) => cause,
            };
            if self.left().is_zero() || cause.kind() == ErrorKind::InvalidInput {
                return Err(JoinError::Connect {
                    me: self.me,
                    peer,
                    address: at.to_owned(),
                    waited: self.began.elapsed(),
                    cause,
                });
            }
            std::thread::sleep(BETWEEN_TRIES.min(self.left()));
        }
    }

    fn greet(
        &mut self,
        peer: NodeId,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Result<(), JoinError> {
        let mut wire = self.wire(stream, address)?;
        let nonce = self.nonce()?;
        let party = self.party(nonce);
        let handshake = Handshake::connect(&party, peer, &mut wire.out);
        self.waiting.push(Waiting {
            wire,
            handshake,
            nonce,
            since: Instant::now(),
            wanted: Some(peer),
        });
        Ok(())
    }

    fn wire(&self, stream: TcpStream, address: SocketAddr) -> Result<Wire, JoinError> {
        let stream = Stream::Plain(stream);
        stream.prepare().map_err(|e| self.system(e))?;
        Ok(Wire::new(stream, address))
    }

    fn nonce(&self) -> Result<Nonce, JoinError> {
        let mut nonce = [0; 32];
        let filled = SystemRandom::new().fill(&mut nonce);
        filled
            .map_err(|_| self.system(std::io::Error::other("the system has no random numbers")))?;
        Ok(nonce)
    }

    fn party(&self, nonce: Nonce) -> Party<'_> {
        Party {
            me: self.me,
            secret: self.secret,
            terms: &self.terms,
            binding: Binding::Plain,
            nonce,
        }
    }

    fn missing(&self) -> Vec<NodeId> {
        let all = self.links.iter().enumerate();
        all.filter(|(i, link)| link.is_none() && *i != self.me.index())
            .map(|(i, _)| NodeId::at(i))
            .collect()
    }

    fn waiting_for(&self, peer: NodeId) -> Option<&Waiting> {
        self.waiting.iter().find(|w| w.wanted == Some(peer))
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn system(&self, cause: std::io::Error) -> JoinError {
        JoinError::System {
            me: self.me,
            doing: "making a socket ready",
            cause,
        }
    }

    /// Goes on until `enough`.
    fn turn_until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<(), JoinError> {
        while !enough(self) {
            if self.left().is_zero() {
                return Err(self.too_late());
            }
            self.turn()?;
        }
        Ok(())
    }

    fn too_late(&mut self) -> JoinError {
        let mut missing = self.missing();
        if missing.is_empty() {
            // All have come here, but not all to each other.
            let not_ready = |n: &NodeId| match self.me {
                NODE_0 => *n != NODE_0 && !self.ready.contains(n),
                _ => *n == NODE_0,
            };
            missing = (0..self.nodes).map(NodeId::at).filter(not_ready).collect();
        }
        JoinError::Missing {
            me: self.me,
            missing,
            waited: self.began.elapsed(),
            refused: std::mem::take(&mut self.refused),
        }
    }

    /// Waits until something happens, and deals with it.
    fn turn(&mut self) -> Result<(), JoinError> {
        let soonest = self
            .waiting
            .iter()
            .map(|w| w.since + HANDSHAKE_WITHIN)
            .min();
        let until = soonest.map_or(self.deadline, |soonest| soonest.min(self.deadline));
        self.sleep(until.saturating_duration_since(Instant::now()))?;
        self.accept()?;
        self.hear_waiting()?;
        self.hear_links()
    }

    fn sleep(&self, at_most: Duration) -> Result<(), JoinError> {
        let mut sockets = Vec::new();
        if let Some(listener) = &self.listener {
            sockets.push(PollFd::new(listener, PollFlags::IN));
        }
        for waiting in &self.waiting {
            let flags = match waiting.wire.out.is_empty() {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            sockets.push(PollFd::new(&waiting.wire.stream, flags));
        }
        for link in self.links.iter().take(self.heard_links()).flatten() {
            sockets.push(PollFd::new(&link.wire.stream, PollFlags::IN));
        }
        poll::any(&mut sockets, at_most).map_err(|e| self.system(e))
    }

    /// How many links are listened to, from node 0's on. Other nodes than node 0 say nothing to each other
    /// before the port does, whose frames are not to be read here.
    fn heard_links(&self) -> usize {
        match self.me {
            NODE_0 => self.nodes,
            _ if self.go => 0,
            _ => 1,
        }
    }

    fn accept(&mut self) -> Result<(), JoinError> {
        // So many at a time, so that a flood of connections leaves time for those that are there.
        const AT_A_TIME: usize = 16;
        for _ in 0..AT_A_TIME {
            let Some(listener) = &self.listener else {
                break;
            };
            match listener.accept() {
                Ok((stream, address)) => self.let_in(stream, address)?,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                // No descriptor is left, say: one of those that wait makes way.
                Err(_) => {
                    self.make_way(0);
                    break;
                }
            }
        }
        Ok(())
    }

    fn let_in(&mut self, stream: TcpStream, address: SocketAddr) -> Result<(), JoinError> {
        self.make_way(MOST_STRANGERS + 2 * self.nodes);
        let Ok(wire) = self.wire(stream, address) else {
            return Ok(());
        };
        let nonce = self.nonce()?;
        self.waiting.push(Waiting {
            wire,
            handshake: Handshake::listen(),
            nonce,
            since: Instant::now(),
            wanted: None,
        });
        Ok(())
    }

    /// Drops the stranger that has waited longest, if more than `most` wait; first one that said nothing.
    fn make_way(&mut self, most: usize) {
        if self.waiting.len() < most {
            return;
        }
        let strangers = self.waiting.iter().enumerate();
        let oldest = strangers
            .filter(|(_, w)| w.wanted.is_none())
            .min_by_key(|(_, w)| (w.handshake.peer().is_some(), w.since))
            .map(|(i, _)| i);
        if let Some(oldest) = oldest {
            let dropped = self.waiting.swap_remove(oldest);
            self.refuse(dropped.wire.address, HandshakeError::Crowded);
        }
    }

    fn refuse(&mut self, address: SocketAddr, cause: HandshakeError) {
        self.refused.connections += 1;
        self.refused.last = Some((address, Box::new(cause)));
    }

    fn hear_waiting(&mut self) -> Result<(), JoinError> {
        for mut waiting in std::mem::take(&mut self.waiting) {
            match self.hear(&mut waiting) {
                Ok(None) => self.waiting.push(waiting),
                Ok(Some(met)) => self.meet(waiting.wire, met)?,
                Err(cause) => self.give_up(waiting, cause)?,
            }
        }
        Ok(())
    }

    /// Takes what has come over one connection.
    fn hear(&self, waiting: &mut Waiting) -> Result<Option<Met>, HandshakeError> {
        let mut buffer = [0; 4096];
        let expected = |said: NodeId| {
            said > self.me && self.links.get(said.index()).is_some_and(Option::is_none)
        };
        waiting.wire.flush()?;
        loop {
            let wants = waiting.handshake.wants().min(buffer.len());
            let bytes = match waiting.wire.read(&mut buffer[..wants])? {
                Came::Bytes(bytes) => bytes,
                Came::End => return Err(waiting.handshake.ended()),
                Came::Nothing => {
                    let waited = waiting.since.elapsed();
                    return match waited < HANDSHAKE_WITHIN {
                        true => Ok(None),
                        false => Err(HandshakeError::Silent { waited }),
                    };
                }
            };
            let party = self.party(waiting.nonce);
            let out = &mut waiting.wire.out;
            let met = waiting.handshake.take(&party, &expected, bytes, out);
            let flushed = waiting.wire.flush();
            if let Some(met) = met? {
                return Ok(Some(met));
            }
            flushed?;
        }
    }

    fn meet(&mut self, mut wire: Wire, met: Met) -> Result<(), JoinError> {
        // A few hundred bytes at most, for which a fresh connection has room.
        if let Err(cause) = wire.flush_until(Instant::now() + LAST_WORDS_WITHIN) {
            self.refuse(wire.address, cause);
            return Ok(());
        }
        let place = &mut self.links[met.peer.index()];
        if place.is_some() {
            // Two that both proved to be this node: the second came while the first was heard.
            let said = met.peer;
            self.refuse(wire.address, HandshakeError::Unexpected { said });
            return Ok(());
        }
        *place = Some(Link {
            wire,
            session: met.session,
            reader: Reader::default(),
            address: met.address,
        });
        Ok(())
    }

    /// A handshake failed. Of a stranger that is nothing to end for; a node that knows the secret and
    /// does not fit is, and so is one that this node itself looks for.
    fn give_up(&mut self, waiting: Waiting, cause: HandshakeError) -> Result<(), JoinError> {
        use HandshakeError as E;
        let (address, peer) = (waiting.wire.address, waiting.handshake.peer());
        waiting.wire.part();
        let misfit = matches!(
            cause,
            E::Version { .. } | E::Build { .. } | E::Nodes { .. } | E::Setting { .. }
        );
        let passing = matches!(
            cause,
            E::NoWord | E::LeftEarly | E::HalfFrame { .. } | E::Broken(_)
        );
        match peer {
            Some(peer) if misfit || waiting.wanted.is_some() && !passing => {
                Err(JoinError::Handshake {
                    me: self.me,
                    peer,
                    address,
                    cause: Box::new(cause),
                })
            }
            _ => {
                if waiting.wanted.is_some() {
                    // The listener made way for others, say: it is tried again.
                    std::thread::sleep(BETWEEN_TRIES.min(self.left()));
                }
                self.refuse(address, cause);
                Ok(())
            }
        }
    }

    fn hear_links(&mut self) -> Result<(), JoinError> {
        for peer in (0..self.heard_links()).map(NodeId::at) {
            // Behind `Go` come frames of the port.
            while !self.go {
                let Some((kind, body)) = self.hear_link(peer)? else {
                    break;
                };
                self.told(peer, kind, &body)?;
            }
        }
        Ok(())
    }

    /// The next message of a node that has proved who it is.
    fn hear_link(&mut self, peer: NodeId) -> Result<Option<(Kind, Vec<u8>)>, JoinError> {
        let me = self.me;
        let Some(link) = &mut self.links[peer.index()] else {
            return Ok(None);
        };
        let lost = |cause: HandshakeError| JoinError::Lost {
            me,
            peer,
            cause: cause.to_string(),
        };
        let awaited: &[Kind] = match me {
            NODE_0 => &[Kind::Ready, Kind::Failed],
            _ => &[Kind::Table, Kind::Go, Kind::Failed],
        };
        let mut buffer = [0; 4096];
        loop {
            let wants = link.reader.wants().min(buffer.len());
            match link.wire.read(&mut buffer[..wants]).map_err(lost)? {
                Came::Nothing => return Ok(None),
                Came::End => return Err(lost(link.reader.ended(false))),
                Came::Bytes(bytes) => {
                    let frame = link.reader.take(bytes, awaited).map_err(lost)?;
                    if let Some((kind, body)) = frame {
                        let body = link.session.open(kind, &body).map_err(lost)?.to_vec();
                        return Ok(Some((kind, body)));
                    }
                }
            }
        }
    }

    fn told(&mut self, peer: NodeId, kind: Kind, body: &[u8]) -> Result<(), JoinError> {
        let me = self.me;
        let malformed = |cause: HandshakeError| JoinError::Lost {
            me,
            peer,
            cause: cause.to_string(),
        };
        match kind {
            Kind::Ready => drop(self.ready.insert(peer)),
            Kind::Go => self.go = true,
            Kind::Failed => {
                let mut body = Body(body);
                let failed = NodeId(body.u16().map_err(malformed)?);
                return Err(JoinError::Elsewhere {
                    peer: failed,
                    said: body.text().map_err(malformed)?.to_owned(),
                });
            }
            _ => {
                let mut body = Body(body);
                let mut table = Vec::with_capacity(self.nodes);
                for _ in 0..self.nodes {
                    table.push(body.text().map_err(malformed)?.to_owned());
                }
                body.end().map_err(malformed)?;
                self.table = Some(table);
            }
        }
        Ok(())
    }

    fn tell(&mut self, peer: NodeId, kind: Kind, body: &[u8]) -> Result<(), JoinError> {
        let (me, until) = (self.me, self.deadline);
        let Some(link) = &mut self.links[peer.index()] else {
            return Ok(());
        };
        link.session.seal(kind, body, &mut link.wire.out);
        let flushed = link.wire.flush_until(until);
        flushed.map_err(|cause| JoinError::Lost {
            me,
            peer,
            cause: cause.to_string(),
        })
    }

    fn tell_all(&mut self, kind: Kind, body: &[u8]) -> Result<(), JoinError> {
        for peer in (0..self.nodes).map(NodeId::at) {
            self.tell(peer, kind, body)?;
        }
        Ok(())
    }

    /// The streams of those who joined; or else the others hear why this node did not.
    fn end(mut self, ended: Result<(), JoinError>) -> Result<Vec<Option<Stream>>, JoinError> {
        let Err(error) = ended else {
            let links = self.links.into_iter();
            return Ok(links.map(|link| link.map(|l| l.wire.stream)).collect());
        };
        let (failed, said) = match &error {
            JoinError::Elsewhere { peer, said } => (*peer, said.clone()),
            error => (self.me, error.to_string()),
        };
        self.deadline = Instant::now() + LAST_WORDS_WITHIN;
        let mut body = failed.0.to_le_bytes().to_vec();
        put_run(
            &said.as_bytes()[..said.floor_char_boundary(2048)],
            &mut body,
        );
        for peer in (0..self.heard_links()).map(NodeId::at) {
            if self.links[peer.index()].is_some() {
                // Those that cannot be told learn it from the connection that ends.
                let _ = self.tell(peer, Kind::Failed, &body);
            }
        }
        Err(error)
    }
}
