//! The memory of the processes of this machine, in which objects are read one-sided.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dhole_heap::Cluster;
use dhole_model::NodeId;
use dhole_net::Port;
use dhole_node::{Domain, Domains};
use dhole_space::{DomainFile, VisibleMemory, WindowMaker};

/// Of the files that a process shows, that of raw memory.
const RAW: usize = 2;

/// What this process shows of its memory, and which others show theirs.
pub(super) struct Neighbours {
    /// `None` where the port shows nothing.
    memory: Option<io::Result<Arc<VisibleMemory>>>,
    /// By node: whether its process is on this machine, and shows its memory if it can.
    near: Box<[bool]>,
    /// Makes windows of all nodes, where the port reaches memory that is not mapped.
    windows: Option<WindowMaker>,
}

impl Neighbours {
    pub(super) fn new(port: &dyn Port) -> Neighbours {
        let near = |node| port.shown_by(NodeId::at(node)).is_some();
        Neighbours {
            memory: None,
            near: (0..port.nodes()).map(near).collect(),
            windows: None,
        }
    }

    pub(super) fn show(&mut self, memory: io::Result<VisibleMemory>) {
        self.memory = Some(memory.map(Arc::new));
    }

    pub(super) fn reach(&mut self, windows: WindowMaker) {
        self.windows = Some(windows);
    }

    /// Whether objects may be read in the memory of a node.
    #[inline]
    pub(super) fn sees(&self, of: NodeId) -> bool {
        self.windows.is_some() || self.memory.is_some() && self.near[of.index()]
    }

    /// The domain of the node here, if others are in it. All of a machine say the same, for each
    /// process shows the same files to all of them.
    ///
    /// # Errors
    /// As of [`Multiprocess::domain`](crate::Multiprocess::domain).
    pub(super) fn domain(&self, port: &dyn Port, domains: Domains) -> io::Result<Option<Domain>> {
        let memory = match &self.memory {
            Some(Ok(memory)) => memory,
            // Without memory of others each node is a domain by itself.
            Some(Err(cause)) => return domains.cannot_be(port.nodes(), cause).map(|()| None),
            None => {
                let cause = "the nodes are processes that show each other no memory (they do over \
                             the transports shm and mixed)";
                return domains.cannot_be(port.nodes(), &cause).map(|()| None);
            }
        };
        let me = port.me();
        let shown = |node: NodeId| port.shown_by(node)?.get(RAW);
        let all = (0..port.nodes()).map(NodeId::at);
        let machine: Vec<NodeId> = all
            .filter(|node| *node == me || shown(*node).is_some())
            .collect();
        let nodes = domain_of(domains, &machine, me);
        // A node that is the whole run needs no protocol either.
        let is_whole = domains != Domains::Node && port.nodes() == 1;
        if nodes.len() == 1 && !is_whole {
            return Ok(None);
        }
        let file = match shown(nodes[0]) {
            Some(file) => Arc::new(DomainFile::open(file.try_clone()?)?),
            None => Arc::clone(memory.raw()),
        };
        Ok(Some(Domain { nodes, file }))
    }

    /// Has objects published and read; what the system refuses of it, in words.
    pub(super) fn publish(&self, port: &dyn Port, cluster: &Cluster) -> Vec<String> {
        if let Some(make) = &self.windows {
            return publish_through(make, cluster).err().into_iter().collect();
        }
        let memory = match &self.memory {
            Some(Ok(memory)) => memory,
            Some(Err(error)) => return vec![refused(error)],
            None => return Vec::new(),
        };
        let files = |node| -> Option<[OwnedFd; 2]> {
            let [records, store, ..] = port.shown_by(NodeId::at(node))? else {
                return None;
            };
            Some([records.try_clone().ok()?, store.try_clone().ok()?])
        };
        let shown = (0..port.nodes()).map(files).collect();
        let mut why = Vec::new();
        let published = cluster.publish_in(memory, shown, |node, error| {
            why.push(format!(
                "objects of {node} are asked for by message: its memory cannot be mapped: {error}"
            ));
        });
        why.extend(published.err().as_ref().map(refused));
        why
    }
}

fn publish_through(make: &WindowMaker, cluster: &Cluster) -> Result<(), String> {
    let unreached = |why| {
        format!("objects are asked for by message: no node reaches the memory of others: {why}")
    };
    let memory = make().map_err(unreached)?;
    match cluster.publish_through(memory) {
        true => Ok(()),
        false => Err(unreached(
            "nothing is read in it under this protocol".into(),
        )),
    }
}

fn refused(error: &io::Error) -> String {
    format!(
        "objects are asked for by message: there is no memory that processes of one machine read \
         of each other (`ulimit -f`, `ulimit -v`): {error}"
    )
}

/// Of these nodes of one machine, in their order, those of the domain of node `me`.
fn domain_of(domains: Domains, machine: &[NodeId], me: NodeId) -> Vec<NodeId> {
    let most = match domains {
        Domains::Host => machine.len().max(1),
        Domains::Node => 1,
        Domains::Most(nodes) => usize::from(nodes).max(1),
    };
    let mut all = machine.chunks(most);
    let own = all.find(|nodes| nodes.contains(&me));
    own.map_or_else(|| vec![me], <[NodeId]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_s_nodes_are_cut_into_domains_in_their_order() {
        let ids = |nodes: &[u16]| nodes.iter().copied().map(NodeId).collect::<Vec<_>>();
        let machine = ids(&[1, 2, 4, 7, 9]);
        let of = |domains, me| domain_of(domains, &machine, NodeId(me));
        assert_eq!(of(Domains::Host, 4), machine);
        assert_eq!(of(Domains::Node, 4), ids(&[4]));
        assert_eq!(of(Domains::Most(2), 4), ids(&[4, 7]));
        assert_eq!(of(Domains::Most(2), 9), ids(&[9]));
        // A node that shows nothing is not among them.
        assert_eq!(of(Domains::Host, 3), ids(&[3]));
    }
}
