/// The measures of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Virtual nanoseconds from the start to the end of the last body.
    pub elapsed_ns: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Bytes that senders put on their links.
    pub bytes: u64,
    /// Messages lost and sent again.
    pub lost: u64,
    /// Nanoseconds for which messages queued for a medium that they shared.
    pub queued_ns: u64,
    /// Events: deliveries, expired waits, and workers that went on.
    pub events: u64,
    /// The nanoseconds of the program's own computation on every node, measured or charged.
    pub computed_ns: Vec<u64>,
}

impl Report {
    /// The program's own computation on all nodes, in nanoseconds: the time of the run on one node
    /// that never waits.
    pub fn work_ns(&self) -> u64 {
        self.computed_ns.iter().sum()
    }
}
