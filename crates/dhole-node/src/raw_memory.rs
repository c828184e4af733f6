//! Settings of a run's raw memory, beside its domains.

use std::fmt;

use dhole_model::{NodeId, Value, Variants};

/// How allocations lie in raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Variants)]
#[variants(name, setting)]
pub enum MemoryLayout {
    /// Several on a page, each in a view of its own.
    #[default]
    Views,
    /// Each on pages of its own, with a red zone behind it: a pattern that is checked where a copy
    /// is sent or taken away, at `free`, and at the end of the program. Freed space is not
    /// allocated again. It needs a memory for each node ([`Domains::Node`](crate::Domains)).
    Isolate,
}

/// Which node manages a minipage of raw memory: it knows who has copies, and all others ask it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemoryManagers {
    /// The node that has allocated it.
    #[default]
    Allocator,
    /// Node 0, as in the paper (MultiView and Millipage, section 3.3). It has the whole table of
    /// minipages, so another node that allocates asks it and waits: two messages.
    One,
    /// These nodes, each of an equal part of the memory (VOTE, section 4.1: idle or dedicated
    /// processors maintain pages). Another node that allocates asks one of them and waits: two
    /// messages. A node whose program has ended goes on serving, so it is a dedicated manager.
    Nodes(ManagerNodes),
}

/// So many nodes at most can be [chosen](MemoryManagers::Nodes) to manage raw memory.
pub const MOST_MANAGERS: usize = 16;

/// The nodes that manage all minipages of raw memory: from 1 to [`MOST_MANAGERS`], all different.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ManagerNodes {
    nodes: [NodeId; MOST_MANAGERS],
    count: u8,
}

impl ManagerNodes {
    /// These nodes, in this order. `None` if there are none or too many, or one comes twice.
    pub fn new(nodes: &[NodeId]) -> Option<ManagerNodes> {
        let twice = |place: usize| nodes[..place].contains(&nodes[place]);
        let is_sound = (1..=MOST_MANAGERS).contains(&nodes.len());
        if !is_sound || (0..nodes.len()).any(twice) {
            return None;
        }
        let mut all = [NodeId(0); MOST_MANAGERS];
        all[..nodes.len()].copy_from_slice(nodes);
        Some(ManagerNodes {
            nodes: all,
            count: nodes.len() as u8,
        })
    }

    /// The nodes.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes[..usize::from(self.count)]
    }
}

impl fmt::Debug for ManagerNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes()).finish()
    }
}

impl MemoryManagers {
    /// The nodes that manage all minipages; none where each node manages what it allocates.
    pub fn chosen(&self) -> &[NodeId] {
        match self {
            MemoryManagers::Allocator => &[],
            MemoryManagers::One => &[NodeId(0)],
            MemoryManagers::Nodes(nodes) => nodes.nodes(),
        }
    }

    /// Into how many equal parts they divide the memory of a run of so many nodes.
    pub fn parts(&self, nodes: usize) -> usize {
        match self.chosen() {
            [] => nodes,
            chosen => chosen.len(),
        }
    }
}

impl fmt::Display for MemoryManagers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryManagers::Allocator => f.write_str("allocator"),
            MemoryManagers::One => f.write_str("one"),
            MemoryManagers::Nodes(nodes) => {
                let all: Vec<String> = nodes.nodes().iter().map(|it| it.0.to_string()).collect();
                f.write_str(&all.join(","))
            }
        }
    }
}

impl Value for MemoryManagers {
    fn find(said: &str) -> Option<MemoryManagers> {
        match said {
            "allocator" => return Some(MemoryManagers::Allocator),
            "one" => return Some(MemoryManagers::One),
            _ => {}
        }
        let nodes = said.split(',').map(|it| it.parse().ok().map(NodeId));
        let nodes: Option<Vec<NodeId>> = nodes.collect();
        ManagerNodes::new(&nodes?).map(MemoryManagers::Nodes)
    }

    fn allowed() -> Vec<&'static str> {
        vec!["allocator", "one"]
    }

    fn expected() -> String {
        format!("allocator, one, or from 1 to {MOST_MANAGERS} different nodes such as 0,3")
    }
}

/// When a node sees what others write in raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Variants)]
#[variants(name, setting)]
pub enum MemoryConsistency {
    /// At once: accesses of different nodes have one order, which all of them see. One node writes
    /// a minipage at a time.
    #[default]
    Sequential,
    /// When it acquires what the writer has released since: a lock, a barrier. Until then nodes
    /// write a minipage together, each its own numbers. A program must order accesses of different
    /// nodes to one number so, unless all of them read.
    Release,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_are_read_and_written_alike() {
        for said in ["allocator", "one", "0,3", "7", "3,0,65535"] {
            let managers = MemoryManagers::find(said).expect(said);
            assert_eq!(managers.to_string(), said);
        }
        let [chosen, one] = ["3,0", "one"].map(|said| MemoryManagers::find(said).unwrap());
        assert_eq!(chosen.chosen(), [NodeId(3), NodeId(0)]);
        assert_eq!(one.chosen(), [NodeId(0)]);
        let many = (0..17).map(|node| node.to_string()).collect::<Vec<_>>();
        for said in ["", "0,", "0,0", "-1", "0 3", "65536", &many.join(",")] {
            assert!(MemoryManagers::find(said).is_none(), "{said}");
        }
    }
}
