//! The clock of phases: the one place where it is noted what a node's worker spends its time on.

use std::cell::Cell;

use dhole_model::{Phase, PhaseTimes};

/// The phases of one node. Whichever of its processes has the turn is the worker whose phase it is.
///
/// A wait begins and ends its phase by the machine's clock of waits; the time in which the
/// worker did not wait is what is left of the whole. A hit and a miss that does not wait are not
/// noted. At barriers the node's clock and the processor's are looked at too.
#[derive(Default)]
pub(crate) struct PhaseClock {
    /// What the worker waits for, if it does.
    waits: Option<Phase>,
    /// Since when, by the clock of waits.
    since_ns: u64,
    times: PhaseTimes,
    /// When the last barrier was over, by the node's clock, and how long the worker had been held
    /// up then.
    barrier_over: [u64; 2],
    /// The last look at the processor's clock.
    looked: Option<Look>,
    /// The clock of the worker's own thread, when the program began.
    began_processor_ns: Option<u64>,
    /// The processor's time in waits, by phase.
    waited: [WaitedOnProcessor; 4],
}

/// Longer waits are sampled apart from shorter ones: as a rule a worker parks in them, and spins in
/// the others.
const LONG_NS: u64 = 100_000;

/// Two looks at a thread's clock take up to 2 us. So they are a five hundredth of this time.
const WAITED_NS: u64 = 1_000_000;

/// Of short waits one in so many is looked at, as soon as enough was waited.
const ONE_IN: u64 = 64;

/// The processor's time in the waits of one phase: in the short ones, and in the long ones.
#[derive(Clone, Copy, Default)]
struct WaitedOnProcessor {
    waits: u64,
    /// When the last wait began whose processor time was looked at, by the clock of waits.
    looked_ns: u64,
    /// How long the last wait took.
    took_ns: u64,
    of_each: [Sampled; 2],
}

/// Waits, of which some had their processor time looked at.
#[derive(Clone, Copy, Default)]
struct Sampled {
    all_ns: u64,
    seen_ns: u64,
    processor_ns: u64,
    /// The processor's time in those of before, which is settled.
    settled_ns: u64,
}

impl Sampled {
    /// The processor's time in all of them, by those that were looked at; by `others` where none
    /// was.
    fn processor_ns(&self, others: &Sampled) -> u64 {
        let by = if self.seen_ns > 0 { self } else { others };
        let ns = u128::from(self.all_ns) * u128::from(by.processor_ns);
        let ns = ns / u128::from(by.seen_ns.max(1));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX).min(self.all_ns);
        self.settled_ns.saturating_add(ns)
    }

    /// What was estimated so far stays as it is: later looks stand for later waits alone.
    fn settle(&mut self, others: &Sampled) {
        *self = Sampled {
            settled_ns: self.processor_ns(others),
            ..Sampled::default()
        };
    }
}

/// The place of a phase that is a wait.
fn place(wait: Phase) -> usize {
    match wait {
        Phase::Miss => 0,
        Phase::Lock => 1,
        Phase::Barrier => 2,
        Phase::Operation | Phase::Computing | Phase::OneSided => 3,
    }
}

/// A look at the clocks.
#[derive(Clone, Copy)]
struct Look {
    /// The number of the process whose thread looked: its clock is its own.
    by: u32,
    now_ns: u64,
    processor_ns: u64,
    /// How long the worker had waited before.
    waited_ns: u64,
}

impl PhaseClock {
    /// The worker waits from now on, or goes on with what it did when it gave its turn away.
    pub fn waits(&mut self, phase: Phase, waits_ns: u64) {
        self.ends(waits_ns);
        self.waits = Some(phase);
        self.since_ns = waits_ns;
    }

    /// The worker waits no longer.
    pub fn ends(&mut self, waits_ns: u64) {
        if let Some(phase) = self.waits.take() {
            *self.times.of_mut(phase) += waits_ns.saturating_sub(self.since_ns);
        }
    }

    /// The program begins, when the clock of the worker's own thread stands so.
    pub fn begins(&mut self, processor_ns: Option<u64>) {
        self.began_processor_ns = processor_ns;
    }

    /// The clock of the worker's own thread stands so.
    pub fn worker_had(&mut self, processor_ns: Option<u64>) {
        if let (Some(now), Some(began)) = (processor_ns, self.began_processor_ns) {
            self.times.worker_processor_ns = now.saturating_sub(began);
        }
    }

    /// Whether the clock of the worker's own thread is to be looked at when this wait begins, and
    /// when it ends: the first of its phase, one behind a wait of which two looks are a small part,
    /// and of the others some, chosen without regard to how long they take.
    pub fn looks_at_wait(&mut self, wait: Phase, waits_ns: u64) -> bool {
        let of = &mut self.waited[place(wait)];
        of.waits += 1;
        let is_chosen =
            || (of.waits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(ONE_IN);
        let is_due = || waits_ns.saturating_sub(of.looked_ns) >= WAITED_NS && is_chosen();
        let looks = of.waits == 1 || of.took_ns >= WAITED_NS || is_due();
        if looks {
            of.looked_ns = waits_ns;
        }
        looks
    }

    /// A wait is over that took so long, and so much of the processor, if that was looked at.
    pub fn waited(&mut self, wait: Phase, took_ns: u64, processor_ns: Option<u64>) {
        let of = &mut self.waited[place(wait)];
        of.took_ns = took_ns;
        let of = &mut of.of_each[usize::from(took_ns >= LONG_NS)];
        of.all_ns += took_ns;
        if let Some(ns) = processor_ns {
            of.seen_ns += took_ns;
            of.processor_ns += ns.min(took_ns);
        }
    }

    /// How long the worker waited so far, but at barriers.
    pub fn held_up_ns(&self) -> u64 {
        self.times.waited_ns() - self.times.barrier_ns
    }

    /// The worker has come to a barrier, and was held up for so long in all: how long it took since
    /// the last one, and was held up.
    pub fn arrives(&mut self, now_ns: u64, held_up_ns: u64) -> [u64; 2] {
        let [over_ns, held_up_before_ns] = self.barrier_over;
        let took_ns = now_ns.saturating_sub(over_ns);
        let held_up_ns = held_up_ns.saturating_sub(held_up_before_ns);
        [took_ns, held_up_ns.min(took_ns)]
    }

    /// A barrier is over, when the worker was held up for so long in all.
    pub fn departs(&mut self, now_ns: u64, held_up_ns: u64) {
        self.barrier_over = [now_ns, held_up_ns];
    }

    /// Whether so much time has gone by that a look at the processor's clock costs little of it.
    pub fn may_look(&self, now_ns: u64) -> bool {
        let since = |look: Look| now_ns.saturating_sub(look.now_ns);
        self.looked.is_none_or(|look| since(look) >= LEAST_LOOK_NS)
    }

    /// The processor's clock stands so, when the worker has waited so long in `parts`: how much of
    /// the time for which it did not wait it had a processor. Where waiting took the processor too,
    /// that part is not known and counts for computing: the node is not said to lack a processor
    /// that it may have had.
    pub fn looks(&mut self, by: u32, now_ns: u64, processor_ns: u64, parts: &PhaseTimes) {
        let waited_ns = self.times.waited_ns() + parts.waited_ns();
        let look = Look {
            by,
            now_ns,
            processor_ns,
            waited_ns,
        };
        let Some(last) = self.looked.replace(look).filter(|last| last.by == by) else {
            return;
        };
        let waited = waited_ns.saturating_sub(last.waited_ns);
        let busy = now_ns.saturating_sub(last.now_ns).saturating_sub(waited);
        let processor = processor_ns.saturating_sub(last.processor_ns);
        self.times.compared_ns += busy;
        self.times.processor_ns += busy.min(processor);
    }

    /// A part of the program begins that is told apart: what was estimated so far stays as it is.
    pub fn settle(&mut self) {
        for of in &mut self.waited {
            let [short, long] = of.of_each;
            of.of_each[0].settle(&long);
            of.of_each[1].settle(&short);
            // The first wait of the part is looked at.
            of.waits = 0;
        }
    }

    /// The program is over on this node.
    pub fn whole(&mut self, whole_ns: u64) {
        self.times.whole_ns = whole_ns;
    }

    /// The times so far, with those that the worker waited in `parts`. One-sided reads took about
    /// so many nanoseconds.
    pub fn times(&self, one_sided_ns: u64, parts: &PhaseTimes) -> PhaseTimes {
        let of = |wait: Phase| {
            let [short, long] = self.waited[place(wait)].of_each;
            let ns = short.processor_ns(&long) + long.processor_ns(&short);
            ns.min(self.times.of(wait))
        };
        let mut times = PhaseTimes {
            one_sided_ns,
            miss_processor_ns: of(Phase::Miss),
            lock_processor_ns: of(Phase::Lock),
            barrier_processor_ns: of(Phase::Barrier),
            operation_processor_ns: of(Phase::Operation),
            ..self.times
        };
        times.add(parts);
        match times.whole_ns {
            0 => times, // the program is not over
            _ => times.within_whole(),
        }
    }
}

/// The processor's clock is a system call: it is not looked at more often.
const LEAST_LOOK_NS: u64 = 100_000;

/// One-sided reads, of which a sample is timed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SampledReads {
    reads: u64,
    /// Those that were timed, and their time.
    timed: u64,
    timed_ns: u64,
    /// Those that took very much longer than the others: another program had the processor, or the
    /// system made a page. They stand for themselves alone.
    slow: u64,
    slow_ns: u64,
    /// The time of those of before, which is settled, and what a read took then: how many were
    /// timed, and their time.
    settled_ns: u64,
    before: (u64, u64),
}

/// One read in so many is timed.
pub(crate) const SAMPLED: u32 = 16;

/// Chooses the one-sided reads of a worker that are timed.
#[derive(Default)]
pub(crate) struct ReadTimer(Cell<u32>);

impl ReadTimer {
    /// A read may begin: whether it is to be timed. So is the first.
    pub fn times(&self) -> bool {
        let before = self.0.get();
        self.0.set(before.wrapping_add(1));
        before.is_multiple_of(SAMPLED)
    }
}

/// A read that takes so many times as long as the usual one is a slow one.
const SLOW: u64 = 32;

impl SampledReads {
    /// Another one, which took so long, if it was timed.
    pub fn add(&mut self, took_ns: Option<u64>) {
        self.reads += 1;
        let Some(ns) = took_ns else {
            return;
        };
        let times = |ns: u64, most: u64| ns > SLOW.saturating_mul(most.max(1));
        if self.timed > 0 && times(ns.saturating_mul(self.timed), self.timed_ns) {
            self.slow += 1;
            self.slow_ns += ns;
            return;
        }
        if times(self.timed_ns, ns.saturating_mul(self.timed)) {
            self.slow += std::mem::take(&mut self.timed);
            self.slow_ns += std::mem::take(&mut self.timed_ns);
        }
        self.timed += 1;
        self.timed_ns += ns;
    }

    /// So many more, which took so long together, if they were timed.
    pub fn add_all(&mut self, reads: u64, took_ns: Option<u64>) {
        if reads > 0 {
            self.add(took_ns.map(|took_ns| took_ns / reads));
            self.reads += reads - 1;
        }
    }

    /// How long all of them took, by those that were timed; by `usual` where none was.
    pub fn ns(&self, usual: &SampledReads) -> u64 {
        let timed = |of: &SampledReads| (of.timed, of.timed_ns);
        let known = [timed(self), timed(usual), self.before, usual.before];
        let by = known.into_iter().find(|(timed, _)| *timed > 0);
        let (timed, timed_ns) = by.unwrap_or((1, 0));
        let others = u128::from(self.reads - self.slow);
        if others == 0 {
            return self.settled_ns.saturating_add(self.slow_ns);
        }
        let ns = others * u128::from(timed_ns) / u128::from(timed);
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        let settled_ns = self.settled_ns.saturating_add(self.slow_ns);
        settled_ns.saturating_add(ns)
    }

    /// What was estimated so far stays as it is: reads that are timed later stand for later ones
    /// alone.
    pub fn settle(&mut self, usual: &SampledReads) {
        *self = SampledReads {
            settled_ns: self.ns(usual),
            before: match self.timed {
                0 => self.before,
                timed => (timed, self.timed_ns),
            },
            ..SampledReads::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_that_of_the_process_that_has_the_turn() {
        let mut clock = PhaseClock::default();
        clock.waits(Phase::Barrier, 10);
        // Another process begins, and waits too.
        clock.ends(15);
        clock.waits(Phase::Miss, 40);
        clock.ends(42);
        // It is over: the first waits again.
        clock.waits(Phase::Barrier, 50);
        clock.ends(57);
        clock.ends(99);
        clock.whole(100);
        let times = clock.times(8, &PhaseTimes::default());
        assert_eq!((times.barrier_ns, times.miss_ns), (12, 2));
        assert_eq!(times.of(Phase::Computing), 100 - 12 - 2 - 8);
        assert_eq!(
            clock.times(87, &PhaseTimes::default()).one_sided_ns,
            86,
            "the sample took longer than the rest"
        );
    }

    #[test]
    fn what_others_had_of_the_processor_is_missing_in_the_time_compared() {
        let mut clock = PhaseClock::default();
        let (one, other) = (0, 1);
        clock.looks(one, 0, 1_000, &PhaseTimes::default());
        assert!(!clock.may_look(99_999) && clock.may_look(100_000));
        // It waits for 40 of 100, computes for the rest, and has the processor for half of that.
        clock.waits(Phase::Lock, 0);
        clock.ends(40_000);
        clock.looks(one, 100_000, 31_000, &PhaseTimes::default());
        let times = clock.times(0, &PhaseTimes::default());
        assert_eq!((times.compared_ns, times.processor_ns), (60_000, 30_000));
        // A wait that spins takes the processor too.
        clock.looks(one, 200_000, 500_000, &PhaseTimes::default());
        assert_eq!(clock.times(0, &PhaseTimes::default()).processor_ns, 130_000);
        // The clock of another thread tells nothing.
        clock.looks(other, 300_000, 7, &PhaseTimes::default());
        assert_eq!(clock.times(0, &PhaseTimes::default()).compared_ns, 160_000);
    }

    #[test]
    fn the_processor_of_waits_is_known_by_a_sample_of_short_ones_and_by_the_long_ones() {
        let mut clock = PhaseClock::default();
        let (mut now, mut looks) = (0, [0, 0]);
        let mut wait = |phase, took, processor, looked: &mut u64| {
            let looks = clock.looks_at_wait(phase, now);
            *looked += u64::from(looks);
            clock.waits(phase, now);
            now += took;
            clock.ends(now);
            clock.waited(phase, took, looks.then_some(processor));
        };
        // Short waits spin; in a long one the worker sleeps.
        for _ in 0..100_000 {
            wait(Phase::Miss, 500, 500, &mut looks[0]);
        }
        for round in 0..10 {
            wait(Phase::Barrier, 4_000_000, 40_000 + round, &mut looks[1]);
        }
        assert!((2..60).contains(&looks[0]), "{looks:?}");
        assert_eq!(looks[1], 10);
        clock.begins(Some(7));
        clock.worker_had(Some(80_000_007));
        clock.whole(200_000_000);
        let times = clock.times(0, &PhaseTimes::default());
        let [missed, met] = [100_000 * 500, 10 * 40_000 + 45];
        assert_eq!(times.processor_of(Phase::Miss), Some(missed));
        assert_eq!(times.processor_of(Phase::Barrier), Some(met));
        let computed = 80_000_000 - missed - met;
        assert_eq!(times.processor_of(Phase::Computing), Some(computed));
    }

    #[test]
    fn a_wait_in_a_part_is_no_lack_of_a_processor() {
        let mut clock = PhaseClock::default();
        clock.looks(0, 0, 0, &PhaseTimes::default());
        // It waits for 40 of 100 in raw memory, asleep, and has the processor otherwise.
        let parts = PhaseTimes {
            miss_ns: 40_000,
            ..PhaseTimes::default()
        };
        clock.looks(0, 100_000, 60_000, &parts);
        clock.whole(100_000);
        let times = clock.times(70_000, &parts);
        assert_eq!((times.compared_ns, times.processor_ns), (60_000, 60_000));
        // One-sided reads take no more than is left.
        assert_eq!((times.miss_ns, times.one_sided_ns), (40_000, 60_000));
    }

    #[test]
    fn what_is_settled_is_not_estimated_anew() {
        let (usual, mut reads) = (SampledReads::default(), SampledReads::default());
        let read = |reads: &mut SampledReads, ns| {
            for number in 0..160 {
                reads.add((number % 16 == 0).then_some(ns));
            }
        };
        read(&mut reads, 100);
        reads.settle(&usual);
        let settled_ns = reads.ns(&usual);
        reads.add(None);
        assert_eq!((settled_ns, reads.ns(&usual)), (16_000, 16_100));
        read(&mut reads, 900);
        assert_eq!(reads.ns(&usual) - settled_ns, 161 * 900);

        let mut clock = PhaseClock::default();
        let wait = |clock: &mut PhaseClock, took, processor| {
            let looks = clock.looks_at_wait(Phase::Lock, 0);
            clock.waits(Phase::Lock, 0);
            clock.ends(took);
            clock.waited(Phase::Lock, took, looks.then_some(processor));
            clock.times(0, &PhaseTimes::default()).lock_processor_ns
        };
        assert_eq!(wait(&mut clock, 1_000, 1_000), 1_000);
        clock.settle();
        assert_eq!(wait(&mut clock, 1_000, 0), 1_000);
    }

    #[test]
    fn a_barrier_knows_how_long_the_node_took_and_waited_before() {
        let mut clock = PhaseClock::default();
        assert_eq!(clock.arrives(30, 10), [30, 10]);
        clock.departs(50, 10);
        assert_eq!(clock.arrives(57, 12), [7, 2]);
    }

    #[test]
    fn a_sample_stands_for_all_and_a_slow_read_for_itself() {
        let usual = SampledReads::default();
        let mut reads = SampledReads::default();
        reads.add(Some(50_000));
        for read in 0..63 {
            reads.add((read % 16 == 0).then_some(100));
        }
        assert_eq!(reads.ns(&usual), 50_000 + 63 * 100);
        reads.add(Some(1_000_000));
        assert_eq!(reads.ns(&usual), 1_050_000 + 63 * 100);
        let mut unseen = SampledReads::default();
        unseen.add(None);
        assert_eq!((unseen.ns(&reads), unseen.ns(&usual)), (100, 0));
    }
}
