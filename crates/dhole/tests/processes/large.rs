//! Messages of any size up to the limit go over every port, and one above it is an error that says
//! what was sent, how long it is, and how the limit is raised.

use dhole::{Array, Config, NodeId, Object, Result, Row, Rows, RunError, Worker, on, replicated};
use serde::{Deserialize, Serialize};

use crate::cluster::{Ended, run_with};

/// The variable that says how many bytes go in one message.
const BYTES: &str = "DHOLE_TEST_BYTES";

/// What carries messages between processes.
const TRANSPORTS: [&str; 4] = ["tcp", "shm", "udp", "mixed"];

#[derive(Serialize, Deserialize, Default)]
struct Store(Vec<u64>);

#[dhole::object]
impl Store {
    pub fn put(&mut self, words: Vec<u64>) -> u64 {
        self.0 = words;
        self.0.len() as u64
    }

    pub fn get(&self) -> Vec<u64> {
        self.0.clone()
    }
}

fn words(bytes: usize) -> Vec<u64> {
    (0..bytes as u64 / 8).map(|at| at | 1 << 63).collect()
}

/// Runs the program of this name; nothing where it is of another file.
pub fn program(name: &str) -> Option<std::result::Result<Vec<String>, RunError>> {
    let bytes = std::env::var(BYTES).ok()?.parse().ok()?;
    let run = |program: fn(&mut Worker<'_>, usize) -> Result<u64>| {
        let run = Config::nodes(1).run(|w| program(w, bytes));
        Some(run.map(|run| vec![format!("sum {}", run.value)]))
    };
    match name {
        "slice" => run(slice),
        "row" => run(row),
        "argument" => run(|w, bytes| stored(w, bytes, true)),
        "result" => run(|w, bytes| stored(w, bytes, false)),
        "replica" => run(replica),
        _ => None,
    }
}

/// Node 1 reads all of an array that node 0 has written.
fn slice(w: &mut Worker<'_>, bytes: usize) -> Result<u64> {
    let array: Array<u8> = w.once(|w| Ok(w.alloc_array(bytes)))?;
    if w.node() == NodeId(0) {
        array.slice_mut(w, 0..bytes).fill(3);
    }
    w.barrier()?;
    let sum = match w.node() {
        NodeId(1) => array.slice(w, 0..bytes).iter().map(|&b| u64::from(b)).sum(),
        _ => 0,
    };
    w.barrier()?;
    Ok(sum)
}

/// The same of one object.
fn row(w: &mut Worker<'_>, bytes: usize) -> Result<u64> {
    let row: Row<u8> = w.once(|w| {
        let rows: Rows<u8> = w.alloc_rows(1, bytes);
        Ok(rows.row(0))
    })?;
    if w.node() == NodeId(0) {
        row.get_mut(w).fill(3);
    }
    w.barrier()?;
    let sum = match w.node() {
        NodeId(1) => row.get(w).iter().map(|&b| u64::from(b)).sum(),
        _ => 0,
    };
    w.barrier()?;
    Ok(sum)
}

/// Node 1 calls an operation of an object on node 0, with a long argument or a long result.
fn stored(w: &mut Worker<'_>, bytes: usize, argument: bool) -> Result<u64> {
    let store: Object<Store> = w.once(|w| {
        let state = if argument { Vec::new() } else { words(bytes) };
        Ok(w.new_object(on(NodeId(0)), Store(state))?)
    })?;
    w.barrier()?;
    if w.node() == NodeId(1) {
        match argument {
            true => drop(store.put(w, words(bytes))?),
            false => assert_eq!(store.get(w)?, words(bytes)),
        }
    }
    w.barrier()?;
    Ok(0)
}

/// Node 1 calls an operation of a replicated object with a long argument.
fn replica(w: &mut Worker<'_>, bytes: usize) -> Result<u64> {
    let store: Object<Store> = w.once(|w| Ok(w.new_object(replicated(), Store::default())?))?;
    if w.node() == NodeId(1) {
        store.put(w, words(bytes))?;
    }
    w.barrier()?;
    assert_eq!(store.get(w)?, words(bytes));
    w.barrier()?;
    Ok(0)
}

/// What two processes come to whose one message is of `bytes` bytes, where `mib` are allowed.
fn over(transport: &str, name: &str, bytes: usize, mib: usize) -> Vec<Ended> {
    run_with(2, name, |_| {
        vec![
            ("DHOLE_TRANSPORT".into(), transport.into()),
            ("DHOLE_MESSAGE_MIB".into(), mib.to_string()),
            // All goes by message.
            ("DHOLE_ONE_SIDED".into(), "off".into()),
            (BYTES.into(), bytes.to_string()),
        ]
    })
}

fn succeeds(transport: &str, name: &str, bytes: usize, mib: usize) {
    for (node, ended) in over(transport, name, bytes, mib).iter().enumerate() {
        let all = &ended.all;
        assert_eq!(
            ended.code,
            Some(0),
            "{name} over {transport}, node {node}: {all}"
        );
    }
}

#[test]
fn a_message_just_below_the_limit_goes_over_every_port_and_one_just_above_says_why_not() {
    const LIMIT: usize = 1 << 20;
    for transport in TRANSPORTS {
        succeeds(transport, "slice", LIMIT - 1024, 1);
        for ended in over(transport, "slice", LIMIT, 1) {
            assert_eq!(ended.code, Some(1), "{transport}: {}", ended.all);
            let error = &ended.said[0];
            for words in [
                "sending elements 0..1048576 of array",
                "to node 1: a message of 10486",
                "where the limit is 1048576",
                "Set DHOLE_MESSAGE_MIB to 2 or more for all nodes",
            ] {
                assert!(error.contains(words), "{transport}: {error}");
            }
        }
    }
}

#[test]
fn arguments_results_and_replicas_longer_than_the_limit_are_named() {
    for (name, words) in [
        ("argument", "the arguments of an operation of object"),
        ("result", "the result of an operation"),
        ("replica", "the arguments of an operation of object"),
    ] {
        for ended in over("tcp", name, 1 << 20, 1) {
            assert_eq!(ended.code, Some(1), "{name}: {}", ended.all);
            assert!(ended.said[0].contains(words), "{name}: {}", ended.said[0]);
        }
    }
}

#[test]
fn arguments_results_and_replicas_that_take_several_frames_go_over_every_port() {
    for transport in TRANSPORTS {
        for name in ["argument", "result", "replica"] {
            succeeds(transport, name, 4 << 20, 16);
        }
    }
}

#[test]
fn a_slice_of_100_mib_goes_over_every_port() {
    for transport in TRANSPORTS {
        succeeds(transport, "slice", 100 << 20, 256);
    }
}

/// One that is not shorter than the longest frame of a port.
#[test]
#[ignore = "serialises 100 MB a dozen times: about a minute"]
fn arguments_results_and_replicas_of_100_mb_go_over_every_port() {
    for transport in TRANSPORTS {
        for name in ["row", "argument", "result", "replica"] {
            succeeds(transport, name, 100_000_000, 256);
        }
    }
}
