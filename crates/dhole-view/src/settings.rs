//! The settings of a run's memory.

use std::io;

use dhole_protocol::memory::MINIPAGE_PAGE;

/// How much raw memory a run has: the only things that are set when it starts (MultiView,
/// section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySettings {
    /// Most minipages that lie on one page, from 1 to [`MOST_VIEWS`](MemorySettings::MOST_VIEWS).
    pub views: usize,
    /// Bytes of the memory, of which each node may allocate an equal part. They take no memory
    /// before they are used, only addresses: as many for each view, on each node. Where many nodes
    /// are in one process it is less, as fits into its addresses: 32 TiB for all views together.
    pub bytes: u64,
}

impl Default for MemorySettings {
    /// 32 views of 16 GiB.
    fn default() -> MemorySettings {
        MemorySettings {
            views: 32,
            bytes: 16 << 30,
        }
    }
}

impl MemorySettings {
    /// Most views.
    pub const MOST_VIEWS: usize = 256;
    /// Most bytes.
    pub const MOST_BYTES: u64 = 256 << 30;
    /// The log2 of the addresses that all nodes of a process have together.
    const ADDRESS_BITS: u32 = 45;

    /// Bytes of the memory where so many nodes are in one process.
    pub(crate) fn bytes_of(self, here: usize) -> u64 {
        let views = (here * (self.views + 1)) as u64;
        let most = (1 << MemorySettings::ADDRESS_BITS) / views;
        self.bytes.min(most) / MINIPAGE_PAGE * MINIPAGE_PAGE
    }

    /// Refuses what no run can have of `nodes` nodes, so many of them in one process.
    pub(crate) fn check(self, nodes: usize, here: usize) -> io::Result<()> {
        let MemorySettings { views, bytes } = self;
        let has_views = (1..=MemorySettings::MOST_VIEWS).contains(&views);
        let has_page_each = has_views && self.bytes_of(here) / MINIPAGE_PAGE >= nodes as u64;
        if has_page_each && bytes <= MemorySettings::MOST_BYTES {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "{bytes} bytes in {views} views for {nodes} nodes, where there may be 1 to {} \
                 views, and a page for each node to {} bytes",
                MemorySettings::MOST_VIEWS,
                MemorySettings::MOST_BYTES
            ),
        ))
    }
}
