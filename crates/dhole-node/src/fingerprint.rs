//! Fingerprints of types, the same on every node.

use dhole_registry::fnv1a;

/// Tells a type from others, the same on every node: a hash of its name and size.
pub(crate) fn fingerprint<T>() -> [u8; 8] {
    let name = std::any::type_name::<T>().bytes();
    let all = name.chain(size_of::<T>().to_le_bytes());
    fnv1a(all).to_le_bytes()
}
