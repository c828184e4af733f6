//! The table of all counters, grouped by subject, without those that are 0.

use std::fmt::{self, Display};

use dhole_model::{Counters, Phase, TypeCounters};

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

/// The rows of counts that are not 0.
fn counts<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, String)> {
    let counted = rows.into_iter().filter(|(_, count)| *count > 0);
    let shown = counted.map(|(name, count)| (name.to_owned(), Count(count).to_string()));
    shown.collect()
}

/// The rows of times that are not 0.
fn times<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, String)> {
    let took = rows.into_iter().filter(|(_, took_ns)| *took_ns > 0);
    let shown = took.map(|(name, took_ns)| (name.to_owned(), Took(ns(took_ns)).to_string()));
    shown.collect()
}

fn groups(report: &Report) -> Vec<Group> {
    // Each counter by its name: one that is added must be shown too.
    let Counters {
        messages,
        data_bytes,
        fetch_rounds,
        misses,
        asked_beside,
        came_along,
        along_read,
        one_sided_reads,
        one_sided_bytes,
        raw_read_faults,
        raw_write_faults,
        competing_requests,
        dropped_prefetches,
        raw_flushes,
        raw_read_ns,
        raw_write_ns,
        raw_call_ns,
        zero_fills,
        write_faults,
        writable_beside,
        unwritten,
        pre_images,
        pre_image_replies,
        deferred_requests,
        pushes,
        pushes_read,
        diffs,
        diff_bytes,
        intervals,
        write_notice_bytes,
        invalidations,
        races,
        lock_acquires_remote,
        lock_acquires_local,
        barriers,
        broadcasts,
        waits_ended_by_time,
        waited_ns,
        lock_waited_ns,
        barrier_waited_ns,
        computed_ns,
        interval_records_most,
        shared_bytes,
        allotted_bytes,
        phases,
        by_kind,
        by_protocol,
        by_type,
        by_object,
    } = report.total();
    let [computed, missed, one_sided, locked, met, operated] =
        Phase::ALL.map(|phase| phases.of(phase));
    let time = times([
        ("all nodes together", phases.whole_ns),
        ("computed", computed),
        ("waited for misses", missed),
        ("one-sided reads", one_sided),
        ("waited for locks", locked),
        ("waited at barriers", met),
        ("waited for operations", operated),
        ("compared with the processor's", phases.compared_ns),
        ("processor had", phases.processor_ns),
        ("processor of the workers", phases.worker_processor_ns),
        ("of that in misses", phases.miss_processor_ns),
        ("of that for locks", phases.lock_processor_ns),
        ("of that at barriers", phases.barrier_processor_ns),
        ("of that for operations", phases.operation_processor_ns),
        ("waited in calls", waited_ns),
        ("waited in calls for locks", lock_waited_ns),
        ("waited in calls at barriers", barrier_waited_ns),
        ("computed in the simulation", computed_ns),
    ]);
    let sent = counts([
        ("messages", messages),
        ("data bytes", data_bytes),
        ("write notice bytes", write_notice_bytes),
        ("broadcasts", broadcasts),
    ]);
    let read = counts([
        ("misses", misses),
        ("fetch rounds", fetch_rounds),
        ("asked beside", asked_beside),
        ("came along", came_along),
        ("along read", along_read),
        ("one sided reads", one_sided_reads),
        ("one sided bytes", one_sided_bytes),
        ("zero fills", zero_fills),
        ("pushes", pushes),
        ("pushes read", pushes_read),
    ]);
    let written = counts([
        ("write faults", write_faults),
        ("writable beside", writable_beside),
        ("unwritten", unwritten),
        ("pre images", pre_images),
        ("pre image replies", pre_image_replies),
        ("deferred requests", deferred_requests),
        ("diffs", diffs),
        ("diff bytes", diff_bytes),
        ("intervals", intervals),
        ("interval records most", interval_records_most),
        ("invalidations", invalidations),
        ("races", races),
    ]);
    let met = counts([
        ("barriers", barriers),
        ("lock acquires remote", lock_acquires_remote),
        ("lock acquires local", lock_acquires_local),
        ("waits ended by time", waits_ended_by_time),
    ]);
    let mut raw = counts([
        ("read faults", raw_read_faults),
        ("write faults", raw_write_faults),
        ("competing requests", competing_requests),
        ("dropped prefetches", dropped_prefetches),
        ("flushes", raw_flushes),
    ]);
    raw.extend(times([
        ("read faults took", raw_read_ns),
        ("write faults took", raw_write_ns),
        ("calls took", raw_call_ns),
    ]));
    let memory = counts([
        ("shared bytes", shared_bytes),
        ("shared bytes per node", report.shared_bytes_per_node()),
        ("allotted bytes", allotted_bytes),
    ]);
    let sent_of = |messages, bytes| format!("{} of {} bytes", Count(messages), Count(bytes));
    let kinds = by_kind.iter();
    let kinds = kinds.map(|(kind, of)| (kind.name().to_owned(), sent_of(of.messages, of.bytes)));
    let protocols = by_protocol.iter();
    let protocols = protocols.map(|(name, of)| (name.clone(), sent_of(of.messages, of.bytes)));
    let types = by_type.iter();
    let types = types.map(|(name, of)| (short(name), of_type(of)));
    let objects = by_object.iter().map(|(name, of)| {
        let (reads, writes) = (Count(of.reads), Count(of.writes));
        (short(name), format!("{reads} reads, {writes} writes"))
    });
    vec![
        ("time, all nodes together", time),
        ("messages", sent),
        ("messages by kind", kinds.collect()),
        ("messages of the program's protocols", protocols.collect()),
        ("objects read", read),
        ("objects written", written),
        ("objects by type", types.collect()),
        ("objects with operations", objects.collect()),
        ("synchronisation", met),
        ("raw memory", raw),
        ("memory", memory),
    ]
}

/// What happened to objects of a type, in words.
fn of_type(of: &TypeCounters) -> String {
    let TypeCounters {
        allocated,
        freed,
        misses,
        one_sided_reads,
        write_faults,
        installed,
        installed_bytes,
        invalidated,
    } = *of;
    let parts = [
        (allocated, "allocated"),
        (freed, "freed"),
        (misses, "misses"),
        (one_sided_reads, "read one-sided"),
        (write_faults, "write faults"),
        (installed, "installed"),
        (installed_bytes, "bytes"),
        (invalidated, "invalidated"),
    ];
    let counted = parts.into_iter().filter(|(count, _)| *count > 0);
    let words = counted.map(|(count, what)| format!("{} {what}", Count(count)));
    words.collect::<Vec<_>>().join(", ")
}
