use std::time::Duration;

/// What a thread that parks in a port is owed: that another thread ends its park.
///
/// Every park has a time. A thread that finds only by that time that its park was to end has lost a
/// doorbell, and a port that [knows](crate::Port::owe) what is owed counts that.
pub struct Owed {
    /// Whether another thread has said something for which it ends the park: it has rung the
    /// doorbell of the thread that is parked, or is about to.
    pub is_owed: Box<dyn Fn() -> bool + Send + Sync>,
    /// In what time it does, however busy the system is.
    pub within: Duration,
}
