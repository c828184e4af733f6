//! The report of a finished program: a table for people, or one JSON object for programs.

use std::io::{self, Write as _};

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use dhole::{Counters, Error, RunError, Simulated};
use serde::Serialize;
use serde_json::{Map, Value, json};

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
    /// For what the nodes waited, and at which lines of the program.
    pub costs: String,
}

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
            shared_bytes_per_node: run.shared_bytes_per_node(),
            counters: run.total(),
            measured: run.measured(),
            result: fields(result),
            warnings: lost.chain(more).chain(run.warnings.clone()).collect(),
            costs: run.to_string(),
        }
    }

    /// How many times faster than the sequential version the run was.
    pub fn speedup(&self) -> Option<f64> {
        self.sequential_seconds
            .map(|sequential| sequential / self.seconds)
    }

    /// Prints to standard output the tables, or with `as_json` the one line of JSON; the
    /// warnings go to standard error, and [`costs`](Report::costs) behind all, where they are
    /// asked for.
    ///
    /// # Errors
    /// If it cannot be written, unless the reader has closed the pipe: that reader has read enough.
    pub fn print(&self, as_json: bool, with_costs: bool) -> io::Result<()> {
        for warning in &self.warnings {
            writeln!(io::stderr(), "warning: {warning}")?;
        }
        let text = if as_json {
            self.json().to_string()
        } else {
            self.tables()
        };
        let mut stdout = io::stdout().lock();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => (),
            written => written?,
        }
        if with_costs {
            io::stderr().write_all(self.costs.as_bytes())?;
        }
        Ok(())
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

    /// The tables that a run prints without `--json`: the whole, by kind of message, by type.
    pub fn tables(&self) -> String {
        let whole = self.whole();
        let by_kind = table(
            ["message", "sent", "bytes"],
            self.counters.by_kind.iter().map(|(kind, of)| {
                [
                    kind.name().to_owned(),
                    of.messages.to_string(),
                    of.bytes.to_string(),
                ]
            }),
        );
        let by_type = table(
            [
                "type",
                "allocated",
                "misses",
                "write faults",
                "installed",
                "bytes",
                "invalidated",
            ],
            self.counters.by_type.iter().map(|(name, of)| {
                let counts = [
                    of.allocated,
                    of.misses,
                    of.write_faults,
                    of.installed,
                    of.installed_bytes,
                    of.invalidated,
                ];
                let [a, b, c, d, e, f] = counts.map(|count| count.to_string());
                [name.clone(), a, b, c, d, e, f]
            }),
        );
        [whole, by_kind, by_type]
            .map(|table| table.to_string())
            .join("\n\n")
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

    fn whole(&self) -> Table {
        let mut rows = vec![
            ["nodes".to_owned(), self.nodes.to_string()],
            ["transport".to_owned(), self.transport.clone()],
            ["protocol".to_owned(), self.protocol.clone()],
            ["detector".to_owned(), self.detector.clone()],
            ["seconds".to_owned(), format!("{:.6}", self.seconds)],
            [
                "elapsed seconds".to_owned(),
                format!("{:.6}", self.elapsed_seconds),
            ],
        ];
        for (name, value) in self.simulation() {
            rows.push([name.replace('_', " "), shown(&value)]);
        }
        if let (Some(sequential), Some(speedup)) = (self.sequential_seconds, self.speedup()) {
            rows.push(["sequential seconds".to_owned(), format!("{sequential:.6}")]);
            rows.push(["speedup".to_owned(), format!("{speedup:.2}")]);
        }
        for (name, value) in fields(&self.counters) {
            if value.is_number() {
                rows.push([name.replace('_', " "), value.to_string()]);
            }
        }
        rows.push([
            "shared bytes per node".to_owned(),
            self.shared_bytes_per_node.to_string(),
        ]);
        for (name, value) in &self.result {
            rows.push([name.replace('_', " "), shown(value)]);
        }
        table([self.program, ""], rows)
    }
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

fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
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
            shared_bytes_per_node: 1000,
            measured: Some(Counters {
                shared_bytes: 4096,
                ..counters.clone()
            }),
            counters,
            result: fields(&json!({ "max_error": 0.0 })),
            warnings: Vec::new(),
            costs: String::new(),
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
        assert!(report.tables().contains("2.50"));
    }

    #[test]
    fn the_json_is_one_line() {
        assert_eq!(report().json().to_string().lines().count(), 1);
    }

    #[test]
    fn the_tables_name_kinds_and_types() {
        let shown = report().tables();
        for part in ["fetch", "Body", "640", "write faults", "max error"] {
            assert!(shown.contains(part), "{part} in:\n{shown}");
        }
    }
}
