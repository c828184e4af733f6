//! A handler beside a worker.
//!
//! ```text
//!  worker    : [call: make writable] write write write [call: make clean] ...
//!  handler   :    gather   gather (refused)   gather    gather   gather   ...
//! ```

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use dhole_heap::{Access, ArrayMiss, GatherError, Miss, Monitor, Share, Token, readers};
use dhole_model::NodeId;

use super::cluster;

/// A worker that cannot fetch.
struct Computing<'id>(Token<'id>);

impl<'id> Access<'id> for Computing<'id> {
    type Error = std::convert::Infallible;

    fn token(&self) -> &Token<'id> {
        &self.0
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        &mut self.0
    }

    fn read_miss(&self, miss: &Miss) -> Result<(), Self::Error> {
        panic!("{} should be here", miss.oid)
    }

    fn write_miss(&mut self, miss: &Miss) -> Result<(), Self::Error> {
        panic!("{} should be here", miss.oid)
    }

    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), Self::Error> {
        panic!("{} should be here", miss.elements)
    }

    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), Self::Error> {
        panic!("{} should be here", miss.elements)
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        _: &[T],
    ) -> Result<(), Self::Error> {
        panic!("{} should be here", miss.elements)
    }

    fn fail(&self, error: Self::Error) -> ! {
        match error {}
    }
}

#[test]
fn a_handler_reads_whole_values_of_clean_objects_while_others_are_written() {
    const ROUNDS: u64 = 2000;
    let cluster = cluster(1);
    let node = Monitor::new(&cluster, NodeId(0), ());
    let objects = node
        .lock()
        .split()
        .0
        .alloc_range(8, |_| [0_u64; 16])
        .unwrap();
    let (done, both) = (AtomicBool::new(false), Barrier::new(2));
    let (served, refused) = std::thread::scope(|scope| {
        let handler = scope.spawn(|| {
            both.wait();
            let (mut served, mut refused) = (0_u64, 0_u64);
            let mut bytes = Vec::new();
            let mut last = [0; 8];
            let mut last_look = false;
            while !last_look {
                last_look = done.load(Ordering::Relaxed);
                for (i, r) in objects.iter().enumerate() {
                    bytes.clear();
                    match node.lock().split().0.gather(r.oid(), &mut bytes) {
                        Ok(_) => {
                            let words: Vec<u64> = bytes
                                .chunks_exact(8)
                                .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
                                .collect();
                            assert!(words.iter().all(|&w| w == words[0]), "torn: {words:?}");
                            assert!(words[0] >= last[i], "time runs forward");
                            last[i] = words[0];
                            served += 1;
                        }
                        Err(GatherError::BeingWritten { .. }) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            (served, refused)
        });
        both.wait();
        node.lend(|mut token| {
            for round in 1..=ROUNDS {
                let r = objects.at(round as usize % 8);
                node.exclusive_call(&mut token, |call| {
                    call.split().0.make_writable(r.oid(), false).unwrap();
                });
                for word in token.get_mut(r).unwrap() {
                    *word = round;
                }
                std::thread::yield_now();
                node.exclusive_call(&mut token, |call| {
                    call.split().0.make_clean(r.oid()).unwrap();
                });
            }
            done.store(true, Ordering::Relaxed);
        })
        .unwrap();
        handler.join().unwrap()
    });
    assert!(served > 0, "served {served}, refused {refused}");
}

#[test]
fn a_handler_installs_while_the_worker_waits_with_its_token_shared() {
    let cluster = cluster(2);
    let owner = Monitor::new(&cluster, NodeId(0), ());
    let reader = Monitor::new(&cluster, NodeId(1), 0_u32);
    let objects = owner.lock().split().0.alloc_range(500, |i| [i; 4]).unwrap();
    std::thread::scope(|scope| {
        let (ask, asked) = std::sync::mpsc::channel();
        let (answer, answered) = std::sync::mpsc::channel();
        scope.spawn({
            let reader = &reader;
            let owner = &owner;
            move || {
                for oid in asked {
                    let mut bytes = Vec::new();
                    owner.lock().split().0.gather(oid, &mut bytes).unwrap();
                    let mut guard = reader.lock();
                    let (mut heap, installs) = guard.split();
                    heap.install(oid, &bytes).unwrap();
                    *installs += 1;
                    answer.send(()).unwrap();
                }
            }
        });
        reader
            .lend(|token| {
                let mut kept = Vec::new();
                for (i, r) in objects.iter().enumerate() {
                    assert!(token.get(r).is_err());
                    reader.shared_call(&token, |call| {
                        call.unlock();
                        ask.send(r.oid()).unwrap();
                        answered.recv().unwrap();
                    });
                    kept.push(token.get(r).unwrap());
                    assert!(kept.iter().enumerate().all(|(n, v)| **v == [n as u64; 4]));
                    assert_eq!(kept.len(), i + 1);
                }
            })
            .unwrap();
        drop(ask);
    });
    assert_eq!(*reader.lock().split().1, 500);
}

#[test]
fn references_go_to_scoped_threads() {
    let cluster = cluster(1);
    let node = Monitor::new(&cluster, NodeId(0), ());
    let numbers = node.lock().split().0.alloc_range(100, |i| i).unwrap();
    let sum = node.lend(|token| {
        let read: Vec<&u64> = numbers.iter().map(|r| token.get(r).unwrap()).collect();
        std::thread::scope(|scope| {
            let halves = read.split_at(50);
            let other = scope.spawn(|| halves.1.iter().copied().sum::<u64>());
            halves.0.iter().copied().sum::<u64>() + other.join().unwrap()
        })
    });
    assert_eq!(sum, Ok(4950));
}

#[test]
fn readers_go_to_scoped_threads_and_find_what_is_present() {
    let cluster = cluster(1);
    let node = Monitor::new(&cluster, NodeId(0), ());
    let numbers = node.lock().split().0.alloc_range(100, |i| i).unwrap();
    let row = node
        .lock()
        .split()
        .0
        .alloc_rows::<u64>(1, 4)
        .unwrap()
        .row(0);
    let summed = node.lend(|mut token| {
        token.get_mut(numbers.at(0)).unwrap_err();
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            heap.make_writable(numbers.at(7).oid(), false).unwrap();
            heap.invalidate(numbers.at(8).oid()).unwrap();
        });
        *token.get_mut(numbers.at(7)).unwrap() = 1007;
        readers(&mut Computing(token), |present| {
            assert_eq!(present.get(row).unwrap_err().oid, row.oid());
            let sum = |range| -> u64 {
                let read = numbers.slice(range).iter().map(|r| present.get(r));
                read.flatten().sum()
            };
            std::thread::scope(|scope| {
                let parts = [0, 25, 50, 75].map(|i| scope.spawn(move || sum(i..i + 25)));
                parts.map(|part| part.join().unwrap()).iter().sum::<u64>()
            })
        })
    });
    assert_eq!(summed, Ok(4950 + 1000 - 8));
}
