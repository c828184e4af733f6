//! Minipages that nodes write together: every run of small programs over Millipage's machines.

use conformance::model::release::ReleaseOp::{
    self, Acquire, Hold, LetGo, Lock, Push, Read, Release, Unlock, Write,
};
use conformance::model::release::{ReleaseBug, ReleaseFault, ReleaseModel, ReleaseSight};

type Threads<'a> = &'a [&'a [ReleaseOp]];

/// A program of nodes, each of threads; the minipages have these managers.
fn program<const N: usize>(managers: &[usize], nodes: [Threads<'_>; N]) -> ReleaseModel {
    let threads = |threads: Threads<'_>| threads.iter().map(|ops| ops.to_vec()).collect();
    ReleaseModel {
        managers: managers.to_vec(),
        leaders: Vec::new(),
        nodes: nodes.into_iter().map(threads).collect(),
        bug: None,
    }
}

#[track_caller]
fn sound(model: ReleaseModel, sights: &[ReleaseSight]) {
    let words = format!("{:?}", model.nodes);
    let found = model.explore();
    println!("{words}: {} states, {:?}", found.states, found.seen);
    if let Some((fault, way)) = found.fault {
        panic!("{words}: {fault:?}\n{way}");
    }
    for sight in sights {
        assert!(
            found.seen.contains(sight),
            "{words} does not show {sight:?}"
        );
    }
}

#[track_caller]
fn caught(bug: ReleaseBug, expected: &[ReleaseFault], model: ReleaseModel) {
    let bug = Some(bug);
    let found = ReleaseModel { bug, ..model }.explore();
    let fault = found.fault.map(|(fault, _)| fault);
    let is_expected = fault.is_some_and(|fault| expected.contains(&fault));
    assert!(is_expected, "{bug:?}: {fault:?}");
    println!("{bug:?} is caught within {} states", found.states);
}

/// Two nodes write a word each, and read the other's behind a barrier.
fn meet(managers: &[usize]) -> ReleaseModel {
    let one: Threads<'_> = &[&[Write(0, 0), Release(0), Acquire(1), Read(0, 1)]];
    let two: Threads<'_> = &[&[Write(0, 1), Release(1), Acquire(0), Read(0, 0)]];
    match managers {
        [0] => program(managers, [one, two]),
        _ => program(managers, [one, two, &[]]),
    }
}

/// A node that has a copy from before acquires what two others have written.
fn reader() -> ReleaseModel {
    let reads: Threads<'_> = &[&[Read(0, 2), Acquire(1), Read(0, 1)]];
    let one: Threads<'_> = &[&[Write(0, 1), Release(1)]];
    let two: Threads<'_> = &[&[Write(0, 0), Release(0)]];
    program(&[2], [reads, one, two])
}

/// Two threads of a node write and release, and another node reads both.
fn two_threads() -> ReleaseModel {
    let writes: Threads<'_> = &[&[Write(0, 0), Release(0)], &[Write(0, 1), Release(1)]];
    let reads: Threads<'_> = &[&[Read(0, 2), Acquire(1), Read(0, 1), Acquire(0), Read(0, 0)]];
    program(&[0], [reads, writes])
}

/// The same where two nodes write.
fn threads_meet() -> ReleaseModel {
    let writes: Threads<'_> = &[&[Write(0, 0), Release(0)], &[Write(0, 1), Release(1)]];
    let other: Threads<'_> = &[&[Write(0, 2), Release(2), Acquire(1), Read(0, 1)]];
    program(&[0], [other, writes])
}

#[test]
fn nodes_that_write_words_of_one_minipage_see_each_other_s_behind_a_barrier() {
    use ReleaseSight::{Diff, Dropped, EmptyDiff, Queued, TwoTwins};
    let all = [TwoTwins, Diff, Dropped, Queued];
    sound(meet(&[0]), &all);
    sound(meet(&[2]), &all);
    sound(reader(), &all);
    let nothing: Threads<'_> = &[&[Write(0, 0), Acquire(1), Read(0, 1), Release(0)]];
    let flushes: Threads<'_> = &[&[Write(0, 1), Release(1), Release(2)]];
    sound(program(&[0], [nothing, flushes]), &[]);
    let again: Threads<'_> = &[&[Write(0, 0), Release(0), Write(0, 0), Release(2)]];
    let other: Threads<'_> = &[&[Write(0, 1), Release(1), Write(0, 1), Release(3)]];
    sound(program(&[0], [again, other]), &[EmptyDiff]);
}

#[test]
fn two_nodes_write_words_of_two_minipages() {
    let one: Threads<'_> = &[&[Write(0, 0), Write(1, 0), Release(0), Acquire(1), Read(1, 1)]];
    let two: Threads<'_> = &[&[Write(1, 1), Release(1), Acquire(0), Read(0, 0)]];
    sound(program(&[0, 1], [one, two]), &[ReleaseSight::Diff]);
}

#[test]
fn three_nodes_write_words_of_one_minipage() {
    let one: Threads<'_> = &[&[Write(0, 0), Release(0)]];
    let two: Threads<'_> = &[&[Write(0, 1), Release(1), Acquire(0), Read(0, 0)]];
    let three: Threads<'_> = &[&[Write(0, 2), Release(2)]];
    let sights = [ReleaseSight::Diff, ReleaseSight::Dropped];
    sound(program(&[0], [one, two, three]), &sights);
}

#[test]
fn a_lock_hands_a_minipage_over() {
    let adds: Threads<'_> = &[&[Lock(0), Read(0, 0), Write(0, 0), Unlock(0)]];
    let beside: Threads<'_> = &[&[Write(0, 1), Lock(0), Write(0, 0), Unlock(0)]];
    sound(program(&[0], [adds, adds]), &[]);
    sound(program(&[0], [adds, beside]), &[ReleaseSight::Diff]);
    sound(program(&[0], [adds, adds, adds]), &[]);
    let both: Threads<'_> = &[
        &[Lock(0), Read(0, 0), Write(0, 0), Unlock(0)],
        &[Lock(0), Write(0, 0), Unlock(0)],
    ];
    sound(program(&[1], [both, adds]), &[]);
}

#[test]
fn a_thread_waits_for_what_others_of_its_node_flush() {
    let sights = [ReleaseSight::TwoRelease];
    sound(two_threads(), &sights);
    let sights = [
        ReleaseSight::TwoRelease,
        ReleaseSight::Diff,
        ReleaseSight::Dropped,
    ];
    sound(threads_meet(), &sights);
}

#[test]
fn what_is_held_is_flushed_later_and_what_is_pushed_is_as_before() {
    let holds: Threads<'_> = &[
        &[Hold(0), Write(0, 0), LetGo(0), Release(0)],
        &[Write(0, 1), Release(1)],
    ];
    let other: Threads<'_> = &[&[Write(0, 2), Release(2), Acquire(0), Read(0, 0)]];
    sound(program(&[0], [other, holds]), &[ReleaseSight::HeldBack]);
    let pushes: Threads<'_> = &[&[Write(0, 0), Push(0), Release(0)]];
    let reads: Threads<'_> = &[&[Read(0, 2), Acquire(0), Read(0, 0)]];
    let writes: Threads<'_> = &[&[Write(0, 1), Release(1)]];
    sound(program(&[1], [pushes, reads]), &[]);
    sound(program(&[0], [pushes, writes]), &[]);
    sound(program(&[2], [pushes, writes, reads]), &[]);
}

/// The same program where these are the leaders of the domains.
fn led_by(leaders: &[usize], model: ReleaseModel) -> ReleaseModel {
    ReleaseModel {
        leaders: leaders.to_vec(),
        ..model
    }
}

/// Node 2 writes a word, and the nodes of the other domain do this.
fn domain_meets(manager: usize, leader: Threads<'_>, member: Threads<'_>) -> ReleaseModel {
    let other: Threads<'_> = &[&[Write(0, 2), Release(2)]];
    led_by(&[0, 0, 2], program(&[manager], [leader, member, other]))
}

/// A node that another one leads writes a word, and another domain reads it.
fn member_writes() -> ReleaseModel {
    let writes: Threads<'_> = &[&[Write(0, 1), Release(1)]];
    let other: Threads<'_> = &[&[Write(0, 2), Release(2), Acquire(1), Read(0, 1)]];
    led_by(&[0, 0, 2], program(&[2], [&[], writes, other]))
}

/// Both nodes of a domain write a word, and read the other's behind a barrier.
fn both_write(manager: usize) -> ReleaseModel {
    let leader: Threads<'_> = &[&[Write(0, 0), Release(0), Acquire(1), Read(0, 1)]];
    let member: Threads<'_> = &[&[Write(0, 1), Release(1), Acquire(0), Read(0, 0)]];
    domain_meets(manager, leader, member)
}

/// Both nodes of a domain write, and one flushes while the other holds.
fn domain_holds() -> ReleaseModel {
    let flushes: Threads<'_> = &[&[Write(0, 0), Release(0)]];
    let holds: Threads<'_> = &[&[Hold(0), Write(0, 1), LetGo(0), Release(1)]];
    domain_meets(2, flushes, holds)
}

#[test]
fn nodes_of_one_domain_flush_what_they_wrote_beside_another_domain() {
    use ReleaseSight::{Diff, Dropped, Lends, Queued, TwoTwins, Withdraws};
    sound(member_writes(), &[TwoTwins, Diff, Dropped, Lends]);
    for manager in [0, 2] {
        let sights = [TwoTwins, Diff, Dropped, Lends, Withdraws, Queued];
        sound(both_write(manager), &sights);
    }
    for manager in 0..3 {
        let writes: Threads<'_> = &[&[Write(0, 1), Release(1)]];
        let reads: Threads<'_> = &[&[Read(0, 0), Acquire(2), Read(0, 2)]];
        let sights = [TwoTwins, Diff, Withdraws];
        sound(domain_meets(manager, writes, reads), &sights);
    }
}

#[test]
#[ignore = "too long for every change: other managers are tried above; cargo test -p conformance \
            --release --test models release -- --ignored"]
fn a_node_that_is_led_manages_what_its_domain_writes_beside_another() {
    sound(both_write(1), &[ReleaseSight::Withdraws]);
    let holds: Threads<'_> = &[&[Write(0, 0), Hold(0), LetGo(0), Release(0)]];
    let flushes: Threads<'_> = &[&[Write(0, 1), Release(1)]];
    sound(domain_meets(1, holds, flushes), &[]);
}

#[test]
fn a_node_of_a_domain_holds_what_another_one_flushes() {
    let sights = [ReleaseSight::Withdraws, ReleaseSight::Lends];
    sound(domain_holds(), &sights);
    let both: Threads<'_> = &[&[Write(0, 1), Release(1)], &[Hold(0), LetGo(0), Release(0)]];
    sound(domain_meets(2, &[], both), &[]);
}

#[test]
fn two_nodes_that_are_led_write_and_release() {
    let one: Threads<'_> = &[&[Write(0, 0), Release(0)]];
    let two: Threads<'_> = &[&[Write(0, 1), Release(1)]];
    let other: Threads<'_> = &[&[Write(0, 2), Acquire(0), Read(0, 0), Release(2)]];
    let all = program(&[3], [&[], one, two, other]);
    sound(led_by(&[0, 0, 0, 3], all), &[ReleaseSight::Lends]);
}

#[test]
fn a_lock_hands_a_minipage_over_between_domains_and_within_one() {
    let adds: Threads<'_> = &[&[Lock(0), Read(0, 0), Write(0, 0), Unlock(0)]];
    let beside: Threads<'_> = &[&[Write(0, 1), Lock(0), Write(0, 0), Unlock(0)]];
    for (manager, all) in [(0, [adds, adds, beside]), (2, [beside, adds, adds])] {
        sound(led_by(&[0, 0, 2], program(&[manager], all)), &[]);
    }
}

#[test]
fn each_bug_within_domains_is_caught() {
    use ReleaseBug::{AnswerEarly, ForgetMember, MemberAlone, MemberForgets};
    let stale = &[ReleaseFault::Stale];
    caught(MemberForgets, stale, member_writes());
    caught(AnswerEarly, stale, member_writes());
    caught(MemberAlone, stale, member_writes());
    let goes_on = &[ReleaseFault::NotAlone, ReleaseFault::Held];
    caught(ForgetMember, goes_on, domain_holds());
}

#[test]
fn each_bug_is_caught() {
    use ReleaseBug::{
        DiffEarly, ForgetOthers, ForgetTaken, GrantEarly, KeepCopy, NoDiff, TwinLate, WholeDiff,
        WriteAlone,
    };
    let stale = &[ReleaseFault::Stale];
    caught(NoDiff, stale, meet(&[0]));
    caught(WholeDiff, stale, meet(&[0]));
    caught(DiffEarly, stale, meet(&[0]));
    // The diff that comes late is nonsense, where no read comes before.
    let late = &[ReleaseFault::Refused, ReleaseFault::Stale];
    caught(GrantEarly, late, meet(&[2]));
    let without = &[ReleaseFault::NotAlone, ReleaseFault::Stale];
    caught(TwinLate, without, meet(&[0]));
    caught(KeepCopy, stale, reader());
    caught(WriteAlone, &[ReleaseFault::NotAlone], meet(&[0]));
    caught(ForgetOthers, stale, two_threads());
    caught(ForgetTaken, stale, reader());
}
