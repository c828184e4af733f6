//! Windows of nodes that are all in this process, as an adapter reaches them: of a transfer, the
//! last part comes first.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use dhole_net::Port;
use dhole_space::{Put, RemoteMemory, Unreached, WindowMaker};

use super::watched;

/// Words of a window: too few for large objects, which are asked for by message.
const WORDS: usize = 1 << 14;

struct Windows {
    all: Arc<[Box<[AtomicU64]>]>,
    me: usize,
}

impl RemoteMemory for Windows {
    fn own(&self) -> &[AtomicU64] {
        &self.all[self.me]
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn transfer(
        &self,
        node: usize,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), Unreached> {
        let there = &self.all[node];
        into.clear();
        let words = gets.iter().flat_map(|range| &there[range.clone()]).rev();
        into.extend(words.map(|word| word.load(Ordering::Relaxed)));
        into.reverse();
        if let Some(Put { at, value }) = put {
            there[at].store(value, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        Ok(())
    }
}

/// Watched ports of nodes that map nothing of each other, and what makes their windows.
pub fn reaching(nodes: usize) -> Vec<(Box<dyn Port>, WindowMaker)> {
    let window = |_| (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let all: Arc<[Box<[AtomicU64]>]> = (0..nodes).map(window).collect();
    let maker = |(me, port)| {
        let all = Arc::clone(&all);
        let make: WindowMaker = Box::new(move || {
            let all = Arc::clone(&all);
            Ok(Arc::new(Windows { all, me }))
        });
        (port, make)
    };
    watched(nodes).into_iter().enumerate().map(maker).collect()
}
