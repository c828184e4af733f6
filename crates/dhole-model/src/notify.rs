/// Whether the receiver of a message is notified of it while its worker computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Notify {
    /// It is not: its worker takes the message when it waits or polls, and its service thread at
    /// the end of a sleep.
    Lazy,
    /// It is: other nodes may wait for what comes of the message.
    Now,
}
