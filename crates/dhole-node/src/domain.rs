//! Domains: nodes of a run whose raw memory is the same pages of one machine.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use dhole_heap::DomainFile;
use dhole_model::NodeId;

/// Which nodes of a run have the same pages as their raw memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Domains {
    /// Those whose processes are on one machine and show each other memory.
    #[default]
    Host,
    /// None: each node has its own, and the protocol runs between all.
    Node,
    /// As [`Host`](Domains::Host), but at most so many nodes together: the protocol runs within a
    /// machine too.
    Most(u16),
}

impl fmt::Display for Domains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domains::Host => f.write_str("host"),
            Domains::Node => f.write_str("node"),
            Domains::Most(nodes) => write!(f, "{nodes}"),
        }
    }
}

/// A name is none of domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`host`, `node`, or how many nodes a domain has at most")]
pub struct UnknownDomains;

impl FromStr for Domains {
    type Err = UnknownDomains;

    fn from_str(name: &str) -> Result<Domains, UnknownDomains> {
        match name {
            "host" => Ok(Domains::Host),
            "node" => Ok(Domains::Node),
            number => match number.parse() {
                Ok(nodes @ 1..) => Ok(Domains::Most(nodes)),
                _ => Err(UnknownDomains),
            },
        }
    }
}

/// A domain of several nodes, as one of them knows it.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its nodes, in their order. The first is its leader.
    pub nodes: Vec<NodeId>,
    /// The raw memory of all of them, which the leader has made.
    pub file: Arc<DomainFile>,
}

impl Domain {
    /// The lowest of its nodes.
    pub fn leader(&self) -> NodeId {
        self.nodes[0]
    }
}

impl Domains {
    /// Of these nodes of one machine, in their order, those of the domain of node `me`.
    pub(crate) fn of(self, machine: &[NodeId], me: NodeId) -> Vec<NodeId> {
        let most = match self {
            Domains::Host => machine.len().max(1),
            Domains::Node => 1,
            Domains::Most(nodes) => usize::from(nodes).max(1),
        };
        let mut all = machine.chunks(most);
        let own = all.find(|nodes| nodes.contains(&me));
        own.map_or_else(|| vec![me], <[NodeId]>::to_vec)
    }
}

/// How many domains a run of so many nodes has that say this of their leaders, if that can be.
///
/// # Errors
/// In words.
pub(crate) fn count(leaders: &[NodeId], nodes: usize) -> Result<usize, String> {
    if leaders.len() != nodes {
        let named = leaders.len();
        return Err(format!(
            "{named} nodes have domains of raw memory, of {nodes}"
        ));
    }
    for (node, leader) in leaders.iter().enumerate() {
        let of_leader = leaders.get(leader.index());
        if leader.index() > node || of_leader != Some(leader) {
            let (node, of_leader) = (NodeId::at(node), of_leader.copied());
            let theirs = of_leader.map_or_else(String::new, |its| format!(", which names {its}"));
            return Err(format!(
                "the nodes do not agree on the domains of raw memory: {node} names {leader} as \
                 its leader{theirs}"
            ));
        }
    }
    let is_leader = |(node, leader): (usize, &NodeId)| leader.index() == node;
    Ok(leaders
        .iter()
        .enumerate()
        .filter(|it| is_leader(*it))
        .count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(nodes: &[u16]) -> Vec<NodeId> {
        nodes.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn a_machine_s_nodes_are_cut_into_domains_in_their_order() {
        let machine = ids(&[1, 2, 4, 7, 9]);
        assert_eq!(Domains::Host.of(&machine, NodeId(4)), machine);
        assert_eq!(Domains::Node.of(&machine, NodeId(4)), ids(&[4]));
        assert_eq!(Domains::Most(2).of(&machine, NodeId(4)), ids(&[4, 7]));
        assert_eq!(Domains::Most(2).of(&machine, NodeId(9)), ids(&[9]));
        // A node that shows nothing is not among them.
        assert_eq!(Domains::Host.of(&machine, NodeId(3)), ids(&[3]));
    }

    #[test]
    fn leaders_lead_themselves_or_the_run_is_refused() {
        assert_eq!(count(&ids(&[0, 1, 2]), 3), Ok(3));
        assert_eq!(count(&ids(&[0, 0, 2, 2, 0]), 5), Ok(2));
        let refused = count(&ids(&[0, 0, 1]), 3).unwrap_err();
        assert!(refused.ends_with("node 2 names node 1 as its leader, which names node 0"));
        assert!(count(&ids(&[1, 1]), 2).is_err());
        assert!(count(&ids(&[0, 7]), 2).is_err());
        assert!(count(&ids(&[0]), 2).is_err());
    }

    #[test]
    fn domains_have_names() {
        for domains in [Domains::Host, Domains::Node, Domains::Most(3)] {
            assert_eq!(domains.to_string().parse(), Ok(domains));
        }
        for wrong in ["", "hosts", "0", "-1", "99999"] {
            assert_eq!(wrong.parse::<Domains>(), Err(UnknownDomains));
        }
    }
}
