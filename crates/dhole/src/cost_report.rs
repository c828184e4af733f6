//! A run's report as people and programs read it: the worst lines first, with advice.

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use dhole_model::{CallSite, LineCost, MessageKind, TypeCounters, WaitCause, WaitCost};
use dhole_node::MemoryConsistency;

use crate::Report;

/// The most lines of the program that are shown to people; JSON has all that are kept.
const MOST_SHOWN: usize = 10;
/// A line is shown if it took at least so large a part of all waiting: one of so many.
const LEAST_PART: u64 = 1000;
/// Where a round brings fewer objects than this on average, naming more of them at once pays.
const FEW_OBJECTS: u64 = 16;
/// The same of bytes of an array.
const FEW_BYTES: u64 = 4096;
/// What is waited for, in the order in which it is told.
const CAUSES: [WaitCause; 4] = [
    WaitCause::Object,
    WaitCause::Lock,
    WaitCause::Barrier,
    WaitCause::Operation,
];

impl Report {
    /// One sentence that says what a line of the program did, how often, and how its program may
    /// do with less of it.
    pub fn advice(&self, line: &LineCost) -> String {
        let WaitCost { waits, misses, .. } = line.cost;
        let each = Duration::from_nanos(line.cost.waited_ns / waits.max(1));
        let (kind, at) = (short(&line.type_name), At(line));
        let came = CameAlong(&line.cost);
        let rounds = Counted(waits, "round", "s");
        let of_each = format!("{} of {each:.1?}", Counted(waits, "wait", "s"));
        let better = |usual: String| self.stale(line).unwrap_or(usual);
        match line.cause {
            WaitCause::Object if waits == 0 => format!(
                "{} of `{kind}`{at}: no message was sent",
                Counted(line.cost.one_sided_reads, "one-sided read", "s")
            ),
            WaitCause::Object if line.type_name.is_empty() => format!(
                "{} of pages{at}: allocate in one `alloc_range` what is read together",
                Counted(waits, "fetch", "es")
            ),
            WaitCause::Object if misses / 2 < waits => format!(
                "{} one by one of `{kind}`{came}{at}: {}",
                Counted(misses, "fetch", "es"),
                better(together(line, &kind))
            ),
            WaitCause::Object => format!(
                "{} of `{kind}`{came} in {rounds}{at}: {}",
                Counted(misses, "fetch", "es"),
                better(self.rounds(line))
            ),
            WaitCause::Elements => format!(
                "{rounds} for elements of an array of `{kind}`{at}: {}",
                better(self.longer(line))
            ),
            WaitCause::Lock => format!(
                "{of_each} for a lock{at}: hold it for less, take one for each part of the data, \
                 or add values up with `w.all_reduce` or an object with operations"
            ),
            WaitCause::Barrier => format!(
                "{of_each} for the other nodes{at}: divide the work evenly by what it costs, or \
                 hand it out with a `JobQueue`"
            ),
            WaitCause::Ids => format!(
                "{of_each} for ids of new objects{at}: allocate many at once \
                 (`w.alloc_range(..)`)"
            ),
            WaitCause::Operation => format!(
                "{of_each} for an operation or a process{at}: make an object `replicated()` that \
                 is mostly read, or start the operation and wait for its `Pending` later"
            ),
        }
    }

    /// What to do where a round brings several objects.
    fn rounds(&self, line: &LineCost) -> String {
        let per_round = line.cost.misses / line.cost.waits.max(1);
        if line.cost.waits > self.nodes as u64 && per_round < FEW_OBJECTS {
            return format!(
                "{per_round} a round are few, so name more of them in one `w.prefetch(..)`, which \
                 asks each node once"
            );
        }
        "a round brings many already, so read the objects on the node that writes them, or make \
         them smaller"
            .to_owned()
    }

    /// What to do where a round brings elements of an array.
    fn longer(&self, line: &LineCost) -> String {
        let bytes = line.cost.bytes / line.cost.waits.max(1);
        if line.cost.waits > self.nodes as u64 && bytes < FEW_BYTES {
            let bytes = Counted(bytes, "byte", "s");
            return format!(
                "{bytes} a round are few, so borrow longer ranges, or name them in one \
                 `w.prefetch(..)`"
            );
        }
        "a round brings many already, so read the elements on the node that writes them, or fewer"
            .to_owned()
    }

    /// What to do where copies are fetched again because others write the objects.
    fn stale(&self, line: &LineCost) -> Option<String> {
        let mut of_type = TypeCounters::default();
        let all = self.per_node.iter();
        all.filter_map(|node| node.by_type.get(&line.type_name))
            .for_each(|node| of_type.add(node));
        let is_often = of_type.invalidated > of_type.misses / 2;
        // What is read one-sided again takes no message, and a push would be one.
        let by_message = of_type.one_sided_reads <= of_type.misses;
        (is_often && by_message && self.protocol == "lazy").then(|| {
            format!(
                "copies were made invalid {} times by writes of others: under `Coherence::Update` \
                 (`w.under(..)`, `w.switch(..)`) the writer sends new values to those who read \
                 before",
                Count(of_type.invalidated)
            )
        })
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
        text += "}}";
        text
    }
}

/// What a run cost, in lines for people: first what its nodes waited for, then the ten worst lines
/// of the program, each with one sentence of [advice](Report::advice).
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        writeln!(
            f,
            "{} nodes over {}, protocol {}, {:.1?}; {} messages, {} bytes",
            self.nodes,
            self.transport,
            self.protocol,
            self.elapsed,
            Count(total.messages),
            Count(total.data_bytes),
        )?;
        if let (Some(domains), Some(managers), Some(consistency)) =
            (self.domains, self.managers, self.consistency)
        {
            let domains = Counted(domains as u64, "domain", "s");
            write!(f, "raw memory: {domains}, managers {managers}")?;
            match consistency {
                MemoryConsistency::Sequential => {}
                MemoryConsistency::Release => write!(f, ", {consistency} consistency")?,
            }
            writeln!(
                f,
                "; {}, {}, {} fetched, {}",
                Counted(total.raw_read_faults, "read fault", "s"),
                Counted(total.raw_write_faults, "write fault", "s"),
                Counted(total.sent(MessageKind::MemoryData), "minipage", "s"),
                Counted(total.raw_flushes, "flush", "es"),
            )?;
        }
        let costs = CAUSES.map(|cause| (cause, self.costs.total_of(cause.name())));
        let all_ns: u64 = costs
            .iter()
            .fold(0, |sum, (_, cost)| u64::saturating_add(sum, cost.waited_ns));
        write!(f, "waited, all nodes together: {:.1?}", ns(all_ns))?;
        let parts = costs.iter().filter(|(_, cost)| cost.waits > 0);
        for ((cause, cost), before) in parts.zip([" (", ", ", ", ", ", "]) {
            write!(f, "{before}{cause} {:.1?}", ns(cost.waited_ns))?;
        }
        writeln!(f, "{}", if all_ns > 0 { ")" } else { "" })?;
        let lines = &self.costs.lines;
        let counts = |line: &&LineCost| line.cost.waited_ns >= all_ns / LEAST_PART;
        let shown = lines.iter().filter(counts).count().min(MOST_SHOWN);
        for line in &lines[..shown] {
            let took = format!("{:.1?}", ns(line.cost.waited_ns));
            writeln!(f, "{took:>9}  {}", self.advice(line))?;
        }
        let mut rest = WaitCost::default();
        lines[shown..].iter().for_each(|line| rest.add(&line.cost));
        self.costs.left_out.values().for_each(|cost| rest.add(cost));
        if rest.waits > 0 {
            let took = format!("{:.1?}", ns(rest.waited_ns));
            let waits = Counted(rest.waits, "wait", "s");
            writeln!(f, "{took:>9}  {waits} at other lines")?;
        }
        if !self.costs.left_out.is_empty() {
            let most = dhole_model::LineCosts::MOST_LINES;
            writeln!(
                f,
                "a node keeps {most} lines; more were waited at, and are not told apart"
            )?;
        }
        Ok(())
    }
}

/// What to do where objects are fetched one by one.
fn together(line: &LineCost, kind: &str) -> String {
    let prefetch = "name in one `w.prefetch(..)` what is read next";
    match line.refers {
        true => format!(
            "read along its references, so fetch them with `w.prefetch_reachable(..)` from where \
             the walk begins, or hold what is read together as `Own<{kind}>`"
        ),
        false => format!("{prefetch}, or keep it in an array and borrow a range"),
    }
}

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// A number with its thousands apart: `178,764`.
struct Count(u64);

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// So many things, one or several.
struct Counted(u64, &'static str, &'static str);

impl Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(count, thing, several) = self;
        let several = if *count == 1 { "" } else { several };
        write!(f, "{} {thing}{several}", Count(*count))
    }
}

/// A type's name without modules, also of the types in it: `Pair<u8, Node>` for
/// `a::Pair<u8, b::Node>`.
fn short(name: &str) -> String {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = name.split_inclusive(|c| !is_path(c));
    words
        .map(|word| word.rsplit("::").next().unwrap_or(word))
        .collect()
}

/// How many objects came along with those that were missed.
struct CameAlong<'a>(&'a WaitCost);

impl Display for CameAlong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitCost {
            along, along_read, ..
        } = *self.0;
        match along {
            0 => Ok(()),
            _ => {
                let (came, read) = (Count(along), Count(along_read));
                write!(f, " ({came} more came along, {read} of them read)")
            }
        }
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

/// The numbers of a cost, as fields of an object.
fn numbers(cost: &WaitCost) -> String {
    let WaitCost {
        waits,
        misses,
        one_sided_reads,
        along,
        along_read,
        bytes,
        waited_ns,
    } = cost;
    format!(
        "\"waits\":{waits},\"misses\":{misses},\"one_sided_reads\":{one_sided_reads},\
         \"along\":{along},\"along_read\":{along_read},\"bytes\":{bytes},\"waited_seconds\":{}",
        ns(*waited_ns).as_secs_f64()
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
fn quote(text: &mut String, words: &str) {
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
    fn numbers_and_types_are_written_as_people_read_them() {
        let counts = [0, 999, 1000, 178_764, 1_000_000].map(|n| Count(n).to_string());
        assert_eq!(counts, ["0", "999", "1,000", "178,764", "1,000,000"]);
        assert_eq!(short("kdtree::Referring"), "Referring");
        assert_eq!(short("a::Pair<u8, b::c::Node>"), "Pair<u8, Node>");
        assert_eq!(short("[core::option::Option<x::Y>; 2]"), "[Option<Y>; 2]");
        assert_eq!(short("f64"), "f64");
        let waits = [1, 2000].map(|count| Counted(count, "fetch", "es").to_string());
        assert_eq!(waits, ["1 fetch", "2,000 fetches"]);
    }

    #[test]
    fn words_of_any_kind_are_strings_of_json() {
        let mut text = String::new();
        quote(&mut text, "a\"b\\c\nd\u{e9}");
        assert_eq!(text, "\"a\\\"b\\\\c\\u000ad\u{e9}\"");
    }
}
