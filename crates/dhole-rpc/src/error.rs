use std::fmt;
use std::time::Duration;

use dhole_model::{NodeId, Variants};
use thiserror::Error;

use dhole_net::{Loss, Offers, SendError};

/// What a node was doing with another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Calling a procedure.
    Calling {
        /// Its number.
        procedure: u16,
    },
    /// Telling a procedure something.
    Telling {
        /// Its number.
        procedure: u16,
    },
    /// Fetching so many bytes of its memory.
    Fetching {
        /// How many.
        bytes: usize,
    },
    /// Storing so many bytes into its memory.
    Storing {
        /// How many.
        bytes: usize,
    },
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doing::Calling { procedure } => write!(f, "calling procedure {procedure} of"),
            Doing::Telling { procedure } => write!(f, "telling procedure {procedure} of"),
            Doing::Fetching { bytes } => write!(f, "fetching {bytes} bytes from"),
            Doing::Storing { bytes } => write!(f, "storing {bytes} bytes at"),
        }
    }
}

/// A port is not what remote procedures need: reliable and ordered.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the port {port} offers too little for remote procedures: {offers:?}")]
pub struct UnfitPort {
    /// What it is called.
    pub port: &'static str,
    /// What it offers.
    pub offers: Offers,
}

dhole_model::debug_in_words!(UnfitPort);

/// Why a remote operation has no result.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum RpcError {
    /// The deadline is over. The peer may do what it was asked to all the same.
    #[error("{doing} {peer}: no answer within {within:?}")]
    Late {
        /// What was being done.
        doing: Doing,
        /// With whom.
        peer: NodeId,
        /// The time there was.
        within: Duration,
    },
    /// The peer is gone.
    #[error("{doing} {peer}: {loss}")]
    Lost {
        /// What was being done.
        doing: Doing,
        /// With whom.
        peer: NodeId,
        /// How it was lost.
        loss: Loss,
    },
    /// The peer refused it.
    #[error("{doing} {peer}: refused: {refusal}")]
    Refused {
        /// What was being done.
        doing: Doing,
        /// With whom.
        peer: NodeId,
        /// Why.
        refusal: RpcRefusal,
    },
    /// Too much is under way with this peer already.
    #[error("{doing} {peer}: {most} calls of it are unanswered already")]
    Crowded {
        /// What was being done.
        doing: Doing,
        /// With whom.
        peer: NodeId,
        /// The most there may be.
        most: usize,
    },
    /// It cannot be sent at all: to nobody, to oneself, or too much at once.
    #[error("{doing} {peer}: {cause}")]
    Unsent {
        /// What was being done.
        doing: Doing,
        /// With whom.
        peer: NodeId,
        /// The port's own words.
        cause: SendError,
    },
}

dhole_model::debug_in_words!(RpcError);

/// Why a peer does not do what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Error, Variants)]
pub enum RpcRefusal {
    /// There is no such capability, or it was taken back.
    #[error("the capability is not good, or not any more")]
    NotGood,
    /// The capability is not for that.
    #[error("the capability does not allow that")]
    NotAllowed,
    /// The capability ends before.
    #[error("the capability does not reach so far")]
    TooFar,
    /// The owner is at work on that memory; whoever asks asks again.
    #[error("the memory is in use")]
    InUse,
    /// There is no such procedure.
    #[error("there is no such procedure")]
    NoProcedure,
    /// The procedure panicked.
    #[error("the procedure panicked")]
    Panicked,
    /// What the procedure returned is too long for an answer.
    #[error("the answer is longer than a frame")]
    AnswerTooLong,
}

dhole_model::debug_in_words!(RpcRefusal);

impl RpcRefusal {
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Option<RpcRefusal> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
