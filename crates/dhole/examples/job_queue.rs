//! A job queue, four workers, and an object for the result.

use std::collections::VecDeque;

use dhole::{Config, NodeId, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Jobs(VecDeque<u64>);

#[dhole::object]
impl Jobs {
    pub fn push(&mut self, job: u64) {
        self.0.push_back(job);
    }
    #[when(!self.0.is_empty())] // whoever comes too early waits
    pub fn pop(&mut self) -> Option<u64> {
        self.0.pop_front()
    }
}

#[derive(Serialize, Deserialize)]
struct Sum(u64);

#[dhole::object]
impl Sum {
    pub fn add(&mut self, n: u64) {
        self.0 += n;
    }
    pub fn get(&self) -> u64 {
        self.0
    }
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(4).run(|w| {
        let (jobs, sum) = w.once(|w| {
            let jobs = w.new_object(on(NodeId(0)), Jobs(VecDeque::new()))?; // one copy
            Ok((jobs, w.new_object(replicated(), Sum(0))?)) // a copy on every node
        })?;
        if w.node() == NodeId(0) {
            for job in (1..=100).chain([0; 4]) {
                jobs.push(w, job)?; // a 0 tells a worker that there are no more
            }
        }
        while let Some(job @ 1..) = jobs.pop(w)? {
            sum.add(w, job * job)?;
        }
        w.barrier()?;
        Ok(sum.get(w)?) // read without a message
    })?;
    if run.report.is_first() {
        // Where nodes are processes each of them comes here; one prints.
        println!("the squares of 1 to 100 add up to {}", run.value);
    }
    assert_eq!(run.value, 338_350);
    Ok(())
}
