/// After so many naps in a row the service thread serves all the same. The worker need not take
/// what comes, though it is in the runtime, or comes often: it may compute within one long call, or
/// do nothing but read what is here.
const MOST: u32 = 64;

/// When the service thread keeps away from the port, though the worker does not rest there.
#[derive(Default)]
pub(super) struct Naps {
    /// How often the worker had come at the last look.
    seen: u64,
    /// What woke the service thread last, the worker took.
    in_vain: bool,
    /// Naps in a row.
    naps: u32,
    /// It has served since they began.
    served: bool,
}

impl Naps {
    /// Whether to nap rather than to serve, where the worker has come `entries` times and is
    /// `inside` the runtime or not.
    pub fn keep_away(&mut self, entries: u64, inside: bool) -> bool {
        let another = entries != self.seen;
        if !inside && !(self.in_vain && another) {
            return false;
        }
        if another && std::mem::take(&mut self.served) {
            self.naps = 0;
        }
        self.seen = entries;
        self.naps = self.naps.saturating_add(1);
        self.naps < MOST
    }

    /// The worker rests in the port: it takes what comes.
    pub fn worker_rests(&mut self) {
        self.naps = 0;
    }

    /// The service thread has slept in the port, since the worker had come `entries` times, and
    /// then taken what there was, if not `in_vain`.
    pub fn served(&mut self, entries: u64, in_vain: bool) {
        self.seen = entries;
        self.in_vain = in_vain;
        self.served = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many naps follow on each other where the worker comes anew during each.
    fn in_a_row(naps: &mut Naps, entries: &mut u64, inside: bool) -> u32 {
        (0..10 * MOST)
            .take_while(|_| {
                *entries += 1;
                naps.keep_away(*entries, inside)
            })
            .count() as u32
    }

    #[test]
    fn a_worker_that_comes_often_and_takes_nothing_is_served_in_the_end() {
        for inside in [false, true] {
            let (mut naps, mut entries) = (Naps::default(), 0);
            naps.served(entries, true);
            for _ in 0..3 {
                assert_eq!(in_a_row(&mut naps, &mut entries, inside), MOST - 1);
                naps.served(entries, true);
            }
        }
    }

    #[test]
    fn within_a_call_that_is_long_it_is_served_all_the_time() {
        let mut naps = Naps::default();
        let many = (0..10 * MOST).take_while(|_| naps.keep_away(1, true));
        assert_eq!(many.count() as u32, MOST - 1);
        for _ in 0..10 {
            naps.served(1, true);
            assert!(!naps.keep_away(1, true));
        }
        naps.served(1, false);
        assert!(naps.keep_away(2, true), "the call after it may be short");
    }

    #[test]
    fn a_worker_that_computes_is_served_at_once() {
        let mut naps = Naps::default();
        assert!(!naps.keep_away(7, false));
        naps.served(7, true);
        assert!(!naps.keep_away(7, false), "it has not come since");
        assert!(naps.keep_away(8, false), "it took what came, and may again");
        naps.served(8, false);
        assert!(!naps.keep_away(9, false), "it did not take what came");
    }
}
