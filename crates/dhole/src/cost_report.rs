//! A run's report as people and programs read it: the worst lines first, with advice.

use std::fmt::{self, Display};

use dhole_model::{LineCost, MessageKind, Phase, PhaseTimes, WaitCause, WaitCost};
use dhole_node::MemoryConsistency;

use crate::Report;
use crate::words::{Count, Counted, ns};

/// The most lines of the program that are shown to people; JSON has all that are kept.
const MOST_SHOWN: usize = 10;
/// A line is shown if it took at least so large a part of all waiting: one of so many.
const LEAST_PART: u64 = 1000;
/// Nodes that are told apart; of more, the sum is shown.
const MOST_NODES_SHOWN: usize = 16;
/// The least processor time of a phase that is shown.
const LEAST_SHOWN_NS: u64 = 100_000;
/// What is waited for, in the order in which it is told.
const CAUSES: [WaitCause; 4] = [
    WaitCause::Object,
    WaitCause::Lock,
    WaitCause::Barrier,
    WaitCause::Operation,
];

impl Report {
    /// What each line of the program cost, the worst first, with advice.
    ///
    /// ```
    /// let run = dhole::Config::nodes(2).run(|w| Ok(w.barrier()?))?;
    /// println!("{}", run.report.lines());
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    pub fn lines(&self) -> Lines<'_> {
        Lines(self)
    }

    /// The report as one JSON object, in one line: what was waited for, in all and at each line of
    /// the program, with the advice of each.
    ///
    /// ```
    /// let run = dhole::Config::nodes(2).run(|w| {
    ///     let seven = w.once(|w| Ok(w.alloc(7_u64)))?;
    ///     Ok(*seven.get(w))
    /// })?;
    /// assert!(run.report.json().starts_with("{\"nodes\":2,\"transport\":\"threads\","));
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    pub fn json(&self) -> String {
        let total = self.total();
        let (nodes, elapsed) = (self.nodes, self.elapsed.as_secs_f64());
        let mut text = format!("{{\"nodes\":{nodes},\"transport\":");
        quote(&mut text, self.transport);
        text += ",\"protocol\":";
        quote(&mut text, self.protocol);
        let (messages, bytes) = (total.messages, total.data_bytes);
        text += &format!(
            ",\"elapsed_seconds\":{elapsed},\"messages\":{messages},\"data_bytes\":{bytes}"
        );
        if let (Some(domains), Some(managers)) = (self.domains, self.managers) {
            text += &format!(",\"memory_domains\":{domains},\"memory_managers\":\"{managers}\"");
        }
        if let Some(consistency) = self.consistency {
            let (reads, writes) = (total.raw_read_faults, total.raw_write_faults);
            let (came, flushes) = (total.sent(MessageKind::MemoryData), total.raw_flushes);
            text += &format!(
                ",\"memory_consistency\":\"{consistency}\",\"memory_read_faults\":{reads},\
                 \"memory_write_faults\":{writes},\"minipages_fetched\":{came},\
                 \"memory_flushes\":{flushes}"
            );
        }
        text += ",\"waits\":{";
        let totals = CAUSES.map(|cause| (cause.name(), self.costs.total_of(cause.name())));
        list(&mut text, totals, |text, (name, cost)| {
            *text += &format!("\"{name}\":{{{}}}", numbers(&cost));
        });
        text += "},\"lines\":[";
        list(&mut text, &self.costs.lines, |text, line| {
            *text += "{\"at\":";
            quote(text, &line.site.to_string());
            *text += &format!(",\"cause\":\"{}\",\"type\":", line.cause);
            quote(text, &line.type_name);
            *text += ",\"allocated_at\":";
            match line.allocated_at {
                Some(site) => quote(text, &site.to_string()),
                None => *text += "null",
            }
            *text += &format!(",{},\"advice\":", numbers(&line.cost));
            quote(text, &self.advice(line));
            text.push('}');
        });
        text += "],\"left_out\":{";
        let left_out = CAUSES.map(|cause| (cause.name(), self.costs.left_out_of(cause.name())));
        let left_out = left_out.into_iter().filter(|(_, cost)| cost.waits > 0);
        list(&mut text, left_out, |text, (name, cost)| {
            *text += &format!("\"{name}\":{{{}}}", numbers(&cost));
        });
        text += "},\"phases\":[";
        list(&mut text, self.phases(), |text, node| {
            text.push('{');
            list(text, Phase::ALL, |text, phase| {
                let seconds = ns(node.of(phase)).as_secs_f64();
                *text += &format!("\"{}\":{seconds}", phase.name());
            });
            if node.worker_processor_ns > 0 {
                *text += ",\"processor\":{";
                list(text, Phase::ALL, |text, phase| {
                    let seconds = ns(node.processor_of(phase).unwrap_or(0)).as_secs_f64();
                    *text += &format!("\"{}\":{seconds}", phase.name());
                });
                text.push('}');
            }
            text.push('}');
        });
        text += "]}";
        text
    }
}

/// What a run cost, in lines for people: first what its nodes waited for, then the ten worst lines
/// of the program, each with one sentence of [advice](Report::advice). [`Report::lines`] makes it.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a>(&'a Report);

impl Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let total = report.total();
        writeln!(
            f,
            "{} nodes over {}, protocol {}, {:.1?}; {} messages, {} bytes",
            report.nodes,
            report.transport,
            report.protocol,
            report.elapsed,
            Count(total.messages),
            Count(total.data_bytes),
        )?;
        if let (Some(domains), Some(managers), Some(consistency)) =
            (report.domains, report.managers, report.consistency)
        {
            let domains = Counted(domains as u64, "domain", "domains");
            write!(f, "raw memory: {domains}, managers {managers}")?;
            match consistency {
                MemoryConsistency::Sequential => {}
                MemoryConsistency::Release => write!(f, ", {consistency} consistency")?,
            }
            writeln!(
                f,
                "; {}, {}, {} fetched, {}",
                Counted(total.raw_read_faults, "read fault", "read faults"),
                Counted(total.raw_write_faults, "write fault", "write faults"),
                Counted(total.sent(MessageKind::MemoryData), "minipage", "minipages"),
                Counted(total.raw_flushes, "flush", "flushes"),
            )?;
        }
        let costs = CAUSES.map(|cause| (cause, report.costs.total_of(cause.name())));
        let all_ns: u64 = costs
            .iter()
            .fold(0, |sum, (_, cost)| u64::saturating_add(sum, cost.waited_ns));
        write!(f, "waited, all nodes together: {:.1?}", ns(all_ns))?;
        let parts = costs.iter().filter(|(_, cost)| cost.waits > 0);
        for ((cause, cost), before) in parts.zip([" (", ", ", ", ", ", "]) {
            write!(f, "{before}{cause} {:.1?}", ns(cost.waited_ns))?;
        }
        write!(f, "{}", if all_ns > 0 { ")" } else { "" })?;
        let reads_ns = report.costs.total_of(WaitCause::Object.name()).one_sided_ns;
        if reads_ns > 0 {
            write!(f, "; one-sided reads about {:.1?}", ns(reads_ns))?;
        }
        writeln!(f)?;
        report.tell_processor_time(f)?;
        let all_ns = all_ns.saturating_add(reads_ns);
        let lines = &report.costs.lines;
        let counts = |line: &&LineCost| line.cost.spent_ns() >= all_ns / LEAST_PART;
        let shown = lines.iter().filter(counts).count().min(MOST_SHOWN);
        for line in &lines[..shown] {
            let took = format!("{:.1?}", ns(line.cost.spent_ns()));
            writeln!(f, "{took:>9}  {}", report.advice(line))?;
        }
        let mut rest = WaitCost::default();
        lines[shown..].iter().for_each(|line| rest.add(&line.cost));
        report
            .costs
            .left_out
            .values()
            .for_each(|cost| rest.add(cost));
        if rest.waits > 0 {
            let took = format!("{:.1?}", ns(rest.spent_ns()));
            let waits = Counted(rest.waits, "wait", "waits");
            writeln!(f, "{took:>9}  {waits} at other lines")?;
        }
        if !report.costs.left_out.is_empty() {
            let most = dhole_model::LineCosts::MOST_LINES;
            writeln!(
                f,
                "a node keeps {most} lines; more were waited at, and are not told apart"
            )?;
        }
        Ok(())
    }
}

impl Report {
    /// How long the workers had a processor, by phase: each of a few nodes, or all together.
    fn tell_processor_time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.phases();
        if nodes.len() <= MOST_NODES_SHOWN {
            let mut each = nodes.iter().enumerate();
            return each
                .try_for_each(|(node, phases)| tell_processor(f, &format!("node {node}"), phases));
        }
        let mut all = PhaseTimes::default();
        nodes.iter().for_each(|node| all.add(node));
        tell_processor(f, "all workers", &all)
    }
}

/// A line of processor time, where that is known.
fn tell_processor(f: &mut fmt::Formatter<'_>, of: &str, phases: &PhaseTimes) -> fmt::Result {
    let known = |phase: Phase| Some((phase, phases.processor_of(phase)?));
    let parts = Phase::ALL.into_iter().filter_map(known);
    let parts = parts.filter(|(phase, ns)| *phase == Phase::Computing || *ns >= LEAST_SHOWN_NS);
    let parts: Vec<String> = parts
        .map(|(phase, time)| format!("{} {:.1?}", phase.name(), ns(time)))
        .collect();
    if parts.is_empty() {
        return Ok(());
    }
    let all = ns(phases.worker_processor_ns);
    writeln!(f, "processor of {of}: {all:.1?} ({})", parts.join(", "))
}

/// The numbers of a cost, as fields of an object.
fn numbers(cost: &WaitCost) -> String {
    let WaitCost {
        waits,
        misses,
        to_write,
        one_sided_reads,
        along,
        along_read,
        bytes,
        waited_ns,
        one_sided_ns,
    } = cost;
    format!(
        "\"waits\":{waits},\"misses\":{misses},\"one_sided_reads\":{one_sided_reads},\
         \"along\":{along},\"along_read\":{along_read},\"bytes\":{bytes},\"waited_seconds\":{},\
         \"one_sided_seconds\":{},\
         \"to_write\":{to_write}",
        ns(*waited_ns).as_secs_f64(),
        ns(*one_sided_ns).as_secs_f64()
    )
}

/// Writes items with commas between.
fn list<T>(
    text: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        write(text, item);
    }
}

/// Writes a string of JSON.
pub(crate) fn quote(text: &mut String, words: &str) {
    text.push('"');
    for c in words.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => *text += &format!("\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_kind_are_strings_of_json() {
        let mut text = String::new();
        quote(&mut text, "a\"b\\c\nd\u{e9}");
        assert_eq!(text, "\"a\\\"b\\\\c\\u000ad\u{e9}\"");
    }
}
