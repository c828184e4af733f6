//! Fingerprints of types, the same on every node.

/// Tells a type from others, the same on every node: FNV-1a over its name and size.
pub(crate) fn fingerprint<T>() -> [u8; 8] {
    let name = std::any::type_name::<T>().bytes();
    let all = name.chain(size_of::<T>().to_le_bytes());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}
