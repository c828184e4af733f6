//! [`Protocol::give_up`](dhole_protocol::Protocol::give_up): the worker computes again, though what
//! it waited for may still come, and nothing of what it sees may change.

use crate::pack::{OBJECT, Pack, acquire, arrive, miss, n, release, site};
use dhole_protocol::{Command, Event, RegionCommand, RwLockId, SyncObject};

/// Two nodes that have a copy of an object.
fn written() -> Pack {
    let mut pack = Pack::with_object(2);
    pack.run(1, miss(OBJECT, 0));
    pack.done.iter_mut().for_each(Vec::clear);
    pack
}

/// Node 1 waits for what node 0 gives it, which tells of what node 0 wrote; what node 1 does then.
fn given(wait: impl Fn(&mut Pack), give: impl Fn(&mut Pack), gives_up: bool) -> Vec<Command> {
    let mut pack = written();
    wait(&mut pack);
    if gives_up {
        pack.nodes[1].give_up();
    }
    give(&mut pack);
    pack.settle();
    assert_eq!(pack.nodes[1].wait(), None);
    std::mem::take(&mut pack.done[1])
}

#[track_caller]
fn nothing_comes_once_it_is_given_up(wait: impl Fn(&mut Pack), give: impl Fn(&mut Pack)) {
    let awaited = given(&wait, &give, false);
    assert_eq!(
        awaited,
        [
            Command::Objects(RegionCommand::Invalidate(OBJECT)),
            Command::Done
        ]
    );
    assert_eq!(given(&wait, &give, true), []);
}

#[test]
fn a_lock_that_comes_late_changes_nothing() {
    let wait = |pack: &mut Pack| {
        pack.local(0, acquire(0));
        pack.write(0, OBJECT);
        pack.run(1, acquire(0));
    };
    nothing_comes_once_it_is_given_up(wait, |pack| {
        pack.begin(0, release(0));
    });
}

#[test]
fn nor_does_a_read_write_lock() {
    let sync_object = SyncObject::Write(RwLockId(0));
    let wait = |pack: &mut Pack| {
        let site = site(1);
        pack.run(0, Event::Enter { sync_object, site });
        pack.write(0, OBJECT);
        pack.run(1, Event::Enter { sync_object, site });
    };
    nothing_comes_once_it_is_given_up(wait, |pack| {
        let site = site(2);
        pack.begin(0, Event::Leave { sync_object, site });
    });
}

#[test]
fn nor_does_the_end_of_a_barrier() {
    let wait = |pack: &mut Pack| {
        pack.write(0, OBJECT);
        pack.run(1, arrive());
    };
    nothing_comes_once_it_is_given_up(wait, |pack| {
        pack.begin(0, arrive());
    });
}

#[test]
fn nor_does_it_at_the_manager() {
    let mut pack = written();
    pack.write(1, OBJECT);
    pack.run(0, arrive());
    pack.nodes[0].give_up();
    pack.run(1, arrive());
    assert_eq!(pack.done[0], []);
    assert_eq!(
        pack.done[1].last(),
        Some(&Command::Done),
        "others are told as ever"
    );
}

#[test]
fn nor_does_an_object() {
    let mut pack = Pack::with_object(2);
    pack.begin(1, miss(OBJECT, 0));
    pack.nodes[1].give_up();
    pack.settle();
    assert_eq!(pack.done[1], []);
    assert_eq!(pack.nodes[1].asked().collect::<Vec<_>>(), [n(0)]);
}
