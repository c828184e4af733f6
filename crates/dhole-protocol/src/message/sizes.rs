//! The sizes of units behind a message.

use dhole_wire::{Tail, WireAs, WireError, take_varint, varint_len, write_varint};
use smallvec::SmallVec;

type List = SmallVec<[u64; 1]>;

/// Encodes sizes as varints, behind their number. Most messages have none, which takes one byte.
pub struct Sizes;

fn count(sizes: &List) -> u64 {
    sizes.len() as u64
}

impl WireAs<List> for Sizes {
    type Head = ();

    fn head(_: &List) {}

    fn tail_len(sizes: &List) -> usize {
        let each = sizes.iter().map(|size| varint_len(*size));
        varint_len(count(sizes)) + each.sum::<usize>()
    }

    fn write_tail(sizes: &List, out: &mut Vec<u8>) {
        write_varint(count(sizes), out);
        sizes.iter().for_each(|size| write_varint(*size, out));
    }

    fn read((): &(), tail: &mut Tail<'_>) -> Result<List, WireError> {
        let (count, mut sizes) = (take_varint(tail)?, SmallVec::new());
        // It grows with what is really there.
        for _ in 0..count {
            sizes.push(take_varint(tail)?);
        }
        Ok(sizes)
    }
}
