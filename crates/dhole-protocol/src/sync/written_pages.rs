//! The pages that an interval wrote, where pages are kept consistent in place of objects.

use dhole_model::{MAX_NODES, NodeId, PageRange, VectorTime};
use dhole_wire::{
    Pair, Tail, Wire, WireAs, WireError, count, take_varint, varint_len, write_varint,
};

use crate::ranges::Ranges;

/// What an interval wrote, by pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WrittenPages {
    /// What the writer had seen when the interval ended, the interval itself included.
    pub seen: VectorTime,
    /// The pages of which it made a twin, in ascending order.
    pub ranges: Vec<PageRange>,
    /// Bytes of both in the tail of a message. All nodes are told of every interval, so that to
    /// count anew for each of them takes time with the cube of their number.
    tail_len: usize,
}

impl WrittenPages {
    /// What was written, by a node that had seen this when its interval ended.
    pub fn new(seen: VectorTime, ranges: Vec<PageRange>) -> WrittenPages {
        let times = seen.indices().map(|index| varint_len(index.into()));
        let tail_len = times.sum::<usize>() + Ranges::tail_len(&ranges);
        WrittenPages {
            seen,
            ranges,
            tail_len,
        }
    }
}

/// Most numbers of the time are small, and are sent by seven bits a byte.
impl Wire for WrittenPages {
    type Head = Pair<u32, u32>;

    fn head(&self) -> Self::Head {
        Pair(count(self.seen.nodes()), Ranges::head(&self.ranges))
    }

    fn tail_len(&self) -> usize {
        self.tail_len
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        for index in self.seen.indices() {
            write_varint(index.into(), out);
        }
        Ranges::write_tail(&self.ranges, out);
    }

    fn read(
        Pair(nodes, ranges): &Self::Head,
        tail: &mut Tail<'_>,
    ) -> Result<WrittenPages, WireError> {
        let nodes = *nodes as usize;
        if nodes > MAX_NODES {
            return Err(WireError::Value("a time of more nodes than a cluster has"));
        }
        let mut seen = VectorTime::zero(nodes);
        for node in 0..nodes {
            let index = u32::try_from(take_varint(tail)?);
            let index = index.map_err(|_| WireError::Value("an interval beyond 2^32"))?;
            seen.see(NodeId::at(node), index);
        }
        Ok(WrittenPages::new(seen, Ranges::read(ranges, tail)?))
    }
}
