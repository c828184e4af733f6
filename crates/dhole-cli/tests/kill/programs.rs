//! A whole program: what a run makes of a death.

use std::{env, process};

use dhole::{Config, Lock, Ref, RunError, Share};

use crate::strike::{WHEN, happens, introduce, strikes};
use crate::{ALONE, NODES, TOLD};

#[derive(Share, Clone, Copy)]
struct Shared {
    lock: Lock,
    count: u64,
}

fn strike(now: &str) {
    if strikes(now) {
        happens(|| ());
    }
}

#[test]
fn member() {
    if env::var(WHEN).is_err() {
        return;
    }
    introduce();
    strike("at start-up");
    let run = Config::nodes(NODES).run(|w| {
        let shared: Ref<Shared> = w.once(|w| {
            let lock = w.new_lock();
            Ok(w.alloc(Shared { lock, count: 0 }))
        })?;
        let values = w.once(|w| Ok(w.alloc_range(NODES, |_| 0_u64)))?;
        w.barrier()?;
        strike("in a barrier");
        w.barrier()?;
        let lock = shared.get(w).lock;
        lock.with(w, |w| {
            strike("with a lock held");
            shared.get_mut(w).count += 1;
            Ok(())
        })?;
        let me = w.node().index();
        *values.at(me).get_mut(w) = 10 + me as u64;
        w.barrier()?;
        // The others fetch what the victim has written.
        strike("during a fetch");
        let sum: u64 = values.iter().map(|value| value.read(w)).sum();
        assert_eq!((sum, shared.get(w).count), (33, 3));
        w.barrier()?;
        Ok(())
    });
    let me = env::var("DHOLE_NODE").unwrap();
    match run {
        Ok(_) => {}
        Err(RunError::Join(error)) => {
            println!("node {me} did not join: {error}");
            process::exit(ALONE);
        }
        Err(error) => {
            let said = error.to_string();
            let names = ["node 1 is lost", "node 1 was lost"];
            let names = names.iter().any(|words| said.contains(words));
            println!(
                "node {me} lost {}: {said}",
                if names { "node 1" } else { "" }
            );
            process::exit(TOLD);
        }
    }
    strike("at exit");
    println!("node {me} is done");
}
