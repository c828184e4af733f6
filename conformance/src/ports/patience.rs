use std::time::{Duration, Instant};

/// How long a check waits for what must happen. It is no measure of speed: it turns a hang into a
/// failure.
const BOUND: Duration = Duration::from_secs(120);

/// Waits for something, but not for ever.
pub struct Patience(Instant);

impl Default for Patience {
    fn default() -> Self {
        Patience(Instant::now() + BOUND)
    }
}

impl Patience {
    /// Goes on waiting for `what`.
    ///
    /// # Panics
    /// When it has been waited for too long.
    #[track_caller]
    pub fn for_a(&self, what: &str) {
        assert!(Instant::now() < self.0, "waited too long for {what}");
    }
}
