//! Processes of one node take turns.

use dhole::{Lock, NodeId, Object, Result, Worker, on, op, replicated};
use serde::{Deserialize, Serialize};

use super::values;

#[derive(Serialize, Deserialize, Default)]
struct Doors {
    open: Vec<u32>,
    passed: u32,
}

#[dhole::object]
impl Doors {
    pub fn open(&mut self, door: u32) {
        self.open.push(door);
    }

    #[when(self.open.contains(door))]
    pub fn pass(&mut self, door: u32) -> u32 {
        self.passed += 1;
        self.passed
    }

    pub fn passed(&self) -> u32 {
        self.passed
    }
}

fn chain(w: &mut Worker<'_>, (doors, door): (Object<Doors>, u32)) -> Result<u32> {
    doors.pass(w, door)?;
    doors.open(w, door + 1)?;
    Ok(w.node().0 as u32)
}

/// Each waits for the one that was started after it, all of them on two nodes.
#[test]
fn processes_that_wait_let_others_of_their_node_go_on() {
    for strategy in [replicated(), on(NodeId(0)), on(NodeId(1))] {
        let all = values(2, |w| {
            let doors = w.once(|w| Ok(w.new_object(strategy, Doors::default())?))?;
            if w.node().0 == 0 {
                let mut all = Vec::new();
                for door in (0..12_u32).rev() {
                    let node = NodeId((door % 2) as u16);
                    all.push(w.spawn(on(node), (doors, door), op!(chain))?);
                }
                doors.open(w, 0)?;
                for process in all {
                    process.join(w)?;
                }
            }
            w.barrier()?;
            Ok(doors.passed(w)?)
        });
        assert!(all.iter().all(|value| *value == 12), "{all:?}");
    }
}

/// While the program waits at barriers its node runs processes, which outlive barriers.
#[test]
fn processes_go_on_while_programs_meet_at_barriers() {
    let all = values(3, |w| {
        let (doors, number) = w.once(|w| {
            let doors = w.new_object(on(NodeId(1)), Doors::default())?;
            Ok((doors, w.alloc(0_u64)))
        })?;
        let waits = op!(|w, (doors, number, door)| {
            let (doors, number, door): (Object<Doors>, dhole::Ref<u64>, u32) =
                (doors, number, door);
            doors.pass(w, door)?;
            Lock::numbered(1).with(w, |w| {
                *number.get_mut(w) += 1;
                Ok(())
            })?;
            doors.open(w, door + 1)?;
            Ok(())
        });
        let me = w.node().0;
        let child = w.spawn(
            NodeId((me + 1) % 3),
            (doors, number, 10 * u32::from(me)),
            waits,
        )?;
        for round in 0..10 {
            w.barrier()?;
            if me == 2 && round % 3 == 0 {
                doors.open(w, 10 * (round / 3))?;
            }
            w.barrier()?;
        }
        child.join(w)?;
        for other in 0..3 {
            doors.pass(w, 10 * other + 1)?;
        }
        w.barrier()?;
        Ok(number.read(w))
    });
    assert!(all.iter().all(|value| *value == 3), "{all:?}");
}

/// A process keeps the turn while it waits for a lock whose holder waits at a barrier with the
/// program of that very node.
#[test]
fn a_lock_held_over_a_barrier_comes_after_it() {
    for holder in [0, 1] {
        let all = values(2, |w| {
            let (doors, number) = w.once(|w| {
                let doors = w.new_object(replicated(), Doors::default())?;
                Ok((doors, w.alloc(0_u64)))
            })?;
            let counts = op!(|w, (doors, number): (Object<Doors>, dhole::Ref<u64>)| {
                doors.open(w, 1)?;
                Lock::numbered(2).with(w, |w| {
                    assert_eq!(number.read(w), 5);
                    *number.get_mut(w) += 1;
                    Ok(())
                })
            });
            let me = w.node();
            let held = match me == NodeId(holder) {
                true => {
                    let held = Lock::numbered(2).acquire(w)?;
                    let process = w.spawn(NodeId(1 - holder), (doors, number), counts)?;
                    doors.pass(w, 1)?;
                    *number.get_mut(w) = 5;
                    Some((held, process))
                }
                false => None,
            };
            w.barrier()?;
            if let Some((held, process)) = held {
                held.release(w)?;
                process.join(w)?;
            }
            w.barrier()?;
            Ok(number.read(w))
        });
        assert!(all.iter().all(|value| *value == 6), "{all:?}");
    }
}

/// A program that pauses lets others of its node go on.
#[test]
fn whoever_pauses_lets_others_go_on() {
    let all = values(1, |w| {
        let doors = w.new_object(replicated(), Doors::default())?;
        let opens = op!(|w, doors: Object<Doors>| {
            doors.open(w, 1)?;
            doors.pass(w, 1)?;
            Ok(())
        });
        let process = w.spawn(NodeId(0), doors, opens)?;
        while doors.passed(w)? == 0 {
            w.pause()?;
        }
        process.join(w)?;
        Ok(doors.passed(w)?)
    });
    assert!(all.iter().all(|value| *value == 1), "{all:?}");
}

/// Who holds a lock keeps the turn; who waits for one too.
#[test]
fn a_lock_is_held_by_one_process_at_a_time_on_one_node_too() {
    let all = values(2, |w| {
        let (number, doors) = w.once(|w| {
            let doors = w.new_object(on(NodeId(0)), Doors::default())?;
            Ok((w.alloc(0_u64), doors))
        })?;
        let adds = op!(|w, (number, doors): (dhole::Ref<u64>, Object<Doors>)| {
            for _ in 0..5 {
                Lock::numbered(3).with(w, |w| {
                    let before = number.read(w);
                    doors.open(w, 1)?;
                    *number.get_mut(w) = before + 1;
                    Ok(())
                })?;
                doors.pass(w, 1)?;
            }
            Ok(())
        });
        let mut all = Vec::new();
        for i in 0..6 {
            all.push(w.spawn(NodeId(i % 2), (number, doors), adds)?);
        }
        for process in all {
            process.join(w)?;
        }
        w.barrier()?;
        Ok(number.read(w))
    });
    assert!(all.iter().all(|value| *value == 60), "{all:?}");
}
