//! One-sided reads between processes: what is read in the memory of another process is what a
//! message would have brought.

use std::time::Duration;

use dhole::{Coherence, Config, Counters, Detector, Own, Ref, Run, RunError, Share, Worker};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::cluster::{Ended, run_with};
use crate::leaves::{OBJECTS, leaf, sum};

const ROUNDS: u64 = 4;

/// Node 0 writes all objects in each of some rounds, and the others read them after it.
fn rounds(w: &mut Worker<'_>) -> dhole::Result<u64> {
    let leaves = w.once(|w| Ok(w.alloc_range(OBJECTS as usize, |i| leaf(i as u64))))?;
    let me = w.node().index();
    let mut all = 0;
    for round in 0..ROUNDS {
        if me == 0 && round > 0 {
            for object in leaves.iter() {
                let value = object.get(w).value + 1;
                *object.get_mut(w) = leaf(value);
            }
        }
        w.barrier()?;
        all += sum(w, leaves);
        w.barrier()?;
    }
    Ok(all)
}

/// Misses of all objects, one after the other: four of the first 16, one with which the rest of
/// these comes, one for the next 48, and one for all others.
const READ_AHEAD: u64 = 7;

/// What a node of [`rounds`] asks for by message: from the second round on, all at once.
const MISSES: u64 = READ_AHEAD + ROUNDS - 1;

/// What [`rounds`] comes to on each node.
const SUM: u64 = ROUNDS * OBJECTS * (OBJECTS - 1) / 2 + OBJECTS * ROUNDS * (ROUNDS - 1) / 2;

/// A list and what it owns, which node 1 follows.
fn list(w: &mut Worker<'_>) -> dhole::Result<u64> {
    #[derive(Share)]
    struct Pair {
        own: Own<u64>,
        next: Option<Ref<Pair>>,
    }
    let head = w.once(|w| {
        let mut next = None;
        for value in 0..10_u64 {
            let own = w.alloc_own(value);
            next = Some(w.alloc(Pair { own, next }));
        }
        Ok(next)
    })?;
    let (mut sum, mut at) = (0, head);
    while let Some(pair) = at {
        sum += (*pair.get(w).own).read(w);
        at = pair.get(w).next;
    }
    w.barrier()?;
    Ok(sum)
}

/// Elements of the array of [`elements`]: ten blocks, of which the last is half full.
const ELEMENTS: usize = 19 * 256;

/// Node 0 writes the elements of an array in each of some rounds, and the others read them after
/// it.
fn elements(w: &mut Worker<'_>) -> dhole::Result<u64> {
    let all = w.once(|w| Ok(w.alloc_array::<u64>(ELEMENTS)))?;
    let few = w.once(|w| Ok(w.alloc_array_with(10, |i| i as u64)))?;
    let mut sum: u64 = few.slice(w, ..).iter().sum();
    for round in 1..=ROUNDS {
        if w.node().index() == 0 {
            all.slice_mut(w, ..).fill(round);
        }
        w.barrier()?;
        sum += all.slice(w, ..).iter().sum::<u64>();
        w.barrier()?;
    }
    Ok(sum)
}

fn said(run: &Run<u64>) -> Vec<String> {
    let (report, warnings) = (&run.report, &run.report.warnings);
    let of = |node: &Counters| {
        let (reads, bytes) = (node.one_sided_reads, node.one_sided_bytes);
        format!("{reads} reads of {bytes} bytes, {} misses", node.misses)
    };
    let value = format!("value {}", run.value);
    let nodes = report.per_node.iter().map(of);
    let warned = warnings.iter().map(|it| format!("warned: {it}"));
    [value].into_iter().chain(nodes).chain(warned).collect()
}

/// Node 1 writes many objects and leaves; the others read them while they can.
fn dies(w: &mut Worker<'_>) -> dhole::Result<u64> {
    let leaves = w.once(|w| Ok(w.alloc_range(1_000, |i| leaf(i as u64))))?;
    if w.node().index() == 1 {
        for object in leaves.iter() {
            *object.get_mut(w) = leaf(1);
        }
        w.barrier()?;
        std::process::exit(77);
    }
    w.barrier()?;
    for object in leaves.iter() {
        // Some are read before it is known that their owner has left, and most after it.
        assert_eq!(object.get(w).value, 1);
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(dhole::Error::program(
        "everything was read of a node that had left",
    ))
}

/// This process may have no more of what the system gives.
fn limit(resource: Resource, maximum: u64) {
    let limit = Rlimit {
        current: Some(maximum),
        maximum: Some(maximum),
    };
    setrlimit(resource, limit).expect("a lower limit");
}

/// A program by its name.
pub fn program(name: &str) -> Option<Result<Vec<String>, RunError>> {
    let config = |coherence| Config::nodes(1).coherence(coherence);
    let me = dhole::process().ok()?.map_or(0, |process| process.node.0);
    let name = match name {
        "rounds, node 1 without files" if me == 1 => {
            limit(Resource::Fsize, 1 << 30);
            "rounds"
        }
        "rounds, without files" => {
            limit(Resource::Fsize, 1 << 30);
            "rounds"
        }
        "rounds, node 2 without addresses" if me == 2 => {
            limit(Resource::As, 60 << 30);
            "rounds"
        }
        other => other.split(',').next()?,
    };
    let run = match name {
        "dies" => config(Coherence::Lazy).run(dies),
        "rounds" => config(Coherence::Lazy).run(rounds),
        "rounds under update" => config(Coherence::Update).run(rounds),
        "rounds under home" => config(Coherence::Home).run(rounds),
        "rounds under vm" => {
            let config = config(Coherence::Lazy).detector(Detector::Vm);
            config.run(rounds)
        }
        "rounds by message" => config(Coherence::Lazy).one_sided(false).run(rounds),
        "list" => config(Coherence::Lazy).run(list),
        "elements" => config(Coherence::Lazy).run(elements),
        "elements under vm" => {
            let config = config(Coherence::Lazy).detector(Detector::Vm);
            config.run(elements)
        }
        _ => return None,
    };
    Some(run.map(|run| said(&run)))
}

/// Runs a program on processes that reach each other so; what node 0 says of it.
fn over(transport: &str, nodes: usize, program: &str) -> Vec<String> {
    let also = |_| vec![("DHOLE_TRANSPORT".to_owned(), transport.to_owned())];
    let mut ended = run_with(nodes, program, also);
    for (node, Ended { code, all, .. }) in ended.iter().enumerate() {
        assert_eq!(*code, Some(0), "{program} on node {node}: {all}");
    }
    ended.remove(0).said
}

/// What a reader of [`rounds`] counts.
fn read(reads: u64, misses: u64) -> String {
    format!("{reads} reads of {} bytes, {misses} misses", 17 * reads)
}

/// What all say of [`rounds`], of whose nodes this is the number of one-sided reads and of misses.
fn wanted(nodes: [(u64, u64); 3]) -> Vec<String> {
    let value = format!("value {SUM}");
    let nodes = nodes.map(|(reads, misses)| read(reads, misses));
    [value].into_iter().chain(nodes).collect()
}

#[test]
fn what_another_process_wrote_is_read_there_without_a_message() {
    let all = (ROUNDS * OBJECTS, 0);
    for program in ["rounds", "rounds under home", "rounds under vm"] {
        for transport in ["shm", "mixed"] {
            let said = over(transport, 3, program);
            assert_eq!(
                said,
                wanted([(0, 0), all, all]),
                "{program} over {transport}"
            );
        }
    }
    let first = (OBJECTS, 0);
    let said = over("shm", 3, "rounds under update");
    assert_eq!(said, wanted([(0, 0), first, first]), "the rest is pushed");
}

#[test]
fn where_it_is_off_or_no_memory_is_shared_all_is_asked_for() {
    let (none, all) = ((0, 0), (0, MISSES));
    assert_eq!(
        over("shm", 3, "rounds by message"),
        wanted([none, all, all])
    );
    for transport in ["tcp", "udp"] {
        assert_eq!(
            over(transport, 3, "rounds"),
            wanted([none, all, all]),
            "{transport}"
        );
    }
}

#[test]
fn what_an_object_owns_is_read_there_after_it() {
    let wanted = [
        "value 45",
        "0 reads of 0 bytes, 0 misses",
        "20 reads of 240 bytes, 0 misses",
    ];
    assert_eq!(over("shm", 2, "list"), wanted);
}

#[test]
fn elements_that_another_process_wrote_are_read_there_without_a_message() {
    let sum = 45 + ELEMENTS as u64 * ROUNDS * (ROUNDS + 1) / 2;
    let none = "0 reads of 0 bytes, 0 misses".to_owned();
    let (reads, bytes) = (10 * ROUNDS + 1, 8 * (ELEMENTS as u64 * ROUNDS + 10));
    let there = format!("{reads} reads of {bytes} bytes, 0 misses");
    let asked = format!("0 reads of 0 bytes, {} misses", ROUNDS + 1);
    let wanted = |reader: &String| {
        let value = format!("value {sum}");
        vec![value, none.clone(), reader.clone(), reader.clone()]
    };
    for transport in ["shm", "mixed"] {
        for program in ["elements", "elements under vm"] {
            let said = over(transport, 3, program);
            assert_eq!(said, wanted(&there), "{program} over {transport}");
        }
    }
    for transport in ["tcp", "udp"] {
        let said = over(transport, 3, "elements");
        assert_eq!(said, wanted(&asked), "over {transport}");
    }
}

/// The others go on one-sided, and are told once.
#[test]
fn where_the_system_refuses_memory_that_others_read_the_run_says_so_once() {
    let (none, there, asked) = ((0, 0), (ROUNDS * OBJECTS, 0), (0, MISSES));
    let too_long = "warned: objects are asked for by message: there is no memory that processes \
                    of one machine read of each other (`ulimit -f`, `ulimit -v`): a file of .. \
                    bytes: File too large (os error 27) (`ulimit -f` allows 1073741824)";
    let too_long = too_long.to_owned();
    let unmapped = |node| {
        format!(
            "warned: objects of node {node} are asked for by message: its memory cannot be \
             mapped: mapping .. bytes: Cannot allocate memory (os error 12) (`ulimit -v` says \
             62914560 KiB)"
        )
    };
    for (program, nodes, warnings) in [
        (
            "rounds, node 1 without files",
            [none, asked, there],
            vec![too_long.clone()],
        ),
        (
            "rounds, without files",
            [none, asked, asked],
            vec![too_long],
        ),
        (
            "rounds, node 2 without addresses",
            [none, there, asked],
            vec![unmapped(0), unmapped(1)],
        ),
    ] {
        let mut all = wanted(nodes);
        all.extend(warnings);
        // The larger the machine, the larger the file.
        let said = over("shm", 3, program).into_iter().map(|line| {
            let begins = ["a file of ", "mapping "].into_iter();
            let mut begins = begins.filter_map(|begin| Some(line.find(begin)? + begin.len()));
            let parts = begins.next().zip(line.split_once(" bytes: "));
            parts.map_or(line.clone(), |(at, (_, after))| {
                format!("{}.. bytes: {after}", &line[..at])
            })
        });
        assert_eq!(said.collect::<Vec<_>>(), all, "{program}");
    }
}

#[test]
fn what_a_node_that_has_left_had_published_is_not_read_any_more() {
    for transport in ["shm", "mixed"] {
        let also = |_| vec![("DHOLE_TRANSPORT".to_owned(), transport.to_owned())];
        let ended = run_with(3, "dies", also);
        for (node, Ended { code, said, all }) in ended.iter().enumerate() {
            if node == 1 {
                assert_eq!(*code, Some(77), "{all}");
                continue;
            }
            assert_eq!((*code, said[1].as_str()), (Some(1), "lost"), "{all}");
            assert!(said[0].contains("node 1 is lost: it left early"), "{all}");
        }
    }
}
