use std::time::Duration;

/// The shortest time after which what is not acknowledged counts as lost: a thread may well not be
/// scheduled for so long.
const LEAST: Duration = Duration::from_millis(5);
/// The longest, however often it was in vain.
const MOST: Duration = Duration::from_millis(500);
/// Before anything is known of the other side.
const FIRST: Duration = Duration::from_millis(50);
/// Fragments on the way at the beginning, and after everything was lost.
const BEGINNING: f64 = 16.0;
const AFTER_A_TIMEOUT: f64 = 2.0;

/// How fast a flow may go: the round trip as it was seen (Jacobson, RFC 6298), and how many
/// fragments may be on the way, which grows by what is acknowledged and is halved by a loss.
pub(super) struct Pace {
    round_trip: Option<(Duration, Duration)>,
    timeouts: u32,
    window: f64,
    threshold: f64,
    /// Losses below this fragment are of the same congestion as the last one.
    recovering_to: u64,
}

impl Pace {
    pub fn new() -> Self {
        Pace {
            round_trip: None,
            timeouts: 0,
            window: BEGINNING,
            threshold: f64::INFINITY,
            recovering_to: 0,
        }
    }

    /// Fragments that may be on the way.
    pub fn window(&self) -> usize {
        self.window as usize
    }

    /// After how long a fragment counts as lost.
    pub fn timeout(&self) -> Duration {
        let usual = match self.round_trip {
            None => FIRST,
            Some((mean, deviation)) => (mean + 4 * deviation).max(LEAST),
        };
        (usual * 2u32.pow(self.timeouts.min(8))).min(MOST)
    }

    /// How long a fragment that was sent again is left alone.
    pub fn grace(&self) -> Duration {
        self.round_trip.map_or(FIRST, |(mean, _)| mean)
    }

    /// A fragment that was sent once came back acknowledged after `took`.
    pub fn measured(&mut self, took: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => (took, took / 2),
            Some((mean, deviation)) => {
                let off = mean.abs_diff(took);
                ((7 * mean + took) / 8, (3 * deviation + off) / 4)
            }
        });
    }

    /// So many fragments arrived.
    pub fn arrived(&mut self, fragments: usize, most: usize) {
        self.timeouts = 0;
        for _ in 0..fragments {
            self.window += match self.window < self.threshold {
                true => 1.0,
                false => 1.0 / self.window,
            };
        }
        self.window = self.window.min(most as f64);
    }

    /// A fragment was lost while those up to `sent` were on the way.
    pub fn lost(&mut self, number: u64, sent: u64) {
        if number >= self.recovering_to {
            self.recovering_to = sent;
            self.threshold = (self.window / 2.0).max(AFTER_A_TIMEOUT);
            self.window = self.threshold;
        }
    }

    /// Nothing was heard of what was sent for the whole [`timeout`](Pace::timeout).
    pub fn timed_out(&mut self, sent: u64) {
        self.timeouts += 1;
        self.recovering_to = sent;
        self.threshold = (self.window / 2.0).max(AFTER_A_TIMEOUT);
        self.window = AFTER_A_TIMEOUT;
    }
}
