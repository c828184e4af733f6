//! Freed objects are errors on every node that learns of it, and give their storage back.

use dhole::{AccessError, Config, Error, Races, Ref, Result, RunError, Share, Worker, sim};

/// Runs on threads and in a simulation.
fn on_both(nodes: usize, program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync) {
    Config::nodes(nodes).run(&program).unwrap();
    let simulated = sim::Settings::fixed_cost(nodes);
    Config::nodes(nodes).simulate(simulated, &program).unwrap();
}

#[test]
fn every_node_is_told_by_whom_an_object_was_freed() {
    on_both(3, |w| {
        let number = w.once(|w| Ok(w.alloc(7_u64)))?;
        number.read(w);
        w.barrier()?;
        let free = line!() + 2;
        if w.node().index() == 1 {
            w.free(number)?;
        }
        w.barrier()?;
        let text = number.try_get(w).map(drop).unwrap_err().to_string();
        assert!(
            text.contains("u64") && text.contains("freed by node 1"),
            "{text}"
        );
        let knows_where = text.ends_with(&format!("freeing.rs:{free}:15"));
        assert!(knows_where, "{text}");
        assert!(number.try_get_mut(w).is_err());
        let twice = w.free(number).unwrap_err();
        assert!(matches!(twice, AccessError::Freed { .. }), "{twice}");
        Ok(())
    });
}

#[test]
fn an_access_to_a_freed_object_ends_the_run_with_what_and_where() {
    let run = Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.alloc_range(3, |i| i)))?;
        if w.node().index() == 0 {
            w.free(numbers.at(1))?;
        }
        w.barrier()?;
        assert_eq!(numbers.at(0).read(w) + numbers.at(2).read(w), 2);
        w.barrier()?;
        Ok(numbers.at(1).read(w))
    });
    let Err(RunError::Failed { error, .. }) = run else {
        panic!("a freed object is an error")
    };
    assert!(
        matches!(*error, Error::Access(AccessError::Freed { .. })),
        "{error}"
    );
}

#[derive(Share, Clone, Copy)]
struct Link {
    value: u64,
    next: Option<Ref<Link>>,
}

#[test]
fn references_to_freed_objects_may_stay_where_they_are() {
    on_both(2, |w| {
        let head = w.once(|w| {
            let last = w.alloc(Link {
                value: 2,
                next: None,
            });
            let head = w.alloc(Link {
                value: 1,
                next: Some(last),
            });
            w.free(last)?;
            Ok(head)
        })?;
        let Link { value, next } = head.read(w);
        assert_eq!(value, 1);
        let last = next.expect("a reference");
        assert!(matches!(last.try_get(w), Err(AccessError::Freed { .. })));
        Ok(())
    });
}

#[test]
fn a_range_freed_by_several_nodes_leaves_no_pages() {
    let run = Config::nodes(3).run(|w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(300, 1000)))?;
        for (i, row) in rows.iter().enumerate() {
            if i % w.nodes() == w.node().index() {
                row.get_mut(w).fill(i as u64);
            }
        }
        w.barrier()?;
        let sum: u64 = rows.iter().map(|row| row.get(w)[999]).sum();
        w.barrier()?;
        let full = w.counters().shared_bytes;
        for (i, row) in rows.iter().enumerate() {
            if (i + 1) % w.nodes() == w.node().index() {
                w.free(row)?;
            }
        }
        w.barrier()?;
        assert!(full >= 300 * 8000 && w.counters().shared_bytes < 4 * 4096);
        Ok(sum)
    });
    let run = run.unwrap();
    assert_eq!(run.value, 300 * 299 / 2);
    assert_eq!(run.report.total().by_type["u64"].freed, 300);
    assert!(run.report.warnings.is_empty(), "{:?}", run.report.warnings);
}

#[test]
fn objects_of_two_types_that_are_freed_together_are_counted_apart() {
    let run = Config::nodes(2).run(|w| {
        w.once(|w| {
            // Whole chunks, so that the ids of the second follow on the first's.
            let (words, bytes) = (w.alloc_range(128, |i| i), w.alloc_range(64, |i| i as u8));
            Ok(w.free((words, bytes))?)
        })
    });
    let by_type = run.unwrap().report.total().by_type;
    assert_eq!((by_type["usize"].freed, by_type["u8"].freed), (128, 64));
}

#[test]
fn a_freeing_that_races_with_a_write_is_told_with_both_places() {
    let config = Config::nodes(2).races(Races::Fail);
    let lines = [line!() + 5, line!() + 7];
    let run = config.run(|w| {
        let number = w.once(|w| Ok([w.alloc(1_u8), w.alloc(2_u8)]))?[0];
        number.read(w);
        if w.node().index() == 0 {
            *number.get_mut(w) = 2;
        } else {
            w.free(number)?;
        }
        Ok(w.barrier()?)
    });
    let text = run.map(drop).unwrap_err().to_string();
    let told = lines.map(|line| text.contains(&format!("freeing.rs:{line}:")));
    // The writer may hear of the freeing before it writes, from the node that it asks.
    assert!(told == [true; 2] || text.contains("was freed"), "{text}");
}

#[test]
fn objects_with_a_home_are_freed_too() {
    let config = Config::nodes(3).coherence(dhole::Coherence::Home);
    let run = config.run(|w| {
        for round in 0..20 {
            let numbers = w.once(|w| Ok(w.alloc_range(100, |i| i)))?;
            *numbers.at(w.node().index()).get_mut(w) += 1;
            w.barrier()?;
            assert_eq!(numbers.at(2).read(w), 3);
            w.barrier()?;
            if w.node().index() == round % 3 {
                *numbers.at(50).get_mut(w) = 0;
                w.free(numbers)?;
            }
            w.barrier()?;
            assert!(numbers.at(50).try_get(w).is_err());
        }
        Ok(w.counters().shared_bytes)
    });
    assert!(run.unwrap().value < 4 * 4096);
}

#[test]
fn what_was_freed_is_not_switched() {
    let run = Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.alloc_range(100, |i| i)))?;
        if w.node().index() == 1 {
            w.free(numbers.at(50))?;
        }
        w.barrier()?;
        w.switch(numbers, dhole::Coherence::Home)
    });
    let text = run.map(drop).unwrap_err().to_string();
    assert!(text.contains("was freed by node 1"), "{text}");
}
