//! What leads where when all have met, and the ports that are made of it.

use std::io;
use std::time::{Duration, Instant};

use dhole_model::NodeId;

use super::channel::Channel;
use super::error::JoinError;
use crate::{Port, Tcp};

/// A channel to each other node, which has proved who it is.
#[derive(Debug)]
pub(crate) struct Mesh {
    pub channels: Vec<Option<Channel>>,
    /// When the time for joining is over.
    pub deadline: Instant,
}

impl Mesh {
    /// That of a cluster of one node.
    pub fn alone() -> Mesh {
        Mesh {
            channels: vec![None],
            deadline: Instant::now(),
        }
    }

    /// The port over TCP.
    pub fn into_tcp(self, me: NodeId) -> Result<Box<dyn Port>, JoinError> {
        let channels = self.channels.into_iter();
        let streams = channels.map(|channel| channel.and_then(Channel::into_stream));
        let port = Tcp::new(me, streams.collect());
        Ok(Box::new(port.map_err(|e| making_the_port(me, e))?))
    }
}

fn making_the_port(me: NodeId, cause: io::Error) -> JoinError {
    JoinError::System {
        me,
        doing: "making the port",
        cause,
    }
}
