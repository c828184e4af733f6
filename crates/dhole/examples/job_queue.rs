//! A job queue, four workers, and an object for the result.

use std::collections::VecDeque;

use dhole::{Config, NodeId, Object, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Jobs {
    numbers: VecDeque<u64>,
    closed: bool,
}

#[dhole::object]
impl Jobs {
    pub fn push(&mut self, number: u64) {
        self.numbers.push_back(number);
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    #[when(!self.numbers.is_empty() || self.closed)] // whoever pops too early waits
    pub fn pop(&mut self) -> Option<u64> {
        self.numbers.pop_front()
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Primes(Vec<u64>);

#[dhole::object]
impl Primes {
    pub fn add(&mut self, prime: u64) {
        self.0.push(prime);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(4).run(|w| {
        let (jobs, primes): (Object<Jobs>, Object<Primes>) = w.once(|w| {
            let jobs = w.new_object(on(NodeId(0)), Jobs::default())?; // one copy, on node 0
            Ok((jobs, w.new_object(replicated(), Primes::default())?)) // a copy everywhere
        })?;
        if w.node() == NodeId(0) {
            for number in 2..1000 {
                jobs.push(w, number)?;
            }
            jobs.close(w)?;
        }
        while let Some(number) = jobs.pop(w)? {
            if (2..number).all(|divisor| number % divisor != 0) {
                primes.add(w, number)?;
            }
        }
        w.barrier()?;
        Ok(primes.count(w)?)
    })?;
    println!("{} primes below 1000", run.value);
    assert_eq!(run.value, 168);
    Ok(())
}
