//! Graphs: what is followed from missed objects comes along with them, as is learned from misses.
//!
//! An object that comes names others. When the worker misses one of those soon after, the line of
//! the first miss has a *habit*: it follows the references in that slot of that type. From then on
//! its fetches say so, and the owner sends along what they lead to. The read handle of what came
//! along is marked until the worker reads the object for the first time. So a hit costs nothing,
//! and it is known how much of what came along was of use: a habit that does not pay is unlearned.

mod habits;

use std::collections::VecDeque;

use dhole_heap::{HeapMut, Miss, NamedObject};
use dhole_model::{CallSite, Oid, OidRange, WaitCost};
use dhole_protocol::{Follow, MOST_ALONG};
use rustc_hash::{FxHashMap, FxHashSet};

use self::habits::{Came, Habits, Via};
pub(crate) use self::habits::{Pays, Way};
use crate::waits::{Awaited, Key, Waits};

/// Lines whose habits are learned.
const MOST_LINES: usize = 1024;

/// Names that are remembered of the objects that came last.
const TRACES: usize = 4096;

/// Objects that came along and have not been read, of which it is known why they came.
const MOST_UNREAD: usize = 1 << 16;

/// An object that one of a message's objects names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub oid: Oid,
    shipped: Option<u32>,
    slot: usize,
    /// It goes along however many do so because they are followed: it is owned, or nothing is
    /// followed from it.
    pub is_free: bool,
    /// It goes along with the one that names it.
    goes: bool,
}

/// Objects in the order in which a message names them.
#[derive(Default)]
struct Names {
    all: Vec<Named>,
    /// The first that was not looked at.
    next: usize,
}

impl Names {
    fn next(&mut self) -> Option<Named> {
        let next = self.all.get(self.next).copied()?;
        self.next += 1;
        Some(next)
    }

    fn find(&mut self, oid: Oid) -> Option<Named> {
        let mut rest = self.all[self.next..].iter();
        let behind = rest.position(|named| named.goes && named.oid == oid)?;
        self.next += behind + 1;
        Some(self.all[self.next - 1])
    }

    fn clear(&mut self) {
        self.all.clear();
        self.next = 0;
    }
}

/// A line where objects are missed.
struct Line {
    site: CallSite,
    awaited: Awaited,
    habits: Habits,
    /// What came along for its misses, and was not reported so far.
    cost: WaitCost,
}

/// What a node learns of graphs, and the objects that are named in the message under way.
#[derive(Default)]
pub(crate) struct Graphs {
    learns: bool,
    lines: Vec<Line>,
    by_key: FxHashMap<Key, u16>,
    /// By which references an object may be missed next, each at a place that its id determines.
    traces: Vec<Option<(Oid, Via)>>,
    unread: FxHashMap<Oid, Came>,
    /// Those, the oldest first, and others that were read since.
    came: VecDeque<Oid>,
    /// The line of the miss under way, and what it asked for beside.
    asks: Option<u16>,
    follow: Follow,
    /// What is read ahead for the miss under way: the line, the missed object, and those around.
    ahead: Option<(u16, Oid, OidRange)>,
    named: Names,
    /// Those of them that name no others, which go before them.
    ends: Names,
    pub(crate) sent: FxHashSet<Oid>,
}

impl Graphs {
    /// What is learned, where it is to be.
    pub fn new(learns: bool) -> Graphs {
        Graphs {
            learns,
            ..Graphs::default()
        }
    }

    /// Whether references are looked for in what comes.
    #[inline]
    pub fn learns(&self) -> bool {
        self.learns
    }

    /// The worker is about to miss an object: what should come along with it.
    pub fn misses(&mut self, miss: &Miss) -> Follow {
        if let Some(via) = self.take_trace(miss.oid) {
            self.line(via.line).habits.missed((via.ty, via.slot));
        }
        self.asks = self.line_of(miss);
        let asks = self.asks.map(|line| &self.lines[usize::from(line)]);
        self.follow = asks.map_or_else(Follow::default, |line| line.habits.follow().clone());
        self.follow.clone()
    }

    /// The worker asks for objects with which nothing should come along.
    pub fn misses_several(&mut self) {
        self.asks = None;
        self.follow = Follow::default();
        self.ends_ahead();
    }

    /// The worker has read these for the first time since they came: how many came along, and how
    /// many ahead. Those that were given up count for neither.
    pub fn read(&mut self, read: Vec<Oid>) -> [u64; 2] {
        let [mut along, mut ahead] = [0; 2];
        for oid in read {
            match self.judge(oid, true) {
                Some(Came::Along(_)) => along += 1,
                Some(Came::Ahead(_)) => ahead += 1,
                None => {}
            }
        }
        [along, ahead]
    }

    /// Whether an object has come that has yet to be read, as far as that was noted.
    #[inline]
    pub fn expects_reads(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The copy of an object becomes invalid.
    pub fn invalidated(&mut self, oid: Oid) {
        self.judge(oid, false);
    }

    /// Objects were freed, some of which may have come unasked and not been read.
    pub fn freed(&mut self, range: OidRange) {
        if range.count as usize <= self.unread.len() {
            range.iter().for_each(|oid| self.invalidated(oid));
            return;
        }
        let gone = self
            .unread
            .keys()
            .copied()
            .filter(|oid| range.contains(*oid));
        for oid in gone.collect::<Vec<_>>() {
            self.invalidated(oid);
        }
    }

    fn judge(&mut self, oid: Oid, read: bool) -> Option<Came> {
        let came = self.unread.remove(&oid)?;
        let line = self.line(came.line());
        match came {
            Came::Along(via) => {
                line.habits.came((via.ty, via.slot), read);
                line.cost.along_read += u64::from(read);
            }
            Came::Ahead(_) if read => line.habits.reads_what_came_ahead(),
            Came::Ahead(_) => {}
        }
        Some(came)
    }

    fn line(&mut self, line: u16) -> &mut Line {
        &mut self.lines[usize::from(line)]
    }

    fn line_of(&mut self, miss: &Miss) -> Option<u16> {
        if !self.learns {
            return None;
        }
        let (site, awaited) = (miss.call_site(), Awaited::from(miss));
        let key = Key::new(site, awaited);
        if let Some(&line) = self.by_key.get(&key) {
            return Some(line);
        }
        if self.lines.len() == MOST_LINES {
            return None;
        }
        let line = self.lines.len() as u16;
        self.lines.push(Line {
            site,
            awaited,
            habits: Habits::default(),
            cost: WaitCost::default(),
        });
        self.by_key.insert(key, line);
        Some(line)
    }

    fn place(oid: Oid) -> usize {
        // Fibonacci hashing: ids that follow on each other lie apart.
        let hash = oid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> (u64::BITS - TRACES.trailing_zeros())) as usize
    }

    fn take_trace(&mut self, oid: Oid) -> Option<Via> {
        let trace = self.traces.get_mut(Graphs::place(oid))?;
        let (_, via) = trace.take_if(|(named, _)| *named == oid)?;
        Some(via)
    }

    /// The objects that an object of the message names: of one that is sent, those that `follow`
    /// says go along with it; of one that came, those that may have.
    pub fn names(&mut self, oid: Oid, packed: &[u8], follow: Option<&Follow>, heap: &HeapMut<'_>) {
        let came = follow.is_none() && self.asks.is_some();
        let asked = std::mem::take(&mut self.follow);
        let follow = follow.unwrap_or(&asked);
        let Graphs { named, ends, .. } = self;
        heap.named_in(oid, packed, MOST_ALONG as u64, &mut |it: NamedObject| {
            let goes = it.owned || follow.follows(it.shipped, it.slot);
            if goes || came {
                let names = match it.ends {
                    true => &mut *ends,
                    false => &mut *named,
                };
                names.all.push(Named {
                    oid: it.oid,
                    shipped: it.shipped,
                    slot: it.slot,
                    is_free: it.owned || it.ends,
                    goes,
                });
            }
        });
        self.follow = asked;
    }

    /// Whether the objects of the message name nothing that goes along.
    pub fn names_nothing(&self) -> bool {
        self.named.all.is_empty() && self.ends.all.is_empty()
    }

    /// The message is sent.
    pub fn forget(&mut self) {
        self.named.clear();
        self.ends.clear();
    }

    /// The next object that goes along with the ones that are sent.
    pub fn next(&mut self) -> Option<Named> {
        self.ends.next().or_else(|| self.named.next())
    }

    /// Whether an object came along because one before it names it, in the order in which they are
    /// named. If so it is marked until it is read.
    pub fn came_along(&mut self, oid: Oid) -> Option<Named> {
        self.ends.find(oid).or_else(|| self.named.find(oid))
    }

    /// An object has come along and was installed: whether its first read is to be noted.
    pub fn expects(&mut self, named: Named) -> bool {
        let Some(via) = self.via(named) else {
            return false;
        };
        self.line(via.line).cost.along += 1;
        self.expects_read(named.oid, Came::Along(via));
        true
    }

    /// How well it pays to read ahead of a miss that is about to be, at its line. `None` where what
    /// came ahead was not read: then nothing is read ahead for some misses.
    pub fn reads_ahead_at(&mut self, miss: &Miss) -> Option<Pays> {
        let line = self.line_of(miss)?;
        self.line(line).habits.reads_ahead()
    }

    /// Objects around one that is missed are read ahead.
    pub fn reads_ahead(&mut self, miss: &Miss, range: OidRange) {
        let line = self.line_of(miss);
        self.ahead = line.map(|line| (line, miss.oid, range));
    }

    /// The miss is over: whatever comes next did not come ahead of it.
    pub fn ends_ahead(&mut self) {
        self.ahead = None;
    }

    /// An object has come this way and was installed: whether it came ahead, so that its first read
    /// is to be noted.
    #[inline]
    pub fn came_ahead(&mut self, oid: Oid, way: Way) -> bool {
        match self.ahead {
            Some((line, missed, range)) if oid != missed && range.contains(oid) => {
                self.line(line).habits.comes_ahead(way);
                self.expects_read(oid, Came::Ahead(line));
                true
            }
            _ => false,
        }
    }

    fn expects_read(&mut self, oid: Oid, came: Came) {
        while self.came.len() >= MOST_UNREAD {
            if let Some(oldest) = self.came.pop_front() {
                self.judge(oldest, false);
            }
        }
        self.came.push_back(oid);
        self.unread.insert(oid, came);
    }

    fn via(&mut self, named: Named) -> Option<Via> {
        let line = self.asks?;
        let habits = &mut self.lines[usize::from(line)].habits;
        let (ty, slot) = habits.place(named.shipped?, named.slot)?;
        Some(Via { line, ty, slot })
    }

    /// The message is done with: remembers by which references of its objects others may be missed.
    #[inline]
    pub fn done(&mut self) {
        if !self.names_nothing() {
            self.remember();
        }
    }

    fn remember(&mut self) {
        let mut both = [&mut self.named, &mut self.ends].map(std::mem::take);
        for named in both.iter_mut().flat_map(|names| names.all.drain(..)) {
            if let Some(via) = self.via(named) {
                if self.traces.is_empty() {
                    self.traces = vec![None; TRACES];
                }
                self.traces[Graphs::place(named.oid)] = Some((named.oid, via));
            }
        }
        [self.named, self.ends] = both;
        self.forget();
    }

    /// Counts what came along at the lines whose misses brought it.
    pub fn report(&mut self, waits: &mut Waits) {
        for line in &mut self.lines {
            let cost = std::mem::take(&mut line.cost);
            if cost != WaitCost::default() {
                waits.came_along(line.awaited, line.site, cost);
            }
        }
    }
}
