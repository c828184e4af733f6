//! What a report says of the lines of a program.
#![cfg(feature = "sim")]

use std::time::Duration;

use dhole::sim::{Description, Settings};
use dhole::{
    Config, LineCost, LineCosts, Lock, Optimisations, Phase, Ref, Report, Result, Share, WaitCause,
    Worker,
};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::Value;

#[derive(Share, Clone, Copy)]
struct Item {
    value: u64,
    next: Option<Ref<Item>>,
}

const ITEMS: u64 = 5;

/// The line of this file on which these words stand, behind a `//`.
fn line_of(mark: &str) -> u32 {
    let marks = format!("// {mark}");
    let found = (1..).zip(include_str!("cost_report.rs").lines());
    let mut found = found.filter(|(_, line)| line.ends_with(&marks));
    found.next().expect(mark).0
}

/// Node 0 has a list, numbers and an array; node 1 reads them, each in its own way.
fn program(w: &mut Worker<'_>) -> Result<u64> {
    let (list, numbers, array) = w.once(|w| {
        let mut next = None;
        for value in 0..ITEMS {
            next = Some(w.alloc(Item { value, next })); // made
        }
        let numbers = w.alloc_range(10, |i| i as u64);
        Ok((next, numbers, w.alloc_array_with(100, |i| i as f64)))
    })?;
    let sums = w.once(|w| Ok(w.alloc([0_u32; 2])))?; // made to be written
    let lock = Lock::numbered(0);
    let mut sum = 0;
    if w.node().index() == 1 {
        let mut at = list;
        while let Some(item) = at {
            let item = item.get(w); // walked
            sum += item.value;
            at = item.next;
        }
        w.prefetch(numbers)?; // prefetched
        sum += numbers.iter().map(|number| *number.get(w)).sum::<u64>(); // here already
        sum += array.slice(w, 10..13).iter().sum::<f64>() as u64; // borrowed
    }
    w.barrier()?; // met
    for _ in 0..3 {
        lock.with(w, |w| {
            sums.get_mut(w)[0] += 1; // written
            Ok(())
        })?; // with a lock
        w.barrier()?;
    }
    Ok(sum)
}

fn report(nodes: usize) -> Report {
    let alone = Optimisations {
        read_aggregation: false,
        ..Optimisations::default()
    };
    let config = Config::nodes(nodes).optimisations(alone);
    let run = config.simulate(Settings::fixed_cost(nodes), program);
    run.expect("a run").report
}

/// What a line of this file cost by waiting for that.
fn at(report: &Report, mark: &str, cause: WaitCause) -> LineCost {
    let line = line_of(mark);
    let here = |cost: &&LineCost| cost.site.line == line && cost.cause == cause;
    let mut found = report.costs.lines.iter().filter(here);
    let cost = found
        .next()
        .unwrap_or_else(|| panic!("{mark}: {:#?}", report.costs));
    assert!(found.next().is_none(), "{mark} is one line for one thing");
    cost.clone()
}

#[test]
fn every_miss_is_counted_at_its_line() {
    use WaitCause::{Barrier, Elements, Lock, Object};
    let report = report(2);
    let walked = at(&report, "walked", Object);
    assert_eq!((walked.cost.waits, walked.cost.misses), (3, 3));
    assert_eq!(
        (walked.cost.along, walked.cost.along_read),
        (ITEMS - 3, ITEMS - 3)
    );
    assert!(walked.type_name.ends_with("::Item"), "{}", walked.type_name);
    let made = walked.allocated_at.map(|site| site.line);
    assert_eq!(made, Some(line_of("made")));
    let prefetched = at(&report, "prefetched", Object);
    assert_eq!((prefetched.cost.waits, prefetched.cost.misses), (1, 10));
    assert_eq!(prefetched.cost.bytes, 10 * 8);
    let borrowed = at(&report, "borrowed", Elements);
    assert_eq!((borrowed.cost.waits, borrowed.cost.misses), (1, 1));
    assert_eq!(borrowed.cost.bytes, 3 * 8);
    assert_eq!(borrowed.type_name, "f64");
    let met = at(&report, "met", Barrier);
    assert_eq!((met.cost.waits, met.cost.misses), (2, 0));
    let quiet = line_of("here already");
    let sites = report.costs.lines.iter().map(|cost| cost.site.line);
    assert!(
        !sites.clone().any(|line| line == quiet),
        "a hit costs nothing"
    );
    let locked = report.costs.total_of("lock");
    assert!(locked.waits > 0 && locked.misses == 0, "{locked:?}");
    assert!(report.costs.lines.iter().any(|cost| cost.cause == Lock));

    let total = report.total();
    let missed = report.costs.total_of("miss");
    assert_eq!(
        (missed.waits, missed.misses),
        (total.fetch_rounds, total.misses)
    );
    let installed = total.by_type.values().map(|of| of.installed_bytes);
    assert_eq!(missed.bytes, installed.sum::<u64>());
    assert_eq!(report.costs.total_of("barrier").bytes, 0);
    let all = ["miss", "lock", "barrier", "operation"].map(|name| report.costs.total_of(name));
    let waited: u64 = all.iter().map(|cost| cost.waited_ns).sum();
    assert!(waited >= total.waited_ns, "{waited} {}", total.waited_ns);
    assert!(report.costs.left_out.is_empty());
    // The same run costs the same, down to the nanosecond.
    assert_eq!(report.costs, self::report(2).costs);
}

#[test]
fn nodes_that_do_the_same_are_added_up_and_one_node_waits_for_nothing() {
    let met = at(&report(5), "met", WaitCause::Barrier);
    assert_eq!(met.cost.waits, 5);
    assert_eq!(report(1).costs, LineCosts::default());
}

#[test]
fn barriers_of_a_run_that_survives_are_barriers_too() {
    let config = Config::nodes(3).survive(true);
    let run = config.simulate(Settings::fixed_cost(3), |w| {
        w.barrier()?; // gathered
        Ok(())
    });
    let report = run.expect("a run").report;
    let gathered = at(&report, "gathered", WaitCause::Barrier);
    assert_eq!(gathered.cost.waits, 3);
    assert_eq!(report.costs.total_of("operation").waits, 0);
}

/// Node 0 writes two numbers again and again; node 1 reads one of them as often, without messages,
/// and the other at the end, which node 0 has had alone for so long that it takes a message where
/// there are no gates.
#[test]
fn what_is_read_one_sided_again_is_not_to_be_pushed() {
    let network = Description::find("infiniband").unwrap().network;
    let mut settings = Settings::fixed_cost(2);
    settings.network = network;
    const ROUNDS: u64 = 20;
    let unlearned = Optimisations {
        learn: false,
        ..Optimisations::default()
    };
    let config = Config::nodes(2).optimisations(unlearned);
    let run = config.simulate(settings, |w| {
        let [often, alone] = w.once(|w| Ok([0_u64; 2].map(|number| w.alloc(number))))?;
        for _ in 0..ROUNDS {
            if w.node().index() == 0 {
                *often.get_mut(w) += 1;
                *alone.get_mut(w) += 1;
            }
            w.barrier()?;
            if w.node().index() == 1 {
                often.read(w);
            }
            w.barrier()?;
        }
        if w.node().index() == 1 {
            assert_eq!(alone.read(w), ROUNDS); // by message
        }
        Ok(())
    });
    let report = run.expect("a run").report;
    let numbers = &report.total().by_type["u64"];
    assert_eq!((numbers.one_sided_reads, numbers.misses), (ROUNDS, 1));
    assert_eq!(numbers.invalidated, ROUNDS - 1);
    let missed = at(&report, "by message", WaitCause::Object);
    let advice = report.advice(&missed);
    assert!(!advice.contains("made invalid"), "{advice}");
}

#[test]
fn a_report_shows_the_worst_lines_first_with_advice() {
    let report = report(2);
    let text = report.lines().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("2 nodes over sim, protocol lazy, "),
        "{text}"
    );
    assert!(
        lines[1].starts_with("waited, all nodes together: "),
        "{text}"
    );
    for cause in ["miss ", "lock ", "barrier "] {
        assert!(lines[1].contains(cause), "{text}");
    }
    let file = "crates/dhole/tests/it/space/cost_report.rs";
    let walked = format!(
        "3 fetches one by one of `Item` (2 more came along, 2 of them read), allocated at \
         {file}:{}, at {file}:{}: read along its references, so walk for many items at \
         once (`w.in_passes(..)`), fetch them with \
         `w.prefetch_reachable(..)` from where the walk begins, or hold what is read together as \
         `Own<Item>`",
        line_of("made"),
        line_of("walked")
    );
    assert!(text.contains(&walked), "{text}");
    let written = format!(
        "of `[u32; 2]` to write it, allocated at {file}:{}, at {file}:{}: let the node write it",
        line_of("made to be written"),
        line_of("written")
    );
    assert!(text.contains(&written), "{text}");
    let borrowed = format!("at {file}:{}: a round brings many", line_of("borrowed"));
    assert!(
        text.contains("1 round for elements of an array of `f64`"),
        "{text}"
    );
    assert!(
        text.contains(&borrowed),
        "one round a node is as few as can be: {text}"
    );
    let costs: Vec<u64> = report
        .costs
        .lines
        .iter()
        .map(|it| it.cost.waited_ns)
        .collect();
    assert!(costs.is_sorted_by(|one, next| one >= next), "{costs:?}");
    let worst = report.advice(&report.costs.lines[0]);
    assert!(lines[2].ends_with(&worst), "{text}");
}

#[test]
fn json_has_what_the_report_has() {
    let report = report(2);
    let json: Value = serde_json::from_str(&report.json()).expect("an object");
    assert_eq!(
        (&json["nodes"], &json["transport"]),
        (&2.into(), &"sim".into())
    );
    let lines = json["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), report.costs.lines.len());
    for (line, cost) in lines.iter().zip(&report.costs.lines) {
        assert_eq!(line["at"], cost.site.to_string());
        assert_eq!(line["cause"], cost.cause.name());
        assert_eq!(line["type"], cost.type_name);
        assert_eq!(line["misses"], cost.cost.misses);
        assert_eq!(line["bytes"], cost.cost.bytes);
        assert_eq!(line["advice"], report.advice(cost));
        let made = cost.allocated_at.map(|site| site.to_string());
        assert_eq!(line["allocated_at"].as_str(), made.as_deref());
    }
    let total = report.total();
    assert_eq!(json["waits"]["miss"]["waits"], total.fetch_rounds);
    assert_eq!(json["messages"], total.messages);
    assert_eq!(json["left_out"], Value::Object(serde_json::Map::new()));
}

/// A node that computes has a processor; one that waits for long sleeps. Lines for people and JSON
/// say so of each node. A simulated node has none.
#[test]
fn processor_time_is_told_by_phase_and_node() {
    const COMPUTES: Duration = Duration::from_millis(30);
    let report = Config::nodes(2)
        .run(|w| {
            if w.node().index() == 0 {
                let time = || clock_gettime(ClockId::ThreadCPUTime);
                let since = |began: Timespec| {
                    let took = time() - began;
                    Duration::new(took.tv_sec.unsigned_abs(), took.tv_nsec as u32)
                };
                let began = time();
                while since(began) < COMPUTES {
                    std::hint::spin_loop();
                }
            }
            Ok(w.barrier()?)
        })
        .unwrap()
        .report;
    let nodes = report.phases();
    let had = |node: usize, phase| {
        let ns = nodes[node].processor_of(phase);
        Duration::from_nanos(ns.expect("threads have processors"))
    };
    assert!(had(0, Phase::Computing) >= COMPUTES, "{nodes:#?}");
    assert!(had(1, Phase::Computing) < COMPUTES / 2, "{nodes:#?}");
    for node in nodes.iter() {
        let waited = node.barrier_ns;
        assert!(node.barrier_processor_ns <= waited, "{node:#?}");
        assert!(node.worker_processor_ns >= node.barrier_processor_ns);
    }
    let (lines, json) = (report.lines().to_string(), report.json());
    let json: Value = serde_json::from_str(&json).expect("an object");
    for node in 0..2 {
        let line = format!("\nprocessor of node {node}: ");
        assert!(lines.contains(&line), "{lines}");
        let seconds = json["phases"][node]["processor"]["computed"].as_f64();
        let told = Duration::from_secs_f64(seconds.expect("seconds"));
        let known = had(node, Phase::Computing);
        assert!(told.abs_diff(known) < Duration::from_micros(1));
    }
    let simulated = self::report(2);
    assert!(!simulated.lines().to_string().contains("processor of"));
    assert!(!simulated.json().contains("processor"));
}

#[test]
fn pages_are_missed_at_lines_too() {
    let run = Config::nodes(2)
        .coherence(dhole::Coherence::TreadMarks)
        .simulate(Settings::fixed_cost(2), program);
    let report = run.expect("a run").report;
    let walked = at(&report, "walked", WaitCause::Object);
    assert!(
        walked.cost.misses >= 1 && walked.cost.bytes >= 4096,
        "{walked:?}"
    );
    let missed = report.costs.total_of("miss");
    assert_eq!(missed.misses, report.total().misses);
}

/// Waits in raw memory are a phase each, once, and what a node computes is what is left: in the
/// part that is measured, whatever went before.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_wait_in_raw_memory_is_one_phase_of_its_span() {
    use dhole::memory::{self, MemorySettings, sync};
    use std::sync::atomic::Ordering::Relaxed;

    const ROUNDS: u64 = 8;
    let config = Config::nodes(2).memory(MemorySettings::default());
    let run = config.simulate(Settings::fixed_cost(2), |w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 2, 8)?))?;
        let me = w.node().index();
        let round = |w: &mut Worker<'_>| -> Result<()> {
            w.work(100_000);
            rows.row(0).cells(w)[0].fetch_add(1, Relaxed); // borrowed to write
            w.barrier()?;
            rows.row(1).write(w, |row| row[me] += 1)?; // held
            rows.row(0).cells(w)[0].load(Relaxed); // borrowed to read
            match me {
                0 => sync::post(7, 1).map_err(dhole::Error::program)?,
                _ => sync::acquire(7, std::panic::Location::caller().into())
                    .map_err(dhole::Error::program)?,
            }
            Ok(w.barrier()?)
        };
        (0..ROUNDS).try_for_each(|_| round(w))?;
        w.begin_measuring()?;
        (0..ROUNDS).try_for_each(|_| round(w))?;
        w.end_measuring().map_err(dhole::Error::from)
    });
    let report = run.expect("a run").report;
    let measured = report.measured_per_node.as_ref().expect("it is measured");
    for (node, phases) in measured.iter().zip(report.phases()) {
        let sum: u64 = Phase::ALL.iter().map(|phase| phases.of(*phase)).sum();
        assert_eq!(sum, phases.whole_ns);
        assert!(phases.of(Phase::Miss) > 0, "{phases:?}");
        // Calls and faults take a little.
        let computed = node.computed_ns..node.computed_ns + node.computed_ns / 20;
        assert!(
            computed.contains(&phases.of(Phase::Computing)),
            "{computed:?} {phases:?}"
        );
    }
    assert!(report.phases()[1].of(Phase::Lock) > 0);

    // Each line that waits is named, in the whole run and where it is measured.
    let measured = report.measured_costs.as_ref().expect("it is measured");
    for (mark, cause, advised) in [
        ("borrowed to write", WaitCause::ToWrite, "write it once"),
        ("held", WaitCause::ToWrite, "write it once"),
        ("borrowed to read", WaitCause::Object, "`SharedRows::range`"),
    ] {
        let line = at(&report, mark, cause);
        let said = report.advice(&line);
        assert!(said.contains(advised), "{said}");
        let mut lines = measured.lines.iter();
        let half = lines.find(|of| of.site == line.site && of.cause == cause);
        let half = half.unwrap_or_else(|| panic!("{mark}: {measured:#?}"));
        assert!(half.cost.waits > 0 && half.cost.waits < line.cost.waits);
    }
}
