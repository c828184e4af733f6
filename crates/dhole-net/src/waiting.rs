use std::time::Duration;

/// How a thread waits for what another node does, in ever milder ways: it spins, then it yields,
/// then it parks until something comes.
///
/// It spins only where all who might can: while fewer threads wait than there are cores, or where
/// there is a core for each process of the machine. Processes that are more than the cores look for
/// a moment before each yield, no longer than they would spin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// How long it spins after something has come last; 100 us unless set.
    pub spin: Duration,
    /// How often it yields then; 100 times unless set.
    pub yields: u32,
    /// A thread that is parked looks whether its wait is over this often at the latest; 100 ms
    /// unless set.
    pub park: Duration,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting {
            spin: Duration::from_micros(100),
            yields: 100,
            park: Duration::from_millis(100),
        }
    }
}
