//! The work on one row, which both versions share.

use super::Found;

/// The distance where there is no path: more than any, and twice it is a distance still.
pub const NO_PATH: u32 = u32::MAX / 2;

/// Takes `row`'s ways through a vertex, whose own row is `through`, where they are shorter.
#[inline]
pub fn relax(row: &mut [u32], vertex: usize, through: &[u32]) {
    let there = row[vertex];
    if there < NO_PATH {
        for (distance, onward) in row.iter_mut().zip(through) {
            *distance = (*distance).min(there + onward);
        }
    }
}

/// The result of rows: sums over their elements, in any order.
pub fn found<'a>(rows: impl Iterator<Item = (usize, &'a Vec<u32>)>) -> Found {
    let mut found = Found {
        checksum: 0,
        pairs: 0,
    };
    for (from, row) in rows {
        for (to, distance) in row.iter().enumerate().filter(|(_, it)| **it < NO_PATH) {
            let place = (from * row.len() + to) as u64;
            let mut mixed = (place << 32 | u64::from(*distance)).wrapping_add(1);
            mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            found.checksum = found.checksum.wrapping_add(mixed ^ (mixed >> 32));
            found.pairs += 1;
        }
    }
    found
}
