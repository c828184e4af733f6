//! Room for the descriptors of a node's connections.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A node has at most so many descriptors for each other node while it joins, and as many for
/// itself as the second number says.
const EACH: u64 = 7;
const OWN: u64 = 64;

/// Raises this process's soft limit of open files to the hard one, where the soft one leaves no
/// room for the connections of a cluster of so many nodes. Where that is refused, whatever then
/// finds no room says so.
pub(crate) fn make_room(nodes: usize) {
    let wanted = OWN + EACH * nodes as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < wanted) {
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// What helps where a process may have no more descriptors.
pub(crate) fn advice(cause: &io::Error) -> String {
    match rustix::io::Errno::from_io_error(cause) {
        Some(rustix::io::Errno::MFILE) => format!(
            "; a node takes up to {EACH} descriptors for each other node: `ulimit -Hn` says how \
             many it may have, and the administrator can raise that"
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_room_for_descriptors_hears_what_there_is_to_do() {
        let none = io::Error::from(rustix::io::Errno::MFILE);
        assert!(advice(&none).contains("ulimit -Hn"));
        assert_eq!(advice(&io::ErrorKind::NotFound.into()), "");
    }
}
