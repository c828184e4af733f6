//! Many small objects, written each interval by the node that made them; of each node's objects the
//! other reads none, or a tenth: chosen at random each time, or always the same. What an object
//! costs: nanoseconds of the processor of the worker that writes or reads it.
//!
//! `small [OBJECTS [INTERVALS]]`. On two threads, and on two processes over shared memory and TCP,
//! for which this starts itself under `dhole run`, built beside it. Boxes are the floor.
#![forbid(unsafe_code)]

use std::process::Command;
use std::time::Duration;

use bench::Outcome;
use dhole::{Config, Ref, Refs, Result, Share, Worker};
use dhole_model::SplitMix64;
use rustix::time::{ClockId, clock_gettime};

/// By this argument this program is a node that `dhole run` has started.
const AS_NODE: &str = "as-node";
/// Intervals before those that count: exclusive objects become so after sixteen.
const UNTIMED: usize = 20;

#[derive(Share, Clone, Copy)]
struct Small {
    words: [u64; 8],
}

/// How much of the other node's objects a node reads in an interval.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    Nothing,
    /// Chosen at random in each interval.
    Tenth,
    /// The same in each interval, some of each chunk.
    Same,
}

impl Read {
    const ALL: [(Read, &str); 3] = [
        (Read::Nothing, "nothing"),
        (Read::Tenth, "tenth"),
        (Read::Same, "same"),
    ];

    /// Whether the object of this number is read.
    fn chooses(self, number: usize, random: &mut SplitMix64) -> bool {
        match self {
            Read::Nothing => false,
            Read::Tenth => random.below(10) == 0,
            Read::Same => number % 10 == 3,
        }
    }
}

/// Nanoseconds of a worker's processor, of the average interval.
#[derive(Clone, Copy, Default)]
struct Costs {
    /// For an object that is allocated.
    alloc: f64,
    /// For an object that is read for the first time.
    cold_read: f64,
    /// For a write of an object, the first one in its interval; where the same are read each time,
    /// of one that nobody reads.
    write: f64,
    /// For the barriers that announce the writes, divided by the written objects.
    announce: f64,
    /// For an object of the other node that is read; no number where none is.
    read: f64,
}

impl Costs {
    fn all(&self) -> [f64; 5] {
        [
            self.alloc,
            self.cold_read,
            self.write,
            self.announce,
            self.read,
        ]
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Adds what `work` takes of the processor to `to`.
fn timed<T>(to: &mut f64, work: impl FnOnce() -> T) -> T {
    let began = processor_time();
    let value = work();
    *to += (processor_time() - began).as_nanos() as f64;
    value
}

fn shared(w: &mut Worker<'_>, objects: usize, intervals: usize, read: Read) -> Result<Costs> {
    let mut costs = Costs::default();
    let new = |n: usize| Small {
        words: [n as u64; 8],
    };
    let mine: Vec<Ref<Small>> = timed(&mut costs.alloc, || {
        (0..objects).map(|n| w.alloc(new(n))).collect()
    });
    let shown: Refs<Option<Ref<Small>>> = w.once(|w| Ok(w.alloc_range(2 * objects, |_| None)))?;
    let place = |node: usize| node * objects..(node + 1) * objects;
    let me = w.node().index();
    for (at, object) in place(me).zip(&mine) {
        *shown.at(at).get_mut(w) = Some(*object);
    }
    w.barrier()?;
    let other: Vec<Ref<Small>> = place(1 - me)
        .filter_map(|at| *shown.at(at).get(w))
        .collect();
    w.barrier()?;
    let mut sum = timed(&mut costs.cold_read, || {
        let words = other.iter().map(|object| object.get(w).words[0]);
        words.fold(0, u64::wrapping_add)
    });
    w.barrier()?;
    let mut random = SplitMix64(me as u64);
    let mut reads = 0;
    for interval in 0..UNTIMED + intervals {
        let mut untimed = Costs::default();
        let costs = if interval < UNTIMED {
            &mut untimed
        } else {
            &mut costs
        };
        let is_same =
            |number: usize| read == Read::Same && read.chooses(number, &mut SplitMix64(0));
        for (_, object) in mine.iter().enumerate().filter(|(at, _)| is_same(*at)) {
            object.get_mut(w).words[interval % 8] += 1;
        }
        timed(&mut costs.write, || {
            for (_, object) in mine.iter().enumerate().filter(|(at, _)| !is_same(*at)) {
                object.get_mut(w).words[interval % 8] += 1;
            }
        });
        timed(&mut costs.announce, || w.barrier())?;
        if read != Read::Nothing {
            // Each of them once: a second read would be a hit.
            let numbered = other.iter().enumerate();
            let chosen = numbered.filter(|(number, _)| read.chooses(*number, &mut random));
            let chosen: Vec<Ref<Small>> = chosen.map(|(_, object)| *object).collect();
            if interval >= UNTIMED {
                reads += chosen.len();
            }
            sum = timed(&mut costs.read, || {
                let words = chosen
                    .iter()
                    .map(|object| object.get(w).words[interval % 8]);
                words.fold(sum, u64::wrapping_add)
            });
        }
        w.barrier()?;
    }
    std::hint::black_box(sum);
    costs.alloc /= objects as f64;
    costs.cold_read /= objects as f64;
    let written = match read {
        Read::Same => objects - (objects + 6) / 10,
        Read::Nothing | Read::Tenth => objects,
    };
    costs.write /= (written * intervals) as f64;
    costs.announce /= (objects * intervals) as f64;
    costs.read /= reads as f64; // not a number where none is read
    Ok(costs)
}

/// What boxes cost that no other thread reads.
fn floor(objects: usize, intervals: usize) -> Costs {
    let mut costs = Costs::default();
    let mut boxes: Vec<Box<[u64; 8]>> = timed(&mut costs.alloc, || {
        (0..objects).map(|n| Box::new([n as u64; 8])).collect()
    });
    for interval in 0..intervals {
        timed(&mut costs.write, || {
            for words in &mut boxes {
                words[interval % 8] += 1;
            }
        });
        let sum = timed(&mut costs.read, || {
            let words = boxes.iter().step_by(10).map(|words| words[interval % 8]);
            words.fold(0, u64::wrapping_add)
        });
        std::hint::black_box(sum);
    }
    costs.alloc /= objects as f64;
    costs.cold_read = f64::NAN;
    costs.write /= (objects * intervals) as f64;
    costs.announce = f64::NAN;
    costs.read /= (objects / 10 * intervals) as f64;
    costs
}

fn on_processes(sizes: [usize; 2], read: &str, transport: &str) -> Outcome<Costs> {
    let itself = std::env::current_exe()?;
    let mut command = Command::new(itself.with_file_name("dhole"));
    command.args(["run", "-n", "2", "--transport", transport, "--"]);
    command.arg(itself).args([AS_NODE, read]);
    command.args(sizes.map(|size| size.to_string()));
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?}: {}: {said}", output.status).into());
    }
    let said = String::from_utf8(output.stdout)?;
    let numbers: std::result::Result<Vec<f64>, _> =
        said.split_whitespace().map(str::parse).collect();
    match numbers?[..] {
        [alloc, cold_read, write, announce, read] => Ok(Costs {
            alloc,
            cold_read,
            write,
            announce,
            read,
        }),
        _ => Err(format!("{command:?}: no costs: {said}").into()),
    }
}

fn print(name: &str, costs: &Costs) {
    let cells = costs.all().map(|cost| match cost.is_finite() {
        true => format!("{cost:>12.1}"),
        false => format!("{:>12}", "-"),
    });
    println!("{name:<48}{}", cells.concat());
}

fn measure(objects: usize, intervals: usize) -> Outcome<()> {
    println!(
        "{objects} objects of 64 bytes a node, {intervals} intervals; ns an object, processor"
    );
    let head = ["alloc", "first read", "write", "announce", "read"];
    println!(
        "{:<48}{}",
        "",
        head.map(|name| format!("{name:>12}")).concat()
    );
    print("boxes of one thread", &floor(objects, intervals));
    for (read, name) in Read::ALL {
        let run = Config::nodes(2).run(|w| shared(w, objects, intervals, read))?;
        print(&format!("two threads, the other reads {name}"), &run.value);
        for transport in ["shm", "tcp"] {
            let costs = on_processes([objects, intervals], name, transport)?;
            print(
                &format!("two processes, {transport}, the other reads {name}"),
                &costs,
            );
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [AS_NODE, read, objects, intervals] => {
            let named = Read::ALL.into_iter().find(|(_, name)| *name == read);
            let (read, _) = named.ok_or("as-node nothing|tenth|same OBJECTS INTERVALS")?;
            let (objects, intervals) = (objects.parse()?, intervals.parse()?);
            let run = Config::nodes(2).run(|w| shared(w, objects, intervals, read))?;
            if run.report.is_first() {
                let costs = run.value.all().map(|cost| cost.to_string());
                println!("{}", costs.join(" "));
            }
            Ok(())
        }
        [] => measure(100_000, 20),
        [objects] => measure(objects.parse()?, 20),
        [objects, intervals] => measure(objects.parse()?, intervals.parse()?),
        _ => Err("small [OBJECTS [INTERVALS]]".into()),
    }
}
