//! Large data without shared objects: node 0 has a picture, and hands each other node two
//! capabilities, one to read all of it and one to write its part of another. Each fetches its part
//! and the rows around it, blurs it, and stores what comes of it.
//!
//! `cargo run --example bulk` runs on three threads; `dhole run -n 3 -- bulk` on processes.

use std::error::Error;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole::NodeId;
use dhole::net::{Capability, Local, Port, Rights, Rpc, join};

const WIDTH: usize = 1024;
const HEIGHT: usize = 1024;
/// Procedures of every node.
const TASK: u16 = 0;
const DONE: u16 = 1;
/// Longer than any of this takes.
const LONG: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The rows that a node blurs: node 0 has the picture, and serves.
fn rows(node: NodeId, nodes: usize) -> Range<usize> {
    let (part, parts) = (node.index() - 1, nodes - 1);
    HEIGHT * part / parts..HEIGHT * (part + 1) / parts
}

/// Each point becomes the average of those above, below and itself; those outside are black.
fn blur(above: &[u8], own: &[u8], below: &[u8]) -> Vec<u8> {
    let sum = |at: usize| u16::from(above[at]) + u16::from(own[at]) + u16::from(below[at]);
    (0..own.len()).map(|at| (sum(at) / 3) as u8).collect()
}

/// Blurs some rows of a picture.
fn blurred(picture: &dyn Fn(usize) -> Vec<u8>, rows: Range<usize>) -> Vec<u8> {
    let black = || vec![0; WIDTH];
    let row = |at: Option<usize>| at.filter(|at| *at < HEIGHT).map_or_else(black, picture);
    let blur = |at: usize| blur(&row(at.checked_sub(1)), &row(Some(at)), &row(Some(at + 1)));
    rows.flat_map(blur).collect()
}

fn node(port: Box<dyn Port>) -> Outcome {
    let done = Arc::new(AtomicUsize::new(0));
    let task = Arc::new(Mutex::new(None));
    let (counted, kept) = (Arc::clone(&done), Arc::clone(&task));
    let rpc = Rpc::new(port)?
        .procedure(move |_, arguments| {
            let halves = arguments.split_at_checked(Capability::BYTES);
            if let (Some((read, write)), Ok(mut task)) = (halves, kept.lock()) {
                *task = Capability::from_bytes(read).zip(Capability::from_bytes(write));
            }
            Vec::new()
        })
        .procedure(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Vec::new()
        });
    let others = rpc.nodes() - 1;
    if rpc.me() == NodeId(0) {
        let point = |at: usize| (at * 31 % 251) as u8;
        let picture: Vec<u8> = (0..WIDTH * HEIGHT).map(point).collect();
        let source = rpc.memory(picture.clone());
        let target = rpc.memory(vec![0; WIDTH * HEIGHT]);
        for worker in (1..=others).map(NodeId::at) {
            let rows = rows(worker, rpc.nodes());
            let read = source.grant(0..WIDTH * HEIGHT, Rights::Read)?;
            let write = target.grant(rows.start * WIDTH..rows.end * WIDTH, Rights::Write)?;
            let both = [read.to_bytes(), write.to_bytes()].concat();
            rpc.call(worker, TASK, &both, LONG)?;
        }
        let all_done = rpc.serve_until(LONG, &|| done.load(Ordering::SeqCst) == others);
        assert!(all_done, "all have stored their parts");
        let row = |at: usize| picture[at * WIDTH..][..WIDTH].to_vec();
        let alone = blurred(&row, 0..HEIGHT);
        target.read(|together| assert!(together == alone, "as if blurred alone"));
        println!(
            "{others} nodes blurred {} bytes over {}",
            alone.len(),
            rpc.transport()
        );
    } else {
        let given = || task.lock().is_ok_and(|task| task.is_some());
        assert!(rpc.serve_until(LONG, &given), "node 0 has something to do");
        let given = task.lock().ok().and_then(|mut task| task.take());
        let (read, write) = given.ok_or("a procedure panicked")?;
        let rows = rows(rpc.me(), rpc.nodes());
        let around = rows.start.saturating_sub(1)..HEIGHT.min(rows.end + 1);
        let mut part = vec![0; around.len() * WIDTH];
        rpc.fetch(&read, around.start * WIDTH, &mut part, LONG)?;
        let row = |at: usize| part[(at - around.start) * WIDTH..][..WIDTH].to_vec();
        rpc.store(&write, 0, &blurred(&row, rows), LONG)?;
        assert!(
            rpc.fetch(&write, 0, &mut part, LONG).is_err(),
            "it is for writing"
        );
        rpc.tell(NodeId(0), DONE, &[], LONG)?;
    }
    rpc.close(LONG);
    Ok(())
}

fn main() -> Outcome {
    if let Some(port) = join()? {
        return node(port);
    }
    let ports = Local::cluster(3)?;
    std::thread::scope(|scope| {
        let nodes = ports
            .into_iter()
            .map(|port| scope.spawn(|| node(Box::new(port))));
        let nodes: Vec<_> = nodes.collect();
        nodes
            .into_iter()
            .try_for_each(|node| node.join().map_err(|_| "a panic")?)
    })
}
