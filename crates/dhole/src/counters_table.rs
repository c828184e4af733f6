//! The table of all counters, grouped by subject, without those that are 0.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use dhole_model::{Phase, TypeCounters};

use crate::Report;
use crate::words::{Count, Took, ns, short};

/// All that the nodes counted, by subject, without what is 0. [`Report::counters`] makes it; the
/// rows are explained in `docs/report.md`.
#[derive(Clone, Copy, Debug)]
pub struct CountersTable<'a>(&'a Report);

impl Report {
    /// All that the nodes counted, as a table for people.
    ///
    /// ```
    /// let run = dhole::Config::nodes(2).run(|w| Ok(w.barrier()?))?;
    /// assert!(run.report.counters().to_string().contains("barriers"));
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    pub fn counters(&self) -> CountersTable<'_> {
        CountersTable(self)
    }
}

/// A longer value is in words.
const WIDEST: usize = 18;

/// A subject, and its rows.
type Group = (&'static str, Vec<(String, String)>);

impl Display for CountersTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = groups(self.0);
        let shown = groups.iter().filter(|(_, rows)| !rows.is_empty());
        let rows = shown.clone().flat_map(|(_, rows)| rows);
        let name = rows.clone().map(|(name, _)| name.chars().count()).max();
        // Words stand to the left of the column in which numbers end.
        let numbers = rows.map(|(_, value)| value.chars().count());
        let value = numbers.filter(|width| *width <= WIDEST).max();
        let (name_width, value_width) = (name.unwrap_or(0), value.unwrap_or(0));
        for (place, (subject, rows)) in shown.enumerate() {
            writeln!(f, "{}{subject}", if place > 0 { "\n" } else { "" })?;
            for (name, value) in rows {
                match value.chars().count() <= WIDEST {
                    true => writeln!(f, "  {name:<name_width$}  {value:>value_width$}")?,
                    false => writeln!(f, "  {name:<name_width$}  {value}")?,
                }
            }
        }
        Ok(())
    }
}

/// The counters of each subject, by their fields, in the order of their rows. A counter that is
/// added must be shown too.
const SENT: &str = "messages data_bytes write_notice_bytes broadcasts";
const READ: &str = "misses fetch_rounds asked_beside came_along along_read came_ahead ahead_read \
    one_sided_reads one_sided_bytes zero_fills pushes pushes_read";
const WRITTEN: &str = "write_faults gates_opened writable_beside unwritten pre_images \
    pre_image_replies deferred_requests diffs diff_bytes intervals interval_records_most \
    invalidations races";
const MET: &str = "barriers lock_acquires_remote lock_acquires_local \
    sections sections_in_use sections_elsewhere waits_ended_by_time";
const RAW: &str = "raw_read_faults raw_write_faults competing_requests dropped_prefetches \
    raw_flushes";
const MEMORY: &str = "shared_bytes shared_bytes_per_node allotted_bytes";
/// Of the times, those with what they are called.
const RAW_TIMES: [(&str, &str); 3] = [
    ("read faults took", "raw_read_ns"),
    ("write faults took", "raw_write_ns"),
    ("calls took", "raw_call_ns"),
];
const TIMES: [(&str, &str); 4] = [
    ("waited in calls", "waited_ns"),
    ("waited in calls for locks", "lock_waited_ns"),
    ("waited in calls at barriers", "barrier_waited_ns"),
    ("computed in the simulation", "computed_ns"),
];
/// What the phases are called here.
const PHASES: [&str; Phase::ALL.len()] = [
    "computed",
    "waited for misses",
    "one-sided reads",
    "waited for locks",
    "waited at barriers",
    "waited for operations",
];

fn groups(report: &Report) -> Vec<Group> {
    let total = report.total();
    let mut numbers: BTreeMap<&str, u64> = total.numbers().into();
    numbers.insert("shared_bytes_per_node", report.shared_bytes_per_node());
    // The rows of counts that are not 0.
    let counts = |fields: &str| -> Vec<(String, String)> {
        let counted = fields.split(' ').map(|field| (field, numbers[field]));
        let counted = counted.filter(|(_, count)| *count > 0);
        let words = |field: &str| field.trim_start_matches("raw_").replace('_', " ");
        let shown = counted.map(|(field, count)| (words(field), Count(count).to_string()));
        shown.collect()
    };
    // The rows of times that are not 0.
    let times = |all: &[(&str, u64)]| -> Vec<(String, String)> {
        let took = all.iter().filter(|(_, took_ns)| *took_ns > 0);
        let shown = took.map(|(name, took_ns)| (name.to_string(), Took(ns(*took_ns)).to_string()));
        shown.collect()
    };
    let by_field = |(name, field): (&'static str, &str)| (name, numbers[field]);
    let phases = &total.phases;
    let mut time = times(&[("all nodes together", phases.whole_ns)]);
    let each = PHASES.iter().zip(Phase::ALL);
    let each: Vec<_> = each
        .map(|(name, phase)| (*name, phases.of(phase)))
        .collect();
    time.extend(times(&each));
    time.extend(times(&[
        ("compared with the processor's", phases.compared_ns),
        ("processor had", phases.processor_ns),
        ("processor of the workers", phases.worker_processor_ns),
        ("of that in misses", phases.miss_processor_ns),
        ("of that for locks", phases.lock_processor_ns),
        ("of that at barriers", phases.barrier_processor_ns),
        ("of that for operations", phases.operation_processor_ns),
    ]));
    time.extend(times(&TIMES.map(by_field)));
    let mut raw = counts(RAW);
    raw.extend(times(&RAW_TIMES.map(by_field)));
    let sent_of = |messages, bytes| format!("{} of {} bytes", Count(messages), Count(bytes));
    let kinds = total.by_kind.iter();
    let kinds = kinds.map(|(kind, of)| (kind.name().to_owned(), sent_of(of.messages, of.bytes)));
    let protocols = total.by_protocol.iter();
    let protocols = protocols.map(|(name, of)| (name.clone(), sent_of(of.messages, of.bytes)));
    let types = total.by_type.iter();
    let types = types.map(|(name, of)| (short(name), of_type(of)));
    let objects = total.by_object.iter().map(|(name, of)| {
        let (reads, writes) = (Count(of.reads), Count(of.writes));
        (short(name), format!("{reads} reads, {writes} writes"))
    });
    vec![
        ("time, all nodes together", time),
        ("messages", counts(SENT)),
        ("messages by kind", kinds.collect()),
        ("messages of the program's protocols", protocols.collect()),
        ("objects read", counts(READ)),
        ("objects written", counts(WRITTEN)),
        ("objects by type", types.collect()),
        ("objects with operations", objects.collect()),
        ("synchronisation", counts(MET)),
        ("raw memory", raw),
        ("memory", counts(MEMORY)),
    ]
}

/// What happened to objects of a type, in words.
fn of_type(of: &TypeCounters) -> String {
    let counted = of.numbers().into_iter().filter(|(_, count)| *count > 0);
    let words = counted.map(|(field, count)| match field {
        "one_sided_reads" => format!("{} read one-sided", Count(count)),
        "installed_bytes" => format!("{} bytes", Count(count)),
        field => format!("{} {}", Count(count), field.replace('_', " ")),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use dhole_model::Counters;

    use super::*;

    #[test]
    fn every_counter_is_shown_once() {
        let mut shown = [SENT, READ, WRITTEN, MET, RAW, MEMORY].join(" ");
        for (_, field) in TIMES.into_iter().chain(RAW_TIMES) {
            shown = shown + " " + field;
        }
        let mut shown: Vec<&str> = shown.split(' ').collect();
        let mut counted: Vec<&str> = Counters::default().numbers().map(|(name, _)| name).into();
        counted.push("shared_bytes_per_node");
        shown.sort_unstable();
        counted.sort_unstable();
        assert_eq!(shown, counted);
    }
}
