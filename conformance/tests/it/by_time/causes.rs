//! Each cause of waits that a report knows has a lost wake-up, which is found.

use std::process::Command;

use conformance::ports::shm;
use conformance::{OverPorts, Platform, Simulated};
use dhole::MessageKind::{
    BarrierDepart, Coherence as OfMember, FetchReply, FlushAck, IdsReply, LockGrant, OperationReply,
};
use dhole::{Barriers, Lock, MessageKind, NodeId, Object, Semaphore, WaitCause, Worker, on, op};

use super::{
    Door, Waits, add, is_found_on, meeting, passes_an_object, run, shares_an_array, under,
};

/// More than a node begins with.
const IDS: usize = 10_000;
/// A node asks for ids so often: between true processes an answer can be there before the node has
/// begun to wait for it.
const ASKS: usize = 32;

/// The program waits for this cause, and the wake-up that messages of this kind bring to the node
/// is found if it is lost.
#[track_caller]
fn waits_for(
    cause: WaitCause,
    (platform, kind): (impl Platform + Copy, MessageKind),
    node: NodeId,
    waits: Waits,
) -> String {
    let outcome = run(&platform, 2, 3, waits).unwrap_or_else(|error| panic!("{cause:?}: {error}"));
    let mut lines = outcome.costs.lines.iter();
    let has_waited = lines.any(|line| line.cause == cause && line.cost.waits > 0);
    assert!(has_waited, "{cause:?}: {:#?}", outcome.costs);
    is_found_on(Some(node), platform, kind, waits)
}

/// Set in a process that runs one test alone.
const ALONE: &str = "DHOLE_TEST_ALONE";

#[test]
fn every_cause_of_waits_has_a_lost_wake_up_that_is_found() {
    for cause in WaitCause::ALL {
        is_found_for(cause);
    }
}

/// What the test of this name prints in a process of its own.
fn alone(test: &str) -> String {
    let mut alone = Command::new(std::env::current_exe().expect("this program"));
    alone.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = alone.output().expect("a process");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = output.status.success() && said.contains(" 1 passed;");
    assert!(passed, "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// While nodes that are processes agree on the ids of a run, no other run of their process may take
/// ids. So this is a program of its own, which the test of all causes runs.
#[test]
fn a_wait_for_ids_has_a_lost_wake_up_that_is_found() {
    if std::env::var_os(ALONE).is_some() {
        let over_shm = OverPorts {
            name: "shm",
            make: shm,
        };
        let over_shm = (over_shm, IdsReply);
        waits_for(WaitCause::Ids, over_shm, NodeId(1), asks_for_ids);
    }
}

/// What the run said whose wake-up is lost.
fn is_found_for(cause: WaitCause) -> String {
    let (sim, one) = (Simulated::default(), NodeId(1));
    let member = under("directory".parse().expect("dhole brings it"));
    match cause {
        WaitCause::Object => waits_for(cause, (sim, FetchReply), one, passes_an_object),
        WaitCause::Elements => waits_for(cause, (sim, FetchReply), one, shares_an_array),
        WaitCause::ToWrite => {
            let said = waits_for(cause, (member, OfMember), one, |w| {
                let number = w.once(|w| Ok(w.alloc(0_u64)))?;
                assert_eq!(*number.get(w), 0);
                w.barrier()?;
                if w.node() == NodeId(1) {
                    *number.get_mut(w) += 1;
                }
                Ok(w.barrier()?)
            });
            // It reads and it writes.
            assert!(said.starts_with("2 waits ended"), "{said}");
            said
        }
        WaitCause::Lock => waits_for(cause, (sim, LockGrant), one, |w| {
            Lock::numbered(2).acquire(w)?.release(w)?;
            Ok(w.barrier()?)
        }),
        WaitCause::Barrier => waits_for(
            cause,
            (meeting(Barriers::Central), BarrierDepart),
            one,
            |w| {
                w.work(20_000);
                Ok(w.barrier()?)
            },
        ),
        WaitCause::Once => waits_for(
            cause,
            (meeting(Barriers::Central), BarrierDepart),
            one,
            |w| {
                w.once(|w| {
                    w.work(20_000);
                    Ok(())
                })
            },
        ),
        WaitCause::Read => waits_for(cause, (sim, OperationReply), one, |w| {
            let door = door(w)?;
            assert!(!door.is_open(w)?);
            Ok(w.barrier()?)
        }),
        WaitCause::Write => waits_for(cause, (sim, OperationReply), one, |w| {
            door(w)?.open(w)?;
            Ok(w.barrier()?)
        }),
        WaitCause::Guard => waits_for(cause, (sim, OperationReply), one, |w| {
            let door = door(w)?;
            match w.node() {
                NodeId(0) => {
                    w.work(50_000);
                    Ok(door.open(w)?)
                }
                _ => Ok(door.pass(w)?),
            }
        }),
        WaitCause::Pending => waits_for(cause, (sim, OperationReply), one, |w| {
            let door = door(w)?;
            door.start_open(w)?.wait(w)?;
            Ok(w.barrier()?)
        }),
        WaitCause::Operation => waits_for(cause, (sim, OperationReply), NodeId(0), |w| {
            let number = w.once(|w| Ok(w.alloc(0_u64)))?;
            if w.node() == NodeId(0) {
                w.spawn(NodeId(1), number, op!(add))?.join(w)?;
            }
            Ok(w.barrier()?)
        }),
        WaitCause::Updates => waits_for(cause, (sim, FlushAck), one, |w| {
            let counts = w.once(|w| Ok(w.alloc_array::<u64>(3)))?;
            if w.node() == NodeId(1) {
                counts.add_all(w, &[1], &[2])?;
            }
            w.barrier()?;
            assert_eq!(counts.gather(w, &[1]), [2]);
            Ok(w.barrier()?)
        }),
        WaitCause::Ids => alone("by_time::causes::a_wait_for_ids_has_a_lost_wake_up_that_is_found"),
    }
}

/// Node 1 asks for ids, as only processes do. Node 0 waits for a permit of its own meanwhile, so
/// that the answers are all that it sends: a message of another kind would wake node 1 in time.
fn asks_for_ids(w: &mut Worker<'_>) -> dhole::Result<()> {
    let permits = Semaphore::numbered(0, 0);
    if w.node() == NodeId(0) {
        return Ok(permits.acquire(w)?);
    }
    for _ in 0..ASKS {
        w.alloc_range(IDS, |_| 0_u64);
    }
    Ok(permits.release(w)?)
}

/// A door on node 0.
fn door(w: &mut Worker<'_>) -> dhole::Result<Object<Door>> {
    w.once(|w| Ok(w.new_object(on(NodeId(0)), Door::default())?))
}
