//! The memory of other processes, in which objects are read one-sided: a window of each, which all
//! others put words into and get words from.
//!
//! The owner need not take part. Where there is no adapter that does its part, the library does it
//! in whichever thread calls it: a worker that waits, or the service thread, which looks from time
//! to time while the worker computes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;
use dhole_space::{Put, RemoteMemory, Unreached, WindowMaker};

use super::library::window::Window;
use super::library::{MpiError, inside};
use super::{Mpi, Shared, never_finalise};

/// Words of the window of a process. Libraries may take memory for all of them at once, and keep it
/// where an adapter finds it.
const WINDOW_WORDS: usize = (64 << 20) / size_of::<u64>();
/// A transfer that takes longer is given up, and that node is asked by message. One that is lost
/// is given up at once.
const LONGEST: Duration = Duration::from_secs(5);
/// What a transfer may take on average: an adapter takes a few microseconds. Once those with a node
/// are behind that by so much, its process does them when it looks, and a message is faster.
const USUAL: Duration = Duration::from_micros(100);
const MOST_BEHIND: Duration = Duration::from_millis(250);
/// So often a transfer is looked at before another thread may have the processor.
const LOOKS: u32 = 200;

/// The windows of all processes.
struct Windows {
    shared: Arc<Shared>,
    window: Window,
    /// By node: a transfer was given up.
    unreached: Box<[AtomicBool]>,
    /// By node: by how much transfers are behind what they may take, in us.
    behind_us: Box<[AtomicU64]>,
}

type Made = Result<Arc<dyn RemoteMemory>, String>;

impl Mpi {
    /// What makes the windows of all processes, once: each of them has to call it within `within`.
    /// They all get them, or all of them a reason why there are none.
    pub fn window_maker(&self, within: Duration) -> WindowMaker {
        let shared = Arc::clone(&self.shared);
        let made: Mutex<Option<Made>> = Mutex::default();
        Box::new(move || {
            let mut made = lock(&made);
            let make = || Windows::make(&shared, within);
            made.get_or_insert_with(make).clone()
        })
    }
}

impl Windows {
    fn make(shared: &Arc<Shared>, within: Duration) -> Made {
        let words = |error: MpiError| error.to_string();
        let own = shared.communicator.windows(WINDOW_WORDS, within);
        if let Err(late @ MpiError::Late(_)) = own {
            // It may come about when nobody needs it any more.
            never_finalise();
            return Err(late.to_string());
        }
        let refused = own.as_ref().err().map(MpiError::to_string);
        let says = refused.unwrap_or_default();
        let nodes = shared.peers.nodes();
        let all = {
            let inside = inside().map_err(words)?;
            let communicator = shared.communicator;
            communicator.gather(&inside, says.as_bytes(), nodes, within)
        };
        let all = all.inspect_err(|_| never_finalise()).map_err(words)?;
        if let Some(first) = all.iter().find(|said| !said.is_empty()) {
            return Err(String::from_utf8_lossy(first).into_owned());
        }
        let window = own.map_err(words)?;
        let shared = Arc::clone(shared);
        let unreached = (0..nodes).map(|_| AtomicBool::new(false)).collect();
        let behind_us = (0..nodes).map(|_| AtomicU64::new(0)).collect();
        Ok(Arc::new(Windows {
            shared,
            window,
            unreached,
            behind_us,
        }))
    }

    fn transfers(
        &self,
        node: NodeId,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), String> {
        let words = |error: MpiError| error.to_string();
        let rank = self.shared.rank_of(node);
        let inside = inside().map_err(words)?;
        let begun = Instant::now();
        let mut looks = 0;
        loop {
            let (put, room) = (put.map(|it| (it.at, it.value)), std::mem::take(into));
            let transfer = self.window.begin(&inside, rank, put, gets, room);
            let mut transfer = transfer.map_err(words)?;
            while !transfer.is_complete(&inside).map_err(words)? {
                looks += 1;
                if looks % LOOKS == 0 {
                    self.may_wait(node, begun)?;
                }
            }
            // The library completes what is put when it needs it no more; `MPI_Win_flush` would
            // wait until it is there, but without a limit. Each word that is put differs from what
            // was there, so who gets it back knows that it is there.
            let is_put = transfer.is_put();
            *into = transfer.into_words();
            if is_put {
                self.took(node, begun.elapsed());
                return Ok(());
            }
            self.may_wait(node, begun)?;
        }
    }

    /// Gives the processor to another thread, unless a transfer that has begun so long ago is given
    /// up.
    fn may_wait(&self, node: NodeId, begun: Instant) -> Result<(), String> {
        if let Some(loss) = self.shared.peers.loss(node) {
            return Err(loss.to_string());
        }
        if begun.elapsed() > LONGEST {
            return Err(format!("nothing came of it within {LONGEST:?}"));
        }
        std::thread::yield_now();
        Ok(())
    }

    /// Notes how long a transfer took.
    fn took(&self, node: NodeId, time: Duration) {
        let behind_us = &self.behind_us[node.index()];
        let before = Duration::from_micros(behind_us.load(Ordering::Relaxed));
        let behind = (before + time).saturating_sub(USUAL);
        behind_us.store(behind.as_micros() as u64, Ordering::Relaxed);
    }
}

impl RemoteMemory for Windows {
    fn own(&self) -> &[AtomicU64] {
        self.window.own()
    }

    fn fence(&self) {
        self.window.fence();
    }

    fn transfer(
        &self,
        node: usize,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), Unreached> {
        let behind_us = self.behind_us[node].load(Ordering::Relaxed);
        if Duration::from_micros(behind_us) >= MOST_BEHIND {
            // What was begun is complete.
            let usual = USUAL.as_micros();
            let why =
                format!("transfers take longer than {usual} us, as where no adapter does them");
            return Err(Unreached { node, why });
        }
        let unreached = &self.unreached[node];
        let done = match unreached.load(Ordering::Relaxed) {
            true => Err("a transfer was given up before".to_owned()),
            false => self.transfers(NodeId::at(node), put, gets, into),
        };
        done.map_err(|why| {
            if !unreached.swap(true, Ordering::Relaxed) {
                // The library would wait at its end for what was given up.
                never_finalise();
            }
            Unreached { node, why }
        })
    }
}
