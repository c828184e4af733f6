//! The rendezvous of a cluster's processes. Every node connects to node 0, which tells it where the
//! others are. Then each node connects to those of lower numbers. When all are connected with all,
//! node 0 lets them go. One thread, one loop, one deadline.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use rustix::event::{PollFd, PollFlags};

use super::accept_queue::AcceptQueue;
use super::address;
use super::channel::{Channel, Encryption, Listener};
use super::error::{HandshakeError, JoinError};
use super::frame::{Body, Kind, Reader, put_run};
use super::handshake::{Met, Session, Use};
use super::mesh::Mesh;
use super::places::{self, Places};
use super::poll;
use super::secret::Secret;
use super::terms::Terms;
use super::wire::{Received, Wire};
use dhole_net::launcher::Launcher;

/// How long a node that cannot join may take to say so.
const FAREWELL_WITHIN: Duration = Duration::from_millis(200);
/// Between two tries to connect: a listener that is not there yet tells nobody when it is.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// How long one try may take.
const ONE_TRY: Duration = Duration::from_secs(2);

const NODE_0: NodeId = NodeId(0);

/// What the port needs of the connections between two nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// TCP.
    Tcp,
    /// Unix sockets within one machine.
    Near,
    /// Those within a machine, TCP between machines.
    Both,
}

/// A node on its way into its cluster.
pub(crate) struct Rendezvous<'a> {
    me: NodeId,
    nodes: usize,
    reach: Reach,
    /// The name by which others reach this node, where it is not the address it sees itself.
    host: Option<&'a str>,
    /// The zone of this machine in which it has found node 0.
    zone: u32,
    accept_queue: AcceptQueue<'a>,
    began: Instant,
    deadline: Instant,
    /// Node 0 has one with each other node, each other node with node 0.
    guides: Vec<Option<Guide>>,
    channels: Vec<Option<Channel>>,
    /// Where everybody is, when node 0 has said it.
    table: Option<Vec<Places>>,
    /// Who is connected with all, as node 0 hears it.
    ready: BTreeSet<NodeId>,
    /// Node 0 says that all are.
    go: bool,
    /// Who says which nodes will never come, as long as there is somebody.
    launcher: Option<&'a Launcher>,
}

/// A connection over which node 0 tells another where everybody is.
struct Guide {
    wire: Wire,
    session: Session,
    reader: Reader,
    places: Places,
}

impl<'a> Rendezvous<'a> {
    pub fn new(
        me: NodeId,
        secret: &'a Secret,
        host: Option<&'a str>,
        reach: Reach,
        encryption: Encryption,
        terms: Terms,
        within: Duration,
    ) -> Rendezvous<'a> {
        let (began, nodes) = (Instant::now(), terms.nodes);
        Rendezvous {
            me,
            nodes,
            reach,
            host,
            zone: 0,
            accept_queue: AcceptQueue::new(me, secret, encryption, terms),
            began,
            deadline: began + within,
            guides: (0..nodes).map(|_| None).collect(),
            channels: (0..nodes).map(|_| None).collect(),
            table: None,
            ready: BTreeSet::new(),
            go: false,
            launcher: None,
        }
    }

    /// Does not wait for those of which the launcher says that they are gone.
    pub fn listening_to(mut self, launcher: Option<&'a Launcher>) -> Rendezvous<'a> {
        self.launcher = launcher;
        self
    }

    /// Node 0's part: `listener` is where all meet.
    pub fn receive(mut self, listener: TcpListener) -> Result<Mesh, JoinError> {
        let ended = self.gather(listener);
        self.end(ended)
    }

    fn gather(&mut self, listener: TcpListener) -> Result<(), JoinError> {
        let listener = Listener::tcp(listener).map_err(|e| self.system(e))?;
        self.accept_queue.listeners.push(listener);
        // Who has found the meeting point finds node 0 there for the port's connection too.
        self.listen(None)?;
        self.turn_until(|m| m.missing().is_empty())?;
        let mut table = Vec::new();
        for guide in &self.guides {
            let places = guide
                .as_ref()
                .map_or(&self.accept_queue.terms.places, |g| &g.places);
            places.write(&mut table);
        }
        self.tell_all(Kind::Table, &table)?;
        self.turn_until(|m| m.is_connected() && m.ready.len() + 1 == m.nodes)?;
        self.tell_all(Kind::Go, &[])
    }

    /// The part of all others: `meeting` is where node 0 listens.
    pub fn attend(mut self, meeting: &str) -> Result<Mesh, JoinError> {
        let ended = self.go_there(meeting).and_then(|()| self.spread(meeting));
        self.end(ended)
    }

    /// Connects to node 0, however long it takes to come to life.
    fn go_there(&mut self, meeting: &str) -> Result<(), JoinError> {
        loop {
            let (stream, address) = self.connect_over_tcp(NODE_0, meeting)?;
            if self.accept_queue.listeners.is_empty() {
                // Whoever can reach node 0 can reach this node where it reaches node 0.
                let here = stream.local_addr().map_err(|e| self.system(e))?;
                self.zone = address::zone(here);
                self.listen(Some(here))?;
            }
            let channel = Channel::tcp(stream).map_err(|e| self.system(e))?;
            self.accept_queue
                .greet(NODE_0, Use::Rendezvous, channel, address.to_string())?;
            let greeting = |m: &Self| m.accept_queue.is_greeting(NODE_0, Use::Rendezvous);
            self.turn_until(|m| m.guides[0].is_some() || !greeting(m))?;
            if self.guides[0].is_some() {
                return self.turn_until(|m| m.table.is_some());
            }
            self.rest()?;
        }
    }

    /// Connects to the nodes below, lets those above connect, and waits for all to have done so.
    fn spread(&mut self, meeting: &str) -> Result<(), JoinError> {
        let mut table = self.table.take().unwrap_or_default();
        if let Some(first) = table.first_mut() {
            // Where this node has found it, and not where it believes to be.
            first.tcp = meeting.to_owned();
        }
        let lost = |m: &Self, peer: NodeId| {
            m.channels[peer.index()].is_none() && !m.accept_queue.is_greeting(peer, Use::Port)
        };
        let below = || (0..self.me.index()).map(NodeId::at);
        let below: Vec<NodeId> = below().collect();
        loop {
            for peer in &below {
                if lost(self, *peer) {
                    self.reach_out(*peer, &table[peer.index()])?;
                }
            }
            self.turn_until(|m| m.is_connected() || below.iter().any(|p| lost(m, *p)))?;
            if self.is_connected() {
                break;
            }
            self.rest()?;
        }
        self.tell(NODE_0, Kind::Ready, &[])?;
        self.turn_until(|m| m.go)
    }

    /// Connects to a node as the port needs it.
    fn reach_out(&mut self, peer: NodeId, places: &Places) -> Result<(), JoinError> {
        let near = self.reach != Reach::Tcp && places.near(&self.accept_queue.terms.places);
        if self.reach == Reach::Near && !near {
            let me = self.me;
            return Err(JoinError::Far { me, peer });
        }
        let (channel, address) = match near {
            true => {
                let unix = |name: &str, _| Channel::unix(name);
                let channel = self.connect(peer, &places.unix, unix)?;
                (channel, format!("@{}", places.unix))
            }
            false => {
                let (stream, address) = self.connect_over_tcp(peer, &places.tcp)?;
                let channel = Channel::tcp(stream).map_err(|e| self.system(e))?;
                (channel, address.to_string())
            }
        };
        self.accept_queue.greet(peer, Use::Port, channel, address)
    }

    /// Listens for the nodes of higher numbers, at this address if it is over TCP.
    fn listen(&mut self, here: Option<SocketAddr>) -> Result<(), JoinError> {
        let mut own = Places {
            machine: places::machine(),
            ..Places::default()
        };
        let me = self.me;
        let failed = |address: String| move |cause| JoinError::Listen { me, address, cause };
        if let (Reach::Tcp | Reach::Both, Some(mut at)) = (self.reach, here) {
            at.set_port(0);
            let listener = TcpListener::bind(at).map_err(failed(at.to_string()))?;
            let at = listener.local_addr().map_err(|e| self.system(e))?;
            own.tcp = match self.host {
                Some(host) => address::with_port(host, at),
                None => address::without_zone(at).to_string(),
            };
            let listener = Listener::tcp(listener).map_err(|e| self.system(e))?;
            self.accept_queue.listeners.push(listener);
        }
        if self.reach != Reach::Tcp {
            own.unix = self.accept_queue.random_name()?;
            let listener = Listener::unix(&own.unix);
            let listener = listener.map_err(failed(format!("@{}", own.unix)))?;
            self.accept_queue.listeners.push(listener);
        }
        self.accept_queue.terms.places = own;
        Ok(())
    }

    fn connect_over_tcp(
        &mut self,
        peer: NodeId,
        at: &str,
    ) -> Result<(TcpStream, SocketAddr), JoinError> {
        let zone = self.zone;
        let connect = |at: &str, within| address::connect(at, zone, within);
        self.connect(peer, at, connect)
    }

    /// Connects to where `peer` listens; tries again until the deadline.
    fn connect<C>(
        &mut self,
        peer: NodeId,
        at: &str,
        connect: impl Fn(&str, Duration) -> io::Result<C>,
    ) -> Result<C, JoinError> {
        loop {
            let cause = match connect(at, self.left().min(ONE_TRY)) {
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
            self.rest()?;
        }
    }

    /// Who has not come to node 0, or whether node 0 was not found.
    fn missing(&self) -> Vec<NodeId> {
        let wanted = match self.me {
            NODE_0 => 1..self.nodes,
            _ => 0..1,
        };
        let wanted = wanted.map(NodeId::at);
        wanted
            .filter(|n| self.guides[n.index()].is_none())
            .collect()
    }

    /// Who is not connected with this node.
    fn unconnected(&self) -> Vec<NodeId> {
        let others = (0..self.nodes).map(NodeId::at).filter(|n| *n != self.me);
        others
            .filter(|n| self.channels[n.index()].is_none())
            .collect()
    }

    fn is_connected(&self) -> bool {
        let mut others = self.channels.iter().enumerate();
        others.all(|(i, channel)| i == self.me.index() || channel.is_some())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn system(&self, cause: io::Error) -> JoinError {
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

    /// Names those who are waited for: at node 0, or here, or by others.
    fn too_late(&mut self) -> JoinError {
        let unready = || {
            let others = (1..self.nodes).map(NodeId::at);
            others.filter(|n| !self.ready.contains(n)).collect()
        };
        let missing = [self.missing(), self.unconnected()];
        let missing = missing.into_iter().find(|missing| !missing.is_empty());
        let missing = missing.unwrap_or_else(|| match self.me {
            NODE_0 => unready(),
            _ => vec![NODE_0],
        });
        JoinError::Missing {
            me: self.me,
            missing,
            waited: self.began.elapsed(),
            refused: std::mem::take(&mut self.accept_queue.refused),
        }
    }

    /// Deals with what happens until the next try to connect: a node that looks for one is not deaf
    /// to the others.
    fn rest(&mut self) -> Result<(), JoinError> {
        let until = self.deadline.min(Instant::now() + BETWEEN_TRIES);
        while Instant::now() < until {
            self.turn_within(until)?;
        }
        Ok(())
    }

    /// Waits until something happens, and deals with it.
    fn turn(&mut self) -> Result<(), JoinError> {
        self.turn_within(self.deadline)
    }

    fn turn_within(&mut self, deadline: Instant) -> Result<(), JoinError> {
        let until = self.accept_queue.patience_ends();
        let until = until.map_or(deadline, |until| until.min(deadline));
        let mut sockets = Vec::new();
        self.accept_queue.sockets(&mut sockets);
        for guide in self.guides.iter().flatten() {
            sockets.push(PollFd::new(&guide.wire.channel, PollFlags::IN));
        }
        if let Some(launcher) = self.launcher {
            sockets.push(PollFd::new(launcher, PollFlags::IN));
        }
        let at_most = until.saturating_duration_since(Instant::now());
        poll::any(&mut sockets, at_most).map_err(|e| self.system(e))?;
        drop(sockets);
        // Before what nodes have said: whatever one that has ended said is there by now.
        let ended = self.hear_launcher();
        let heard = self.hear_nodes();
        // What follows from its end elsewhere comes after the launcher's word, if not before this
        // node heard that.
        let ended = ended.or_else(|| heard.is_err().then(|| self.hear_launcher()).flatten());
        match (ended, heard) {
            (None, heard) => heard,
            (Some(peer), Err(own_words)) if own_words.is_told_by(peer) => Err(own_words),
            (Some(peer), _) => Err(JoinError::Ended { me: self.me, peer }),
        }
    }

    fn hear_nodes(&mut self) -> Result<(), JoinError> {
        let mut met = Vec::new();
        let (me, guides, channels) = (self.me, &self.guides, &self.channels);
        let expected = |said: NodeId, used| {
            let place = said.index();
            let new = match used {
                Use::Rendezvous => me == NODE_0 && guides.get(place).is_some_and(Option::is_none),
                Use::Port => channels.get(place).is_some_and(Option::is_none),
            };
            said > me && new
        };
        self.accept_queue.turn(&expected, &mut met)?;
        met.into_iter().for_each(|(wire, met)| self.meet(wire, met));
        self.hear_guides()
    }

    /// A node of which the launcher says that it ended before it had joined.
    fn hear_launcher(&mut self) -> Option<NodeId> {
        match self.launcher?.ended() {
            Ok(ended) => ended,
            Err(_gone) => {
                self.launcher = None;
                None
            }
        }
    }

    fn meet(&mut self, mut wire: Wire, met: Met) {
        // A few hundred bytes at most, for which a fresh connection has room.
        let flushed = wire.flush_until(Instant::now() + FAREWELL_WITHIN);
        let place = met.peer.index();
        let taken = match met.used {
            Use::Rendezvous => self.guides[place].is_some(),
            Use::Port => self.channels[place].is_some(),
        };
        // Two that both proved to be this node: the second came while the first was heard.
        let twice = HandshakeError::Unexpected { said: met.peer };
        if let Err(cause) = flushed.and(if taken { Err(twice) } else { Ok(()) }) {
            return self.accept_queue.refuse(wire.address, cause);
        }
        match met.used {
            Use::Port => self.channels[place] = Some(wire.channel),
            Use::Rendezvous => {
                self.guides[place] = Some(Guide {
                    wire,
                    session: met.session,
                    reader: Reader::default(),
                    places: met.places,
                });
            }
        }
    }

    fn hear_guides(&mut self) -> Result<(), JoinError> {
        for peer in (0..self.nodes).map(NodeId::at) {
            while let Some((kind, body)) = self.hear_guide(peer)? {
                self.told(peer, kind, &body)?;
                if self.go {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The next message of a node that has proved who it is.
    fn hear_guide(&mut self, peer: NodeId) -> Result<Option<(Kind, Vec<u8>)>, JoinError> {
        let me = self.me;
        let Some(guide) = &mut self.guides[peer.index()] else {
            return Ok(None);
        };
        let lost = |cause| lost(me, peer, &cause);
        let awaited: &[Kind] = match me {
            NODE_0 => &[Kind::Ready, Kind::Failed],
            _ => &[Kind::Table, Kind::Go, Kind::Failed],
        };
        let mut buffer = [0; 4096];
        loop {
            let wants = guide.reader.wants().min(buffer.len());
            match guide.wire.read(&mut buffer[..wants]).map_err(lost)? {
                Received::Nothing => return Ok(None),
                Received::End => return Err(lost(guide.reader.ended(false))),
                Received::Bytes(bytes) => {
                    let frame = guide.reader.take(bytes, awaited).map_err(lost)?;
                    if let Some((kind, body)) = frame {
                        let body = guide.session.open(kind, &body).map_err(lost)?;
                        return Ok(Some((kind, body.to_vec())));
                    }
                }
            }
        }
    }

    fn told(&mut self, peer: NodeId, kind: Kind, body: &[u8]) -> Result<(), JoinError> {
        let me = self.me;
        let lost = |cause| lost(me, peer, &cause);
        let mut body = Body(body);
        match kind {
            Kind::Ready => drop(self.ready.insert(peer)),
            Kind::Go => self.go = true,
            Kind::Failed => {
                let failed = NodeId(body.u16().map_err(lost)?);
                return Err(JoinError::Elsewhere {
                    peer: failed,
                    said: body.text().map_err(lost)?.to_owned(),
                });
            }
            _ => {
                let table = (0..self.nodes).map(|_| Places::read(&mut body));
                self.table = Some(table.collect::<Result<_, _>>().map_err(lost)?);
            }
        }
        body.end().map_err(lost)
    }

    fn tell(&mut self, peer: NodeId, kind: Kind, body: &[u8]) -> Result<(), JoinError> {
        let Some(guide) = &mut self.guides[peer.index()] else {
            return Ok(());
        };
        guide.session.seal(kind, body, &mut guide.wire.out);
        let flushed = guide.wire.flush_until(self.deadline);
        flushed.map_err(|cause| lost(self.me, peer, &cause))
    }

    fn tell_all(&mut self, kind: Kind, body: &[u8]) -> Result<(), JoinError> {
        let mut all = (0..self.nodes).map(NodeId::at);
        all.try_for_each(|peer| self.tell(peer, kind, body))
    }

    /// The channels of those who joined; or else the others hear why this node did not.
    fn end(mut self, ended: Result<(), JoinError>) -> Result<Mesh, JoinError> {
        let Err(error) = ended else {
            return Ok(Mesh {
                channels: self.channels,
                deadline: self.deadline,
            });
        };
        let error = error.explained(self.me, self.began.elapsed(), self.launcher);
        let (failed, said) = match &error {
            JoinError::Elsewhere { peer, said } => (*peer, said.clone()),
            JoinError::Stopped { peer, how, .. } => (*peer, format!("its {how}")),
            error => (self.me, error.to_string()),
        };
        self.deadline = Instant::now() + FAREWELL_WITHIN;
        let mut body = failed.0.to_le_bytes().to_vec();
        let most = said.floor_char_boundary(2048);
        put_run(&said.as_bytes()[..most], &mut body);
        for peer in (0..self.nodes).map(NodeId::at) {
            // Those that cannot be told learn it from the connection that ends.
            let _ = self.tell(peer, Kind::Failed, &body);
        }
        Err(error)
    }
}

fn lost(me: NodeId, peer: NodeId, cause: &HandshakeError) -> JoinError {
    JoinError::Lost {
        me,
        peer,
        cause: cause.to_string(),
    }
}
