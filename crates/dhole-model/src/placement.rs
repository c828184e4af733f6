use dhole_macros::Variants;
use serde::Serialize;

/// Where nodes store the copies of an object: each where it likes, or all at the same address.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Variants,
)]
#[variants(name, setting)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each node stores an object at its next free place when it first touches the object. So
    /// objects that a node uses together lie together (DOSA, section 3.3: lazy object storage
    /// allocation).
    #[default]
    FirstTouch,
    /// The allocating node chooses an address of one global space, in program order, and every node
    /// stores the object there. TreadMarks does so, and DOSA without lazy object storage
    /// allocation.
    Everywhere,
}
