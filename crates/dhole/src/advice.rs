//! What a line of the program did, why it cost what it cost, and what may help: as far as is known.

use std::fmt::{self, Display};

use dhole_model::{CallSite, LineCost, NodeId, Phase, TypeCounters, WaitCause, WaitCost};

use crate::Report;
use crate::words::{Count, Counted, Took, ns, short};

/// Where a round brings fewer objects than this on average, naming more of them at once pays.
const FEW_OBJECTS: u64 = 16;
/// The same of bytes of an array.
const FEW_BYTES: u64 = 4096;
/// A node took longer than the others where it took this part longer.
const UNEVEN: f64 = 0.03;
/// From here on it is said how many times as long, and not how much longer.
const FAR_AHEAD: f64 = 9.995;

impl Report {
    /// One sentence that says what a line of the program did, how often, and how its program may
    /// do with less of it.
    pub fn advice(&self, line: &LineCost) -> String {
        let WaitCost { waits, misses, .. } = line.cost;
        let (kind, at) = (kind(line), At(line));
        let came = Beside(&line.cost);
        let rounds = Counted(waits, "round", "rounds");
        let of_each = of_each(line);
        if is_raw(line) {
            let (what, cure) = raw(line);
            return format!("{of_each} {what}{at}: {cure}");
        }
        if is_of_threads(line) {
            let cure = match line.cause {
                WaitCause::Lock if kind.contains("lock") => {
                    "hold it for less, or take one for each part of the data"
                }
                _ => "let what it waits for come earlier, or give this thread more to do before",
            };
            return format!("{of_each} for {kind}{at}: {cure}");
        }
        match line.cause {
            WaitCause::Object if waits == 0 => format!("{}{at}", Reads(&line.cost, &kind)),
            WaitCause::Object if line.type_name.is_empty() => format!(
                "{} of pages{at}: allocate in one `alloc_range` what is read together",
                Counted(waits, "fetch", "fetches")
            ),
            WaitCause::Object if line.cost.to_write > misses / 2 => format!(
                "{} of `{kind}` to write it{came}{at}: let the node write it that wrote it last, \
                 or give each node an object of its own and add them up at the end",
                Counted(misses, "fetch", "fetches"),
            ),
            WaitCause::Object if misses / 2 < waits => format!(
                "{} one by one of `{kind}`{came}{at}: {}",
                Counted(misses, "fetch", "fetches"),
                self.again(line)
                    .unwrap_or_else(|| self.together(line, &kind))
            ),
            WaitCause::Object => format!(
                "{} of `{kind}`{came} in {rounds}{at}: {}",
                Counted(misses, "fetch", "fetches"),
                self.again(line).unwrap_or_else(|| self.rounds(line))
            ),
            WaitCause::Elements => format!(
                "{rounds} for elements of an array of `{kind}`{at}: {}",
                self.again(line).unwrap_or_else(|| self.longer(line))
            ),
            WaitCause::ToWrite => format!(
                "{of_each} to write `{kind}`, of which other nodes may have copies{at}: let the \
                 node write it that wrote it last, or give each node an object of its own and add \
                 them up at the end"
            ),
            WaitCause::Lock => format!(
                "{of_each} for a lock{at}: hold it for less, take one for each part of the data, \
                 or add values up with `w.all_reduce` or an object with operations"
            ),
            WaitCause::Barrier => {
                let lateness = self.lateness(line);
                let (why, cure) = (self.why_late(line), lateness.cure());
                format!("{of_each} for the other nodes{at}, for {why}: {cure}")
            }
            WaitCause::Once => {
                let why = self.why_once(line);
                format!(
                    "{of_each} at a `once`{at}, for {why}: let each node make its own part and \
                     meet at a barrier, or do less there"
                )
            }
            WaitCause::Ids => format!(
                "{of_each} for ids of new objects{at}: allocate many at once \
                 (`w.alloc_range(..)`)"
            ),
            WaitCause::Updates => format!(
                "{of_each} until updates of an array of `{kind}` were combined with its \
                 elements{at}: make fewer, larger batches between two barriers, or let the node \
                 update elements that wrote them last"
            ),
            WaitCause::Read | WaitCause::Write | WaitCause::Guard if is_queue(line) => format!(
                "{of_each} for the queue of jobs (`{kind}`){at}: take several at once with \
                 `work_guided`, or make the jobs longer"
            ),
            WaitCause::Read => format!(
                "{of_each} for `{kind}`, which reads{at}: make an object `replicated()` that is \
                 read much more than written, or read it on the node that has it"
            ),
            WaitCause::Write => format!(
                "{of_each} for `{kind}`, which writes{at}: start it (`start_..`) and wait for its \
                 `Pending` later, or add up on each node and call it once"
            ),
            WaitCause::Guard => format!(
                "{of_each} for `{kind}`, which has a guard{at}: until the guard comes true there \
                 is nothing to do, so let what makes it true come earlier"
            ),
            WaitCause::Pending => format!(
                "{of_each} for `{kind}`, which was started before{at}: do more between its start \
                 and `wait`"
            ),
            WaitCause::Operation => format!("{of_each} for another node or a process{at}"),
        }
    }

    /// What to do where objects are fetched one by one.
    fn together(&self, line: &LineCost, kind: &str) -> String {
        // What was sent along and read shows that the program follows references.
        let follows = line.refers && line.cost.along_read > 0;
        match (follows, self.one_sided) {
            (true, true) => {
                format!("read along its references, so hold what is read together as `Own<{kind}>`")
            }
            (true, false) => format!(
                "read along its references, so walk for many items at once (`w.in_passes(..)`), \
                 fetch them with `w.prefetch_reachable(..)` from where the walk begins, or hold \
                 what is read together as `Own<{kind}>`"
            ),
            // A fetch costs no more than what `prefetch` would do for it.
            (false, true) => "keep what is read together in an array and borrow a range, or let \
                              the writer come to a barrier before: then it is read one-sided"
                .to_owned(),
            (false, false) => "name in one `w.prefetch(..)` what is read next, run the loop that \
                               reads it in passes (`w.in_passes(..)`), or keep it in an array and \
                               borrow a range"
                .to_owned(),
        }
    }

    /// What to do where a round brings several objects.
    fn rounds(&self, line: &LineCost) -> String {
        let per_round = line.cost.misses / line.cost.waits.max(1);
        let few = line.cost.waits > self.nodes as u64 && per_round < FEW_OBJECTS;
        if few && !self.one_sided {
            return format!(
                "{per_round} a round are few, so name more of them in one `w.prefetch(..)`, which \
                 asks each node once"
            );
        }
        let many = match few {
            true => "",
            false => "a round brings many already, so ",
        };
        format!("{many}read the objects on the node that writes them, or make them smaller")
    }

    /// What to do where a round brings elements of an array.
    fn longer(&self, line: &LineCost) -> String {
        let bytes = line.cost.bytes / line.cost.waits.max(1);
        if line.cost.waits > self.nodes as u64 && bytes < FEW_BYTES {
            let bytes = Counted(bytes, "byte", "bytes");
            let or = match self.one_sided {
                true => "",
                false => ", or name them in one `w.prefetch(..)`",
            };
            return format!("{bytes} a round are few, so borrow longer ranges{or}");
        }
        "a round brings many already, so read the elements on the node that writes them, or fewer"
            .to_owned()
    }

    /// What to do where copies are fetched again because others write the objects, and it was
    /// counted that nearly every version that was written was fetched.
    fn again(&self, line: &LineCost) -> Option<String> {
        let mut of_type = TypeCounters::default();
        let all = self.per_node.iter();
        all.filter_map(|node| node.by_type.get(&line.type_name))
            .for_each(|node| of_type.add(node));
        let TypeCounters {
            misses,
            one_sided_reads,
            invalidated,
            write_faults,
            ..
        } = of_type;
        let is_often = invalidated > self.nodes as u64 && invalidated > misses / 2;
        // Each version that is written would be pushed, be it read or not.
        let is_read = misses.saturating_mul(4) >= write_faults.saturating_mul(3);
        // What is read one-sided again takes no message, and a push would be one.
        let by_message = one_sided_reads <= misses;
        (is_often && is_read && by_message && self.protocol == "lazy").then(|| {
            format!(
                "written {} times, and fetched {} times after that by others: under \
                 `Coherence::Update` (`w.under(..)`, `w.switch(..)`) the writer sends new values \
                 to those who read before",
                Count(write_faults),
                Count(misses)
            )
        })
    }

    /// What a line cost, and why, in short: `19 waits of 7.10 ms for the other nodes: node 1 had
    /// 12% more to do`.
    pub(crate) fn why(&self, line: &LineCost) -> String {
        match line.cause {
            WaitCause::Barrier if !is_of_threads(line) => {
                let why = self.why_late(line);
                format!("{} for the other nodes: {why}", of_each(line))
            }
            WaitCause::Once => format!("{} at a `once`: {}", of_each(line), self.why_once(line)),
            _ => cost_of(line),
        }
    }

    /// Why nodes waited for each other at a line. Where nodes lacked a processor, that one took
    /// longer says no more.
    fn lateness(&self, line: &LineCost) -> Lateness {
        let uneven = &line.uneven;
        let part_waited = line.cost.waited_ns as f64 / uneven.busy_ns.max(1) as f64;
        match uneven.ahead() {
            _ if self.shares() => Lateness::SharedProcessors,
            Some((_, more)) if more >= UNEVEN && uneven.waited_longer() => Lateness::Waited,
            Some((_, more)) if more >= UNEVEN => Lateness::MoreToDo,
            Some(_) if part_waited >= UNEVEN && uneven.waited_most() => Lateness::WaitedInTurns,
            Some(_) if part_waited >= UNEVEN => Lateness::InTurns,
            _ => Lateness::Even,
        }
    }

    /// The same in words.
    fn why_late(&self, line: &LineCost) -> String {
        let ahead = line.uneven.ahead();
        match (self.lateness(line), ahead) {
            (Lateness::SharedProcessors, _) => "they shared their processors".to_owned(),
            (Lateness::MoreToDo, Some((node, more))) => {
                let by = by(more, "much to do", "more to do");
                format!("{node} had {by}")
            }
            (Lateness::Waited, Some((node, more))) => {
                let (by, phase) = (by(more, "long", "longer"), self.held_up(Some(node)));
                format!("{node} took {by}, in {phase}")
            }
            (Lateness::WaitedInTurns, _) => {
                format!(
                    "each time another node took longer, in {}",
                    self.held_up(None)
                )
            }
            (Lateness::InTurns, _) => "each time another node had more to do".to_owned(),
            _ => "messages alone: all had as much to do".to_owned(),
        }
    }

    /// In what a node, or all of them, waited longest before it came to barriers.
    fn held_up(&self, node: Option<NodeId>) -> &'static str {
        let nodes = self.phases();
        let of = |phase| {
            let times = nodes.iter().enumerate();
            let own = times.filter(|(at, _)| node.is_none_or(|node| node.index() == *at));
            own.map(|(_, times)| times.of(phase)).sum::<u64>()
        };
        let waits = [Phase::Miss, Phase::OneSided, Phase::Lock, Phase::Operation];
        let longest = waits.into_iter().max_by_key(|phase| of(*phase));
        longest.unwrap_or(Phase::Miss).name()
    }

    /// Why nodes waited at a `once`.
    fn why_once(&self, line: &LineCost) -> String {
        match line.uneven.ahead() {
            Some((node, more)) if node.index() != 0 && more >= UNEVEN => self.why_late(line),
            _ => "node 0 alone ran it".to_owned(),
        }
    }
}

/// By how much a node was ahead: so many times as `much`, or so many percent `more`.
fn by(ahead: f64, much: &str, more: &str) -> String {
    if ahead >= FAR_AHEAD {
        format!("{:.0} times as {much}", ahead + 1.0)
    } else {
        format!("{:.0}% {more}", 100.0 * ahead)
    }
}

/// What a line cost that is no place where all nodes meet.
fn cost_of(line: &LineCost) -> String {
    let (cost, kind, waits) = (line.cost, kind(line), of_each(line));
    if is_raw(line) {
        return format!("{waits} {}", raw(line).0);
    }
    if is_of_threads(line) {
        return format!("{waits} for {kind}");
    }
    match line.cause {
        WaitCause::Object if cost.one_sided_ns > cost.waited_ns => Reads(&cost, &kind).to_string(),
        WaitCause::Object if kind.is_empty() => format!("{waits} for pages"),
        WaitCause::Object => {
            let objects = Counted(cost.misses, "object", "objects");
            format!("{waits} for {objects} of `{kind}` from other nodes")
        }
        WaitCause::Elements => format!("{waits} for elements of an array of `{kind}`"),
        WaitCause::ToWrite => {
            format!("{waits} to write `{kind}`, of which other nodes may have copies")
        }
        WaitCause::Lock => format!("{waits} for a lock that other nodes held"),
        WaitCause::Barrier | WaitCause::Once => format!("{waits} for the other nodes"),
        WaitCause::Ids => format!("{waits} for ids of new objects"),
        WaitCause::Updates => {
            format!("{waits} until updates of an array of `{kind}` were combined with its elements")
        }
        WaitCause::Guard => format!("{waits} for the guard of `{kind}`, or for its object's node"),
        WaitCause::Pending => format!("{waits} for `{kind}`, which was started before"),
        WaitCause::Read | WaitCause::Write => {
            format!("{waits} for `{kind}` on the node that has the object")
        }
        WaitCause::Operation => format!("{waits} for another node or a process"),
    }
}

/// Why some nodes came to a place later than the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lateness {
    /// They lacked a processor.
    SharedProcessors,
    /// One had more to do.
    MoreToDo,
    /// One waited longer, for objects, locks or operations.
    Waited,
    /// All had as much to do in all, but not each time.
    InTurns,
    /// All waited as long in all, but not each time.
    WaitedInTurns,
    /// None did.
    Even,
}

impl Lateness {
    /// What may help.
    fn cure(self) -> &'static str {
        match self {
            Lateness::SharedProcessors => {
                "give each node a processor of its own, or run fewer nodes"
            }
            Lateness::MoreToDo => {
                "divide the work evenly by what it costs, or hand it out with a `JobQueue`"
            }
            Lateness::Waited | Lateness::WaitedInTurns => {
                "wait less there, as is advised at those lines"
            }
            Lateness::InTurns => {
                "do more between two barriers, so that it evens out, or hand the work out with a \
                 `JobQueue`"
            }
            Lateness::Even => "meet less often, with more work between",
        }
    }
}

/// What a thread waited for in raw memory, and what may help.
fn raw(line: &LineCost) -> (&'static str, &'static str) {
    let is_named_by_address = line.site.line == 0;
    match line.cause {
        WaitCause::ToWrite if is_named_by_address => (
            "to write pages of raw memory",
            "let each thread write pages of its own, and many numbers at once",
        ),
        WaitCause::ToWrite => (
            "to write rows of raw memory that are borrowed",
            "let the node write a row that wrote it last, or gather what is written and write it \
             once",
        ),
        WaitCause::Object if is_named_by_address => (
            "to read pages of raw memory",
            "let the thread read them that writes them, or keep what is read apart from what \
             others write",
        ),
        WaitCause::Object => (
            "to read rows of raw memory that are borrowed",
            "fetch in one round what is read together (`SharedRows::range`, `fetch`), or let the \
             node read them that writes them",
        ),
        _ => (
            "for raw memory to be allocated or freed",
            "allocate and free many rows at once",
        ),
    }
}

/// The type, or the operation, that a line waited for.
fn kind(line: &LineCost) -> String {
    match line.cause.phase() {
        Phase::Operation => line.type_name.clone(),
        _ => short(&line.type_name),
    }
}

/// Whether a thread waited for raw memory.
fn is_raw(line: &LineCost) -> bool {
    line.type_name == "raw memory"
}

/// Whether threads waited for each other, in raw memory. The engine says in words for what.
fn is_of_threads(line: &LineCost) -> bool {
    line.type_name.ends_with(" of threads")
}

/// Whether an operation is one of a `JobQueue`.
fn is_queue(line: &LineCost) -> bool {
    line.type_name.starts_with("JobQueue::")
}

/// `19 waits of 7.10 ms`.
fn of_each(line: &LineCost) -> String {
    let WaitCost {
        waits, waited_ns, ..
    } = line.cost;
    let each = Took(ns(waited_ns / waits.max(1)));
    format!("{} of {each}", Counted(waits, "wait", "waits"))
}

/// One-sided reads of objects of a type.
struct Reads<'a>(&'a WaitCost, &'a str);

impl Display for Reads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reads(cost, kind) = self;
        let reads = Counted(cost.one_sided_reads, "one-sided read", "one-sided reads");
        let each = Took(ns(cost.one_sided_ns / cost.one_sided_reads.max(1)));
        write!(f, "{reads} of `{kind}` of about {each}, without a message")
    }
}

/// What came along with objects that were missed, and what was read one-sided beside.
struct Beside<'a>(&'a WaitCost);

impl Display for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitCost {
            along,
            along_read,
            one_sided_reads,
            ..
        } = *self.0;
        if along > 0 {
            let (came, read) = (Count(along), Count(along_read));
            write!(f, " ({came} more came along, {read} of them read)")?;
        }
        if one_sided_reads > 0 {
            write!(
                f,
                " (and {} one-sided)",
                Counted(one_sided_reads, "read", "reads")
            )?;
        }
        Ok(())
    }
}
/// Where objects were allocated, and where they were missed.
struct At<'a>(&'a LineCost);

impl Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallSite { file, line, .. } = self.0.site;
        if let Some(made) = self.0.allocated_at {
            write!(f, ", allocated at {}:{},", made.file, made.line)?;
        }
        match line {
            0 => write!(f, " at {file}"),
            _ => write!(f, " at {file}:{line}"),
        }
    }
}
