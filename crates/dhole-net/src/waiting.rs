use std::time::Duration;

/// How a node waits for what other nodes do, in three numbers.
///
/// A thread that waits *spins*, then *yields*, then *parks* until a frame arrives. It spins only
/// where every thread that might can: where the machine has a core for each process, or for each
/// node that is a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Waiting {
    /// How long a waiting thread spins after something has come last, and then how long it yields;
    /// 100 us unless set. With zero it parks at once.
    pub spin: Duration,
    /// The longest time for which the service thread stays away from the port of a worker that
    /// polls often by itself; 800 us unless set.
    pub backoff: Duration,
    /// How often a sleeping service thread polls for frames that do not wake it; 4 ms unless set.
    pub sleep: Duration,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting {
            spin: Duration::from_micros(100),
            backoff: Duration::from_micros(800),
            sleep: Duration::from_millis(4),
        }
    }
}
