//! How soon a message has to be taken.

/// How soon the receiver of a message has to take it while its worker computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Haste {
    /// When its worker waits or synchronises: nothing comes of it before that another node could
    /// wait for.
    AtLeisure,
    /// When its worker looks at an object that is replicated, or a few milliseconds later:
    /// something comes of it that another node waits for only where it was overtaken by what it
    /// goes before, or where the replica has become the only copy.
    Soon,
    /// At once where the worker that sent it waits for what comes of it, and otherwise soon, though
    /// others may wait for that: who sent it and comes to wait for it later says so then.
    WhenAwaited,
    /// At once: others may wait for what comes of it.
    AtOnce,
}
