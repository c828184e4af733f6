//! Raw memory: every run of small programs over Millipage's machines.

use conformance::model::memory::MemoryOp::{
    self, Allocate, Fetch, Free, Hold, Lock, Prefetch, Push, Read, Release, Unlock, Write,
};
use conformance::model::memory::{MemoryBug, MemoryFault, MemoryModel, MemorySight};

/// A program of nodes, each of threads; the minipages have these managers.
fn program<const N: usize>(managers: &[usize], nodes: [&[&[MemoryOp]]; N]) -> MemoryModel {
    let threads = |threads: &[&[MemoryOp]]| threads.iter().map(|ops| ops.to_vec()).collect();
    MemoryModel {
        managers: managers.to_vec(),
        leaders: Vec::new(),
        nodes: nodes.into_iter().map(threads).collect(),
        chosen: Vec::new(),
        groups: false,
        bug: None,
    }
}

#[track_caller]
fn sound(model: MemoryModel, sights: &[MemorySight]) {
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
fn caught(bug: MemoryBug, expected: MemoryFault, model: MemoryModel) {
    let bug = Some(bug);
    let found = MemoryModel { bug, ..model }.explore();
    let fault = found.fault.map(|(fault, _)| fault);
    assert_eq!(fault, Some(expected), "{bug:?}");
    println!("{bug:?} is caught within {} states", found.states);
}

#[test]
fn two_nodes_of_two_threads_share_two_minipages() {
    let reads: &[MemoryOp] = &[Read(0)];
    let crosses: [&[&[MemoryOp]]; 2] = [&[&[Write(0), Read(1)], reads], &[&[Write(1), Read(0)]]];
    sound(program(&[0, 1], crosses), &[]);
    let other: &[&[MemoryOp]] = &[&[Write(1)], &[Read(0)]];
    sound(
        program(&[0, 1], [&[&[Write(0), Read(1)], &[Read(0)]], other]),
        &[],
    );
    let joins: &[&[MemoryOp]] = &[&[Read(0), Write(0)], &[Write(0)]];
    sound(
        program(&[0], [&[&[Write(0)]], joins]),
        &[MemorySight::ReadJoinedByWrite],
    );
}

#[test]
#[ignore = "too long for every change: the programs above are parts of these; cargo test -p \
            conformance --release --test models memory -- --ignored"]
fn two_nodes_of_two_threads_write_and_read_two_minipages() {
    let both: &[&[MemoryOp]] = &[&[Write(0), Read(1)], &[Write(1)]];
    let other: &[&[MemoryOp]] = &[&[Write(1)], &[Write(0)]];
    sound(program(&[0, 1], [both, other]), &[]);
}

#[test]
fn three_nodes_share_one_minipage() {
    let reads: &[&[MemoryOp]] = &[&[Read(0)]];
    let writes: &[&[MemoryOp]] = &[&[Write(0)]];
    let upgrades: &[&[MemoryOp]] = &[&[Read(0), Write(0)]];
    let lost = [MemorySight::UpgradeLostCopy];
    sound(program(&[0], [upgrades, upgrades, upgrades]), &lost);
    let pushes: &[&[MemoryOp]] = &[&[Write(0), Push(0)]];
    sound(
        program(&[0], [reads, pushes, upgrades]),
        &[MemorySight::PushOntoRequest],
    );
    let ahead: &[&[MemoryOp]] = &[&[Prefetch(0), Read(0)]];
    sound(
        program(&[0], [writes, ahead, upgrades]),
        &[MemorySight::PrefetchJoined],
    );
    let frees: &[&[MemoryOp]] = &[&[Write(0), Free(0)]];
    sound(
        program(&[0], [reads, frees, upgrades]),
        &[MemorySight::FreeAgainstRequest],
    );
}

#[test]
fn a_round_is_opened_when_it_has_come() {
    let fetches: &[MemoryOp] = &[Fetch(0), Read(0)];
    let writes: &[&[MemoryOp]] = &[&[Write(0)]];
    let lost = [MemorySight::FetchLost];
    sound(program(&[0], [writes, &[fetches], writes]), &lost);
    sound(program(&[0], [writes, &[fetches, &[Read(0)]]]), &lost);
    sound(program(&[0], [writes, &[fetches, &[Write(0)]]]), &lost);
    sound(program(&[0], [&[], &[fetches, fetches], writes]), &lost);
    let ahead: &[MemoryOp] = &[Prefetch(0), Fetch(0)];
    sound(program(&[0], [writes, &[ahead], writes]), &lost);
    let pushes: &[&[MemoryOp]] = &[&[Write(0), Push(0)]];
    sound(program(&[0], [&[&[Read(0)]], &[fetches], pushes]), &[]);
    let frees: &[&[MemoryOp]] = &[&[Free(0)]];
    sound(program(&[0], [frees, &[&[Fetch(0)]], writes]), &lost);
    let both: &[MemoryOp] = &[Fetch(0), Fetch(1), Read(1)];
    let writes_both: &[MemoryOp] = &[Write(1), Write(0)];
    sound(program(&[0, 1], [&[both], &[writes_both]]), &lost);
}

#[test]
fn what_is_allocated_again_is_zero_and_one_node_s_at_a_time() {
    let again: &[MemoryOp] = &[Write(0), Free(0), Allocate(0), Read(0), Write(0)];
    let reads: &[MemoryOp] = &[Read(0), Read(0)];
    let writes: &[MemoryOp] = &[Write(0)];
    sound(program(&[0], [&[again], &[reads], &[writes]]), &[]);
    let ahead: &[MemoryOp] = &[Prefetch(0), Read(0)];
    sound(program(&[0], [&[again], &[ahead, writes]]), &[]);
    let pushes: &[MemoryOp] = &[Write(0), Push(0), Read(0)];
    sound(program(&[0], [&[again], &[pushes], &[&[Fetch(0)]]]), &[]);
}

/// As [`program`], of one minipage in a run whose node 0 manages all.
fn one<const N: usize>(nodes: [&[&[MemoryOp]]; N]) -> MemoryModel {
    MemoryModel {
        chosen: vec![0],
        ..program(&[0], nodes)
    }
}

/// A minipage of each of two nodes that manage all.
#[test]
fn chosen_managers_allocate_for_the_others_and_for_themselves() {
    let again: &[MemoryOp] = &[Write(1), Free(1), Allocate(1), Write(1)];
    let reads: &[MemoryOp] = &[Read(1), Read(0)];
    let chosen = |chosen: &[usize], managers: &[usize], nodes: [&[&[MemoryOp]]; 3]| MemoryModel {
        chosen: chosen.to_vec(),
        ..program(managers, nodes)
    };
    // Node 1 asks node 2, and node 2 allocates itself.
    sound(chosen(&[0, 2], &[0, 2], [&[reads], &[again], &[]]), &[]);
    sound(chosen(&[0, 2], &[0, 2], [&[reads], &[], &[again]]), &[]);
    sound(
        chosen(&[2, 1], &[2, 1], [&[&[Write(0)]], &[reads], &[&[Write(1)]]]),
        &[],
    );
    let alone = [&[] as &[&[MemoryOp]], &[again], &[]];
    let lost = chosen(&[0, 2], &[0, 2], alone);
    caught(MemoryBug::LoseAllocation, MemoryFault::Stuck, lost);
}

#[test]
fn the_manager_of_all_minipages_allocates_for_the_others() {
    let again: &[MemoryOp] = &[Write(0), Free(0), Allocate(0), Read(0), Write(0)];
    let reads: &[MemoryOp] = &[Read(0), Read(0)];
    sound(one([&[reads], &[again], &[&[Write(0)]]]), &[]);
    sound(one([&[&[Prefetch(0), Read(0)]], &[again, reads]]), &[]);
    let frees: &[MemoryOp] = &[Free(0), Allocate(0), Write(0), Push(0)];
    sound(one([&[], &[frees], &[reads]]), &[]);
    caught(
        MemoryBug::LoseAllocation,
        MemoryFault::Stuck,
        one([&[], &[again]]),
    );
    let dirty = one([&[reads], &[&[Write(0), Free(0), Allocate(0), Read(0)]]]);
    caught(MemoryBug::ReuseDirty, MemoryFault::Stale, dirty);
}

/// As [`program`], of minipages that come in groups.
fn grouped<const N: usize>(managers: &[usize], nodes: [&[&[MemoryOp]]; N]) -> MemoryModel {
    MemoryModel {
        groups: true,
        ..program(managers, nodes)
    }
}

#[test]
fn neighbours_are_brought_by_operations_of_their_own() {
    let reads: &[MemoryOp] = &[Read(0), Read(1)];
    let writes: &[MemoryOp] = &[Write(1), Write(0)];
    sound(grouped(&[0, 0], [&[], &[reads], &[writes]]), &[]);
    sound(grouped(&[0, 0], [&[writes], &[reads, &[Write(1)]]]), &[]);
    let pushes: &[MemoryOp] = &[Write(1), Push(1)];
    sound(grouped(&[0, 0], [&[], &[&[Read(0)]], &[pushes]]), &[]);
    let frees: &[MemoryOp] = &[Free(1), Allocate(1), Read(1)];
    sound(grouped(&[0, 0], [&[frees], &[&[Read(0)]]]), &[]);
    let holds: &[MemoryOp] = &[Hold(1, true), Release(1, true)];
    let fetches: &[MemoryOp] = &[Fetch(0), Fetch(1), Read(1)];
    sound(grouped(&[0, 0], [&[holds], &[fetches]]), &[]);
    sound(grouped(&[0, 0], [&[&[Read(0)]], &[holds]]), &[]);
}

#[test]
fn what_a_thread_holds_stays() {
    let writes: &[MemoryOp] = &[Hold(0, true), Release(0, true)];
    let reads: &[MemoryOp] = &[Hold(0, false), Release(0, false)];
    let held = [MemorySight::HeldBack];
    sound(program(&[0], [&[writes], &[reads], &[reads]]), &held);
    sound(program(&[0], [&[writes], &[writes], &[&[Read(0)]]]), &held);
    sound(program(&[0], [&[reads, reads], &[writes]]), &held);
    // Several are held in the order of their addresses, whatever order that is.
    let two: &[MemoryOp] = &[
        Hold(0, true),
        Hold(1, true),
        Release(1, true),
        Release(0, true),
    ];
    let both: &[MemoryOp] = &[
        Hold(0, false),
        Hold(1, true),
        Release(0, false),
        Release(1, true),
    ];
    sound(program(&[0, 1], [&[two], &[both]]), &held);
    sound(program(&[1, 0], [&[two], &[both]]), &held);
    let others: &[MemoryOp] = &[Push(0)];
    sound(program(&[0], [&[writes, others], &[reads]]), &held);
    sound(program(&[0], [&[&[Free(0)]], &[writes]]), &held);
}

/// The same program where nodes 0 and 1 are a domain, and nodes 2 and 3.
fn in_domains(model: MemoryModel) -> MemoryModel {
    let leaders = [0, 0, 2, 2];
    let leaders = leaders[..model.nodes.len()].to_vec();
    MemoryModel { leaders, ..model }
}

#[test]
fn nodes_of_two_domains_share_a_minipage_that_any_of_them_manages() {
    let reads: &[&[MemoryOp]] = &[&[Read(0)]];
    let writes: &[&[MemoryOp]] = &[&[Write(0)]];
    let both: &[&[MemoryOp]] = &[&[Read(0), Write(0)]];
    let none: &[&[MemoryOp]] = &[];
    for manager in 0..4 {
        let four = program(&[manager], [writes, reads, none, both]);
        sound(in_domains(four), &[]);
        let members = program(&[manager], [none, both, none, both]);
        sound(in_domains(members), &[MemorySight::HeldBack]);
        let leader = program(&[manager], [none, writes, both, reads]);
        sound(in_domains(leader), &[]);
    }
}

#[test]
fn nodes_of_domains_push_prefetch_free_and_hold() {
    let none: &[&[MemoryOp]] = &[];
    let reads: &[&[MemoryOp]] = &[&[Read(0)]];
    let pushes: &[&[MemoryOp]] = &[&[Write(0), Push(0)]];
    let ahead: &[&[MemoryOp]] = &[&[Prefetch(0), Write(0)]];
    let frees: &[&[MemoryOp]] = &[&[Write(0), Free(0)]];
    let holds: &[&[MemoryOp]] = &[&[Hold(0, true), Release(0, true)]];
    for manager in [0, 1] {
        for nodes in [
            [none, pushes, none, reads],
            [reads, ahead, none, pushes],
            [none, frees, none, reads],
            [reads, holds, none, ahead],
        ] {
            sound(in_domains(program(&[manager], nodes)), &[]);
        }
    }
    // Three nodes, of which the last is a domain by itself.
    let three = program(&[1], [pushes, none, frees]);
    sound(in_domains(three), &[]);
    let held = program(&[1], [none, holds, holds]);
    sound(in_domains(held), &[MemorySight::HeldBack]);
}

#[test]
fn neighbours_are_brought_to_a_leader_and_withdrawn_where_they_are_lent() {
    let none: &[&[MemoryOp]] = &[];
    let second: &[&[MemoryOp]] = &[&[Read(1)]];
    let held = [MemorySight::HeldBack];
    for manager in [0, 1] {
        let brings = |nodes: [&[&[MemoryOp]]; 3]| in_domains(grouped(&[manager; 2], nodes));
        sound(brings([none, second, &[&[Write(0)]]]), &held);
        sound(brings([none, &[&[Write(1)]], &[&[Read(0)]]]), &held);
        sound(brings([&[&[Write(0)]], second, &[&[Write(1)]]]), &held);
    }
    let brought = grouped(&[2, 2], [none, &[&[Read(0), Write(1)]], second]);
    sound(in_domains(brought), &[]);
    let both: &[&[MemoryOp]] = &[&[Read(0)], &[Read(1)]];
    let four = grouped(&[0, 0], [none, &[&[Write(1)]], none, both]);
    sound(in_domains(four), &held);
}

/// A thread of a domain takes the locks of all minipages that it is to hold, and then holds them.
fn holds_in_a_domain(of: &[(usize, bool)]) -> Vec<MemoryOp> {
    let locks = of.iter().map(|(of, writes)| Lock(*of, *writes));
    let holds = of.iter().map(|(of, writes)| Hold(*of, *writes));
    let releases = of.iter().rev().map(|(of, writes)| Release(*of, *writes));
    let unlocks = of.iter().rev().map(|(of, _)| Unlock(*of));
    locks.chain(holds).chain(releases).chain(unlocks).collect()
}

/// As [`in_domains`], of minipages in groups: three nodes that hold some of them one after the
/// other.
fn hold_in_domains(manager: usize, nodes: [&[&[(usize, bool)]]; 3]) -> MemoryModel {
    let threads = nodes.map(|holds| {
        let ops = holds.iter().flat_map(|of| holds_in_a_domain(of));
        ops.collect::<Vec<_>>()
    });
    let [one, two, three] = &threads;
    in_domains(grouped(
        &[manager; 2],
        [&[&one[..]], &[&two[..]], &[&three[..]]],
    ))
}

#[test]
fn nodes_of_a_domain_hold_what_is_brought_meanwhile() {
    let (first, second): (&[_], &[_]) = (&[(0, true)], &[(1, true)]);
    let (reads, reads_second): (&[_], &[_]) = (&[(0, false)], &[(1, false)]);
    let (both, mixed): (&[_], &[_]) = (&[(0, true), (1, true)], &[(0, false), (1, true)]);
    for manager in [0, 1, 2] {
        let runs: [[&[&[_]]; 3]; 6] = [
            [&[first, second], &[second], &[second]],
            [&[reads, reads_second], &[reads_second], &[second]],
            [&[reads_second], &[reads], &[second]],
            [&[second], &[first], &[reads_second]],
            [&[both], &[second], &[first]],
            [&[mixed], &[both], &[mixed]],
        ];
        for nodes in runs {
            sound(hold_in_domains(manager, nodes), &[]);
        }
    }
    let leaves = hold_in_domains(1, [&[first, second], &[second], &[second]]);
    caught(MemoryBug::LeaveRequest, MemoryFault::WrongCopies, leaves);
}

#[test]
fn planted_bugs_within_domains_are_caught() {
    let none: &[&[MemoryOp]] = &[];
    let reads: &[&[MemoryOp]] = &[&[Read(0)]];
    let both: &[&[MemoryOp]] = &[&[Read(0), Write(0)]];
    let four = || in_domains(program(&[0], [none, both, none, both]));
    for (bug, fault) in [
        (MemoryBug::MemberKeeps, MemoryFault::NotAlone),
        (MemoryBug::MemberAnswersEarly, MemoryFault::NotAlone),
        (MemoryBug::ForgetMember, MemoryFault::NotAlone),
        (MemoryBug::WithdrawEarly, MemoryFault::Refused),
    ] {
        caught(bug, fault, four());
    }
    let three = in_domains(program(&[1], [reads, both, both]));
    caught(MemoryBug::ForgetMember, MemoryFault::NotAlone, three);
}

#[test]
fn two_requests_wait_for_one_minipage() {
    let writes: &[&[MemoryOp]] = &[&[Write(0)]];
    sound(
        program(&[0], [writes, writes, writes, writes]),
        &[MemorySight::QueueOfTwo],
    );
}

#[test]
fn planted_bugs_are_caught() {
    let reads: &[&[MemoryOp]] = &[&[Read(0)]];
    let both: &[&[MemoryOp]] = &[&[Read(0), Write(0)]];
    let three = || program(&[0], [reads, both, both]);
    for (bug, fault) in [
        (MemoryBug::SkipInvalidation, MemoryFault::NotAlone),
        (MemoryBug::AnswerBeforeRevoking, MemoryFault::NotAlone),
        (MemoryBug::ForgetReader, MemoryFault::NotAlone),
        (MemoryBug::StayWritable, MemoryFault::NotAlone),
        (MemoryBug::ServeTwo, MemoryFault::Refused),
        (MemoryBug::SkipAck, MemoryFault::Refused),
        (MemoryBug::GrantWithoutCopy, MemoryFault::Refused),
        (MemoryBug::InstallWritable, MemoryFault::NotAlone),
    ] {
        caught(bug, fault, three());
    }
    // A write between the two is lost. Where bytes go on before the permission is gone, two nodes
    // may have it as well: whichever shows first.
    let writer: &[&[MemoryOp]] = &[&[Write(0), Write(0)]];
    let reread = || program(&[0], [writer, &[&[Read(0), Read(0)]]]);
    caught(
        MemoryBug::ReadBeforeRevoking,
        MemoryFault::NotAlone,
        reread(),
    );
    caught(MemoryBug::LateData, MemoryFault::NotAlone, reread());
    let pushes: &[&[MemoryOp]] = &[&[Write(0), Push(0), Write(0)]];
    let late = program(&[0], [reads, pushes, reads]);
    caught(MemoryBug::ForgetPushed, MemoryFault::Refused, late);
    let ahead = program(&[0], [both, &[&[Prefetch(0), Read(0)]]]);
    caught(MemoryBug::ForgetPrefetch, MemoryFault::Refused, ahead);
    let together = program(&[0], [&[&[Write(0)]], &[&[Read(0)], &[Read(0)]]]);
    caught(MemoryBug::WakeOne, MemoryFault::Stuck, together);
    let holds = program(&[0], [&[&[Hold(0, false), Release(0, false)]], both]);
    caught(MemoryBug::ReleaseEarly, MemoryFault::NotAlone, holds);
    let fetches = program(&[0], [&[&[Write(0)]], &[&[Fetch(0), Read(0)]]]);
    caught(MemoryBug::OpenLost, MemoryFault::NotAlone, fetches);
    let brings = grouped(&[0, 0], [&[&[Write(1)]], &[&[Read(0)]]]);
    caught(MemoryBug::ForgetBrought, MemoryFault::Refused, brings);
    let again: &[MemoryOp] = &[Write(0), Free(0), Allocate(0), Read(0)];
    let dirty = program(&[0], [&[again], reads]);
    caught(MemoryBug::ReuseDirty, MemoryFault::Stale, dirty);
    let frees = program(&[0], [reads, &[&[Write(0), Free(0)]]]);
    caught(MemoryBug::FreeWithCopy, MemoryFault::WrongFree, frees);
}
