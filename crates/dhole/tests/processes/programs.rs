//! What the started processes do.

use std::collections::VecDeque;
use std::time::Duration;

use dhole::{
    Array, Array2, Coherence, Condvar, Config, Error, Lock, NodeId, Object, Ref, Result, Row, Rows,
    Run, RunError, RwLock, Semaphore, Share, Worker, on, replicated,
};
use serde::{Deserialize, Serialize};

use crate::{large, one_sided};

/// Runs a program by its name; the exit code of the process.
pub fn run(name: &str) -> i32 {
    let said = match name {
        "everything" => everything(Coherence::Lazy),
        "everything under update" => everything(Coherence::Update),
        "everything under home" => everything(Coherence::Home),
        "disjoint" => disjoint(1).map(|run| said(&run)),
        "several runs" => several_runs(),
        "computes between two runs" => ending(|w| Ok(w.barrier()?)).and_then(|_| {
            let began = std::time::Instant::now();
            let is_one = dhole::process()?.is_some_and(|process| process.node.0 == 1);
            while is_one && began.elapsed() < Duration::from_millis(1500) {
                std::hint::spin_loop();
            }
            ending(|w| Ok(w.barrier()?))
        }),
        "objects" => config()
            .run(jobs)
            .map(|run| vec![format!("value {}", run.value)]),
        "panics" => ending(|w| match w.node().index() {
            1 => panic!("of node 1's own words"),
            _ => Ok(w.barrier()?),
        }),
        "fails" => ending(|w| match w.node().index() {
            2 => Err(Error::program("node 2 has had enough")),
            _ => Ok(w.barrier()?),
        }),
        "deadlocks" => ending(deadlock),
        "leaves" => ending(|w| {
            w.barrier()?;
            if w.node().index() == 1 {
                std::process::exit(77);
            }
            Ok(w.barrier()?)
        }),
        "leaves between runs" => ending(|w| Ok(w.barrier()?)).and_then(|_| {
            if dhole::process()?.is_some_and(|process| process.node.0 == 1) {
                std::process::exit(77);
            }
            ending(|w| Ok(w.barrier()?))
        }),
        "leaves with a lock" => ending(|w| {
            let lock = Lock::numbered(3);
            if w.node().index() == 1 {
                let _held = lock.acquire(w)?;
                w.barrier()?;
                std::process::exit(77);
            }
            w.barrier()?;
            lock.with(w, |_| Ok(()))
        }),
        "asked" => ending(asked),
        "seeds differ" => {
            let node = dhole::process()
                .ok()
                .flatten()
                .map_or(0, |process| process.node.0);
            let suspect_after = Duration::from_millis(100 + u64::from(node));
            let run = config()
                .suspect_after(suspect_after)
                .run(|w| Ok(w.barrier()?));
            run.map(|_| Vec::new())
        }
        "treadmarks" => {
            let run = config()
                .coherence(Coherence::TreadMarks)
                .run(|w| Ok(w.barrier()?));
            run.map(|_| Vec::new())
        }
        other => large::program(other)
            .or_else(|| one_sided::program(other))
            .unwrap_or_else(|| panic!("there is no program {other}")),
    };
    match said {
        Ok(said) => {
            said.iter().for_each(|line| println!("=> {line}"));
            0
        }
        Err(error) => {
            println!("=> {error}");
            let kind = match error {
                RunError::Lost { .. } => "lost",
                RunError::Panicked { .. } => "panicked",
                RunError::Failed { .. } => "failed",
                RunError::Start(_) => "not started",
                RunError::Config(_) => "configured",
                _ => "otherwise",
            };
            println!("=> {kind}");
            1
        }
    }
}

fn config() -> Config {
    Config::nodes(1).suspect_after(Duration::from_millis(50))
}

fn ending(
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync,
) -> std::result::Result<Vec<String>, RunError> {
    config().run(program).map(|_| Vec::new())
}

/// What a run brought, as far as it is the same on threads.
pub fn said(run: &Run<u64>) -> Vec<String> {
    let total = run.report.total();
    vec![
        format!("value {}", run.value),
        format!("{} messages of {} bytes", total.messages, total.data_bytes),
        format!("{:?}", total.by_kind),
        format!("{:?}", total.by_type),
    ]
}

/// Node 1 computes while the others wait, and all are asked over and over what they do.
fn asked(w: &mut Worker<'_>) -> Result<()> {
    let held = match w.node().index() {
        2 => Some(Lock::numbered(5).acquire(w)?),
        _ => None,
    };
    w.barrier()?; // the last call of node 1 before it computes
    let times = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let times = 100;
            for _ in 0..times {
                let me = rustix::process::getpid();
                let _ = rustix::process::kill_process(me, rustix::process::Signal::QUIT);
                // Signals that come at once are one: so they come apart. Nothing waits for this.
                std::thread::sleep(Duration::from_millis(20));
            }
            times
        });
        // Its worker computes for as long as it is asked; that of the others waits for it.
        if w.node().index() != 1 {
            w.barrier()?;
        }
        Ok::<_, Error>(asking.join())
    })?;
    if w.node().index() == 1 {
        w.barrier()?;
    }
    assert_eq!(times.ok(), Some(100));
    held.map_or(Ok(()), |held| Ok(held.release(w)?))
}

/// Nodes that take two locks in opposite orders.
fn deadlock(w: &mut Worker<'_>) -> Result<()> {
    let (me, nodes) = (u32::from(w.node().0), w.nodes() as u32);
    let (mine, others) = (Lock::numbered(me), Lock::numbered((me + 1) % nodes));
    let held = mine.acquire(w)?;
    w.barrier()?;
    others.with(w, |_| Ok(()))?;
    Ok(held.release(w)?)
}

/// Everybody writes its own part of a range, of rows and of an array, and reads its neighbour's:
/// so what is sent is the same in every run.
pub fn disjoint(nodes: usize) -> std::result::Result<Run<u64>, RunError> {
    // So long that no probe is sent, however busy the machine is. Threads ask by message, too.
    let config = Config::nodes(nodes).suspect_after(Duration::from_secs(60));
    config.one_sided(false).run(|w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        // Each node its own: an owner leaves out of a reply what it is writing, and whether it is
        // at the time is a matter of chance where all write first what node 0 has.
        let own = w.alloc_range(100, |i| (100 * me + i) as u64);
        let numbers = w.all_gather(own)?;
        let (rows, array) = w.once(|w| {
            let rows: Rows<u64> = w.alloc_rows(w.nodes(), 1000);
            let array: Array<u32> = w.alloc_array(5000 * w.nodes());
            Ok((rows, array))
        })?;
        let mut sum = 0;
        for round in 1..4_u64 {
            for number in numbers[me].iter() {
                *number.get_mut(w) += round;
            }
            rows.row(me).get_mut(w)[me] = round;
            let mine = 5000 * me..5000 * (me + 1);
            array.slice_mut(w, mine).fill(round as u32);
            w.barrier()?;
            let next = (me + 1) % nodes;
            let theirs = numbers[next].iter();
            sum += theirs.map(|number| number.read(w)).sum::<u64>();
            sum += rows.row(next).get(w).iter().sum::<u64>();
            let theirs = 5000 * next..5000 * (next + 1);
            sum += array
                .slice(w, theirs)
                .iter()
                .map(|n| u64::from(*n))
                .sum::<u64>();
            w.barrier()?;
        }
        Ok(sum)
    })
}

#[derive(Serialize, Deserialize, Default)]
struct Jobs(VecDeque<u64>, bool);

#[dhole::object]
impl Jobs {
    pub fn push(&mut self, job: u64) {
        self.0.push_back(job);
    }

    pub fn close(&mut self) {
        self.1 = true;
    }

    #[when(!self.0.is_empty() || self.1)]
    pub fn pop(&mut self) -> Option<u64> {
        self.0.pop_front()
    }
}

#[derive(Serialize, Deserialize, Default)]
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

/// Everybody takes jobs from a queue on one node, and adds up what they come to on another and in a
/// replica; the other has never seen a queue before.
fn jobs(w: &mut Worker<'_>) -> Result<u64> {
    let (queue, sum, replica): (Object<Jobs>, Object<Sum>, Object<Sum>) = w.once(|w| {
        let queue = w.new_object(on(NodeId(1)), Jobs::default())?;
        let sum = w.new_object(on(NodeId(2)), Sum::default())?;
        Ok((queue, sum, w.new_object(replicated(), Sum::default())?))
    })?;
    if w.node() == NodeId(0) {
        for job in 1..=100 {
            queue.push(w, job)?;
        }
        queue.close(w)?;
    }
    while let Some(job) = queue.pop(w)? {
        sum.add(w, job)?;
        replica.add(w, job)?;
    }
    w.barrier()?;
    let (sum, replica) = (sum.get(w)?, replica.get(w)?);
    assert_eq!(sum, replica);
    Ok(sum)
}

/// A run follows on the other, with objects of other types in the same places of the program.
fn several_runs() -> std::result::Result<Vec<String>, RunError> {
    let mut all = Vec::new();
    let mut left: Option<Ref<u64>> = None;
    for round in 0..20_u64 {
        let run = config().run(|w| {
            let one = w.once(|w| Ok(w.alloc(round)))?;
            if let Some(left) = left {
                let error = left.try_get(w).expect_err("it was of the run before");
                assert!(error.to_string().contains("ended"), "{error}");
            }
            Lock::numbered(1).with(w, |w| {
                *one.get_mut(w) += 1;
                Ok(())
            })?;
            w.barrier()?;
            Ok((one.read(w), one))
        })?;
        let (value, one) = run.value;
        left = Some(one);
        all.push(format!("{value}"));
    }
    Ok(all)
}

#[derive(Clone, Copy, Debug, Share)]
struct Item {
    number: u64,
    next: Option<Ref<Item>>,
    row: Row<u16>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Debug, Share)]
enum Kind {
    Plain,
    Odd,
}

#[derive(Clone, Copy, Share)]
struct Roots {
    head: Ref<Option<Ref<Item>>>,
    sum: Ref<u64>,
    grid: Array2<f64>,
    words: Array<Kind>,
}

/// Every kind of object and of synchronisation at once.
fn everything(coherence: Coherence) -> std::result::Result<Vec<String>, RunError> {
    let run = config().coherence(coherence).run(|w| {
        let (me, nodes) = (w.node().index() as u64, w.nodes() as u64);
        let roots = w.once(|w| {
            Ok(Roots {
                head: w.alloc(None),
                sum: w.alloc(0),
                grid: w.alloc_array2(w.nodes(), 300),
                words: w.alloc_array_with(64, |_| Kind::Plain),
            })
        })?;
        // A list to which all nodes add what they allocated themselves, of types and rows that the
        // others have never seen.
        let list = Lock::numbered(1);
        for i in 0..10 {
            let row: Row<u16> = w.alloc_rows(1, 20).row(0);
            row.get_mut(w)[i] = me as u16 + 1;
            let number = 100 * me + i as u64;
            let kind = if i % 2 == 1 { Kind::Odd } else { Kind::Plain };
            list.with(w, |w| {
                let next = roots.head.read(w);
                let item = Item {
                    number,
                    next,
                    row,
                    kind,
                };
                let item = w.alloc(item);
                *roots.head.get_mut(w) = Some(item);
                Ok(())
            })?;
        }
        w.barrier()?;
        let (mut at, mut sum, mut odd) = (roots.head.read(w), 0, 0);
        while let Some(item) = at {
            let Item {
                number,
                next,
                row,
                kind,
            } = item.read(w);
            sum += number + row.get(w).iter().map(|n| u64::from(*n)).sum::<u64>();
            odd += u64::from(kind == Kind::Odd);
            at = next;
        }
        let wanted: u64 = (0..nodes).map(|n| 1000 * n + 45 + 10 * (n + 1)).sum();
        assert_eq!((sum, odd), (wanted, 5 * nodes));
        // Gates and conditions.
        let (gate, permits) = (RwLock::numbered(2), Semaphore::numbered(3, 1));
        permits.acquire(w)?;
        gate.with_write(w, |w| {
            *roots.sum.get_mut(w) += me + 1;
            Ok(())
        })?;
        permits.release(w)?;
        w.barrier()?;
        let seen = gate.with_read(w, |w| Ok(roots.sum.read(w)))?;
        w.barrier()?;
        assert_eq!(seen, nodes * (nodes + 1) / 2);
        let turn = Lock::numbered(4);
        let ready = Condvar::numbered(turn, 0);
        let mut held = turn.acquire(w)?;
        while roots.sum.read(w) != seen + me {
            held = ready.wait(w, held)?;
        }
        *roots.sum.get_mut(w) += 1;
        ready.notify_all(w)?;
        held.release(w)?;
        // Arrays by element, and another protocol for one of them.
        roots.grid.row(me as usize).get_mut(w).fill(me as f64);
        *roots.words.get_mut(w, me as usize) = Kind::Odd;
        w.barrier()?;
        w.switch(roots.grid.array(), Coherence::Home)?;
        let total: f64 = (0..nodes).map(|n| *roots.grid.get(w, n as usize, 7)).sum();
        assert_eq!(total as u64, nodes * (nodes - 1) / 2);
        w.barrier()?;
        // What is freed on one node is an error on all.
        if me == nodes - 1 {
            let head = roots.head.read(w).expect("a list");
            w.free(head)?;
            w.free(roots.words)?;
        }
        w.barrier()?;
        let head = roots.head.read(w).expect("a list");
        let error = head.try_get(w).expect_err("it was freed");
        assert!(error.to_string().contains("freed"), "{error}");
        assert!(roots.words.try_slice(w, 0..1).is_err());
        w.barrier()?;
        Ok(sum + seen)
    })?;
    Ok(vec![
        format!("value {}", run.value),
        format!("node {}", run.node()),
    ])
}
