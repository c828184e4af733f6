//! A program with sections, of which a node is killed: the home of a section, its caller while it
//! waits, or a node that holds its lock. Node 0 kills node 1 when it knows that it is time.

use std::{env, process};

use dhole::{Coherence, Config, Lockable, NodeId, Ref, Result, Section, Worker, section};
use rustix::process::{Pid, Signal, kill_process};

use crate::strike::{WHEN, introduce};
use crate::{Matrix, NODES, Outcome, TOLD, lost};

const AT_HOME: &str = "as the home of a section";
const CALLER: &str = "as the caller of a section that waits";
const HOLDER: &str = "as the holder of a section's lock";

/// Counts the call, and waits for what never comes.
fn arrive(s: &mut Section<'_>, x: Ref<u64>) -> Result<()> {
    *s.get_mut(x)? += 1;
    s.then(section!(wait), x)
}

fn wait(s: &mut Section<'_>, x: Ref<u64>) -> Result<()> {
    let never = *s.get(x)? > NODES as u64;
    s.wait_until(never)
}

fn count(s: &mut Section<'_>, x: Ref<u64>) -> Result<u64> {
    s.read(x)
}

/// Kills node 1 when so many calls were counted.
fn kill(w: &mut Worker<'_>, victim: u32, (x, calls): (Ref<u64>, u64)) -> Result<()> {
    while x.lock().run(w, x, section!(count))? < calls {
        w.pause()?;
    }
    let victim = Pid::from_raw(victim as i32).expect("a process has a number");
    kill_process(victim, Signal::KILL).expect("the victim is a child of the same command");
    Ok(())
}

fn program(w: &mut Worker<'_>, when: &str) -> Result<()> {
    let me = w.node();
    let own = [0; 2].map(|_| w.under(Coherence::Home).alloc(0_u64));
    let (own, told) = (own[0], own[1]);
    let all: Vec<(Ref<u64>, Ref<u64>, u32)> = w.all_gather((own, told, process::id()))?;
    let home = if when == AT_HOME { 1 } else { 0 };
    let (x, told, victim) = (all[home].0, all[0].1, all[1].2);
    w.barrier()?;
    match (when, me) {
        (AT_HOME, NodeId(0)) => kill(w, victim, (x, 1))?,
        (CALLER, NodeId(0)) => kill(w, victim, (x, 2))?,
        (HOLDER, NodeId(0)) => kill(w, victim, (told, 1))?,
        (HOLDER, NodeId(1)) => {
            let held = x.lock().acquire(w)?;
            told.lock().run(w, told, section!(arrive))?;
            held.release(w)?;
        }
        // The home serves until it is killed.
        (AT_HOME, NodeId(1)) => w.barrier()?,
        _ => {}
    }
    x.lock().run(w, x, section!(arrive))
}

#[test]
fn member() {
    let Ok(when) = env::var(WHEN) else {
        return;
    };
    introduce();
    let run = Config::nodes(NODES).run(|w| program(w, &when));
    let me = env::var("DHOLE_NODE").unwrap();
    let Err(error) = run else {
        println!("node {me} is done");
        return;
    };
    let said = error.to_string();
    let names = ["node 1 is lost", "node 1 was lost"];
    let named = names.iter().any(|words| said.contains(words));
    println!(
        "node {me} lost {}: {said}",
        if named { "node 1" } else { "" }
    );
    process::exit(TOLD);
}

fn killed(transport: &'static str) {
    let matrix = Matrix {
        program: "sections::member",
        transport,
    };
    for when in [AT_HOME, CALLER, HOLDER] {
        let outcome = Outcome {
            code: 128 + 9,
            says: lost,
            blames: "node 1 was ended by signal 9 (SIGKILL)",
        };
        matrix.cell("killed", when, &outcome);
    }
}

#[test]
fn of_sections_over_tcp() {
    killed("tcp");
}

#[test]
fn of_sections_over_shared_memory() {
    killed("shm");
}
