//! How many processes there may be, and what is said where there are as many.

use std::time::Duration;

use dhole::{Config, Error, NodeId, Object, ProcessError, Refusal, Result, RunError, Worker, op};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Count(u64);

#[dhole::object]
impl Count {
    pub fn add(&mut self, number: u64) {
        self.0 += number;
    }

    #[when(self.0 >= *least)]
    pub fn reaches(&mut self, least: u64) -> u64 {
        self.0
    }
}

fn waits(w: &mut Worker<'_>, count: Object<Count>) -> Result<u64> {
    Ok(count.reaches(w, 1)?)
}

fn adds(w: &mut Worker<'_>, count: Object<Count>) -> Result<()> {
    Ok(count.add(w, 1)?)
}

/// 256 processes wait for what only the next one would do, which cannot begin.
#[test]
fn a_deadlock_that_comes_of_the_most_processes_names_that_limit() {
    let config = Config::nodes(2).suspect_after(Duration::from_millis(20));
    let run = config.run(|w| {
        let count = w.once(|w| Ok(w.new_object(dhole::on(NodeId(0)), Count::default())?))?;
        if w.node() == NodeId(0) {
            for _ in 0..256 {
                let _waits = w.spawn(NodeId(1), count, op!(waits))?;
            }
            let last = w.spawn(NodeId(1), count, op!(adds))?;
            last.join(w)?;
        }
        Ok(())
    });
    let error = run.map(drop).unwrap_err();
    let words = error.to_string();
    for part in [
        "on node 1 256 processes have begun and not ended, the most at a time",
        "1 more cannot begin, the first of them started at",
        "spread them over more nodes",
        "limits.rs:",
        "node 1 waits for Count::reaches of object 0 (made at ",
        "(256 processes)",
    ] {
        assert!(words.contains(part), "\"{part}\": {words}");
    }
    assert!(words.len() < 1500, "each wait is named once: {words}");
}

#[test]
fn processes_whose_handles_are_dropped_make_room_for_others() {
    const ALL: u64 = 3000;
    let program = |w: &mut Worker<'_>| {
        let count = w.once(|w| Ok(w.new_object(dhole::on(NodeId(0)), Count::default())?))?;
        if w.node() == NodeId(0) {
            for number in 0..ALL {
                // On its own node none begins before the worker waits.
                let node = NodeId((number % 2) as u16);
                drop(w.spawn(node, count, op!(adds))?);
            }
        }
        Ok(count.reaches(w, ALL)?)
    };
    let config = Config::nodes(2);
    let simulated = dhole::sim::Settings::fixed_cost(2);
    for run in [config.run(program), config.simulate(simulated, program)] {
        assert_eq!(run.unwrap().value, ALL);
    }
}

#[test]
fn processes_whose_handles_are_kept_fill_a_limit_that_says_what_to_do() {
    let run = Config::nodes(1).run(|w| {
        let double = op!(|_w, number: u32| Ok(2 * number));
        let mut all = Vec::new();
        let refused = loop {
            match w.spawn(w.node(), 7, double) {
                Ok(process) => all.push(process),
                Err(refused) => break refused,
            }
        };
        assert_eq!(all.len(), 1024);
        let words = refused.to_string();
        for part in [
            "1024 processes that were started have not ended, the most at a time",
            "`join` some of them first",
            "limits.rs:",
        ] {
            assert!(words.contains(part), "{words}");
        }
        // One that is dropped is waited for, and its place is free.
        drop(all.pop());
        all.push(w.spawn(w.node(), 7, double)?);
        for process in all {
            assert_eq!(process.join(w)?, 14);
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn a_process_that_failed_fails_its_parent_however_many_follow() {
    fn fails(_w: &mut Worker<'_>, number: u32) -> Result<u32> {
        match number {
            5 => Err(Error::program("the fifth did not want to")),
            number => Ok(number),
        }
    }
    let run = Config::nodes(1).run(|w| {
        for number in 0..3000 {
            drop(w.spawn(w.node(), number, op!(fails))?);
        }
        Ok(())
    });
    let Err(RunError::Failed { error, .. }) = run else {
        panic!("{run:?}");
    };
    let Error::Process(ProcessError::Ended { cause, .. }) = &*error else {
        panic!("{error}");
    };
    let expected = Refusal::Failed("the fifth did not want to".into());
    assert_eq!(*cause, expected);
}
