//! The first screen: what a run was, what it found, how long it took, and where its time went.

use std::fmt::{self, Display};
use std::time::Duration;

use dhole_model::{LineCosts, MessageKind, Phase, PhaseTimes};

use crate::Report;
use crate::words::{Bytes, Counted, Place, Took, ns};

/// Below this part of its computing a node did not have its processor for itself.
const SHARED: f64 = 0.9;
/// A line of the program is the worst where it takes at least this part of the nodes' time.
const LEAST_PART: f64 = 0.01;
/// The column in which a picture is named.
const COLUMN: usize = 72;

/// A run at one look. [`Report::screen`] makes it; as text it has these lines, of which those are
/// left out that have nothing to say:
///
/// | line | what |
/// |---|---|
/// | title | what ran, on how many nodes |
/// | `result` | what the program found, and whether it was compared |
/// | `time` | of the measured part, or of the run; with the sequential program's the speedup |
/// | `processor` | where nodes did not have a processor for themselves, and how much |
/// | `a node` | what a node spent its time on, on average |
/// | `traffic` | messages, objects read one-sided, minipages |
/// | `worst` | the line of the program that cost most, and why |
/// | `more` | where the rest is |
#[derive(Clone, Debug)]
pub struct Screen<'a> {
    report: &'a Report,
    title: Option<String>,
    picture: Option<String>,
    result: Option<String>,
    time: Option<Duration>,
    sequential: Option<Duration>,
    sequential_processor: Option<Duration>,
    more: Option<String>,
}

impl Report {
    /// The run at one look, to which a program may add what it knows. The report itself is shown
    /// so, too.
    ///
    /// ```
    /// let run = dhole::Config::nodes(2).run(|w| Ok(w.gather(w.node().0)?))?;
    /// let screen = run.report.screen().title("numbers of nodes").result("0 and 1");
    /// assert!(screen.to_string().starts_with("numbers of nodes, 2 nodes (threads)\n"));
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    pub fn screen(&self) -> Screen<'_> {
        Screen {
            report: self,
            title: None,
            picture: None,
            result: None,
            time: None,
            sequential: None,
            sequential_processor: None,
            more: None,
        }
    }
}

/// The run at one look, as [`Report::screen`] says.
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.screen().fmt(f)
    }
}

impl Screen<'_> {
    /// What ran: `galaxy of 65,536 bodies, 10 steps`.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The file into which the program drew its result.
    #[must_use]
    pub fn picture(mut self, file: impl Into<String>) -> Self {
        self.picture = Some(file.into());
        self
    }

    /// What the program found, in one line.
    #[must_use]
    pub fn result(mut self, found: impl Into<String>) -> Self {
        self.result = Some(found.into());
        self
    }

    /// How long the program took by its own account. Otherwise it is the measured part of the run,
    /// or the whole.
    #[must_use]
    pub fn time(mut self, took: Duration) -> Self {
        self.time = Some(took);
        self
    }

    /// How long the sequential program took, on the same clock.
    #[must_use]
    pub fn sequential(mut self, took: Duration) -> Self {
        self.sequential = Some(took);
        self
    }

    /// How much of that the sequential program had a processor for. With it the speedup by
    /// processor time is known, where the nodes shared their processors with others.
    #[must_use]
    pub fn sequential_processor(mut self, had: Duration) -> Self {
        self.sequential_processor = Some(had);
        self
    }

    /// Where the rest is. Otherwise the methods of [`Report`] are named.
    #[must_use]
    pub fn more(mut self, words: impl Into<String>) -> Self {
        self.more = Some(words.into());
        self
    }

    fn took(&self) -> Duration {
        let measured = self.report.measured_time;
        self.time.or(measured).unwrap_or(self.report.elapsed)
    }

    /// `3.72 s; sequential 5.82 s; speedup 1.56`.
    fn times(&self) -> String {
        let took = self.took();
        let clock = match self.report.simulated {
            Some(_) => " of the simulated clock",
            None => "",
        };
        let alone = self.sequential.map(|alone| {
            let speedup = alone.as_secs_f64() / took.as_secs_f64().max(1e-9);
            format!("; sequential {}; speedup {speedup:.2}", Took(alone))
        });
        format!("{}{clock}{}", Took(took), alone.unwrap_or_default())
    }

    /// What is said where nodes did not have a processor for themselves.
    fn processor(&self) -> Option<String> {
        let phases = self.report.phases();
        let share = self.report.spent().processor_share();
        let share = share.filter(|share| *share < SHARED)?;
        let lacked = format!(
            "shared with others: a node lacked one for {:.0}% of its computing",
            100.0 * (1.0 - share)
        );
        let busiest = phases.iter().map(by_processor).max()?;
        let speedup = self.sequential_processor.map(|alone| {
            let speedup = alone.as_secs_f64() / ns(busiest).as_secs_f64().max(1e-9);
            format!("; speedup by processor time {speedup:.2}")
        });
        Some(lacked + &speedup.unwrap_or_default())
    }
}

/// How long a node would have been busy with a processor for itself.
fn by_processor(phases: &PhaseTimes) -> u64 {
    let computed = phases.of(Phase::Computing);
    let share = phases.processor_share().unwrap_or(1.0);
    let read = phases.miss_ns.saturating_add(phases.one_sided_ns);
    let computed = (computed as f64 * share) as u64;
    computed.saturating_add(read)
}

impl Display for Screen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let nodes = Counted(report.nodes as u64, "node", "nodes");
        let on = format!("{nodes} ({})", report.where_it_ran());
        let protocol = match report.protocol {
            "lazy" => String::new(),
            other => format!(", protocol {other}"),
        };
        let title = match &self.title {
            Some(title) => format!("{title}, {on}{protocol}"),
            None => format!("{on}{protocol}"),
        };
        match &self.picture {
            Some(picture) => writeln!(f, "{title:<COLUMN$} picture {picture}")?,
            None => writeln!(f, "{title}")?,
        }
        let more = self
            .more
            .as_deref()
            .unwrap_or("`report.lines()` (lines), `report.counters()` (all), `report.json()`");
        let lines = [
            ("result", self.result.clone()),
            ("time", Some(self.times())),
            ("processor", self.processor()),
            ("a node", report.a_node()),
            ("traffic", Some(report.traffic())),
            ("worst", report.worst()),
            ("more", Some(more.to_owned())),
        ];
        for (name, said) in lines {
            if let Some(said) = said {
                writeln!(f, "  {name:<9} {said}")?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// What each node spent its time on: in the measured part of the program, if there is one.
    pub fn phases(&self) -> Vec<PhaseTimes> {
        let measured = self.measured_per_node.as_ref();
        let nodes = measured.unwrap_or(&self.per_node).iter();
        nodes.map(|node| node.phases).collect()
    }

    /// What all nodes spent their time on together.
    fn spent(&self) -> PhaseTimes {
        let mut sum = PhaseTimes::default();
        self.phases().iter().for_each(|node| sum.add(node));
        sum
    }

    /// Whether the nodes shared their processors with others.
    pub(crate) fn shares(&self) -> bool {
        let share = self.spent().processor_share();
        share.is_some_and(|share| share < SHARED)
    }

    /// `threads`, `processes over tcp`, `simulated: fast-ethernet`.
    fn where_it_ran(&self) -> String {
        match (&self.simulated, self.transport) {
            (Some(simulated), _) => format!("simulated: {}", simulated.network),
            (None, "threads") => "threads".to_owned(),
            (None, port) => format!("processes over {port}"),
        }
    }

    /// `computed 62%, barriers 38%`.
    fn a_node(&self) -> Option<String> {
        let sum = self.spent();
        if sum.whole_ns == 0 {
            return None;
        }
        let part = |phase| 100.0 * sum.of(phase) as f64 / sum.whole_ns as f64;
        let shown = |phase: &Phase| *phase == Phase::Computing || part(*phase) >= 0.5;
        let parts = Phase::ALL.into_iter().filter(shown);
        let parts = parts.map(|phase| format!("{} {:.0}%", phase.name(), part(phase)));
        Some(parts.collect::<Vec<_>>().join(", "))
    }

    /// `152 messages, 0.2 MB; 291,264 objects read one-sided, 26 MB`.
    fn traffic(&self) -> String {
        let total = self.measured().unwrap_or_else(|| self.total());
        let messages = Counted(total.messages, "message", "messages");
        let mut text = format!("{messages}, {}", Bytes(total.data_bytes));
        if total.one_sided_reads > 0 {
            let objects = Counted(total.one_sided_reads, "object", "objects");
            let bytes = Bytes(total.one_sided_bytes);
            text += &format!("; {objects} read one-sided, {bytes}");
        }
        let minipages = total.sent(MessageKind::MemoryData);
        if minipages > 0 {
            text += &format!("; {} fetched", Counted(minipages, "minipage", "minipages"));
        }
        text
    }

    /// The line of the program that cost most, and why.
    fn worst(&self) -> Option<String> {
        let costs: &LineCosts = self.measured_costs.as_ref().unwrap_or(&self.costs);
        let whole: u64 = self.phases().iter().map(|node| node.whole_ns).sum();
        let worst = costs.lines.iter().max_by_key(|line| line.cost.spent_ns())?;
        if (worst.cost.spent_ns() as f64) < LEAST_PART * whole as f64 {
            return Some("no line waited for 1% of the time".to_owned());
        }
        Some(format!("{}, {}", Place(&worst.site), self.why(worst)))
    }
}
