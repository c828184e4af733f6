//! Writes the paper's tables as Markdown, with its numbers beside dhole's.

use std::fmt::Write as _;

use super::cell::Memory;
use super::holds::{self, CLOSE};
use super::published::{Grain, Measures, Problem};
use super::results::Results;
use super::variant::Variant;

/// The whole page.
pub fn page(results: &Results<'_>) -> String {
    let mut page = String::from("# DOSA's evaluation, run again\n\n");
    let inputs = match results.wanted.small {
        true => "small inputs, so that the paper's numbers do not stand beside them",
        false => "the paper's inputs",
    };
    let _ = writeln!(
        page,
        "Simulated nodes on the network `{}`, {inputs}. Computation is charged by exact counts of \
         work, each unit taking as long as makes the sequential run take the paper's time; so \
         everything but the table of one node is the same in every run. \"Ratio\" is ours over \
         the paper's; MB are 10^6 bytes.\n",
        results.wanted.network
    );
    what_holds(&mut page, results);
    if !results.wanted.simulated {
        one_node(&mut page, results);
    }
    speedups(&mut page, results);
    for (title, grain) in [
        ("Fine-grained programs (Table 3)", Grain::Fine),
        ("Coarse-grained programs (Table 5)", Grain::Coarse),
    ] {
        let _ = writeln!(page, "## {title}\n");
        let problems = results.paper.problem.iter().enumerate();
        for (place, problem) in problems.filter(|(_, problem)| problem.grain == grain) {
            counts(&mut page, results, place, problem);
        }
    }
    ablation(&mut page, results);
    hoisting(&mut page, results);
    page
}

fn what_holds(page: &mut String, results: &Results<'_>) {
    if !results.compare() {
        return;
    }
    page.push_str(
        "## What holds\n\nNumbers are ours over the paper's, but for what is \"at most\". Where no \
         other bound stands, a number holds from 0.80 to 1.25. What an optimisation is worth, and \
         hoisting, are factors, ours of the paper's; a time of Table 6 holds within 0.05, or a \
         fifth of the paper's gain.\n\n",
    );
    let rows = holds::claims(results).into_iter();
    let rows = rows.map(|claim| vec![claim.asked, claim.holds.join(", "), claim.fails.join(", ")]);
    let _ = writeln!(page, "| asked | holds | does not hold |\n|---|---|---|");
    for row in rows {
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page.push('\n');
}

fn one_node(page: &mut String, results: &Results<'_>) {
    page.push_str(
        "## What handles cost on one node (Table 1)\n\nMeasured on this machine, the fastest of \
         three runs each, the paper's inputs. Both have huge pages: the space of objects asks the \
         system for them, and the allocator does with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, \
         which is set for these runs.\n\n",
    );
    let rows = results.paper.problem.iter().zip(&results.here);
    let rows = rows.filter_map(|(problem, here)| {
        let here = (*here)?;
        let paper = problem.handle_seconds / problem.sequential_seconds;
        Some(vec![
            problem.name.clone(),
            number(problem.sequential_seconds),
            number(here.plain_seconds),
            format!("{paper:.3}"),
            format!("{:.3}", here.ratio()),
        ])
    });
    let header = [
        "problem",
        "plain, paper (s)",
        "plain, here (s)",
        "handles over plain, paper",
        "here",
    ];
    table(page, &header, rows);
}

fn speedups(page: &mut String, results: &Results<'_>) {
    page.push_str("## Speedups (figures 5 and 9)\n\n");
    page.push_str("![](figure-5.svg)\n![](figure-9.svg)\n\n");
    let mut rows = Vec::new();
    for (place, problem) in results.paper.problem.iter().enumerate() {
        for &nodes in &results.wanted.nodes {
            let of = |variant| results.run(place, nodes, variant);
            let (Some(tmk), Some(dosa)) = (of(Variant::Treadmarks), of(Variant::Dosa)) else {
                continue;
            };
            let paper = paper_time_ratio(problem, nodes).filter(|_| results.are_the_papers());
            let ours = tmk.measures.seconds / dosa.measures.seconds;
            rows.push(vec![
                problem.name.clone(),
                nodes.to_string(),
                number(tmk.speedup()),
                number(dosa.speedup()),
                paper.map_or_else(String::new, |paper| format!("{paper:.2}")),
                format!("{ours:.2}"),
                paper.map_or_else(String::new, |paper| format!("{:.2}", ours / paper)),
                inflation([tmk.compute_inflation, dosa.compute_inflation]),
            ]);
        }
    }
    let header = [
        "problem",
        "nodes",
        "TreadMarks",
        "DOSA",
        "time TreadMarks / DOSA, paper",
        "here",
        "ratio",
        "compute inflation",
    ];
    table(page, &header, rows);
}

fn inflation(of: [Option<f64>; 2]) -> String {
    let shown = of.map(|one| one.map_or_else(|| "?".to_owned(), |one| format!("{one:.3}")));
    shown.join(", ")
}

/// The time of TreadMarks, divided by DOSA's, if the paper has it.
fn paper_time_ratio(problem: &Problem, nodes: u16) -> Option<f64> {
    match nodes {
        16 => problem.faster_on_16,
        32 => Some(problem.treadmarks.seconds / problem.dosa.seconds),
        _ => None,
    }
}

fn counts(page: &mut String, results: &Results<'_>, place: usize, problem: &Problem) {
    let nodes = results.most_nodes();
    let of = |variant| results.run(place, nodes, variant);
    let (Some(tmk), Some(dosa)) = (of(Variant::Treadmarks), of(Variant::Dosa)) else {
        let _ = writeln!(page, "### {}: a run failed\n", problem.name);
        return;
    };
    let memory = (tmk.memory, dosa.memory);
    let (tmk, dosa) = (tmk.measures.named(), dosa.measures.named());
    let _ = writeln!(page, "### {}, {nodes} nodes\n", problem.name);
    let (other, of) = other_memory(problem);
    let (of_tmk, of_dosa) = (of(memory.0), of(memory.1));
    let pairs = tmk.iter().zip(&dosa);
    if !results.compare() {
        let row = |name: &str, tmk: f64, dosa: f64| {
            let name = row_name(problem, name);
            vec![name, number(tmk), number(dosa), times(tmk / dosa)]
        };
        let rows = pairs.map(|((name, tmk), (_, dosa))| row(name, *tmk, *dosa));
        let rows = rows.chain([row(other, of_tmk, of_dosa)]);
        return table(page, &["", "TreadMarks", "DOSA", "TreadMarks / DOSA"], rows);
    }
    let published = problem
        .treadmarks
        .named()
        .into_iter()
        .zip(problem.dosa.named());
    let mut remarks = Vec::new();
    let mut rows: Vec<_> = pairs
        .zip(published)
        .map(|(((name, tmk), (_, dosa)), ((_, ptmk), (_, pdosa)))| {
            let (ours, papers) = (tmk / dosa, ptmk / pdosa);
            if !CLOSE.contains(&(ours / papers)) || !CLOSE.contains(&(dosa / pdosa)) {
                remarks.push(remark(results, problem, name));
            }
            let values = [ptmk, *tmk].map(number);
            let [a, b] = values;
            let [c, d] = [pdosa, *dosa].map(number);
            let [e, f, g] = [papers, ours, ours / papers].map(times);
            let (tmk, dosa) = (times(tmk / ptmk), times(dosa / pdosa));
            vec![row_name(problem, name), a, b, tmk, c, d, dosa, e, f, g]
        })
        .collect();
    let none = String::new;
    let [here_tmk, here_dosa] = [of_tmk, of_dosa].map(number);
    let ratio = times(of_tmk / of_dosa);
    let other = other.to_owned();
    rows.push(vec![
        other,
        none(),
        here_tmk,
        none(),
        none(),
        here_dosa,
        none(),
        none(),
        ratio,
        none(),
    ]);
    let header = [
        "",
        "TreadMarks, paper",
        "here",
        "ratio",
        "DOSA, paper",
        "here",
        "ratio",
        "TreadMarks / DOSA, paper",
        "here",
        "ratio",
    ];
    table(page, &header, rows);
    remarks.iter().for_each(|remark| {
        let _ = writeln!(page, "- {remark}");
    });
    if !remarks.is_empty() {
        page.push('\n');
    }
}

const MEMORY: &str = "memory a node (MB)";

/// The name of a row. Memory is named after the count to compare with the paper's number.
fn row_name(problem: &Problem, name: &str) -> String {
    match (name, problem.memory_of_all) {
        (MEMORY, true) => "memory a node, allotted (MB)".to_owned(),
        (MEMORY, false) => "memory a node, touched (MB)".to_owned(),
        _ => name.to_owned(),
    }
}

/// The other count of memory.
fn other_memory(problem: &Problem) -> (&'static str, fn(Memory) -> f64) {
    if problem.memory_of_all {
        ("of it touched (MB)", |memory| memory.touched_mb)
    } else {
        ("allotted (MB)", |memory| memory.allotted_mb)
    }
}

/// The reason for a number that differs from the paper's.
fn remark(results: &Results<'_>, problem: &Problem, measure: &str) -> String {
    let known = results.paper.remark.iter();
    let mut known = known.filter(|r| problem.name.starts_with(&r.problem) && r.measure == measure);
    let text = known
        .next()
        .map_or("differs, and why is not known", |r| &r.text);
    format!("{measure}: {text}")
}

fn ablation(page: &mut String, results: &Results<'_>) {
    page.push_str("## Without each optimisation (Table 6, figure 11)\n\n![](figure-11.svg)\n\n");
    page.push_str("Off over on, the paper's and ours.\n\n");
    for (place, problem) in results.paper.problem.iter().enumerate() {
        let nodes = results.most_nodes();
        let Some(on) = results.run(place, nodes, Variant::Dosa) else {
            continue;
        };
        let Some(paper_on) = problem.ablation.get(&Variant::Dosa) else {
            continue;
        };
        let mut rows: Vec<Vec<String>> = on
            .measures
            .named()
            .into_iter()
            .map(|(name, on)| vec![row_name(problem, name), number(on)])
            .collect();
        let (other, of) = other_memory(problem);
        let mut other = vec![other.to_owned(), number(of(on.memory))];
        let mut header = vec!["", "DOSA"];
        for variant in Variant::ABLATED {
            let off = results.run(place, nodes, variant);
            let Some((off, paper_off)) = off.zip(problem.ablation.get(&variant)) else {
                continue;
            };
            let papers = over(paper_off, paper_on);
            for ((row, ours), papers) in rows
                .iter_mut()
                .zip(over(&off.measures, &on.measures))
                .zip(papers)
            {
                if results.compare() {
                    row.push(times(papers));
                }
                row.push(times(ours));
            }
            if results.compare() {
                other.push(String::new());
            }
            other.push(times(of(off.memory) / of(on.memory)));
            if results.compare() {
                header.push(variant.name());
                header.push("here");
            } else {
                header.push(variant.name());
            }
        }
        let _ = writeln!(page, "### {}, {nodes} nodes\n", problem.name);
        let behind = rows.iter().position(|row| row[0].starts_with("memory"));
        rows.insert(behind.map_or(rows.len(), |place| place + 1), other);
        table(page, &header, rows);
    }
    of_table(page, results, "Table 6");
}

fn over(off: &Measures, on: &Measures) -> Vec<f64> {
    let pairs = off.named().into_iter().zip(on.named());
    pairs.map(|((_, off), (_, on))| off / on).collect()
}

fn hoisting(page: &mut String, results: &Results<'_>) {
    page.push_str("## Hoisting handles out of loops (Table 7)\n\n");
    page.push_str(
        "Ours on one node are measured on this machine, the fastest of three runs each. On 32 they \
         are simulated, where a point costs what the paper's run on one node took, with and \
         without.\n\n",
    );
    let rows = results.paper.hoisting.iter().map(|row| {
        let [with, without] = results.hoisting_of(row);
        let seconds = |found: Option<f64>| found.map_or_else(String::new, number);
        let both = with.zip(without);
        vec![
            row.system.clone(),
            row.nodes.to_string(),
            number(row.with),
            number(row.without),
            times(row.without / row.with),
            seconds(with),
            seconds(without),
            both.map_or_else(String::new, |(with, without)| times(without / with)),
        ]
    });
    let header = [
        "large SOR",
        "nodes",
        "with, paper (s)",
        "without, paper (s)",
        "without / with, paper",
        "with, here (s)",
        "without, here (s)",
        "without / with, here",
    ];
    table(page, &header, rows);
    of_table(page, results, "Table 7");
}

/// Appends the remarks on a whole table.
fn of_table(page: &mut String, results: &Results<'_>, name: &str) {
    let remark = results.paper.remark.iter().find(|r| r.problem == name);
    if let Some(remark) = remark.filter(|_| results.compare()) {
        let _ = writeln!(page, "{}\n", remark.text);
    }
}

pub fn table(page: &mut String, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let _ = writeln!(page, "| {} |", header.join(" | "));
    let _ = writeln!(page, "|---|{}", "---:|".repeat(header.len() - 1));
    for row in rows {
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page.push('\n');
}

/// Three digits, or all of a large number.
pub fn number(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

fn times(ratio: f64) -> String {
    match ratio.is_finite() {
        true => format!("{ratio:.2}"),
        false => String::new(),
    }
}
