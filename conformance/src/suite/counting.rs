//! Exact message counts, the same on every machine.

use dhole::Coherence::Lazy;
use dhole::{Barriers, Counters, Lock, MessageKind, Own, Ref, Result, Share, Worker};

use dhole_node::Outcome;

use super::{has_member, keeps_pages};
use crate::{ByMessage, Platform};

/// What is counted are messages, so nothing is read in the memory of others.
fn succeed<R: Send>(
    on: &dyn Platform,
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Outcome<R> {
    super::succeed(&ByMessage(on), nodes, program)
}

/// The messages of all nodes.
fn total(counters: &[Counters]) -> Counters {
    let mut total = Counters::default();
    counters.iter().for_each(|node| total.add(node));
    total
}

/// Messages that a node sends in `f`.
fn messages(w: &mut Worker<'_>, f: impl FnOnce(&mut Worker<'_>) -> Result<()>) -> Result<u64> {
    let before = w.counters().messages;
    f(w)?;
    Ok(w.counters().messages - before)
}

/// A central barrier takes a message of each other node and one to it, and the end of the run is
/// one too. After the first barrier none of the others is expected to have news, nor has any.
pub fn a_barrier_takes_two_messages_for_each_other_node_or_one_a_round(on: &dyn Platform) {
    for (nodes, rounds) in [(1, 0), (2, 1), (3, 2), (8, 3)] {
        let outcome = succeed(on, nodes, |w| (0..10).try_for_each(|_| Ok(w.barrier()?)));
        let (all, others) = (total(&outcome.counters), nodes as u64 - 1);
        let central = match on.settings(nodes).barriers {
            Barriers::Central => 11,
            Barriers::Dissemination => 2,
        };
        assert_eq!(all.sent(MessageKind::BarrierArrive), central * others);
        assert_eq!(all.sent(MessageKind::BarrierDepart), central * others);
        let in_rounds = (11 - central) * rounds * nodes as u64;
        assert_eq!(all.sent(MessageKind::BarrierRound), in_rounds);
        assert_eq!(all.messages, 2 * central * others + in_rounds);
        assert_eq!(all.barriers, 10 * nodes as u64);
    }
}

/// Acquires and releases, again and again, while no other node wants the lock.
pub fn a_lock_held_last_here_is_free_of_messages(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        if w.node().index() == 2 {
            let lock = Lock::numbered(0);
            lock.with(w, |_| Ok(()))?;
            let again = messages(w, |w| (0..10).try_for_each(|_| lock.with(w, |_| Ok(()))))?;
            assert_eq!(again, 0);
        }
        Ok(())
    });
    let all = total(&outcome.counters);
    assert_eq!((all.lock_acquires_remote, all.lock_acquires_local), (1, 10));
}

/// A lock goes from its manager to node 1, from there to node 2, and back to its manager.
pub fn a_lock_costs_two_messages_at_its_manager_and_three_elsewhere(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        for holder in [1, 2, 0] {
            if w.node().index() == holder {
                Lock::numbered(0).with(w, |_| Ok(()))?;
            }
            w.barrier()?;
        }
        Ok(())
    });
    let all = total(&outcome.counters);
    let of_locks = |kind| all.sent(kind);
    assert_eq!(
        of_locks(MessageKind::LockRequest),
        2,
        "the manager asks itself without one"
    );
    assert_eq!(
        of_locks(MessageKind::LockForward),
        2,
        "to node 1, and by the manager to node 2"
    );
    assert_eq!(of_locks(MessageKind::LockGrant), 3);
}

/// A miss asks one node, which answers.
pub fn a_miss_costs_two_messages(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    /// So large that no other comes ahead of a miss.
    const LARGE: [u64; 600] = [0; 600];
    let outcome = succeed(on, 3, |w| {
        let numbers = w.once(|w| Ok(w.under(Lazy).alloc_range(20, |_| LARGE)))?;
        if w.node().index() == 1 {
            numbers.iter().for_each(|number| number.get_mut(w)[0] = 1);
        }
        w.barrier()?;
        if w.node().index() == 2 {
            numbers
                .iter()
                .for_each(|number| assert_eq!(number.get(w)[0], 1));
            numbers
                .iter()
                .for_each(|number| assert_eq!(number.get(w)[0], 1));
        }
        Ok(())
    });
    let all = total(&outcome.counters);
    assert_eq!(
        all.sent(MessageKind::Fetch),
        40,
        "20 by the writer and 20 by the reader"
    );
    assert_eq!(all.sent(MessageKind::FetchReply), 40);
    assert_eq!((all.misses, all.fetch_rounds), (40, 40));
    assert_eq!(outcome.counters[2].misses, 20);
}

/// Objects of some nodes, fetched together, cost two messages for each of these nodes.
pub fn objects_fetched_together_cost_two_messages_an_owner(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 4, |w| {
        let numbers = w.once(|w| Ok(w.under(Lazy).alloc_range(90, |_| 0_u64)))?;
        let rows = w.once(|w| Ok(w.under(Lazy).alloc_rows::<u64>(2, 30)))?;
        let me = w.node().index();
        if me < 3 {
            let mine = numbers.slice(30 * me..30 * (me + 1));
            mine.iter().for_each(|number| *number.get_mut(w) = 1);
        }
        if me == 1 {
            rows.row(0).get_mut(w)[7] = 1;
        }
        w.barrier()?;
        if me == 3 {
            let fetch = |w: &mut Worker<'_>| Ok(w.prefetch((numbers, rows, &[numbers.at(0)]))?);
            assert_eq!(messages(w, fetch)?, 3, "one to each owner");
            let read = |w: &mut Worker<'_>| {
                assert!(numbers.iter().all(|number| number.read(w) == 1));
                assert_eq!((rows.row(0).get(w)[7], rows.row(1).get(w)[7]), (1, 0));
                Ok(())
            };
            assert_eq!(messages(w, read)?, 0);
            assert_eq!(messages(w, fetch)?, 0, "all is here");
        }
        Ok(())
    });
    let reader = &outcome.counters[3];
    assert_eq!(
        (reader.misses, reader.fetch_rounds, reader.zero_fills),
        (91, 1, 1)
    );
    let replies = |node: usize| outcome.counters[node].sent(MessageKind::FetchReply);
    assert_eq!((replies(1), replies(2)), (1, 1));
}

/// More objects than one message may ask for take one question after the other.
pub fn many_objects_are_fetched_by_several_messages(on: &dyn Platform) {
    if keeps_pages(on) || has_member(on) {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(600, |i| i)))?;
        if w.node().index() == 1 {
            let fetch = |w: &mut Worker<'_>| Ok(w.prefetch(numbers)?);
            assert_eq!(messages(w, fetch)?, 3);
            assert!((0..600).all(|i| numbers.at(i).read(w) == i));
        }
        Ok(())
    });
    let reader = &outcome.counters[1];
    assert_eq!((reader.misses, reader.fetch_rounds), (600, 1));
}

/// A node of a tree.
#[derive(Share, Clone, Copy)]
struct Branch {
    value: u64,
    below: [Option<Ref<Branch>>; 2],
}

/// What a root refers to, directly and through others, takes a round a level; some of it lies on
/// another node, and the whole is walked without a message then.
pub fn a_tree_is_fetched_in_as_many_rounds_as_it_has_levels(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    fn tree(w: &mut Worker<'_>, levels: u32) -> Option<Ref<Branch>> {
        let levels = levels.checked_sub(1)?;
        let below = [tree(w, levels), tree(w, levels)];
        Some(w.under(Lazy).alloc(Branch { value: 1, below }))
    }
    fn sum(w: &Worker<'_>, branch: Ref<Branch>) -> u64 {
        let Branch { value, below } = *branch.get(w);
        value + below.iter().flatten().map(|it| sum(w, *it)).sum::<u64>()
    }
    let outcome = succeed(on, 3, |w| {
        let shown = w.once(|w| Ok(w.under(Lazy).alloc_range(2, |_| None::<Ref<Branch>>)))?;
        let me = w.node().index();
        if me < 2 {
            *shown.at(me).get_mut(w) = tree(w, 6);
        }
        w.barrier()?;
        if me == 2 {
            let mut reached = 0;
            let counted = messages(w, |w| {
                reached = w.prefetch_reachable(shown, 1_000)?;
                Ok(())
            })?;
            // Six levels and what shows them, of two nodes.
            assert_eq!((reached, counted), (2 + 2 * 63, 2 * 7));
            let read = |w: &mut Worker<'_>| {
                let roots = shown.iter().filter_map(|root| *root.get(w));
                assert_eq!(roots.map(|root| sum(w, root)).sum::<u64>(), 2 * 63);
                Ok(())
            };
            assert_eq!(messages(w, read)?, 0);
        }
        Ok(())
    });
    let reader = &outcome.counters[2];
    assert_eq!((reader.misses, reader.fetch_rounds), (2 + 2 * 63, 7));
}

/// A part that `Owner` owns, and that owns a part itself.
#[derive(Share)]
struct Part {
    value: u64,
    inner: Option<Own<Part>>,
}

/// An owner of one object directly, of another through it, and of one more.
#[derive(Share)]
struct Owner {
    parts: [Option<Own<Part>>; 2],
}

/// The same, which owns nothing.
#[derive(Share)]
struct Holder {
    parts: [Option<Ref<u64>>; 3],
}

/// An owner and the three objects that it owns come with one reply; as mere references they
/// take one each.
pub fn what_an_object_owns_comes_with_it(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let owner = w.once(|w| {
            let innermost = w.under(Lazy).alloc_own(Part {
                value: 3,
                inner: None,
            });
            let inner = Some(innermost);
            let first = w.under(Lazy).alloc_own(Part { value: 1, inner });
            let second = w.under(Lazy).alloc_own(Part {
                value: 2,
                inner: None,
            });
            let parts = [Some(first), Some(second)];
            Ok(w.under(Lazy).alloc(Owner { parts }))
        })?;
        let holder = w.once(|w| {
            let parts = [1, 2, 3].map(|value| Some(w.under(Lazy).alloc(value)));
            Ok(w.under(Lazy).alloc(Holder { parts }))
        })?;
        if w.node().index() == 1 {
            assert_eq!(questions(w, |w| owned_sum(owner, w))?, (6, 1));
            let referred = |w: &Worker<'_>| {
                let parts = holder.get(w).parts.iter().flatten();
                parts.map(|part| part.read(w)).sum()
            };
            assert_eq!(questions(w, referred)?, (6, 4));
        }
        w.barrier()?;
        if w.node().index() == 0 {
            let second = *owner.get(w).parts[1].as_deref().expect("it is there");
            second.get_mut(w).value = 20;
        }
        w.barrier()?;
        if w.node().index() == 1 {
            assert_eq!(
                questions(w, |w| owned_sum(owner, w))?,
                (24, 1),
                "the part alone"
            );
        }
        Ok(())
    });
    let reader = &outcome.counters[1];
    assert_eq!((reader.misses, reader.came_along), (6, 3));
    assert_eq!(outcome.counters[0].sent(MessageKind::FetchReply), 6);
}

/// The result of `f`, and its number of requests, each with a reply.
fn questions(w: &mut Worker<'_>, f: impl Fn(&Worker<'_>) -> u64) -> Result<(u64, u64)> {
    let mut read = 0;
    let asked = messages(w, |w| {
        read = f(w);
        Ok(())
    })?;
    Ok((read, asked))
}

fn owned_sum(owner: Ref<Owner>, w: &Worker<'_>) -> u64 {
    let at = owner.at(w);
    let firsts = (0..2).filter_map(|i| at.follow(|owner| owner.parts[i].as_ref()));
    let all = firsts.flat_map(|part| [Some(part), part.follow(|part| part.inner.as_ref())]);
    all.flatten().map(|part| part.value).sum()
}

/// A long list is fetched in few rounds, though no reply takes all of it along.
pub fn no_more_comes_along_than_the_limit(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let first = w.once(|w| {
            let list = (0..650).fold(None, |inner, value| {
                Some(w.under(Lazy).alloc_own(Part { value, inner }))
            });
            Ok(list.as_deref().copied())
        })?;
        if w.node().index() == 1 {
            let first = first.map(|first| first.at(w));
            let parts =
                std::iter::successors(first, |part| part.follow(|part| part.inner.as_ref()));
            assert_eq!(parts.map(|part| part.value).sum::<u64>(), 649 * 650 / 2);
        }
        Ok(())
    });
    let reader = &outcome.counters[1];
    let came = reader.came_along + reader.came_ahead;
    assert_eq!((reader.misses, came), (3, 647));
}

/// Barriers do not invalidate objects that no node wrote.
pub fn a_copy_that_nobody_overwrites_stays(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 3, |w| {
        let number = w.once(|w| Ok(w.under(Lazy).alloc(4_u64)))?;
        for _ in 0..10 {
            assert_eq!(number.read(w), 4);
            w.barrier()?;
        }
        Ok(())
    });
    let all = total(&outcome.counters);
    assert_eq!(
        (all.misses, all.invalidations, all.write_notice_bytes),
        (2, 0, 0)
    );
}

/// A notice names objects and not pages: the neighbours of a written object stay valid.
pub fn only_what_was_written_becomes_invalid(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let numbers = w.once(|w| Ok(w.under(Lazy).alloc_range(100, |_| 0_u64)))?;
        let read_all = |w: &mut Worker<'_>| numbers.iter().map(|n| n.read(w)).sum::<u64>();
        if w.node().index() == 1 {
            w.prefetch(numbers)?;
        }
        w.barrier()?;
        if w.node().index() == 0 {
            [3, 50, 51]
                .iter()
                .for_each(|i| *numbers.at(*i).get_mut(w) = 1);
        }
        w.barrier()?;
        assert_eq!(read_all(w), 3);
        Ok(())
    });
    let reader = &outcome.counters[1];
    // Each is missed once and has its place on the one page. The first of the three that became
    // invalid is missed again, and brings the other two of that page.
    assert_eq!((reader.invalidations, reader.misses), (3, 100 + 1));
    assert_eq!(reader.asked_beside, 2);
}

/// An object that only one node writes needs no messages between the barriers, and no notices after
/// the second.
pub fn an_object_that_one_node_alone_writes_costs_nothing(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let nodes = w.nodes();
        let rows = w.once(|w| Ok(w.under(Lazy).alloc_rows::<u64>(nodes, 50)))?;
        let mine = rows.row(w.node().index());
        for round in 0..10 {
            mine.get_mut(w)[round] = 1;
            w.barrier()?;
        }
        Ok(())
    });
    let all = total(&outcome.counters);
    assert_eq!((all.misses, all.invalidations), (0, 0));
    assert!(
        all.intervals <= 4,
        "{} intervals: two each are enough",
        all.intervals
    );
}
