//! The port over MPI between processes that `mpirun` starts. Each of them is this test
//! program, which therefore has no harness.
//!
//! ```text
//!     the test --- mpirun -n 4 ---+--- role, as node 0
//!                                 +--- role, as node 1
//!                                 ...
//! ```

use std::cell::Cell;
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use conformance::ports::{Node, exchange};
use dhole::{Config, Optimisations, Worker};
use dhole_join::{JoinError, Membership};
use dhole_model::NodeId;
use dhole_net::{Loss, Port};

/// The variable that names a role.
const ROLE: &str = "DHOLE_TEST_ROLE";
/// How long nodes may be silent here, in ms.
const BOUND_MS: u64 = 1_000;
/// No role here takes a hundredth of it; it turns a hang into a failure.
const LONGEST: Duration = Duration::from_secs(100);

fn main() -> ExitCode {
    match std::env::var(ROLE).as_deref() {
        Ok("exchange") => exchanging(),
        Ok("different") => differing(),
        Ok("absent") => absent(),
        Ok("stopped") => losing("STOP"),
        Ok("killed") => losing("KILL"),
        Ok("halfway") => stopping_halfway(),
        Ok("rounds") => reading(false),
        Ok("owner stops") => reading(true),
        Ok(other) => panic!("there is no role {other}"),
        Err(_) => check_all(),
    }
}

/// What this process is started for, a test each.
fn check_all() -> ExitCode {
    let checks: [(&str, fn()); 10] = [
        ("four_processes_exchange_frames_of_all_sizes", four_exchange),
        ("settings_that_differ_are_told_to_both_sides", both_are_told),
        ("who_does_not_join_is_waited_for_in_vain", nobody_comes),
        ("who_is_silent_is_lost_by_name", the_silent_is_lost),
        ("who_is_killed_takes_all_along", the_killed_ends_all),
        (
            "who_is_silent_in_a_long_frame_is_lost_alone",
            the_silent_halfway_is_lost,
        ),
        (
            "objects_are_read_in_windows_over_every_transport",
            objects_are_read_in_windows,
        ),
        (
            "windows_that_the_owner_s_process_serves_are_left_for_messages",
            slow_windows_are_left,
        ),
        (
            "where_the_library_refuses_windows_the_run_says_so_once",
            refused_windows_are_told,
        ),
        (
            "an_owner_that_takes_no_part_is_read_or_lost_by_name",
            a_stopped_owner_is_read_or_lost,
        ),
    ];
    let only: Vec<String> = std::env::args().skip(1).collect();
    for (name, check) in checks {
        let named = |o: &String| o.starts_with('-') || name.contains(o.as_str());
        if only.is_empty() || only.iter().any(named) {
            check();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// Starts processes, each `(how many, what DHOLE_RUN says)`.
fn mpirun(role: &str, parts: &[(usize, &str)], also: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(LONGEST.as_secs().to_string()).arg("mpirun");
    let me = std::env::current_exe().expect("this program");
    for (at, (nodes, run)) in parts.iter().enumerate() {
        if at > 0 {
            command.arg(":");
        } else {
            command.args(["--oversubscribe", "--allow-run-as-root"]);
        }
        command.args(["-n", &nodes.to_string(), "-x", &format!("DHOLE_RUN={run}")]);
        command.arg(&me);
    }
    command.env(ROLE, role);
    command.env("DHOLE_BOUND_MS", BOUND_MS.to_string());
    command.envs(also.iter().copied());
    command.output().expect("mpirun is there (openmpi-bin)")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn membership() -> Membership {
    let membership = Membership::from_env().expect("a sound environment");
    membership.expect("a launcher has started this process")
}

fn joined() -> Box<dyn Port> {
    membership().join().expect("all join")
}

fn exchanging() -> ExitCode {
    let port = joined();
    let node = Node::new(&*port);
    exchange(&node, 1, 400, 3_000_000);
    println!("{} has all", port.me());
    port.close(LONGEST);
    ExitCode::SUCCESS
}

fn four_exchange() {
    let output = mpirun("exchange", &[(4, "x")], &[("DHOLE_BOUND_MS", "30000")]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("has all").count(), 4, "{said}");
}

fn differing() -> ExitCode {
    let membership = membership();
    let me = membership.node();
    let Err(JoinError::Handshake { cause, peer, .. }) = membership.join() else {
        panic!("{me} joined");
    };
    println!("{me} finds of {peer}: {cause}");
    ExitCode::SUCCESS
}

fn both_are_told() {
    let output = mpirun("different", &[(1, "red"), (1, "blue")], &[]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for (peer, ours, theirs) in [(1, "red", "blue"), (0, "blue", "red")] {
        let peer = NodeId(peer);
        let sentence = format!("of {peer}: its DHOLE_RUN is Some({theirs:?}), this node's");
        assert!(said.contains(&sentence), "{ours} is told {said}");
    }
}

/// The last node initialises MPI as another program would, and does not join.
fn absent() -> ExitCode {
    let membership = membership();
    if membership.node().index() + 1 == membership.nodes() {
        let alone = dhole_mpi::Mpi::cluster(1).expect("an MPI library");
        // The launcher ends this process when the others have failed.
        std::thread::sleep(LONGEST);
        drop(alone);
        return ExitCode::SUCCESS;
    }
    let error = membership.join().err().expect("nobody joins alone");
    println!("{error}");
    ExitCode::from(3)
}

fn nobody_comes() {
    let output = mpirun("absent", &[(3, "x")], &[("DHOLE_JOIN_MS", "500")]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let sentence = "joining the others over MPI: not all processes came within 500ms";
    assert!(said.contains(sentence), "{said}");
}

/// One node is stopped or killed; the others find out.
fn losing(signal: &str) -> ExitCode {
    let port = joined();
    let node = Node::new(&*port);
    exchange(&node, 4, 100, 1_000);
    if port.me() == NodeId(1) {
        let itself = std::process::id().to_string();
        let _ = Command::new("kill").args(["-s", signal, &itself]).status();
    }
    let (peer, loss) = node.take_until_lost(&mut |_, _| ());
    println!("{} lost {peer}: {loss}", port.me());
    match (peer, loss) {
        (NodeId(1), Loss::Silent(_)) => ExitCode::from(7),
        other => panic!("{other:?}"),
    }
}

fn the_silent_is_lost() {
    let output = mpirun("stopped", &[(3, "x")], &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let sentence = format!("lost {}: nothing was heard of it for 1s", NodeId(1));
    assert!(said.contains(&sentence), "{said}");
}

fn the_killed_ends_all() {
    let output = mpirun("killed", &[(3, "x")], &[("DHOLE_BOUND_MS", "60000")]);
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("signal 9"), "mpirun says why: {said}");
}

/// One node is stopped while a long frame of it is on its way: the library moves its bytes only
/// while the sender runs. The others find out, and still hear each other.
fn stopping_halfway() -> ExitCode {
    const WORD: &[u8] = b"still there";
    let port = joined();
    let node = Node::new(&*port);
    if port.me() == NodeId(1) {
        let ready = Cell::new(0);
        let take = &mut |_: NodeId, _: &[u8]| ready.set(ready.get() + 1);
        node.take_until("the others", &mut || ready.get() == 2, take);
        node.send(NodeId(0), &[&vec![7; 16 << 20]], &mut |_, _| ());
        let itself = std::process::id().to_string();
        let _ = Command::new("kill").args(["-s", "STOP", &itself]).status();
        // The launcher has it go on only to end it.
        std::thread::sleep(LONGEST);
        return ExitCode::FAILURE;
    }
    node.send(NodeId(1), &[b"ready"], &mut |_, _| ());
    let heard = Cell::new(false);
    let take = &mut |_: NodeId, frame: &[u8]| heard.set(heard.get() || frame == WORD);
    let (peer, loss) = node.take_until_lost(take);
    println!("{} lost {peer}: {loss}", port.me());
    let other = NodeId(2 - port.me().0);
    node.send(other, &[WORD], take);
    node.take_until("the other", &mut || heard.get(), take);
    println!("{} hears {other}", port.me());
    ExitCode::from(7)
}

fn the_silent_halfway_is_lost() {
    // Where one process may read another's memory, who has stopped cannot keep its bytes back.
    let copies = ("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    let output = mpirun("halfway", &[(3, "x")], &[copies]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let (lost, other) = (NodeId(1), NodeId(2));
    for sentence in [
        format!("{} lost {lost}: nothing was heard of it for 1s", NodeId(0)),
        format!("{} hears {other}", NodeId(0)),
    ] {
        assert!(said.contains(&sentence), "{said}");
    }
}

/// What makes Open MPI carry everything over its shared memory; messages alone over TCP; and
/// windows too, where the owner's process does what no adapter does.
const SHARED: &[(&str, &str)] = &[("OMPI_MCA_btl", "self,vader")];
const TCP: &[(&str, &str)] = &[("OMPI_MCA_btl", "self,tcp")];
const WINDOWS_TOO: &[(&str, &str)] = &[
    ("OMPI_MCA_btl", "self,tcp"),
    ("OMPI_MCA_osc", "ucx"),
    ("UCX_TLS", "tcp,self"),
];
/// No window of Open MPI's first kind is made where several threads call it.
const REFUSED: &[(&str, &str)] = &[("OMPI_MCA_osc", "pt2pt")];

const OBJECTS: u64 = 200;
const ROUNDS: u64 = 4;
/// What all nodes read in all rounds.
const SUM: u64 = ROUNDS * OBJECTS * (OBJECTS - 1) / 2 + OBJECTS * ROUNDS * (ROUNDS - 1) / 2;

/// Node 0 writes all objects in each of some rounds, and the others read them after it. Where the
/// owner `stops`, it does so before they read for the first time.
fn rounds(w: &mut Worker<'_>, stops: bool) -> dhole::Result<u64> {
    let make = |w: &mut Worker<'_>| {
        let numbers = w.alloc_range(OBJECTS as usize, |at| at as u64);
        Ok((numbers, std::process::id()))
    };
    let (numbers, owner) = w.once(make)?;
    let me = w.node().index();
    let mut all = 0;
    for round in 0..ROUNDS {
        if me == 0 && round > 0 {
            for number in numbers.iter() {
                *number.get_mut(w) += 1;
            }
        }
        w.barrier()?;
        if stops && me == 0 {
            let itself = owner.to_string();
            let _ = Command::new("kill").args(["-s", "STOP", &itself]).status();
        }
        while stops && me != 0 && !is_stopped(owner) {
            std::thread::yield_now();
        }
        let sum: u64 = numbers.iter().map(|number| *number.get(w)).sum();
        if stops {
            println!("node {me} has read a sum of {sum}");
        }
        all += sum;
        w.barrier()?;
    }
    Ok(all)
}

/// Whether a process of this machine is stopped.
fn is_stopped(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
    state.is_ok_and(|state| state.contains(") T "))
}

/// Runs [`rounds`]; node 0 says what came of it.
fn reading(stops: bool) -> ExitCode {
    let is_first = membership().node() == NodeId(0);
    // Through windows, objects around a missed one would come by message.
    let alone = Optimisations {
        learn: false,
        ..Optimisations::default()
    };
    let config = Config::nodes(1).optimisations(alone);
    let run = match config.run(|w| rounds(w, stops)) {
        Ok(run) => run,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(7);
        }
    };
    if is_first {
        println!("value {}", run.value);
        for node in &run.report.per_node {
            println!("{} reads, {} misses", node.one_sided_reads, node.misses);
        }
        let warnings = run.report.warnings.iter();
        warnings.for_each(|warning| println!("warned: {warning}"));
    }
    ExitCode::SUCCESS
}

/// What node 0 says of [`rounds`] where each other node counts this.
fn says(nodes: usize, reads: u64, misses: u64) -> String {
    let other = format!("{reads} reads, {misses} misses\n");
    let others = other.repeat(nodes - 1);
    format!("value {SUM}\n0 reads, 0 misses\n{others}")
}

fn rounds_over(nodes: usize, also: &[(&str, &str)]) -> String {
    let bound = ("DHOLE_BOUND_MS", "30000");
    let output = mpirun("rounds", &[(nodes, "x")], &[also, &[bound]].concat());
    assert!(output.status.success(), "{also:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// As many as between processes that map each other's memory
/// (`crates/dhole/tests/processes/one_sided.rs`).
fn objects_are_read_in_windows() {
    for (nodes, over) in [(2, SHARED), (3, SHARED), (2, TCP), (3, TCP)] {
        let said = rounds_over(nodes, over);
        assert_eq!(said, says(nodes, ROUNDS * OBJECTS, 0), "{over:?}");
    }
}

/// Where the owner's process does what an adapter would do, windows are left once that is known.
fn slow_windows_are_left() {
    let said = rounds_over(2, WINDOWS_TOO);
    if said == says(2, ROUNDS * OBJECTS, 0) {
        // A processor was free to look for every transfer.
        return;
    }
    let (counts, warned) = said.split_at(said.find("warned").expect("a warning"));
    let value = format!("value {SUM}\n0 reads, 0 misses\n");
    let reader = counts.strip_prefix(&value).expect("the right sum");
    assert!(!reader.starts_with("0 reads"), "{said}");
    let warning = "warned: objects of node 0 are asked for by message: transfers take ";
    assert!(warned.starts_with(warning), "{warned}");
    assert_eq!(warned.lines().count(), 1, "it is said once: {warned}");
}

fn refused_windows_are_told() {
    let said = rounds_over(3, REFUSED);
    let warning = "warned: objects are asked for by message: no node reaches the memory of \
                   others: MPI_Win_allocate: ";
    let (counts, warned) = said.split_at(said.find("warned").expect("a warning"));
    assert_eq!(counts, says(3, 0, OBJECTS + ROUNDS - 1));
    assert!(warned.starts_with(warning), "{warned}");
    assert_eq!(warned.lines().count(), 1, "it is said once: {warned}");
}

/// What an owner has published can be read while it is stopped, where nothing is asked of its
/// process. Then it is lost, as it is where the library needs it.
fn a_stopped_owner_is_read_or_lost() {
    for (over, is_read) in [(TCP, true), (WINDOWS_TOO, false)] {
        let output = mpirun("owner stops", &[(2, "x")], over);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(7), "{said}");
        let sum = OBJECTS * (OBJECTS - 1) / 2;
        let read = format!("node 1 has read a sum of {sum}");
        assert_eq!(said.contains(&read), is_read, "{said}");
        let lost = format!("{} is lost: nothing was heard of it for 1s", NodeId(0));
        assert!(said.contains(&lost), "{said}");
    }
}
