//! Connections whose other ends have not proved who they are: at most so many, each for at most so
//! long.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags};

use super::channel::{Channel, Encryption, Listener};
use super::error::{HandshakeError, JoinError, RefusedConnections};
use super::handshake::{Binding, Handshake, Met, Nonce, Party, Use};
use super::secret::Secret;
use super::terms::Terms;
use super::wire::{Received, Wire};

/// Connections beyond those of the cluster that are heard at one time.
const MOST_STRANGERS: usize = 64;
/// How long a handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// The connections that a node has accepted or made, until their other ends have proved who they
/// are.
pub(crate) struct AcceptQueue<'a> {
    me: NodeId,
    secret: &'a Secret,
    pub terms: Terms,
    encryption: Encryption,
    pub listeners: Vec<Listener>,
    waiting: Vec<Waiting>,
    pub refused: RefusedConnections,
}

/// A connection whose other end has not proved who it is.
struct Waiting {
    wire: Wire,
    handshake: Handshake,
    nonce: Nonce,
    since: Instant,
    /// This node has made the connection.
    greets: bool,
}

impl<'a> AcceptQueue<'a> {
    pub fn new(
        me: NodeId,
        secret: &'a Secret,
        encryption: Encryption,
        terms: Terms,
    ) -> AcceptQueue<'a> {
        AcceptQueue {
            me,
            secret,
            terms,
            encryption,
            listeners: Vec::new(),
            waiting: Vec::new(),
            refused: RefusedConnections::default(),
        }
    }

    /// Begins a handshake with `peer` at the other end of the channel.
    pub fn greet(
        &mut self,
        peer: NodeId,
        used: Use,
        channel: Channel,
        address: String,
    ) -> Result<(), JoinError> {
        let channel = match channel.secured(&self.encryption, true) {
            Ok(channel) => channel,
            // The process at its other end has ended meanwhile.
            Err(cause) if cause.kind() == ErrorKind::NotConnected => {
                self.refuse(address, HandshakeError::NoWord);
                return Ok(());
            }
            Err(cause) => {
                return Err(JoinError::System {
                    me: self.me,
                    doing: "beginning an encrypted connection",
                    cause,
                });
            }
        };
        let mut wire = Wire::new(channel, address);
        let nonce = self.nonce()?;
        let party = self.party(nonce, Binding::Plain);
        let handshake = Handshake::connect(&party, peer, used, &mut wire.out);
        self.wait(wire, handshake, nonce, true);
        Ok(())
    }

    /// Whether a handshake with this node, which this one has begun, is under way.
    pub fn is_greeting(&self, peer: NodeId, used: Use) -> bool {
        let mut greeted = self.waiting.iter().filter(|w| w.greets);
        greeted.any(|w| w.handshake.peer() == Some(peer) && w.handshake.used() == used)
    }

    /// When the first of them has been heard for long enough.
    pub fn patience_ends(&self) -> Option<Instant> {
        let since = self.waiting.iter().map(|w| w.since).min();
        since.map(|since| since + HANDSHAKE_WITHIN)
    }

    /// Adds what it waits for.
    pub fn sockets<'s>(&'s self, sockets: &mut Vec<PollFd<'s>>) {
        for listener in &self.listeners {
            sockets.push(PollFd::new(listener, PollFlags::IN));
        }
        for waiting in &self.waiting {
            let sends = !waiting.wire.out.is_empty() || waiting.wire.channel.wants_write();
            let flags = match sends {
                true => PollFlags::IN | PollFlags::OUT,
                false => PollFlags::IN,
            };
            sockets.push(PollFd::new(&waiting.wire.channel, flags));
        }
    }

    /// Lets in who has come, and hears who is there: `met` are those that have proved who they are.
    ///
    /// # Errors
    /// When a node does not fit, or one that this node itself looks for is not what it should be.
    pub fn turn(
        &mut self,
        expected: &dyn Fn(NodeId, Use) -> bool,
        met: &mut Vec<(Wire, Met)>,
    ) -> Result<(), JoinError> {
        self.accept()?;
        for mut waiting in std::mem::take(&mut self.waiting) {
            match self.hear(&mut waiting, expected) {
                Ok(None) => self.waiting.push(waiting),
                Ok(Some(whom)) => met.push((waiting.wire, whom)),
                Err(cause) => self.give_up(waiting, cause)?,
            }
        }
        Ok(())
    }

    /// Keeps in mind that a connection was refused.
    pub fn refuse(&mut self, address: String, cause: HandshakeError) {
        self.refused.connections += 1;
        self.refused.last = Some((address, Box::new(cause)));
    }

    fn accept(&mut self) -> Result<(), JoinError> {
        // So many at a time, so that a flood of connections leaves time for those that are there.
        const AT_A_TIME: usize = 16;
        for listener in 0..self.listeners.len() {
            for _ in 0..AT_A_TIME {
                match self.listeners[listener].accept() {
                    Ok(Some((channel, address))) => self.let_in(channel, address)?,
                    Ok(None) => break,
                    // No descriptor is left, say: one of those that wait makes way.
                    Err(_) => {
                        self.make_way(0);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn let_in(&mut self, channel: Channel, address: String) -> Result<(), JoinError> {
        self.make_way(MOST_STRANGERS + 2 * self.terms.nodes);
        let nonce = self.nonce()?;
        let channel = match channel.secured(&self.encryption, false) {
            Ok(channel) => channel,
            Err(cause) => {
                self.refuse(address, HandshakeError::Broken(cause.to_string()));
                return Ok(());
            }
        };
        self.wait(
            Wire::new(channel, address),
            Handshake::listen(),
            nonce,
            false,
        );
        Ok(())
    }

    fn wait(&mut self, wire: Wire, handshake: Handshake, nonce: Nonce, greets: bool) {
        self.waiting.push(Waiting {
            wire,
            handshake,
            nonce,
            since: Instant::now(),
            greets,
        });
    }

    /// Drops the stranger that has waited longest, if more than `most` wait; first one that said
    /// nothing.
    fn make_way(&mut self, most: usize) {
        if self.waiting.len() < most {
            return;
        }
        let strangers = self.waiting.iter().enumerate();
        let oldest = strangers
            .filter(|(_, w)| !w.greets)
            .min_by_key(|(_, w)| (w.handshake.peer().is_some(), w.since))
            .map(|(i, _)| i);
        if let Some(oldest) = oldest {
            let dropped = self.waiting.swap_remove(oldest);
            self.refuse(dropped.wire.address, HandshakeError::Crowded);
        }
    }

    /// Takes what has come over one connection.
    fn hear(
        &self,
        waiting: &mut Waiting,
        expected: &dyn Fn(NodeId, Use) -> bool,
    ) -> Result<Option<Met>, HandshakeError> {
        let mut buffer = [0; 4096];
        waiting.wire.flush()?;
        loop {
            let wants = waiting.handshake.wants().min(buffer.len());
            let bytes = match waiting.wire.read(&mut buffer[..wants])? {
                Received::Bytes(bytes) => bytes,
                Received::End => return Err(waiting.handshake.ended()),
                Received::Nothing => {
                    let waited = waiting.since.elapsed();
                    return match waited < HANDSHAKE_WITHIN {
                        true => Ok(None),
                        false => Err(HandshakeError::Silent { waited }),
                    };
                }
            };
            let binding = waiting.wire.channel.binding();
            let binding = binding.expect("bytes come over a key that both have agreed on");
            let party = self.party(waiting.nonce, binding);
            let out = &mut waiting.wire.out;
            let met = waiting.handshake.take(&party, expected, bytes, out);
            let flushed = waiting.wire.flush();
            if let Some(met) = met? {
                return Ok(Some(met));
            }
            flushed?;
        }
    }

    /// A handshake failed. Of a stranger that is nothing to end for; a node that knows the secret
    /// and does not fit is, and so is one that this node itself looks for.
    fn give_up(&mut self, waiting: Waiting, cause: HandshakeError) -> Result<(), JoinError> {
        let (address, peer) = (waiting.wire.address.clone(), waiting.handshake.peer());
        waiting.wire.part();
        match peer {
            Some(peer) if cause.is_misfit() || waiting.greets && !cause.is_passing() => {
                Err(JoinError::Handshake {
                    me: self.me,
                    peer,
                    address,
                    cause: Box::new(cause),
                })
            }
            _ => {
                self.refuse(address, cause);
                Ok(())
            }
        }
    }

    /// A name that nobody else on this machine has.
    pub fn random_name(&self) -> Result<String, JoinError> {
        let digits = self.nonce()?.map(|byte| format!("{byte:02x}"));
        Ok(format!("dhole-{}", digits[..8].concat()))
    }

    fn nonce(&self) -> Result<Nonce, JoinError> {
        let mut nonce = [0; 32];
        let filled = SystemRandom::new().fill(&mut nonce);
        filled.map_err(|_| JoinError::System {
            me: self.me,
            doing: "drawing a random number",
            cause: io::Error::other("the system has none"),
        })?;
        Ok(nonce)
    }

    fn party(&self, nonce: Nonce, binding: Binding) -> Party<'_> {
        Party {
            me: self.me,
            secret: self.secret,
            terms: &self.terms,
            binding,
            nonce,
        }
    }
}
