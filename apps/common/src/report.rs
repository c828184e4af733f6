//! The report of a finished program: a screen for people, or one JSON object for programs.

use std::io::{self, Write as _};

use std::time::{Duration, Instant};

use dhole::{Counters, Error, RunError, Simulated};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::options::Common;

/// The report of a finished run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program's name.
    pub program: &'static str,
    /// The node whose report it is. If nodes are processes, only the first node's report is
    /// complete.
    pub node: u16,
    /// Whether this process prints the result: it is node 0's, or that of the first node that is
    /// left.
    pub is_first: bool,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// The transport.
    pub transport: String,
    /// The measures that only a simulation has.
    pub simulated: Option<Simulated>,
    /// The protocol that kept the objects consistent.
    pub protocol: String,
    /// The detector.
    pub detector: String,
    /// Duration of the program's steps, without its initialisation, in seconds: of the wall
    /// clock, or of the virtual one in a simulation.
    pub seconds: f64,
    /// Duration of the whole run, in seconds of the same clock.
    pub elapsed_seconds: f64,
    /// Duration of the sequential version in seconds, if it was run.
    pub sequential_seconds: Option<f64>,
    /// The part of that time for which it had a processor, if it was run.
    pub sequential_processor: Option<f64>,
    /// Bytes of shared objects that a node held on average.
    pub shared_bytes_per_node: u64,
    /// The sum of the counters of all nodes.
    pub counters: Counters,
    /// The same for the program's steps.
    pub measured: Option<Counters>,
    /// The program's result.
    pub result: Map<String, Value>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// What ran, for the screen: `sor` where nothing better is known.
    pub title: String,
    /// What it found, in a few words. Where there are none, they are made of the result.
    pub found: Option<String>,
    /// The report of the run itself.
    pub run: dhole::Report,
}

/// Where the rest is.
const MORE: &str = "--report (lines), --counters (all), --json";
/// A value of the result that is longer is not for the screen.
const SHORT: usize = 24;

/// The warning about a speedup above the number of nodes.
fn more_than_nodes(speedup: f64, nodes: usize) -> Option<String> {
    (speedup > nodes as f64).then(|| {
        format!(
            "a speedup of {speedup:.2} on {nodes} nodes: the sequential program computes more, or \
             takes longer for the same (its caches are smaller)"
        )
    })
}

impl Report {
    /// The report of `run`, of which the program's own steps took `steps`, and those of the
    /// sequential version `sequential_seconds`. `result` is an object.
    pub fn new(
        program: &'static str,
        run: &dhole::Report,
        steps: Duration,
        sequential_seconds: Option<f64>,
        result: &Value,
    ) -> Report {
        let lost = run
            .lost
            .iter()
            .map(|lost| format!("{lost}; the run went on without it"));
        let speedup = sequential_seconds.map(|alone| alone / steps.as_secs_f64());
        let more = speedup.and_then(|speedup| more_than_nodes(speedup, run.nodes));
        Report {
            program,
            node: run.node.0,
            is_first: run.is_first(),
            nodes: run.nodes,
            transport: run.transport.to_owned(),
            simulated: run.simulated.clone(),
            protocol: run.protocol.to_owned(),
            detector: run.detector.to_owned(),
            seconds: steps.as_secs_f64(),
            elapsed_seconds: run.elapsed.as_secs_f64(),
            sequential_seconds,
            sequential_processor: None,
            shared_bytes_per_node: run.shared_bytes_per_node(),
            counters: run.total(),
            measured: run.measured(),
            result: fields(result),
            warnings: lost.chain(more).chain(run.warnings.clone()).collect(),
            title: program.to_owned(),
            found: None,
            run: run.clone(),
        }
    }

    /// The same, where the sequential program had a processor for this part of its time.
    #[must_use]
    pub fn alone_had(mut self, part: Option<f64>) -> Report {
        self.sequential_processor = part;
        self
    }

    /// The same with what ran, in a few words: `galaxy of 65,536 bodies, 10 steps`.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Report {
        self.title = title.into();
        self
    }

    /// The same with what it found, in a few words: `energy drift 2e-5`.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Report {
        self.found = Some(found.into());
        self
    }

    /// How many times faster than the sequential version the run was.
    pub fn speedup(&self) -> Option<f64> {
        self.sequential_seconds
            .map(|sequential| sequential / self.seconds)
    }

    /// Prints to standard output the screen, and with `--counters` the table of all counters, or
    /// with `--json` the one line of JSON. The warnings go to standard error, and with `--report`
    /// what each line of the program cost, behind all.
    ///
    /// # Errors
    /// If it cannot be written, unless the reader has closed the pipe: that reader has read enough.
    pub fn print(&self, asked: &Common) -> io::Result<()> {
        for warning in &self.warnings {
            writeln!(io::stderr(), "warning: {warning}")?;
        }
        let text = match (asked.json, asked.counters) {
            (true, _) => self.json().to_string() + "\n",
            (false, false) => self.screen(),
            (false, true) => format!("{}\n{}", self.screen(), self.table()),
        };
        let mut stdout = io::stdout().lock();
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => (),
            written => written?,
        }
        if asked.report {
            let lines = self.run.lines().to_string();
            io::stderr().write_all(lines.as_bytes())?;
        }
        Ok(())
    }

    /// The run at one look.
    pub fn screen(&self) -> String {
        let took = Duration::try_from_secs_f64(self.seconds).unwrap_or_default();
        let screen = self.run.screen().title(&self.title).time(took).more(MORE);
        let alone = self.sequential_seconds;
        let alone = alone.and_then(|alone| Duration::try_from_secs_f64(alone).ok());
        let screen = match (alone, self.sequential_processor) {
            (Some(alone), Some(part)) => screen
                .sequential(alone)
                .sequential_processor(alone.mul_f64(part.clamp(0.0, 1.0))),
            (Some(alone), None) => screen.sequential(alone),
            (None, _) => screen,
        };
        let file = |name| self.result.get(name).and_then(Value::as_str);
        let screen = match file("picture").or_else(|| file("output")) {
            Some(picture) => screen.picture(picture),
            None => screen,
        };
        let parts = [self.compared(), self.said()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => screen.to_string(),
            false => screen.result(parts.join("; ")).to_string(),
        }
    }

    /// What `--verify` found. Where the results differ the program has failed before.
    fn compared(&self) -> Option<String> {
        let verified = self.result.get("verified").and_then(Value::as_bool);
        let max_error = self.result.get("max_error").and_then(Value::as_f64);
        let equal = "equal to the sequential program's".to_owned();
        verified
            .filter(|verified| *verified)
            .map(|_| match max_error {
                Some(error) if error > 0.0 => format!("{equal} to within {error:.0e}"),
                _ => equal,
            })
    }

    /// What the program found, in a few words.
    fn said(&self) -> Option<String> {
        let is_found = |name: &str| !["verified", "max_error", "picture"].contains(&name);
        let fields = self.result.iter().filter(|(name, _)| is_found(name));
        let fields = fields.map(|(name, value)| (name.replace('_', " "), shown(value)));
        let short = fields.filter(|(_, value)| value.len() <= SHORT);
        let words = short.map(|(name, value)| format!("{name} {value}"));
        let words: Vec<String> = words.collect();
        let found = (!words.is_empty()).then(|| words.join(", "));
        self.found.clone().or(found)
    }

    /// The table that `--counters` prints: all of the result, and what the nodes counted.
    pub fn table(&self) -> String {
        let about = [
            ("nodes", json!(self.nodes)),
            ("transport", json!(self.transport)),
            ("protocol", json!(self.protocol)),
            ("detector", json!(self.detector)),
            ("seconds", json!(self.seconds)),
            ("elapsed seconds", json!(self.elapsed_seconds)),
        ];
        let about = about.map(|(name, value)| (name.to_owned(), value));
        let simulation = self.simulation().into_iter();
        let simulation = simulation.map(|(name, value)| (name.replace('_', " "), value));
        let alone = self.sequential_seconds;
        let alone = alone.map(|alone| ("sequential seconds".to_owned(), json!(alone)));
        let speedup = self.speedup().map(|it| ("speedup".to_owned(), json!(it)));
        let run = about
            .into_iter()
            .chain(simulation)
            .chain(alone)
            .chain(speedup);
        let result = self.result.iter();
        let result = result.map(|(name, value)| (name.replace('_', " "), value.clone()));
        let groups = [
            group("run", run.collect()),
            group("result", result.collect()),
            self.run.counters().to_string(),
        ];
        groups.join("\n")
    }

    /// The object that `--json` prints. The counters that the papers' tables show are at the top;
    /// the others are in `counters`.
    pub fn json(&self) -> Value {
        let c = &self.counters;
        let mut object = json!({
            "program": self.program,
            "nodes": self.nodes,
            "transport": self.transport,
            "protocol": self.protocol,
            "detector": self.detector,
            "seconds": self.seconds,
            "elapsed_seconds": self.elapsed_seconds,
            "messages": c.messages,
            "data_bytes": c.data_bytes,
            "fetch_rounds": c.fetch_rounds,
            "misses": c.misses,
            "write_faults": c.write_faults,
            "write_notice_bytes": c.write_notice_bytes,
            "shared_bytes_per_node": self.shared_bytes_per_node,
            "result": self.result,
        });
        for (name, value) in self.simulation() {
            object[name] = value;
        }
        if let Some(sequential_seconds) = self.sequential_seconds {
            object["sequential_seconds"] = json!(sequential_seconds);
            object["speedup"] = json!(self.speedup());
        }
        if let Some(measured) = &self.measured {
            object["measured"] = self.steps(measured);
        }
        let mut rest = fields(c);
        rest.retain(|name, _| object.get(name).is_none());
        object["counters"] = Value::Object(rest);
        object
    }

    /// The counters of the steps, under their names for the whole run.
    fn steps(&self, measured: &Counters) -> Value {
        let mut steps = fields(measured);
        let bytes = measured.shared_bytes / self.nodes.max(1) as u64;
        steps.insert("shared_bytes_per_node".to_owned(), json!(bytes));
        if self.simulated.is_some() {
            let computed = Duration::from_nanos(measured.computed_ns).as_secs_f64();
            steps.insert("computed_seconds".to_owned(), json!(computed));
        }
        Value::Object(steps)
    }

    /// The measures of a simulation, by name.
    fn simulation(&self) -> Vec<(&'static str, Value)> {
        let Some(simulated) = &self.simulated else {
            return Vec::new();
        };
        let mut all = vec![
            ("network", json!(simulated.network)),
            ("compute_scale", json!(simulated.compute_scale)),
            ("computed_seconds", json!(simulated.work().as_secs_f64())),
            ("lost_messages", json!(simulated.lost)),
            ("queued_seconds", json!(simulated.queued.as_secs_f64())),
        ];
        if let Some(inflation) = simulated.compute_inflation() {
            all.push(("compute_inflation", json!(inflation)));
        }
        all
    }
}

/// A number with its thousands apart: `65,536`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let parts = digits.as_bytes().rchunks(3).rev();
    let parts = parts.map(|part| part.iter().map(|digit| char::from(*digit)).collect());
    parts.collect::<Vec<String>>().join(",")
}

/// So many steps: `1 step`, `10 steps`.
pub fn steps(number: usize) -> String {
    let several = if number == 1 { "" } else { "s" };
    format!("{} step{several}", count(number))
}

/// A subject and its rows.
fn group(subject: &str, rows: Vec<(String, Value)>) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let rows = rows.iter();
    let rows = rows.map(|(name, value)| format!("  {name:<width$}  {}\n", shown(value)));
    format!("{subject}\n{}", rows.collect::<String>())
}

/// Notes in `result` that a run of `report` found what the sequential program found: `max_error`,
/// the largest difference of a coordinate or of a value, is at most `rounding`.
///
/// # Errors
/// When there is a larger difference, or none can be told.
pub fn verified(
    result: &mut Value,
    max_error: Option<f64>,
    rounding: f64,
    report: &dhole::Report,
) -> Result<(), RunError> {
    let Some(max_error) = max_error else {
        return Ok(());
    };
    if max_error.is_nan() || max_error > rounding {
        return Err(RunError::Failed {
            node: report.node,
            error: Box::new(Error::program(format!(
                "the sequential version disagrees: the largest difference is {max_error}"
            ))),
            others: Vec::new(),
        });
    }
    result["max_error"] = json!(max_error);
    result["verified"] = Value::Bool(true);
    Ok(())
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

/// Runs the sequential version: its result, and the part of its time for which this process had a
/// processor.
pub fn alone<R>(run: impl FnOnce() -> R) -> (R, f64) {
    let processor = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let (begun, before) = (Instant::now(), processor());
    let result = run();
    let had = (processor() - before) / begun.elapsed().as_secs_f64().max(1e-9);
    (result, had.clamp(0.0, 1.0))
}

/// The time of the sequential version in seconds, on the clock of `run`. It is the measured time. A
/// simulation that charges a fixed cost for each of its `units` of work has that cost instead. A
/// simulation that scales computation scales the time too.
pub fn sequential_seconds(run: &dhole::Report, seconds: f64, units: u64) -> f64 {
    match &run.simulated {
        None => seconds,
        Some(simulated) => match simulated.unit_ns {
            Some(unit_ns) => units as f64 * unit_ns * 1e-9,
            None => seconds * simulated.compute_scale,
        },
    }
}

/// The fields of a value by name. Of counters these are all fields, so a new counter is reported
/// too.
fn fields(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use dhole::{KindCounters, MessageKind};

    use super::*;

    fn report() -> Report {
        let mut counters = Counters {
            misses: 7,
            barriers: 3,
            ..Default::default()
        };
        (counters.messages, counters.data_bytes) = (1, 24);
        counters.by_kind.insert(
            MessageKind::Fetch,
            KindCounters {
                messages: 1,
                bytes: 24,
            },
        );
        counters
            .by_type
            .entry("Body".to_owned())
            .or_default()
            .installed_bytes = 640;
        Report {
            program: "barnes",
            node: 0,
            is_first: true,
            nodes: 4,
            transport: "threads".to_owned(),
            simulated: None,
            protocol: "lazy".to_owned(),
            detector: "check".to_owned(),
            seconds: 2.0,
            elapsed_seconds: 3.0,
            sequential_seconds: None,
            sequential_processor: None,
            shared_bytes_per_node: 1000,
            measured: Some(Counters {
                shared_bytes: 4096,
                ..counters.clone()
            }),
            counters,
            result: fields(&json!({ "max_error": 0.0 })),
            warnings: Vec::new(),
            title: "bodies".to_owned(),
            found: None,
            run: dhole::Config::nodes(2)
                .run(|w| Ok(w.barrier()?))
                .unwrap()
                .report,
        }
    }

    #[test]
    fn the_object_has_the_counters_of_the_papers_at_the_top_and_each_once() {
        let object = report().json();
        assert_eq!(object["misses"], 7);
        assert_eq!(object["messages"], 1);
        assert_eq!(object["shared_bytes_per_node"], 1000);
        assert_eq!(object["result"]["max_error"], 0.0);
        assert_eq!(object["counters"]["barriers"], 3);
        assert_eq!(object["measured"]["shared_bytes_per_node"], 1024);
        assert_eq!(object["measured"]["misses"], 7);
        assert_eq!(object["counters"]["by_kind"]["fetch"]["bytes"], 24);
        assert_eq!(object["counters"].get("misses"), None);
        assert_eq!(object.get("speedup"), None);
    }

    #[test]
    fn what_differs_from_the_sequential_program_is_an_error_and_not_verified() {
        let run = dhole::Config::nodes(1).run(|_| Ok(())).unwrap().report;
        let within = |max_error, rounding| {
            let mut result = json!({});
            verified(&mut result, max_error, rounding, &run).map(|()| result)
        };
        let compared = |max_error| within(max_error, 0.0);
        assert_eq!(compared(None).unwrap(), json!({}));
        let rounded = json!({ "max_error": 1e-9, "verified": true });
        assert_eq!(within(Some(1e-9), 1e-9).unwrap(), rounded);
        assert!(within(Some(2e-9), 1e-9).is_err());
        let same = json!({ "max_error": 0.0, "verified": true });
        assert_eq!(compared(Some(0.0)).unwrap(), same);
        let wrong = compared(Some(0.5)).unwrap_err().to_string();
        let words = "the sequential version disagrees: the largest difference is 0.5";
        assert!(wrong.contains(words), "{wrong}");
        assert!(compared(Some(f64::NAN)).is_err());
    }

    #[test]
    fn a_speedup_above_the_number_of_nodes_is_no_silent_one() {
        assert_eq!(more_than_nodes(2.0, 2), None);
        let words = more_than_nodes(2.5, 2).unwrap();
        assert!(words.starts_with("a speedup of 2.50 on 2 nodes"), "{words}");
    }

    #[test]
    fn the_speedup_is_told_once_the_sequential_time_is_known() {
        let report = Report {
            sequential_seconds: Some(5.0),
            ..report()
        };
        assert_eq!(report.json()["speedup"], 2.5);
        let screen = report.screen();
        assert!(
            screen.contains("time      2.00 s; sequential 5.00 s; speedup 2.50"),
            "{screen}"
        );
    }

    #[test]
    fn the_json_is_one_line() {
        assert_eq!(report().json().to_string().lines().count(), 1);
    }

    #[test]
    fn thousands_are_apart() {
        let counts = [0, 999, 1_000, 65_536, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "65,536", "1,234,567"]);
        assert_eq!([steps(1), steps(1_000)], ["1 step", "1,000 steps"]);
    }

    #[test]
    fn the_screen_says_what_ran_and_what_was_found() {
        let result = json!({
            "max_error": 3e-9, "verified": true, "picture": "a.png", "energy_drift": 0.5,
            "digest": "0123456789012345678901234567890",
        });
        let report = Report {
            result: fields(&result),
            ..report()
        };
        let screen = report.screen();
        let lines: Vec<&str> = screen.lines().collect();
        let title = format!("{:<72} picture a.png", "bodies, 2 nodes (threads)");
        assert_eq!(lines[0], title, "{screen}");
        let found =
            "  result    equal to the sequential program's to within 3e-9; energy drift 0.5";
        assert_eq!(lines[1], found, "{screen}");
        assert_eq!(
            lines.last(),
            Some(&format!("  more      {MORE}")[..].as_ref())
        );
        let named = report
            .titled("galaxy of 7 bodies")
            .found("drift 2e-5")
            .screen();
        assert!(
            named.starts_with("galaxy of 7 bodies, 2 nodes (threads) "),
            "{named}"
        );
        assert!(named.contains("'s to within 3e-9; drift 2e-5\n"), "{named}");
    }

    #[test]
    fn the_table_has_all_of_the_result_and_no_zeros() {
        let report = Report {
            result: fields(&json!({ "digest": "0123456789012345678901234567890" })),
            ..report()
        };
        let table = report.table();
        for part in [
            "digest",
            "0123456789",
            "elapsed seconds",
            "barriers",
            "messages by kind",
        ] {
            assert!(table.contains(part), "{part} in:\n{table}");
        }
        let zeros = table.lines().filter(|line| line.ends_with(" 0"));
        assert_eq!(zeros.count(), 0, "{table}");
    }
}
