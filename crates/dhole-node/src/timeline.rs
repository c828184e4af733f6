//! Records when a node waited, for a picture of the run: one span for each wait.

use std::collections::hash_map::Entry;
use std::thread::ThreadId;

use dhole_model::{CallSite, Phase, Timeline, TimelinePlace, TimelineSpan, Track};
use rustc_hash::FxHashMap;

use crate::waits::{Awaited, Key};

/// The most waits that are kept of a node. Half of them go when there are more, the shortest first.
const MOST_SPANS: usize = 1 << 15;

/// The most lines at which they are.
const MOST_PLACES: usize = 1 << 12;

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub track: Track,
    /// By the clock of the node.
    pub began_ns: u64,
    pub took_ns: u64,
    pub processor_ns: Option<u64>,
    /// How many one-sided reads it stands for; none for what the worker waited for.
    pub reads: Option<u32>,
}

/// Records the waits of a node.
#[derive(Default)]
pub(crate) struct Recorder {
    timeline: Timeline,
    places: FxHashMap<(Key, Phase), u32>,
    threads: FxHashMap<ThreadId, u32>,
    /// Shorter waits are left out.
    least_ns: u64,
}

impl Recorder {
    /// The track of a thread beside the worker.
    pub fn track_of(&mut self, thread: ThreadId) -> Track {
        let next = self.threads.len() as u32;
        Track::Thread(*self.threads.entry(thread).or_insert(next))
    }

    /// A wait is over.
    pub fn add(&mut self, awaited: Awaited, site: CallSite, waited: Waited) {
        let Waited {
            track,
            began_ns,
            took_ns,
            processor_ns,
            reads,
        } = waited;
        let phase = reads.map_or(awaited.phase(), |_| Phase::OneSided);
        let stands_for = reads.unwrap_or(1);
        let place = match took_ns < self.least_ns {
            true => None,
            false => self.place(awaited, site, phase),
        };
        let Some(place) = place else {
            return self.leaves_out(took_ns, stands_for);
        };
        if self.timeline.spans.len() == MOST_SPANS {
            self.thin_out();
        }
        self.timeline.spans.push(TimelineSpan {
            place,
            track,
            began_ns,
            took_ns,
            processor_ns,
            stands_for,
        });
    }

    fn leaves_out(&mut self, took_ns: u64, stands_for: u32) {
        let ns = took_ns.saturating_mul(stands_for.into());
        self.timeline.left_out += u64::from(stands_for);
        self.timeline.left_out_ns = self.timeline.left_out_ns.saturating_add(ns);
    }

    /// The number of a line; none where there are too many.
    fn place(&mut self, awaited: Awaited, site: CallSite, phase: Phase) -> Option<u32> {
        let places = &mut self.timeline.places;
        match self.places.entry((Key::new(site, awaited), phase)) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(_) if places.len() >= MOST_PLACES => None,
            Entry::Vacant(new) => {
                let what = awaited.what().to_owned();
                places.push(TimelinePlace { site, phase, what });
                Some(*new.insert(places.len() as u32 - 1))
            }
        }
    }

    /// Leaves out half of the waits: all that are shorter than the median, and of those that are
    /// as long every second one.
    fn thin_out(&mut self) {
        let spans = std::mem::take(&mut self.timeline.spans);
        let mut times: Vec<u64> = spans.iter().map(|span| span.took_ns).collect();
        let middle = times.len() / 2;
        let least_ns = *times.select_nth_unstable(middle).1;
        let mut is_kept = false;
        let mut kept = Vec::with_capacity(MOST_SPANS);
        for span in spans {
            if span.took_ns == least_ns {
                is_kept = !is_kept;
            }
            if span.took_ns > least_ns || span.took_ns == least_ns && is_kept {
                kept.push(span);
            } else {
                self.leaves_out(span.took_ns, span.stands_for);
            }
        }
        self.least_ns = least_ns;
        self.timeline.spans = kept;
    }

    /// All waits of a program that began and ended so, by the node's clock.
    pub fn take(&mut self, took_ns: u64, processor_ns: u64) -> Timeline {
        Timeline {
            took_ns,
            processor_ns,
            ..std::mem::take(&mut self.timeline)
        }
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::WaitCause;

    use super::*;

    fn site(line: u32) -> CallSite {
        CallSite {
            file: "a.rs",
            line,
            column: 1,
        }
    }

    fn waited(began_ns: u64, took_ns: u64) -> Waited {
        Waited {
            track: Track::Process(0),
            began_ns,
            took_ns,
            processor_ns: None,
            reads: None,
        }
    }

    const LOCK: Awaited = Awaited::by(WaitCause::Lock);

    #[test]
    fn of_too_many_waits_the_longest_are_kept_and_the_others_are_counted() {
        let mut recorder = Recorder::default();
        let waits = 3 * MOST_SPANS as u64;
        for wait in 0..waits {
            // Every hundredth is long, and the others are equally short.
            let took_ns = if wait % 100 == 0 { 5_000 } else { 7 };
            recorder.add(LOCK, site(1), waited(10_000 * wait, took_ns));
        }
        let timeline = recorder.take(1, 0);
        let long = |span: &&TimelineSpan| span.took_ns == 5_000;
        let kept = timeline.spans.len() as u64;
        assert!(kept <= MOST_SPANS as u64);
        assert_eq!(
            timeline.spans.iter().filter(long).count() as u64,
            waits.div_ceil(100)
        );
        assert_eq!(timeline.left_out, waits - kept);
        assert_eq!(timeline.left_out_ns, 7 * timeline.left_out);
        assert!(timeline.spans.is_sorted_by_key(|span| span.began_ns));
    }

    #[test]
    fn reads_and_waits_at_a_line_are_places_of_their_own_and_so_are_threads() {
        let mut recorder = Recorder::default();
        let read = Waited {
            reads: Some(16),
            ..waited(20, 3)
        };
        let object = Awaited::by(WaitCause::Object);
        recorder.add(object, site(1), waited(0, 9));
        recorder.add(object, site(1), read);
        recorder.add(object, site(1), waited(30, 9));
        let me = recorder.track_of(std::thread::current().id());
        let id = || std::thread::current().id();
        let other = std::thread::scope(|scope| scope.spawn(id).join().unwrap());
        let other = recorder.track_of(other);
        assert_eq!((me, other), (Track::Thread(0), Track::Thread(1)));
        let timeline = recorder.take(50, 40);
        let places: Vec<u32> = timeline.spans.iter().map(|span| span.place).collect();
        assert_eq!(places, [0, 1, 0]);
        let phases: Vec<Phase> = timeline.places.iter().map(|place| place.phase).collect();
        assert_eq!(phases, [Phase::Miss, Phase::OneSided]);
        assert_eq!(timeline.spans[1].stands_for, 16);
        assert_eq!((timeline.took_ns, timeline.processor_ns), (50, 40));
    }

    #[test]
    fn a_program_of_very_many_lines_leaves_some_out() {
        let mut recorder = Recorder::default();
        for line in 0..MOST_PLACES as u32 + 3 {
            recorder.add(LOCK, site(line), waited(0, 2));
        }
        let timeline = recorder.take(1, 0);
        assert_eq!(timeline.places.len(), MOST_PLACES);
        assert_eq!((timeline.left_out, timeline.left_out_ns), (3, 6));
    }
}
