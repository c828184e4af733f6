//! Domains: nodes of a run whose raw memory is the same pages of one machine.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use dhole_model::{NodeId, UnknownValue, Value};
use dhole_space::DomainFile;

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

impl Domains {
    /// Each node of a run of `nodes` is a domain by itself, because of `cause`. That is an error
    /// where domains of several nodes are asked for by their size.
    ///
    /// # Errors
    /// `Unsupported`, with the cause in words.
    pub fn cannot_be(self, nodes: usize, cause: &dyn fmt::Display) -> io::Result<()> {
        match self {
            Domains::Most(most @ 2..) if nodes > 1 => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "domains of {most} nodes are asked for: {cause}; leave the domains out, or ask \
                     for `--domains node`"
                ),
            )),
            _ => Ok(()),
        }
    }
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

impl Value for Domains {
    fn find(said: &str) -> Option<Domains> {
        match said {
            "host" => Some(Domains::Host),
            "node" => Some(Domains::Node),
            number => number
                .parse()
                .ok()
                .filter(|most| *most > 0)
                .map(Domains::Most),
        }
    }

    fn allowed() -> Vec<&'static str> {
        Vec::new()
    }

    fn expected() -> String {
        "one of host, node, a number of nodes".to_owned()
    }
}

impl FromStr for Domains {
    type Err = UnknownValue;

    fn from_str(said: &str) -> Result<Domains, UnknownValue> {
        Domains::accept(said)
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

/// The leaders of the nodes of a run, which say in which domains they are, if all nodes of each say
/// the same.
///
/// # Errors
/// In words.
pub(crate) fn agree(domains: &[Vec<NodeId>]) -> Result<Vec<NodeId>, String> {
    let mut leaders = Vec::new();
    for (node, own) in domains.iter().enumerate() {
        let me = NodeId::at(node);
        if !own.contains(&me) || !own.is_sorted() {
            let said = words(own);
            return Err(format!("{me} says that its domain of raw memory is {said}"));
        }
        for other in own {
            let theirs = domains.get(other.index());
            if theirs != Some(own) {
                let (said, theirs) = (words(own), theirs.map(|its| words(its)));
                let theirs = theirs.map_or_else(String::new, |its| format!(", and {other} {its}"));
                return Err(format!(
                    "the nodes do not agree on the domains of raw memory: {me} names {said} as \
                     its own{theirs}"
                ));
            }
        }
        leaders.push(own[0]);
    }
    Ok(leaders)
}

fn words(nodes: &[NodeId]) -> String {
    let words: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    words.join(", ")
}

/// How many domains there are whose nodes have these leaders.
pub(crate) fn count(leaders: &[NodeId]) -> usize {
    let all = leaders.iter().enumerate();
    all.filter(|(node, leader)| leader.index() == *node).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(nodes: &[u16]) -> Vec<NodeId> {
        nodes.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn all_nodes_of_a_domain_say_who_is_in_it_or_the_run_is_refused() {
        let agreed = |all: &[&[u16]]| {
            let all: Vec<_> = all.iter().map(|nodes| ids(nodes)).collect();
            agree(&all)
        };
        assert_eq!(agreed(&[&[0], &[1], &[2]]), Ok(ids(&[0, 1, 2])));
        let two: [&[u16]; 5] = [&[0, 1, 4], &[0, 1, 4], &[2, 3], &[2, 3], &[0, 1, 4]];
        assert_eq!(agreed(&two), Ok(ids(&[0, 0, 2, 2, 0])));
        assert_eq!(count(&ids(&[0, 0, 2, 2, 0])), 2);
        // Node 1 does not see node 2, which both others see. All name node 0 as the leader.
        let refused = agreed(&[&[0, 1, 2], &[0, 1], &[0, 1, 2]]).unwrap_err();
        let says = "node 0 names node 0, node 1, node 2 as its own, and node 1 node 0, node 1";
        assert!(refused.ends_with(says), "{refused}");
        for wrong in [
            &[&[1_u16] as &[u16], &[1]],
            &[&[1, 0], &[1, 0]],
            &[&[0, 7], &[1]],
        ] {
            assert!(agreed(wrong).is_err(), "{wrong:?}");
        }
        assert!(agreed(&[&[]]).is_err());
    }

    #[test]
    fn domains_have_names() {
        for domains in [Domains::Host, Domains::Node, Domains::Most(3)] {
            assert_eq!(domains.to_string().parse(), Ok(domains));
        }
        for wrong in ["", "hosts", "0", "-1", "99999"] {
            assert_eq!(Domains::find(wrong), None);
        }
    }
}
