//! The numbers of threads of raw memory.

use std::fmt;

use dhole_model::NodeId;
use dhole_sync::ThreadOf;
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// A thread of a node. Its number 0 is the program itself.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct ThreadId(pub u64);

impl ThreadId {
    /// A thread of `node` that another one numbers.
    pub fn new(node: NodeId, starter: NodeId, number: u32) -> ThreadId {
        let (node, starter) = (u64::from(node.0), u64::from(starter.0));
        ThreadId(node << 48 | starter << 32 | u64::from(number))
    }

    /// The thread that a vertex of the wait-for graph is.
    pub fn of(ThreadOf { node, thread }: ThreadOf) -> ThreadId {
        match thread {
            0 => ThreadId::new(node, node, 0),
            _ => ThreadId(u64::from(node.0) << 48 | thread & 0xffff_ffff_ffff),
        }
    }

    /// The thread as a vertex of the wait-for graph. The program is the worker.
    pub fn vertex(self) -> ThreadOf {
        let thread = match self.number() {
            0 => 0,
            _ => self.0 & 0xffff_ffff_ffff,
        };
        let node = self.node();
        ThreadOf { node, thread }
    }

    /// The node on which it runs.
    pub fn node(self) -> NodeId {
        NodeId((self.0 >> 48) as u16)
    }

    /// The node that has started it.
    pub fn starter(self) -> NodeId {
        NodeId((self.0 >> 32) as u16)
    }

    /// The starter's number of it.
    pub fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            0 => write!(f, "the program of {}", self.node()),
            number => write!(
                f,
                "thread {number} of {} on {}",
                self.starter(),
                self.node()
            ),
        }
    }
}
