use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a check waits for what must happen. It is no measure of speed: it turns a hang into a
/// failure.
static BOUND_MS: AtomicU64 = AtomicU64::new(120_000);

/// Waits for something, but not for ever.
pub struct Patience(Instant);

impl Default for Patience {
    fn default() -> Self {
        Patience(Instant::now() + Patience::bound())
    }
}

impl Patience {
    /// How long checks wait.
    pub(super) fn bound() -> Duration {
        Duration::from_millis(BOUND_MS.load(Ordering::Relaxed))
    }

    /// From now on all checks of this process wait no longer than this: where they are to fail.
    pub fn lasts(bound: Duration) {
        BOUND_MS.store(bound.as_millis() as u64, Ordering::Relaxed);
    }

    /// Goes on waiting for `what`.
    ///
    /// # Panics
    /// When it has been waited for too long.
    #[track_caller]
    pub fn for_a(&self, what: &str) {
        assert!(Instant::now() < self.0, "waited too long for {what}");
    }
}
