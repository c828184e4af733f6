//! Writes the evaluation as Markdown, the paper's numbers beside dhole's.

use std::fmt::Write as _;

use super::super::tables::{number, table};
use super::Here;
use super::holds;
use super::runs::{CHUNKINGS, HOSTS, MOST, PROTOCOLS, Run, Runs, SHARES, TODAY, Variant};

/// The whole page.
pub fn page(runs: &Runs<'_>, costs: &[Option<f64>], here: &Here) -> String {
    let mut page = String::from("# MultiView's and Millipage's evaluation, run again\n\n");
    let inputs = match runs.wanted.small {
        true => "small inputs, so that the paper's numbers do not stand beside them",
        false => "the paper's inputs",
    };
    let _ = writeln!(
        page,
        "Simulated hosts on the network `millipage-myrinet`, {inputs}. Computation is charged by \
         exact counts of work, so everything but what is measured on this machine is the same in \
         every run. Node 0 allocates all minipages, and so manages all, as the paper's one manager \
         does.\n",
    );
    if !runs.wanted.small {
        page.push_str(&holds::table(runs, costs));
    }
    table_1(&mut page, runs, costs, here);
    table_2(&mut page, runs);
    figure_5(&mut page, here);
    figure_6(&mut page, runs);
    figure_7(&mut page, runs);
    beyond(&mut page, runs);
    page
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn measured(here: &Here) -> Vec<(&'static str, Vec<(&'static str, f64)>)> {
    let rows = here.operations.iter().map(|(carrier, found)| {
        let of = vec![
            (LOCAL, found.local_us),
            ("read in, 128 bytes", found.read_128_us),
            ("read in, 4 KB", found.read_4096_us),
            ("write in, 128 bytes, one copy", found.write_128_us),
            ("write in, 4 KB, one copy", found.write_4096_us),
            ("barrier", found.barrier_us),
            ("lock and unlock, two messages", found.lock_us),
        ];
        (*carrier, of)
    });
    rows.collect()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn measured(_here: &Here) -> Vec<(&'static str, Vec<(&'static str, f64)>)> {
    Vec::new()
}

/// The fault of which the paper has the parts: an access fault and a change of a protection.
const LOCAL: &str = "fault that needs no message";

fn table_1(page: &mut String, runs: &Runs<'_>, costs: &[Option<f64>], here: &Here) {
    page.push_str(
        "## Costs of operations (Table 1, section 4.2)\n\nIn microseconds. Today's are measured \
         between two nodes of this machine, of which the manager holds the minipage and waits: \
         threads of one process, and processes over shared memory (`shm`) and over TCP.\n\n",
    );
    let today = measured(here);
    let found = |carrier: &str, name: &str| {
        let (_, of) = today.iter().find(|(known, _)| *known == carrier)?;
        let found = of.iter().find(|(known, _)| *known == name);
        found.map(|(_, us)| *us)
    };
    let carriers = ["threads", "shm", "tcp"];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (cost, simulated) in runs.paper.cost.iter().zip(costs) {
        let paper: f64 = cost.paper.parse().unwrap_or(f64::NAN);
        let mut row = vec![cost.name.clone(), cost.paper.clone(), shown(*simulated)];
        row.push(simulated.map_or_else(String::new, |ours| format!("{:.2}", ours / paper)));
        row.extend(carriers.map(|carrier| shown(found(carrier, &cost.name))));
        rows.push(row);
    }
    for (title, name) in [("barrier, 2 hosts", "barrier"), (LOCAL, LOCAL)] {
        let mut row = vec![title.to_owned()];
        row.extend([const { String::new() }; 3]);
        row.extend(carriers.map(|carrier| shown(found(carrier, name))));
        rows.push(row);
    }
    let header = ["", "paper", "simulated", "ratio", "threads", "shm", "tcp"];
    table(page, &header, rows);
}

fn table_2(page: &mut String, runs: &Runs<'_>) {
    page.push_str("## The programs (Table 2)\n\nOn 8 hosts. \"Paper / here\".\n\n");
    let rows = runs.paper.program.iter().map(|program| {
        let run = runs.of(&program.name, MOST, Variant::Millipage);
        let found = |of: fn(Run<'_>) -> Option<u64>| {
            let found = run.and_then(of);
            found.map_or_else(String::new, |value| value.to_string())
        };
        vec![
            program.name.clone(),
            program.unit.clone(),
            format!(
                "{} / {}",
                program.shared_bytes,
                found(|run| run.result("minipage_bytes"))
            ),
            format!("{} / {}", program.views, found(|run| run.result("views"))),
            format!(
                "{} / {}",
                program.barriers,
                found(|run| Some(run.barriers()))
            ),
            match program.locks {
                Some(locks) => format!("{locks} / {}", found(|run| Some(run.locks()))),
                None => format!("- / {}", found(|run| Some(run.locks()))),
            },
        ]
    });
    let header = ["", "unit", "shared bytes", "views", "barriers", "locks"];
    table(page, &header, rows);
    for program in &runs.paper.program {
        let _ = writeln!(page, "- {}: {}", program.name, program.remark);
    }
    page.push('\n');
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn figure_5(page: &mut String, here: &Here) {
    use super::today::VIEWS;
    page.push_str(
        "## The overhead of views (figure 5)\n\nAn array of bytes is read in order; its pages are \
         cut into as many minipages as there are views. The time is that of one view, which is \
         measured in turn. Measured on this machine.\n\nThe paper's words: up to 32 views \"the \
         measured overhead is always less than 4%\" for 512 KB to 16 MB; it becomes substantial \
         where the views times the bytes reach 512 MB, and from there on grows linearly. 4% does \
         not hold today. A Pentium II took some 500 cycles to read the 128 bytes of a minipage, \
         which hid the walk of the page tables that each minipage needs; today's core takes about \
         100, and a walk still takes tens. The paper has 512 views too, dhole at most 256.\n\n",
    );
    let mut header = vec!["bytes".to_owned()];
    header.extend(VIEWS.map(|views| views.to_string()));
    header.push("page tables of 256 views, bytes".to_owned());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = here.overheads.iter().map(|found| {
        let mut row = vec![found.bytes.to_string()];
        row.extend(found.ratios.iter().map(|ratio| format!("{ratio:.2}")));
        row.push(
            found
                .page_tables
                .map_or_else(String::new, |bytes| bytes.to_string()),
        );
        row
    });
    table(page, &header, rows);
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn figure_5(_page: &mut String, _here: &Here) {}

fn figure_6(page: &mut String, runs: &Runs<'_>) {
    page.push_str(
        "## Speedups (figure 6, left)\n\nThe values are not in the paper's text. \"Polling\": on \
         the same network, where a node that computes takes messages at once, which the authors \
         expected of better timers. A fault's time is from the access until it can be made; the \
         paper has 750 us on the average of its programs, more than 500 of which are the response \
         of a node that computes.\n\n",
    );
    let mut rows = Vec::new();
    for program in &runs.paper.program {
        for (variant, name) in [(Variant::Millipage, ""), (Variant::Polling, ", polling")] {
            let of = |nodes| runs.of(&program.name, nodes, variant);
            let mut row = vec![format!("{}{name}", program.name)];
            let paper = match variant {
                Variant::Millipage => program.words.as_deref().unwrap_or("nothing"),
                _ => "",
            };
            row.push(paper.to_owned());
            row.extend(HOSTS.map(|nodes| shown(of(nodes).map(Run::speedup))));
            row.push(shown(of(MOST).and_then(Run::fault_us)));
            rows.push(row);
        }
    }
    let without = runs.of("LU", MOST, Variant::NoPrefetch);
    let mut row = vec!["LU without prefetch".to_owned()];
    row.extend([const { String::new() }; 4]);
    row.push(shown(without.map(Run::speedup)));
    row.push(shown(without.and_then(Run::fault_us)));
    rows.push(row);
    let mut header = vec!["".to_owned(), "the paper's words".to_owned()];
    header.extend(HOSTS.map(|nodes| format!("{nodes} hosts")));
    header.push("a fault on 8, us".to_owned());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(page, &header, rows);
    page.push_str(
        "## What the time is spent on (figure 6, right)\n\nIn percent of the time of 8 hosts. \
         \"Serving\" is what a host does for others while it computes, and what is none of the \
         other columns.\n\n",
    );
    let mut header = vec![""];
    header.extend(SHARES.map(|(name, _)| name));
    header.push("serving");
    let rows = runs.paper.program.iter().filter_map(|program| {
        let run = runs.of(&program.name, MOST, Variant::Millipage)?;
        let mut row = vec![program.name.clone()];
        row.extend(run.shares().map(|share| format!("{:.1}", share * 100.0)));
        Some(row)
    });
    table(page, &header, rows);
}

fn figure_7(page: &mut String, runs: &Runs<'_>) {
    page.push_str(
        "## Chunking in WATER (figure 7)\n\nMolecules in a minipage, and a minipage for each page \
         (no control of false sharing). \"Adaptive\": a minipage for each molecule, and the \
         manager brings as many neighbours of a missed one as it learns. Efficiency is relative \
         to the best row. The paper's optimum is 4 on four hosts and 5 on eight; competing \
         requests rise from 21 to 601.\n\n",
    );
    for chunking in &CHUNKINGS {
        let best = chunking.least_seconds(runs);
        let rows = chunking.variants().into_iter();
        let rows = rows.filter_map(|(name, variant)| {
            let run = chunking.run(runs, variant)?;
            let [read, write] = run.faults();
            Some(vec![
                name,
                number(run.seconds()),
                format!("{:.2}", best / run.seconds()),
                run.counted("competing_requests").to_string(),
                read.to_string(),
                write.to_string(),
            ])
        });
        let _ = writeln!(page, "### {}\n", chunking.title);
        let header = [
            "chunk",
            "time (s)",
            "efficiency",
            "competing requests",
            "read faults",
            "write faults",
        ];
        table(page, &header, rows);
    }
}

fn beyond(page: &mut String, runs: &Runs<'_>) {
    page.push_str(
        "## Beyond the paper\n\nThe same programs over objects, on the same 8 hosts, under \
         protocols with reduced consistency. IS, LU and TSP's pool are there over raw memory \
         only. Speedups.\n\n",
    );
    let rows = ["SOR", "WATER"].map(|name| {
        let of = |variant| shown(runs.of(name, MOST, variant).map(Run::speedup));
        let mut row = vec![
            name.to_owned(),
            of(Variant::Millipage),
            of(Variant::Polling),
        ];
        row.extend(PROTOCOLS.map(|protocol| of(Variant::Objects(protocol))));
        row
    });
    let header = [
        "",
        "millipage",
        "millipage, polling",
        PROTOCOLS[0],
        PROTOCOLS[1],
    ];
    table(page, &header, rows);
    page.push_str(
        "On 8 hosts of today, whose processors take a guessed time for a unit of work. \
         Speedups.\n\n",
    );
    let rows = runs.paper.program.iter().map(|program| {
        let of = |variant| shown(runs.of(&program.name, MOST, variant).map(Run::speedup));
        let mut row = vec![program.name.clone(), of(Variant::Millipage)];
        row.extend(TODAY.map(|network| of(Variant::On(network))));
        row
    });
    table(page, &["", "millipage-myrinet", TODAY[0], TODAY[1]], rows);
    page.push_str(
        "TSP on 8 hosts with other minipages. The paper expects numbers that divide a page to \
         bring \"a large increase in false sharing\".\n\n",
    );
    let variants = [
        ("148 bytes, a tour", Variant::Millipage),
        ("128 bytes", Variant::Unit(128)),
        ("256 bytes", Variant::Unit(256)),
        ("a page", Variant::Page),
        ("148 bytes, no push", Variant::NoPush),
    ];
    let rows = variants.into_iter().filter_map(|(name, variant)| {
        let run = runs.of("TSP", MOST, variant)?;
        let [read, write] = run.faults();
        Some(vec![
            name.to_owned(),
            number(run.seconds()),
            run.counted("competing_requests").to_string(),
            read.to_string(),
            write.to_string(),
            run.locks().to_string(),
        ])
    });
    let header = [
        "minipage",
        "time (s)",
        "competing requests",
        "read faults",
        "write faults",
        "locks",
    ];
    table(page, &header, rows);
}
