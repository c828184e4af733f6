//! What a phase of a program took.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use dhole::{Result, Worker};
use rustix::time::{ClockId, clock_gettime};

/// Seconds of a phase: by the clock, and of a processor.
#[derive(Clone, Copy)]
pub struct Lap {
    pub seconds: f64,
    pub processor: f64,
}

impl Lap {
    /// Longer than each other.
    pub const NONE: Lap = Lap {
        seconds: f64::INFINITY,
        processor: f64::INFINITY,
    };

    /// The shorter one of both, number by number.
    pub fn least(self, other: Lap) -> Lap {
        Lap {
            seconds: self.seconds.min(other.seconds),
            processor: self.processor.min(other.processor),
        }
    }

    /// A part of it.
    pub fn shared_by(self, count: usize) -> Lap {
        Lap {
            seconds: self.seconds / count as f64,
            processor: self.processor / count as f64,
        }
    }
}

impl fmt::Display for Lap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seconds, self.processor)
    }
}

impl FromStr for Lap {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Lap, String> {
        let numbers = text.split_once(':').and_then(|(seconds, processor)| {
            Some(Lap {
                seconds: seconds.parse().ok()?,
                processor: processor.parse().ok()?,
            })
        });
        numbers.ok_or_else(|| format!("no time of a phase: {text}"))
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// A phase of a program without dhole. Its processor time is this thread's.
pub fn alone<T>(phase: impl FnOnce() -> T) -> (T, Lap) {
    let (began, processor) = (Instant::now(), processor_time());
    let value = phase();
    let lap = Lap {
        seconds: began.elapsed().as_secs_f64(),
        processor: (processor_time() - processor).as_secs_f64(),
    };
    (value, lap)
}

/// A phase whose work other threads do: without processor time.
pub fn by_others<T>(phase: impl FnOnce() -> T) -> (T, Lap) {
    let (value, lap) = alone(phase);
    let processor = f64::NAN;
    (value, Lap { processor, ..lap })
}

/// A phase of all nodes, from a barrier to a barrier, by the clock of the machine, which is virtual
/// in a simulation. Its processor time is that of the worker that used most; of all nodes in a
/// simulation.
pub fn together<'id, T>(
    w: &mut Worker<'id>,
    phase: impl FnOnce(&mut Worker<'id>) -> Result<T>,
) -> Result<(T, Lap)> {
    w.barrier()?;
    let (began, processor) = (w.now(), processor_time());
    let value = phase(w)?;
    w.barrier()?;
    let seconds = (w.now() - began).as_secs_f64();
    let mine = (processor_time() - processor).as_secs_f64();
    let processor = w.all_reduce(mine, f64::max)?;
    Ok((value, Lap { seconds, processor }))
}
