use dhole_macros::Variants;
use serde::Serialize;

/// The way in which the runtime finds reads of copies that are not valid, and an interval's first
/// writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Variants)]
#[variants(name, setting)]
#[serde(rename_all = "lowercase")]
pub enum Detector {
    /// Each access tests its handle.
    #[default]
    Check,
    /// The handle leads to one of three views of the node's memory, and the processor's page
    /// protection finds the accesses (DOSA, section 3.4). Linux on x86-64 only.
    Vm,
}
