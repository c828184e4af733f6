//! A counter on one process that two others add to, beside INCR of Redis with two clients: first
//! each waits for its result before it goes on, then many are under way at a time.
//!
//! Run as `dhole run -n 3 -- target/release/redis`. Node 0 keeps the counter, and starts a
//! `redis-server` of its own, if there is one, on a free port of the loopback; its clients are
//! `redis-benchmark`. Both run in turn, and the fastest round of each counts.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dhole::{Config, NodeId, Object, Pending, Result, Worker, on};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counter(u64);

#[dhole::object]
impl Counter {
    pub fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }
}

const ROUNDS: usize = 5;
/// Additions of each client.
const TIMES: u64 = 50_000;
/// As many of each are under way at a time, of both systems.
const UNDER_WAY: usize = 128;

fn one_by_one(w: &mut Worker<'_>, counter: Object<Counter>) -> Result<()> {
    for _ in 0..TIMES {
        counter.add(w, 1)?;
    }
    Ok(())
}

fn pipelined(w: &mut Worker<'_>, counter: Object<Counter>) -> Result<()> {
    let mut under_way: VecDeque<Pending<u64>> = VecDeque::with_capacity(UNDER_WAY);
    for _ in 0..TIMES {
        if under_way.len() == UNDER_WAY
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.wait(w)?;
        }
        under_way.push_back(counter.start_add(w, 1)?);
    }
    for last in under_way {
        last.wait(w)?;
    }
    Ok(())
}

/// Additions a second of two nodes together.
fn rate(
    w: &mut Worker<'_>,
    counter: Object<Counter>,
    add: fn(&mut Worker<'_>, Object<Counter>) -> Result<()>,
) -> Result<f64> {
    w.barrier()?;
    let began = Instant::now();
    if w.node().index() != 0 {
        add(w, counter)?;
    }
    w.barrier()?;
    Ok(2.0 * TIMES as f64 / began.elapsed().as_secs_f64())
}

/// A server of our own, which ends with this.
struct Redis {
    server: Child,
    port: u16,
}

impl Redis {
    fn start() -> std::result::Result<Redis, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = Command::new("redis-server");
        server.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        server.args(["--port", &port.to_string()]);
        let server = server.stdout(Stdio::null()).spawn()?;
        let redis = Redis { server, port };
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until {
                return Err("it does not answer".into());
            }
            std::thread::yield_now();
        }
        Ok(redis)
    }

    /// INCRs a second of two clients, each with so many under way.
    fn rate(&self, under_way: usize) -> std::result::Result<f64, Box<dyn Error>> {
        let mut client = Command::new("redis-benchmark");
        client.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        client.args(["-c", "2", "-P", &under_way.to_string(), "--csv"]);
        client.args(["-n", &(2 * TIMES).to_string(), "incr", "counter"]);
        let said = String::from_utf8(client.output()?.stdout)?;
        let last = said.lines().last().unwrap_or_default();
        let fields: Vec<&str> = last.split("\",\"").collect();
        let rate = fields.get(1).ok_or("it says nothing")?;
        Ok(rate.trim_matches('"').parse()?)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _gone = self.server.kill();
        let _gone = self.server.wait();
    }
}

fn main() {
    let run = Config::nodes(3).run(|w| {
        let counter = w.once(|w| Ok(w.new_object(on(NodeId(0)), Counter(0))?))?;
        let redis = match w.node().index() {
            0 => Redis::start()
                .map_err(|error| eprintln!("no redis-server: {error}"))
                .ok(),
            _ => None,
        };
        let mut best = [0.0_f64; 4];
        for _ in 0..ROUNDS {
            best[0] = best[0].max(rate(w, counter, one_by_one)?);
            best[1] = best[1].max(rate(w, counter, pipelined)?);
            if let Some(redis) = &redis {
                let rates = [1, UNDER_WAY].map(|under_way| redis.rate(under_way));
                for (best, rate) in best[2..].iter_mut().zip(rates) {
                    match rate {
                        Ok(rate) => *best = best.max(rate),
                        Err(error) => eprintln!("redis-benchmark: {error}"),
                    }
                }
            }
            w.barrier()?;
        }
        Ok(best)
    });
    let run = run.expect("a run");
    if run.report.node != NodeId(0) {
        return;
    }
    let [one, many, redis_one, redis_many] = run.value.map(|rate| rate / 1000.0);
    println!("two clients of one counter, thousands a second, the fastest of {ROUNDS} rounds");
    println!(
        "one by one       {one:9.1}   Redis {redis_one:9.1}   {:.2}",
        one / redis_one
    );
    println!(
        "{UNDER_WAY} under way    {many:9.1}   Redis {redis_many:9.1}   {:.2}",
        many / redis_many
    );
}
