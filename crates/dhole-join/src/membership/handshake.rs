//! How two processes prove to each other that they know the secret, and that they fit together:
//! bytes in, bytes out, no socket, no clock, no random number of its own.
//!
//! ```text
//! connects                                   listens
//!    | Hello: from, to, nonce c  ------------>  |
//!    | <---- Challenge: from, nonce l, proof l  |   HMAC-SHA256 over the purpose, both numbers,
//!    | Proof: proof c; Terms  --------------->  |   both nonces and what binds them to the channel
//!    | <---------------------------------Terms  |
//! ```
//!
//! The purposes of the two proofs differ, so neither can be sent back to its maker. From `Terms` on
//! every frame is sealed with a key made of the secret and both nonces.

use dhole_model::NodeId;

use super::error::{HandshakeError, HandshakeRefusal};
use super::frame::{self, Body, Kind, Reader};
use super::places::Places;
use super::secret::{PROOF_BYTES, Secret};
use super::terms::Terms;

#[cfg(test)]
mod tests;

/// A number that is used once.
pub(crate) type Nonce = [u8; 32];

/// What the proofs are bound to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binding {
    /// A connection as it is.
    Plain,
    /// A TLS session: what only its two ends can know (RFC 9266).
    Tls([u8; 32]),
}

impl Binding {
    fn name(&self) -> &[u8] {
        match self {
            Binding::Plain => b"plain",
            Binding::Tls(_) => b"tls",
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Binding::Plain => b"",
            Binding::Tls(exported) => exported,
        }
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Use {
    /// For what nodes tell node 0 while they meet, and it them.
    Rendezvous = 0,
    /// For what the port carries.
    Port = 1,
}

/// What one side brings to a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party<'a> {
    pub me: NodeId,
    pub secret: &'a Secret,
    pub terms: &'a Terms,
    pub binding: Binding,
    pub nonce: Nonce,
}

/// Whom a handshake met.
#[derive(Debug)]
pub(crate) struct Met {
    pub peer: NodeId,
    pub used: Use,
    /// Where it listens.
    pub places: Places,
    /// What seals and opens the frames that follow.
    pub session: Session,
}

/// One side of a handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    connects: bool,
    /// Whom the side that connects looks for, and the other side has heard.
    peer: Option<NodeId>,
    used: Use,
    their_nonce: Nonce,
    session: Option<Session>,
    awaits: &'static [Kind],
    reader: Reader,
    heard: bool,
}

impl Handshake {
    /// The side that connects, to `peer`; what it says first goes to `out`.
    pub fn connect(party: &Party<'_>, peer: NodeId, used: Use, out: &mut Vec<u8>) -> Handshake {
        let mut body = Vec::with_capacity(37);
        body.extend_from_slice(&party.me.0.to_le_bytes());
        body.extend_from_slice(&peer.0.to_le_bytes());
        body.push(used as u8);
        body.extend_from_slice(&party.nonce);
        frame::write(Kind::Hello, &body, out);
        Handshake::new(true, Some(peer), used, &[Kind::Challenge, Kind::Refusal])
    }

    /// The side that listens.
    pub fn listen() -> Handshake {
        Handshake::new(false, None, Use::Port, &[Kind::Hello])
    }

    fn new(connects: bool, peer: Option<NodeId>, used: Use, awaits: &'static [Kind]) -> Handshake {
        Handshake {
            connects,
            peer,
            used,
            their_nonce: [0; 32],
            session: None,
            awaits,
            reader: Reader::default(),
            heard: false,
        }
    }

    /// Bytes it can take now; it must not be given more, since they are not its own.
    pub fn wants(&self) -> usize {
        self.reader.wants()
    }

    /// What it means that the peer has closed the connection.
    pub fn ended(&self) -> HandshakeError {
        self.reader.ended(!self.heard)
    }

    /// Whom it talks to, as far as it knows.
    pub fn peer(&self) -> Option<NodeId> {
        self.peer
    }

    /// What the connection is for, as far as it knows.
    pub fn used(&self) -> Use {
        self.used
    }

    /// Takes bytes that came, at most as many as it [wants](Handshake::wants). What is to be sent
    /// in answer goes to `out`, also before an error. `expected` says which nodes may connect.
    ///
    /// # Errors
    /// [`HandshakeError`]: then the connection is of no use any more, once `out` is sent.
    pub fn take(
        &mut self,
        party: &Party<'_>,
        expected: &dyn Fn(NodeId, Use) -> bool,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Met>, HandshakeError> {
        self.heard |= !bytes.is_empty();
        let Some((kind, body)) = self.reader.take(bytes, self.awaits)? else {
            return Ok(None);
        };
        match kind {
            Kind::Hello => self.hello(party, expected, &body, out).map(|()| None),
            Kind::Challenge => self.challenge(party, &body, out).map(|()| None),
            Kind::Proof => self.proof(party, &body, out).map(|()| None),
            Kind::Terms => self.terms(party, &body).map(Some),
            Kind::Refusal => Err(self.refused(&body)),
            Kind::Table | Kind::Ready | Kind::Go | Kind::Failed => {
                unreachable!("no state of the handshake awaits {kind:?}")
            }
        }
    }

    fn hello(
        &mut self,
        party: &Party<'_>,
        expected: &dyn Fn(NodeId, Use) -> bool,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), HandshakeError> {
        let mut body = Body(body);
        let (said, wanted) = (NodeId(body.u16()?), NodeId(body.u16()?));
        self.used = match body.u8()? {
            0 => Use::Rendezvous,
            1 => Use::Port,
            _ => {
                return Err(HandshakeError::Malformed {
                    what: "a connection for an unknown use",
                });
            }
        };
        self.their_nonce = body.array()?;
        body.end()?;
        if wanted != party.me {
            refuse(HandshakeRefusal::Misdirected, out);
            return Err(HandshakeError::Misdirected { wanted });
        }
        if said == party.me || !expected(said, self.used) {
            refuse(HandshakeRefusal::Unexpected, out);
            return Err(HandshakeError::Unexpected { said });
        }
        self.peer = Some(said);
        let mut answer = Vec::with_capacity(66);
        answer.extend_from_slice(&party.me.0.to_le_bytes());
        answer.extend_from_slice(&party.nonce);
        answer.extend_from_slice(&self.said(party, Purpose::ListenerProves, |said| {
            party.secret.prove(said)
        }));
        frame::write(Kind::Challenge, &answer, out);
        self.awaits = &[Kind::Proof, Kind::Refusal];
        Ok(())
    }

    fn challenge(
        &mut self,
        party: &Party<'_>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), HandshakeError> {
        let mut body = Body(body);
        let said = NodeId(body.u16()?);
        self.their_nonce = body.array()?;
        let proof: [u8; PROOF_BYTES] = body.array()?;
        body.end()?;
        if Some(said) != self.peer {
            return Err(HandshakeError::Unexpected { said });
        }
        if !self.said(party, Purpose::ListenerProves, |said| {
            party.secret.proves(said, &proof)
        }) {
            refuse(HandshakeRefusal::WrongSecret, out);
            return Err(HandshakeError::WrongSecret);
        }
        let proof = self.said(party, Purpose::ConnectorProves, |said| {
            party.secret.prove(said)
        });
        frame::write(Kind::Proof, &proof, out);
        self.begin_session(party, out);
        Ok(())
    }

    fn proof(
        &mut self,
        party: &Party<'_>,
        proof: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), HandshakeError> {
        if !self.said(party, Purpose::ConnectorProves, |said| {
            party.secret.proves(said, proof)
        }) {
            refuse(HandshakeRefusal::WrongSecret, out);
            return Err(HandshakeError::WrongSecret);
        }
        self.begin_session(party, out);
        Ok(())
    }

    /// Both sides send their terms before they compare, so that a difference is known to both.
    fn begin_session(&mut self, party: &Party<'_>, out: &mut Vec<u8>) {
        let key = |purpose| self.said(party, purpose, |said| party.secret.derive(said));
        let (mine, theirs) = (Purpose::ConnectorSeals, Purpose::ListenerSeals);
        let (mine, theirs) = match self.connects {
            true => (mine, theirs),
            false => (theirs, mine),
        };
        let mut session = Session {
            seals: key(mine),
            opens: key(theirs),
            sealed: 0,
            opened: 0,
        };
        let mut terms = Vec::new();
        party.terms.write(&mut terms);
        session.seal(Kind::Terms, &terms, out);
        self.session = Some(session);
        self.awaits = match self.connects {
            true => &[Kind::Terms, Kind::Refusal],
            false => &[Kind::Terms],
        };
    }

    fn terms(&mut self, party: &Party<'_>, body: &[u8]) -> Result<Met, HandshakeError> {
        let mut session = self.session.take().expect("terms are awaited in a session");
        let terms = Terms::read(session.open(Kind::Terms, body)?, party.terms)?;
        party.terms.compare(&terms)?;
        Ok(Met {
            peer: self.peer.expect("the peer was heard before its terms"),
            used: self.used,
            places: terms.places,
            session,
        })
    }

    fn refused(&self, body: &[u8]) -> HandshakeError {
        match body {
            [code] => match HandshakeRefusal::from_code(*code) {
                Some(reason) => HandshakeError::RefusedBy { reason },
                None => HandshakeError::Malformed {
                    what: "a refusal without a reason",
                },
            },
            _ => HandshakeError::Malformed {
                what: "a refusal without a reason",
            },
        }
    }

    /// What is proved or derived for this purpose, by both sides alike.
    fn said<R>(&self, party: &Party<'_>, purpose: Purpose, what: impl FnOnce(&[&[u8]]) -> R) -> R {
        let peer = self
            .peer
            .expect("the peer is known before anything is proved");
        let mine = (party.me.0.to_le_bytes(), party.nonce);
        let theirs = (peer.0.to_le_bytes(), self.their_nonce);
        let (connector, listener) = match self.connects {
            true => (mine, theirs),
            false => (theirs, mine),
        };
        what(&[
            purpose.words(),
            &[self.used as u8],
            &connector.0,
            &listener.0,
            &connector.1,
            &listener.1,
            party.binding.name(),
            party.binding.bytes(),
        ])
    }
}

/// What a proof or a key is for: no two uses of the secret can be taken for each other.
#[derive(Clone, Copy)]
enum Purpose {
    ListenerProves,
    ConnectorProves,
    ListenerSeals,
    ConnectorSeals,
}

impl Purpose {
    fn words(self) -> &'static [u8] {
        match self {
            Purpose::ListenerProves => b"dhole join 1: who listens knows the secret",
            Purpose::ConnectorProves => b"dhole join 1: who connects knows the secret",
            Purpose::ListenerSeals => b"dhole join 1: sealed by who listens",
            Purpose::ConnectorSeals => b"dhole join 1: sealed by who connects",
        }
    }
}

fn refuse(reason: HandshakeRefusal, out: &mut Vec<u8>) {
    frame::write(Kind::Refusal, &[reason.code()], out);
}

/// Seals and opens the frames that follow the proofs: each has its place in its direction.
#[derive(Debug)]
pub(crate) struct Session {
    seals: Secret,
    opens: Secret,
    sealed: u64,
    opened: u64,
}

impl Session {
    /// Adds a sealed frame to `out`.
    pub fn seal(&mut self, kind: Kind, body: &[u8], out: &mut Vec<u8>) {
        let seal = self
            .seals
            .prove(&[&self.sealed.to_le_bytes(), &[kind as u8], body]);
        self.sealed += 1;
        let mut whole = Vec::with_capacity(body.len() + seal.len());
        whole.extend_from_slice(body);
        whole.extend_from_slice(&seal);
        frame::write(kind, &whole, out);
    }

    /// The body of a sealed frame.
    ///
    /// # Errors
    /// [`HandshakeError::WrongSecret`] where the seal is not the peer's for this place.
    pub fn open<'a>(&mut self, kind: Kind, whole: &'a [u8]) -> Result<&'a [u8], HandshakeError> {
        let at = whole.len().checked_sub(PROOF_BYTES);
        let (body, seal) = whole.split_at(at.ok_or(HandshakeError::Malformed {
            what: "a message without a seal",
        })?);
        let said: [&[u8]; 3] = [&self.opened.to_le_bytes(), &[kind as u8], body];
        if !self.opens.proves(&said, seal) {
            return Err(HandshakeError::WrongSecret);
        }
        self.opened += 1;
        Ok(body)
    }
}
