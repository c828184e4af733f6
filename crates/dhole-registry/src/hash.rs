/// A hash of these bytes, FNV-1a of 64 bits: the same in every process and build. For names and
/// fingerprints that nobody forges.
///
/// ```
/// assert_eq!(dhole_registry::fnv1a(*b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let basis = 0xcbf2_9ce4_8422_2325_u64;
    bytes.into_iter().fold(basis, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
