//! Objects that a worker allocates by itself, and writes before its interval ends.

use dhole::{Config, Lock, Ref, Result, Share, Worker, sim};

/// Runs on threads and in a simulation.
fn on_both(nodes: usize, program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync) {
    Config::nodes(nodes).run(&program).unwrap();
    let simulated = sim::Settings::fixed_cost(nodes);
    Config::nodes(nodes).simulate(simulated, &program).unwrap();
}

#[derive(Share, Clone, Copy)]
struct Link {
    number: u64,
    next: Option<Ref<Link>>,
}

/// A list of so many links, each of which is written after the one behind it was made.
fn list(w: &mut Worker<'_>, from: u64, count: u64) -> Ref<Link> {
    let new = |number| Link { number, next: None };
    let first = w.alloc(new(from));
    let mut last = first;
    for number in from + 1..from + count {
        let next = w.alloc(new(number));
        last.get_mut(w).next = Some(next);
        last = next;
    }
    first
}

fn sum(w: &Worker<'_>, first: Ref<Link>) -> u64 {
    let (mut sum, mut next) = (0, Some(first));
    while let Some(link) = next {
        let link = link.get(w);
        sum += link.number;
        next = link.next;
    }
    sum
}

#[test]
fn what_was_written_before_the_interval_ended_is_what_others_read() {
    on_both(3, |w| {
        for round in 0..4 {
            let mine = list(w, 1000 * round, 200);
            let all = w.all_gather(mine)?;
            let sums = all.iter().map(|first| sum(w, *first));
            let expected: u64 = (0..200).map(|number| 1000 * round + number).sum();
            assert!(sums.into_iter().all(|sum| sum == expected));
            w.barrier()?;
            // Written again, by its node and then by another one.
            mine.get_mut(w).number += 1;
            w.barrier()?;
            let other = all[(w.node().index() + 1) % w.nodes()];
            assert_eq!(other.get(w).number, 1000 * round + 1);
            other.get_mut(w).number += 1;
            w.barrier()?;
            assert_eq!(mine.get(w).number, 1000 * round + 2);
        }
        Ok(())
    });
}

#[test]
fn young_objects_are_handed_on_under_a_lock() {
    on_both(3, |w| {
        let head = w.once(|w| {
            Ok(w.alloc(Link {
                number: 0,
                next: None,
            }))
        })?;
        let lock = Lock::numbered(3);
        for number in 0..50 {
            let held = lock.acquire(w)?;
            let next = head.get(w).next;
            let link = w.alloc(Link { number: 0, next });
            link.get_mut(w).number = number;
            head.get_mut(w).next = Some(link);
            held.release(w)?;
        }
        w.barrier()?;
        let all = sum(w, head);
        assert_eq!(all, 3 * (0..50).sum::<u64>());
        Ok(())
    });
}

#[test]
fn a_young_object_is_freed_by_its_node_or_by_another_one() {
    on_both(2, |w| {
        for _ in 0..3 {
            let [mine, others]: [Ref<Link>; 2] = [list(w, 0, 100), list(w, 0, 100)];
            w.free(mine)?;
            assert!(mine.try_get(w).is_err());
            let all = w.all_gather(others)?;
            w.free(all[1 - w.node().index()])?;
            w.barrier()?;
            assert!(others.try_get(w).is_err());
        }
        Ok(())
    });
}

#[test]
fn first_writes_of_young_objects_are_no_faults_and_all_are_counted() {
    let run = Config::nodes(1).run(|w| {
        let first = list(w, 0, 1000);
        Ok(sum(w, first))
    });
    let total = run.unwrap().report.total();
    let links = &total.by_type["it::space::young::Link"];
    assert_eq!(links.allocated, 1000);
    assert!(links.write_faults < 100, "{}", links.write_faults);
}
