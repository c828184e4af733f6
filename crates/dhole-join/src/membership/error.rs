use std::io::{self, ErrorKind};
use std::time::Duration;

use dhole_model::{NodeId, Variants};
use dhole_net::EnvironmentError;
use dhole_net::launcher::Launcher;
use thiserror::Error;

use super::build_id::BuildId;
use super::open_files;

/// The time in which the launcher says that a process has ended whose connections have.
const ENDED_WITHIN: Duration = Duration::from_secs(1);

/// Why a process could not learn from its environment what it is, or could not join the others.
#[derive(Error)]
pub enum JoinError {
    /// The environment says something that cannot be.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The meeting point, or a place of this node's own, cannot be listened at.
    #[error("{me} listening at {address} for the others: {cause}")]
    Listen {
        /// This node.
        me: NodeId,
        /// Where.
        address: String,
        /// The system's own words.
        cause: io::Error,
    },
    /// Nobody answers there.
    #[error("{me} connecting to {peer} at {address}, for {waited:?}: {cause}")]
    Connect {
        /// This node.
        me: NodeId,
        /// Whom it wanted.
        peer: NodeId,
        /// Where.
        address: String,
        /// How long it tried.
        waited: Duration,
        /// The last try's end.
        cause: io::Error,
    },
    /// A handshake came to no good end.
    #[error("{me} shaking hands with {peer} at {address}: {cause}")]
    Handshake {
        /// This node.
        me: NodeId,
        /// With whom.
        peer: NodeId,
        /// Where that is.
        address: String,
        /// What was wrong.
        cause: Box<HandshakeError>,
    },
    /// Two nodes are on different machines, or see different networks of one.
    #[error("{me} and {peer} are to share memory, but are not on the same machine")]
    Far {
        /// This node.
        me: NodeId,
        /// The other.
        peer: NodeId,
    },
    /// A node shares no memory after all.
    #[error("{me} sharing memory with {peer}: {cause}")]
    Memory {
        /// This node.
        me: NodeId,
        /// The other.
        peer: NodeId,
        /// Why not.
        cause: String,
        /// Whether the system refused it to this node, whatever the other did.
        own: bool,
    },
    /// Not all have come.
    #[error("{me} waited {waited:?} for {missing:?}{refused}")]
    Missing {
        /// This node.
        me: NodeId,
        /// Who has not come.
        missing: Vec<NodeId>,
        /// For how long it waited.
        waited: Duration,
        /// Who came instead.
        refused: RefusedConnections,
    },
    /// The process of a node has ended, and will never join.
    #[error("{me} waited for {peer}, which ended before it had joined")]
    Ended {
        /// This node.
        me: NodeId,
        /// Who ended.
        peer: NodeId,
    },
    /// A signal has stopped the process of a node, which has not gone on in time.
    #[error("{me} waited {waited:?} for {peer}: its {how}")]
    Stopped {
        /// This node.
        me: NodeId,
        /// Who is stopped.
        peer: NodeId,
        /// For how long this node waited.
        waited: Duration,
        /// Which process, in the launcher's words.
        how: String,
    },
    /// A node left before all had joined.
    #[error("{me} lost {peer} before all had joined: {cause}")]
    Lost {
        /// This node.
        me: NodeId,
        /// Who was lost.
        peer: NodeId,
        /// How.
        cause: String,
    },
    /// Another node could not join, and said so.
    #[error("{peer} could not join: {said}")]
    Elsewhere {
        /// Which.
        peer: NodeId,
        /// In its own words.
        said: String,
    },
    /// The MPI library refuses something that joining takes, or knows other processes than its
    /// launcher says.
    #[error("{me} {doing}: {cause}")]
    Mpi {
        /// This node.
        me: NodeId,
        /// What it was doing.
        doing: &'static str,
        /// The library's own words, or ours.
        cause: String,
    },
    /// The system refuses something that joining takes.
    #[error("{me} {doing}: {cause}{}", open_files::advice(cause))]
    System {
        /// This node.
        me: NodeId,
        /// What it was doing.
        doing: &'static str,
        /// The system's own words.
        cause: io::Error,
    },
}

dhole_model::debug_in_words!(JoinError);

impl JoinError {
    /// Whether the reason lies in this node, and not in another that failed, ended or never came.
    pub(crate) fn is_own(&self) -> bool {
        match self {
            JoinError::Environment(_)
            | JoinError::Listen { .. }
            | JoinError::Far { .. }
            | JoinError::Mpi { .. } => true,
            // A peer that has gone on its way makes the system refuse too.
            JoinError::System { cause, .. } => !matches!(
                cause.kind(),
                ErrorKind::NotConnected
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::ConnectionRefused
                    | ErrorKind::BrokenPipe
                    | ErrorKind::UnexpectedEof
            ),
            JoinError::Memory { own, .. } => *own,
            // A peer that keeps silent may be stopped.
            JoinError::Handshake { cause, .. } => {
                let is_silent = matches!(**cause, HandshakeError::Silent { .. });
                !is_silent && !cause.is_passing()
            }
            JoinError::Connect { .. }
            | JoinError::Missing { .. }
            | JoinError::Ended { .. }
            | JoinError::Stopped { .. }
            | JoinError::Lost { .. }
            | JoinError::Elsewhere { .. } => false,
        }
    }

    /// The same error, with the process that has led to it, if the launcher knows of one that has
    /// ended or is stopped.
    pub(crate) fn explained(
        self,
        me: NodeId,
        waited: Duration,
        launcher: Option<&Launcher>,
    ) -> JoinError {
        let is_told = matches!(
            self,
            JoinError::Stopped { .. } | JoinError::Elsewhere { .. }
        );
        let Some(launcher) = launcher.filter(|_| !is_told && !self.is_own()) else {
            return self;
        };
        if self.may_follow_from_a_stop() {
            return match launcher.stopped(None) {
                Some((peer, how)) => JoinError::Stopped {
                    me,
                    peer,
                    waited,
                    how,
                },
                None => self,
            };
        }
        // A connection ends before the launcher knows that the process behind it has.
        match launcher.await_ended(ENDED_WITHIN) {
            Some(peer) => JoinError::Ended { me, peer },
            None => self,
        }
    }

    /// Whether this node, or one that has ended for that, has waited as long as it may.
    fn may_follow_from_a_stop(&self) -> bool {
        match self {
            JoinError::Connect { .. } | JoinError::Missing { .. } | JoinError::Ended { .. } => true,
            JoinError::Handshake { cause, .. } => matches!(**cause, HandshakeError::Silent { .. }),
            _ => false,
        }
    }

    /// Whether this node has heard from `of` itself why the two do not come together.
    pub(crate) fn is_told_by(&self, of: NodeId) -> bool {
        match self {
            JoinError::Handshake { peer, cause, .. } => *peer == of && !cause.is_passing(),
            JoinError::Elsewhere { peer, .. } => *peer == of,
            _ => false,
        }
    }
}

/// Connections that were refused while a node waited for others.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RefusedConnections {
    /// How many.
    pub connections: u64,
    /// The last: from where, and what was wrong with it.
    pub last: Option<(String, Box<HandshakeError>)>,
}

impl std::fmt::Display for RefusedConnections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((address, cause)) = &self.last else {
            return Ok(());
        };
        let connections = self.connections;
        write!(
            f,
            "; {connections} connections were refused, the last one from {address}: {cause}"
        )
    }
}

/// What was wrong with a handshake. Each kind of broken or hostile peer is one of its own.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HandshakeError {
    /// It came and left without a word.
    #[error("it left without a word")]
    NoWord,
    /// Its first bytes, or those of a later message, are not dhole's.
    #[error("it does not speak as dhole's nodes do")]
    NotDhole,
    /// It speaks TLS where bytes as they are were expected.
    #[error("it encrypts, and this node does not: is DHOLE_TLS the same for both?")]
    Encrypts,
    /// It announced more than any message has.
    #[error("it announced a message of {bytes} bytes where at most {most} are expected")]
    Oversized {
        /// What it announced.
        bytes: u64,
        /// The most there can be.
        most: usize,
    },
    /// It left within a message.
    #[error("it left in the middle of a message, after {had} of {expected} bytes")]
    HalfFrame {
        /// What came of the message.
        had: usize,
        /// What it should have had, as far as it was announced.
        expected: usize,
    },
    /// It left between two messages.
    #[error("it left before the handshake was over")]
    LeftEarly,
    /// It went silent.
    #[error("it kept silent for {waited:?}")]
    Silent {
        /// For how long.
        waited: Duration,
    },
    /// It does not know the secret.
    #[error("it does not know this cluster's secret")]
    WrongSecret,
    /// It looks for another node.
    #[error("it looks for {wanted}")]
    Misdirected {
        /// For whom.
        wanted: NodeId,
    },
    /// It says it is a node that is not expected.
    #[error("it says it is {said}, who is not expected here")]
    Unexpected {
        /// Who it says it is.
        said: NodeId,
    },
    /// A message came that does not belong here, or makes no sense.
    #[error("it sent {what}")]
    Malformed {
        /// What.
        what: &'static str,
    },
    /// It speaks another version of the protocol.
    #[error("it speaks version {theirs} of the protocol, this node {ours}")]
    Version {
        /// This node's.
        ours: u32,
        /// The peer's.
        theirs: u32,
    },
    /// It is another build of the program.
    #[error("it runs another build of the program: {theirs}, this node {ours}")]
    Build {
        /// This node's.
        ours: BuildId,
        /// The peer's.
        theirs: BuildId,
    },
    /// It belongs to a cluster of another size.
    #[error("it belongs to a cluster of {theirs} nodes, this node to one of {ours}")]
    Nodes {
        /// This node's.
        ours: usize,
        /// The peer's.
        theirs: usize,
    },
    /// It has another setting.
    #[error("its {name} is {theirs:?}, this node's {ours:?}")]
    Setting {
        /// Which.
        name: String,
        /// What it is here.
        ours: Option<String>,
        /// What it is there.
        theirs: Option<String>,
    },
    /// It refused this node, and said why; nothing proves that it was a node that said it.
    #[error("it refused this node: {reason}")]
    RefusedBy {
        /// Its reason.
        reason: HandshakeRefusal,
    },
    /// No encrypted connection could be made.
    #[error("no encrypted connection with it could be made: {0}")]
    Encryption(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// It made way for others: too many connections were waiting to be heard.
    #[error("too many others were waiting to be heard")]
    Crowded,
}

/// What a peer is told before it has proved who it is, by its number on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error, Variants)]
pub enum HandshakeRefusal {
    /// It does not know the secret.
    #[error("the secrets differ")]
    WrongSecret,
    /// It looks for another node.
    #[error("another node was looked for")]
    Misdirected,
    /// It is not expected.
    #[error("a node of this number is not expected")]
    Unexpected,
}

impl HandshakeRefusal {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<HandshakeRefusal> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl HandshakeError {
    /// Both know the secret, and do not fit together: that will not change.
    pub(crate) fn is_misfit(&self) -> bool {
        use HandshakeError as E;
        matches!(
            self,
            E::Version { .. } | E::Build { .. } | E::Nodes { .. } | E::Setting { .. }
        )
    }

    /// The listener made way for others, say: it may be better the next time.
    pub(crate) fn is_passing(&self) -> bool {
        use HandshakeError as E;
        matches!(
            self,
            E::NoWord | E::LeftEarly | E::HalfFrame { .. } | E::Broken(_)
        )
    }
}
