//! What a report advises, by what is known of a line; and what it shows at one look.
#![cfg(feature = "sim")]

use std::time::Duration;

use dhole::sim::Settings;
use dhole::{
    Coherence, Config, JobQueue, LineCost, NodeId, Object, Optimisations, Phase, Ref, Report,
    Result, Share, WaitCause, Worker, on,
};
use serde::{Deserialize, Serialize};

#[derive(Share, Clone, Copy)]
struct Item {
    value: u64,
    next: Option<Ref<Item>>,
}

#[derive(Default, Serialize, Deserialize)]
struct Counter {
    value: u64,
}

#[dhole::object]
impl Counter {
    pub fn add(&mut self, more: u64) {
        self.value += more;
    }

    pub fn get(&self) -> u64 {
        self.value
    }

    #[when(self.value >= *least)]
    pub fn at_least(&self, least: u64) -> u64 {
        self.value
    }
}

/// The line of this file on which these words stand, behind a `//`.
fn line_of(mark: &str) -> u32 {
    let marks = format!("// {mark}");
    let found = (1..).zip(include_str!("advice.rs").lines());
    let mut found = found.filter(|(_, line)| line.ends_with(&marks));
    found.next().expect(mark).0
}

fn cost(report: &Report, mark: &str) -> LineCost {
    let line = line_of(mark);
    let mut lines = report.costs.lines.iter();
    let found = lines.find(|cost| cost.site.line == line);
    found
        .unwrap_or_else(|| panic!("{mark}: {:#?}", report.costs))
        .clone()
}

/// What is advised at a line.
fn advice(report: &Report, mark: &str) -> String {
    report.advice(&cost(report, mark))
}

fn simulated(nodes: usize, program: impl Fn(&mut Worker<'_>) -> Result<()> + Sync) -> Report {
    let run = Config::nodes(nodes).simulate(Settings::fixed_cost(nodes), program);
    run.expect("a run").report
}

fn list(w: &mut Worker<'_>, length: u64) -> Ref<Item> {
    let mut next = None;
    for value in 0..length {
        next = Some(w.alloc(Item { value, next }));
    }
    next.expect("it is not empty")
}

/// The sum of a list.
fn walk(w: &Worker<'_>, list: Ref<Item>) -> u64 {
    let (mut at, mut sum) = (Some(list), 0);
    while let Some(item) = at {
        let item = item.get(w); // walked
        sum += item.value;
        at = item.next;
    }
    sum
}

#[test]
fn one_sided_reads_have_their_line_and_their_time() {
    const ITEMS: u64 = 5000;
    let program = |w: &mut Worker<'_>| {
        let list = w.once(|w| Ok(list(w, ITEMS)))?;
        if w.node().index() == 1 {
            assert_eq!(walk(w, list), ITEMS * (ITEMS - 1) / 2);
        }
        w.barrier()?; // met
        Ok(())
    };
    let report = Config::nodes(2).run(program).expect("a run").report;
    let walked = cost(&report, "walked").cost;
    assert_eq!(walked.one_sided_reads + walked.misses, ITEMS);
    assert_eq!(walked.one_sided_reads, report.total().one_sided_reads);
    assert!(
        walked.one_sided_ns > walked.one_sided_reads,
        "more than 1 ns each: {walked:?}"
    );
    let phases = report.phases();
    // It is an estimate, and a node has no more time than it did not wait.
    let waits = [Phase::Miss, Phase::Lock, Phase::Barrier, Phase::Operation];
    let waited: u64 = waits.into_iter().map(|phase| phases[1].of(phase)).sum();
    let most = phases[1].whole_ns - waited;
    assert_eq!(phases[1].one_sided_ns, walked.one_sided_ns.min(most));
    assert_eq!(phases[0].one_sided_ns, 0);
    for node in &phases {
        let sum: u64 = Phase::ALL.iter().map(|phase| node.of(*phase)).sum();
        assert_eq!(sum, node.whole_ns);
    }
    let said = advice(&report, "walked");
    assert!(said.contains("one-sided read"), "{said}");
}

#[test]
fn a_node_that_had_more_to_do_is_named_with_how_much() {
    let program = |w: &mut Worker<'_>| {
        w.barrier()?;
        for _ in 0..10 {
            w.work(if w.node().index() == 1 {
                1_120_000
            } else {
                1_000_000
            });
            w.barrier()?; // uneven
        }
        Ok(())
    };
    let report = simulated(3, program);
    let said = advice(&report, "uneven");
    let why = "for node 1 had 12% more to do: divide the work evenly";
    assert!(said.contains(why), "{said}");
    let screen = report.to_string();
    let line = line_of("uneven");
    let worst = format!("  worst     advice.rs:{line}, ");
    let found = screen.lines().find(|line| line.starts_with(&worst));
    let found = found.unwrap_or_else(|| panic!("{screen}"));
    assert!(
        found.ends_with(" for the other nodes: node 1 had 12% more to do"),
        "{screen}"
    );
    assert!(screen.starts_with("3 nodes (simulated: "), "{screen}");
    assert!(screen.contains("\n  a node    computed 9"), "{screen}");
    // The same run costs the same, down to the nanosecond.
    assert_eq!(report.phases(), simulated(3, program).phases());
}

#[test]
fn work_that_is_even_in_all_but_not_each_time_is_not_to_be_divided() {
    let report = simulated(2, |w| {
        for turn in 0..10 {
            w.work(if w.node().index() == turn % 2 {
                2_000_000
            } else {
                1_000_000
            });
            w.barrier()?; // in turns
        }
        Ok(())
    });
    let said = advice(&report, "in turns");
    assert!(
        said.contains("each time another node had more to do: do more between"),
        "{said}"
    );
    assert!(!said.contains("divide the work evenly"), "{said}");
}

/// Where one node waits longer for objects, the work is not to be divided: under each protocol.
#[test]
fn a_node_that_is_late_because_of_its_misses_has_not_more_to_do() {
    for protocol in ["lazy", "home", "directory"] {
        let protocol: Coherence = protocol.parse().expect("dhole has it");
        let config = Config::nodes(2).coherence(protocol);
        let run = config.simulate(Settings::fixed_cost(2), |w| {
            let numbers = w.once(|w| Ok(w.alloc_range(64, |_| 0_u64)))?;
            for round in 1..10 {
                if w.node().index() == 0 {
                    numbers.iter().for_each(|number| *number.get_mut(w) = round);
                }
                w.barrier()?;
                w.work(1_000_000);
                if w.node().index() == 1 {
                    assert!(numbers.iter().all(|number| number.read(w) == round));
                }
                w.barrier()?; // late
            }
            Ok(())
        });
        let report = run.expect("a run").report;
        let said = advice(&report, "late");
        let (why, cure) = ("for node 1 took ", "% longer, in misses: wait less there");
        assert!(said.contains(why) && said.contains(cure), "{said}");
    }
}

/// The first screen and the lines have one reason for one place.
#[test]
fn shared_processors_are_the_reason_at_a_line_and_on_the_screen() {
    let mut report = simulated(2, |w| {
        for _ in 0..4 {
            w.work(1_000_000 * (1 + w.node().index() as u64));
            w.barrier()?; // shared
        }
        Ok(())
    });
    let told = |report: &Report| [advice(report, "shared"), report.to_string()];
    let reason = "node 1 had 100% more to do";
    assert!(told(&report).iter().all(|said| said.contains(reason)));
    for node in &mut report.per_node {
        (node.phases.compared_ns, node.phases.processor_ns) = (1_000_000, 400_000);
    }
    for said in told(&report) {
        let reason = "they shared their processors";
        assert!(
            said.contains(reason) && !said.contains("more to do"),
            "{said}"
        );
    }
    let said = advice(&report, "shared");
    assert!(said.ends_with(": give each node a processor of its own, or run fewer nodes"));
}

#[test]
fn a_once_is_what_node_0_alone_ran() {
    let report = simulated(2, |w| {
        let number = w.once(|w| {
            w.work(1_000_000);
            Ok(w.alloc(7_u64))
        })?; // once
        assert_eq!(*number.get(w), 7);
        Ok(())
    });
    let line = line_of("once") - 3;
    let mut lines = report.costs.lines.iter();
    let once = lines.find(|cost| cost.site.line == line);
    let once = once.unwrap_or_else(|| panic!("{:#?}", report.costs));
    assert_eq!(
        (once.cause, once.cause.name()),
        (WaitCause::Once, "barrier")
    );
    let said = report.advice(once);
    assert!(said.contains("for node 0 alone ran it"), "{said}");
    assert!(!said.contains("divide the work evenly"), "{said}");
}

#[test]
fn an_operation_is_advised_by_what_it_does() {
    let report = simulated(2, |w| {
        let counter: Object<Counter> =
            w.once(|w| Ok(w.new_object(on(NodeId(0)), Counter::default())?))?;
        if w.node().index() == 1 {
            for _ in 0..4 {
                counter.add(w, 1)?; // written
            }
            assert_eq!(counter.get(w)?, 4); // read
            let more = counter.start_add(w, 1)?; // awaited
            more.wait(w)?;
            assert_eq!(counter.at_least(w, 6)?, 6); // guarded
        } else {
            w.work(9_000_000);
            while counter.get(w)? < 5 {
                w.pause()?;
            }
            counter.add(w, 1)?;
        }
        Ok(())
    });
    let written = advice(&report, "written");
    assert!(
        written.contains("`Counter::add`, which writes"),
        "{written}"
    );
    assert!(!written.contains("replicated()"), "{written}");
    let read = advice(&report, "read");
    assert!(read.contains("`replicated()`"), "{read}");
    let awaited = advice(&report, "awaited");
    assert!(
        awaited.contains("do more between its start and `wait`"),
        "{awaited}"
    );
    assert!(!awaited.contains("(`start_..`)"), "{awaited}");
    let guarded = advice(&report, "guarded");
    assert!(guarded.contains("there is nothing to do"), "{guarded}");
    assert_eq!(report.costs.total_of("barrier").bytes, 0);
}

#[test]
fn a_queue_of_jobs_is_advised_as_one() {
    let report = simulated(2, |w| {
        let queue = w.once(|w| Ok(JobQueue::<u64, u64>::of(w, 0..20)?))?;
        queue.work(w, |_, job| Ok(job))?; // jobs
        Ok(())
    });
    let said = advice(&report, "jobs");
    assert!(
        said.contains("`work_guided`, or make the jobs longer"),
        "{said}"
    );
}

/// Nodes that have numbers, looked up by these: the runtime learns that nothing is followed.
#[test]
fn what_is_looked_up_by_number_is_not_followed() {
    const VERTICES: usize = 64;
    let report = simulated(2, |w| {
        let all = w.once(|w| {
            let all = w.alloc_range(VERTICES, |value| Item {
                value: value as u64,
                next: None,
            });
            Ok(all)
        })?;
        if w.node().index() == 1 {
            for turn in 0..VERTICES {
                let vertex = all.at(turn * 37 % VERTICES);
                assert!(vertex.get(w).next.is_none()); // looked up
            }
        }
        Ok(())
    });
    let said = advice(&report, "looked up");
    assert!(!said.contains("references"), "{said}");
}

#[test]
fn nothing_is_advised_on_one_machine_that_is_slower_there() {
    let alone = Optimisations {
        read_aggregation: false,
        ..Optimisations::default()
    };
    let program = |w: &mut Worker<'_>| {
        let numbers = w.once(|w| Ok(w.alloc_range(40, |i| i as u64)))?;
        if w.node().index() == 1 {
            for number in numbers.iter() {
                number.read(w); // one by one
            }
            let list = list(w, 3);
            assert_eq!(walk(w, list), 3);
        }
        Ok(())
    };
    let apart = Config::nodes(2).optimisations(alone);
    let apart = apart
        .simulate(Settings::fixed_cost(2), program)
        .expect("a run")
        .report;
    let line = cost(&apart, "one by one");
    assert!(!apart.one_sided && apart.advice(&line).contains("`w.prefetch(..)`"));
    // The same line, where the nodes see each other's memory.
    let together = Config::nodes(2)
        .run(|w| Ok(w.barrier()?))
        .expect("a run")
        .report;
    assert!(together.one_sided);
    let mut followed = line.clone();
    (
        followed.refers,
        followed.cost.along,
        followed.cost.along_read,
    ) = (true, 40, 40);
    let mut several = line.clone();
    several.cost.misses *= 4;
    let mut elements = line.clone();
    (elements.cause, elements.cost.bytes) = (WaitCause::Elements, 8);
    for line in [line, followed, several, elements] {
        let said = together.advice(&line);
        assert!(!said.contains("prefetch"), "{said}");
        assert!(
            apart.advice(&line).contains("prefetch"),
            "{}",
            apart.advice(&line)
        );
    }
}

/// Node 0 writes a number again and again; node 1 reads it once in so many rounds.
fn read_once_in(rounds: u64) -> Report {
    let alone = Optimisations {
        learn: false,
        read_aggregation: false,
        ..Optimisations::default()
    };
    let config = Config::nodes(2).optimisations(alone);
    let run = config.simulate(Settings::fixed_cost(2), |w| {
        let (numbers, first) = w.once(|w| Ok((w.alloc_range(8, |_| 0_u64), w.alloc(0_u32))))?;
        for round in 0..24 {
            if w.node().index() == 0 {
                for number in numbers.iter() {
                    *number.get_mut(w) += 1;
                }
            }
            w.barrier()?;
            if w.node().index() == 1 && (round < 2 || round % rounds == 0) {
                // Two of eight are read again.
                let read = if round < 2 { 8 } else { 8 / rounds as usize };
                for number in numbers.iter().take(read) {
                    number.read(w); // again
                }
            }
            w.barrier()?;
        }
        Ok(first.read(w))
    });
    run.expect("a run").report
}

#[test]
fn updates_are_advised_where_copies_are_read_again_and_not_elsewhere() {
    let often = read_once_in(1);
    let said = advice(&often, "again");
    assert!(said.contains("under `Coherence::Update`"), "{said}");
    let seldom = read_once_in(8);
    let said = advice(&seldom, "again");
    assert!(!said.contains("Coherence::Update"), "{said}");
}

#[test]
fn barriers_behind_a_flush_are_barriers() {
    let config = Config::nodes(2).coherence(Coherence::Home);
    let run = config.simulate(Settings::fixed_cost(2), |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(2, |_| 0_u64)))?;
        for _ in 0..3 {
            let mine = numbers.at(1 - w.node().index());
            *mine.get_mut(w) += 1;
            w.barrier()?; // behind a flush
        }
        Ok(())
    });
    let report = run.expect("a run").report;
    let line = line_of("behind a flush");
    let lines = report.costs.lines.iter();
    let at_line = lines.filter(|cost| cost.site.line == line);
    let causes: Vec<WaitCause> = at_line.map(|cost| cost.cause).collect();
    assert_eq!(causes, [WaitCause::Barrier], "{:#?}", report.costs);
    assert_eq!(report.costs.total_of("operation").waits, 0);
}

#[test]
fn a_screen_has_what_the_program_knows_and_leaves_out_what_it_does_not() {
    let report = simulated(2, |w| Ok(w.barrier()?));
    let bare = report.screen().to_string();
    assert!(
        !bare.contains("result") && !bare.contains("sequential"),
        "{bare}"
    );
    let more = "  more      `report.lines()` (lines), `report.counters()` (all), `report.json()`\n";
    assert!(bare.ends_with(more), "{bare}");
    let screen = report
        .screen()
        .title("numbers")
        .result("equal")
        .picture("a.png");
    let screen = screen
        .time(Duration::from_millis(50))
        .sequential(Duration::from_millis(80));
    let full = screen.more("--json").to_string();
    let lines: Vec<&str> = full.lines().collect();
    assert!(
        lines[0].starts_with("numbers, 2 nodes (simulated: "),
        "{full}"
    );
    assert!(lines[0].ends_with(" picture a.png"), "{full}");
    assert_eq!(lines[1], "  result    equal");
    let time = "  time      50.0 ms of the simulated clock; sequential 80.0 ms; speedup 1.60";
    assert_eq!(lines[2], time);
    assert_eq!(lines.last(), Some(&"  more      --json"));
}

#[test]
fn a_wait_to_write_an_object_that_is_here_is_advised_as_one() {
    let directory: Coherence = "directory".parse().expect("dhole brings it");
    let config = Config::nodes(2).coherence(directory);
    let run = config.simulate(Settings::fixed_cost(2), |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        for round in 0..6 {
            assert_eq!(*number.get(w), round);
            w.barrier()?;
            if w.node() == NodeId((round % 2) as u16) {
                *number.get_mut(w) += 1; // asks to write
            }
            w.barrier()?;
        }
        Ok(())
    });
    let report = run.expect("a run").report;
    let line = cost(&report, "asks to write");
    assert_eq!(
        (line.cause, line.cause.phase()),
        (WaitCause::ToWrite, Phase::Miss)
    );
    let said = report.advice(&line);
    assert!(
        said.contains("to write `u64`, of which other nodes may have copies"),
        "{said}"
    );
    assert_eq!(report.costs.total_of("operation").waits, 0);
}
