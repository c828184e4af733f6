//! Arrays under each protocol, with exact counts; switched, freed, and read by several threads.

use dhole::Coherence::{self, Home, Lazy, Update};
use dhole::sim::{Computation, Settings};
use dhole::{
    AccessError, Array, Array2, Config, Error, Lock, MessageKind, Races, Result, Run, RunError,
    Worker,
};

/// Runs a program under a protocol on simulated nodes, whose messages arrive in order.
fn run<R: Send>(
    nodes: usize,
    coherence: Coherence,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Result<Run<R>, RunError> {
    let mut settings = Settings::new(nodes);
    settings.computation = Computation::FixedCost { unit_ns: 1.0 };
    let config = Config::nodes(nodes).coherence(coherence);
    config.simulate(settings, program)
}

/// Messages of the kinds that keep arrays consistent: fetches, replies, pushes, drop-outs,
/// flushes, acknowledgements.
fn sent<R>(run: &Run<R>) -> [u64; 6] {
    let total = run.report.total();
    let of = |kind| total.by_kind.get(&kind).map_or(0, |of| of.messages);
    [
        MessageKind::Fetch,
        MessageKind::FetchReply,
        MessageKind::Update,
        MessageKind::DropOut,
        MessageKind::Flush,
        MessageKind::FlushAck,
    ]
    .map(of)
}

/// Messages of the protocol `directory`, under which the program runs.
fn of_directory<R>(program: impl FnOnce(Coherence) -> Run<R>) -> u64 {
    let directory = "directory".parse().expect("dhole brings it");
    program(directory).report.total().by_protocol["directory"].messages
}

const ROUNDS: u64 = 10;

/// Node 0 writes a row of a grid in each round, and the three others read it, as in ASP.
fn broadcast(coherence: Coherence) -> Run<()> {
    let ran = run(4, coherence, |w| {
        let grid = w.once(|w| Ok(w.alloc_array2::<f64>(3, 1000)))?;
        for round in 0..ROUNDS {
            if w.node().index() == 0 {
                grid.row(1).get_mut(w).fill(round as f64);
            }
            w.barrier()?;
            let sum: f64 = grid.row(1).get(w).iter().sum();
            assert_eq!(sum, 1000.0 * round as f64, "on {}", w.node());
            w.barrier()?;
        }
        Ok(())
    });
    ran.unwrap()
}

#[test]
fn broadcast_elements_cost_one_message_a_reader_once_they_have_been_read() {
    assert_eq!(sent(&broadcast(Lazy)), [30, 30, 0, 0, 0, 0]);
    let pushed = broadcast(Update);
    assert_eq!(sent(&pushed), [3, 3, 27, 0, 0, 0]);
    let total = pushed.report.total();
    assert_eq!((total.pushes, total.pushes_read), (27, 27));
    assert_eq!(sent(&broadcast(Home)), [30, 30, 0, 0, 0, 0]);
    assert_eq!(of_directory(broadcast), 342);
}

/// Four nodes each write a quarter of an array, across blocks, and all read all of it.
fn quarters(coherence: Coherence) -> Run<()> {
    let ran = run(4, coherence, |w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let array = w.once(|w| Ok(w.alloc_array::<u64>(4100)))?;
        for round in 1..=ROUNDS {
            let quarter = array.len() / nodes;
            array
                .slice_mut(w, me * quarter..(me + 1) * quarter)
                .fill(round);
            w.barrier()?;
            assert!(array.slice(w, ..).iter().all(|value| *value == round));
            w.barrier()?;
        }
        Ok(())
    });
    ran.unwrap()
}

#[test]
fn a_flush_is_one_message_and_one_acknowledgement_for_each_home() {
    assert_eq!(sent(&quarters(Lazy)), [120, 120, 0, 0, 0, 0]);
    assert_eq!(sent(&quarters(Update)), [12, 12, 108, 0, 0, 0]);
    let at_home = quarters(Home);
    assert_eq!(sent(&at_home)[4..], [30, 30], "three nodes are not home");
    let total = at_home.report.total();
    assert_eq!((total.diffs, total.diff_bytes), (30, 30 * 1025 * 8));
    assert_eq!(of_directory(quarters), 1350);
}

#[test]
fn an_array_may_have_another_protocol_than_the_run_and_change_it() {
    for (before, after) in [(Lazy, Home), (Home, Update), (Update, Lazy), (Home, Lazy)] {
        let ran = run(3, Lazy, |w| {
            let me = w.node().index();
            let (array, grid, made) = w.once(|w| {
                let mut w = w.under(before);
                let made = w.alloc_array_with(6, |i| i as u32);
                Ok((
                    w.alloc_array::<u64>(1500),
                    w.alloc_array2::<f32>(3, 5),
                    made,
                ))
            })?;
            array.slice_mut(w, 500 * me..500 * (me + 1)).fill(1);
            grid.row(me).get_mut(w).fill(1.0);
            w.switch(array, after)?;
            w.switch(grid.array(), after)?;
            w.switch(made, after)?;
            array.slice_mut(w, 400 * me..400 * me + 300)[0] = 2;
            made.slice_mut(w, 2 * me..2 * me + 2)[1] = 9;
            w.barrier()?;
            assert_eq!(array.slice(w, ..).iter().sum::<u64>(), 1503);
            assert_eq!(grid.array().slice(w, ..).iter().sum::<f32>(), 15.0);
            assert_eq!(made.slice(w, ..), [0, 9, 2, 9, 4, 9]);
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{before} to {after}: {error}"));
    }
}

#[test]
fn a_part_of_an_array_is_neither_switched_nor_freed() {
    let ran = run(1, Lazy, |w| {
        let array = w.alloc_array::<u64>(10);
        let error = w.switch(array.range(2..5), Home).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("switching elements 2..5"), "{words}");
        assert!(words.contains("with all 10"), "{words}");
        let error = w.free(array.range(1..)).unwrap_err();
        assert!(matches!(error, AccessError::PartOfArray { .. }), "{error}");
        array.slice_mut(w, ..).fill(1);
        Ok(w.free(array.range(..))?)
    });
    ran.unwrap();
}

#[test]
fn every_node_is_told_by_whom_and_where_an_array_was_freed() {
    for coherence in Coherence::ALL {
        let ran = run(3, coherence, |w| {
            let (me, array) = (
                w.node().index(),
                w.once(|w| Ok(w.alloc_array::<u64>(2000)))?,
            );
            array.slice_mut(w, 600 * me..600 * (me + 1)).fill(7);
            w.barrier()?;
            assert_eq!(array.slice(w, ..).iter().sum::<u64>(), 7 * 1800);
            w.barrier()?;
            let line = line!() + 2;
            if me == 1 {
                w.free(array)?;
            }
            w.barrier()?;
            let words = array.try_slice(w, 5..6).unwrap_err().to_string();
            let at = format!("freed by node 1 at crates/dhole/tests/it/space/arrays.rs:{line}");
            assert!(words.contains(&at), "{words}");
            assert!(array.try_slice_mut(w, 5..6).is_err());
            assert!(array.try_write_all(w, 0, &[1]).is_err());
            let twice = w.free(array).unwrap_err();
            assert!(matches!(twice, AccessError::Freed { .. }), "{twice}");
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{coherence}: {error}"));
    }
}

#[test]
fn freeing_an_array_while_another_node_writes_it_is_a_race() {
    let mut settings = Settings::new(2);
    settings.computation = Computation::FixedCost { unit_ns: 1.0 };
    let ran = Config::nodes(2).races(Races::Fail).simulate(settings, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(10)))?;
        match w.node().index() {
            0 => {
                w.work(1_000_000);
                w.free(array)?;
            }
            _ => array.slice_mut(w, 3..5).fill(1),
        }
        Ok(w.barrier()?)
    });
    let error = ran.map(|run| run.value).unwrap_err().to_string();
    assert!(error.contains("elements 3..5"), "{error}");
}

#[test]
fn arrays_that_come_and_go_keep_no_pages_under_any_protocol() {
    for coherence in Coherence::BY_OBJECT {
        let ran = run(2, coherence, |w| {
            for round in 0..300 {
                let (large, small): (Array<u64>, Array2<f64>) =
                    w.once(|w| Ok((w.alloc_array(5000), w.alloc_array2(3, 4))))?;
                let me = w.node().index();
                large.slice_mut(w, 2500 * me..2500 * me + 2000).fill(round);
                small.row(me).get_mut(w).fill(1.0);
                w.barrier()?;
                assert_eq!(large.slice(w, 1990..2600).iter().sum::<u64>(), 110 * round);
                assert_eq!(small.array().slice(w, ..).iter().sum::<f64>(), 8.0);
                w.barrier()?;
                if me == round as usize % 2 {
                    w.free((large, small.array()))?;
                }
                w.barrier()?;
            }
            Ok(())
        });
        let ran = ran.unwrap_or_else(|error| panic!("{coherence}: {error}"));
        let pages = ran.report.total().shared_bytes / 4096;
        assert!(pages <= 4, "{coherence}: {pages} pages are kept");
    }
}

#[test]
fn an_array_has_as_many_rows_as_were_asked_for_or_none() {
    let ran = run(1, Lazy, |w| {
        let empty = w.alloc_array2::<f64>(4, 0);
        assert_eq!((empty.row_count(), empty.columns()), (4, 0));
        assert_eq!(empty.row(3).get(w), &[] as &[f64]);
        assert!(empty.try_row(4).is_none());
        let array = w.alloc_array::<u8>(10);
        assert_eq!(Array2::of(array, 5).map(Array2::row_count), Ok(2));
        let words = Array2::of(array, 3).unwrap_err().to_string();
        assert!(words.contains("10 as rows of 3 at") && words.contains("1 are left over"));
        assert!(Array2::of(array, 0).is_err() && words.contains("arrays.rs"));
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn a_row_or_a_column_that_is_not_there_names_the_line() {
    type Access = fn(&mut Worker<'_>, Array2<u8>);
    let accesses: [(u32, Access); 4] = [
        (line!(), |_, grid| _ = grid.row(2)),
        (line!(), |_, grid| _ = grid.rows(1..3)),
        (line!(), |w, grid| _ = grid.get(w, 0, 5)),
        (line!(), |w, grid| *grid.get_mut(w, 7, 0) = 1),
    ];
    for (line, access) in accesses {
        let ran = run(1, Lazy, |w| {
            let grid = w.alloc_array2(2, 5);
            access(w, grid);
            Ok(())
        });
        let words = ran.map(|run| run.value).unwrap_err().to_string();
        assert!(words.contains(&format!("arrays.rs:{line}:")), "{words}");
    }
}

#[test]
fn an_array_of_two_to_the_forty_elements_is_an_error() {
    let too_large = |error: RunError| match error {
        RunError::Failed { error, .. } => error,
        other => panic!("{other}"),
    };
    for under in Coherence::ALL {
        let ran = run(1, under, |w| Ok(w.alloc_array::<u8>(1 << 40).len()));
        let error = too_large(ran.map(|run| run.value).unwrap_err());
        assert!(matches!(*error, Error::Alloc(_)), "{error}");
        let ran = run(1, under, |w| {
            Ok(w.alloc_array2::<f64>(1 << 40, 1 << 40).columns())
        });
        let error = too_large(ran.map(|run| run.value).unwrap_err());
        assert!(matches!(*error, Error::Alloc(_)), "{error}");
    }
}

#[test]
fn threads_of_a_node_read_the_elements_that_are_present() {
    let ran = run(2, Lazy, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(2000)))?;
        if w.node().index() == 0 {
            let all = array.slice_mut(w, ..).iter_mut();
            all.zip(0..).for_each(|(value, i)| *value = i);
        }
        w.barrier()?;
        array.slice(w, 100..1500);
        let sum = w.readers(|present| {
            std::thread::scope(|scope| {
                let sum = |range| Ok(present.slice(array.range(range))?.iter().sum::<u64>());
                let upper = scope.spawn(move || sum(900..1500));
                let lower: Result<u64> = sum(100..900);
                Ok::<u64, Error>(lower? + upper.join().expect("it does not panic")?)
            })
        })?;
        assert_eq!(sum, (100..1500).sum::<u64>());
        let beyond = w.readers(|present| present.slice(array.range(1400..1600)).err());
        match beyond {
            None => assert_eq!(w.node().index(), 0, "it wrote all of them"),
            Some(absent) => {
                let words = absent.to_string();
                assert!(words.contains("elements 1400..1600"), "{words}");
                assert!(
                    words.contains("u64") && words.contains("arrays.rs"),
                    "{words}"
                );
            }
        }
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn objects_and_elements_under_one_lock_go_home_together() {
    for coherence in Coherence::ALL {
        let ran = run(3, coherence, |w| {
            let (sum, array) = w.once(|w| Ok((w.alloc(0_u64), w.alloc_array::<u64>(600))))?;
            for _ in 0..ROUNDS {
                Lock::numbered(3).with(w, |w| {
                    *sum.get_mut(w) += 1;
                    array
                        .slice_mut(w, 200..420)
                        .iter_mut()
                        .for_each(|x| *x += 1);
                    Ok(())
                })?;
            }
            w.barrier()?;
            let all = array.slice(w, 200..420).iter().all(|x| *x == 3 * ROUNDS);
            assert!(all && sum.read(w) == 3 * ROUNDS, "on {}", w.node());
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{coherence}: {error}"));
    }
}

#[test]
fn an_array_at_home_that_is_switched_to_home_has_one_home() {
    let run = run(2, Lazy, |w| {
        let (zero, one) = (w.node().index() == 0, w.node().index() == 1);
        let given = w.once(|w| Ok(w.alloc((Array::empty(), Array::empty()))))?;
        if one {
            let at_home = w.under(Home).alloc_array::<u32>(1);
            *given.get_mut(w) = (at_home, w.alloc_array::<u32>(1));
        }
        w.barrier()?;
        let (at_home, lazy) = given.read(w);
        if zero {
            at_home.slice_mut(w, ..)[0] = 5;
        }
        w.barrier()?;
        if zero {
            at_home.slice(w, ..);
        }
        w.barrier()?;
        if zero {
            lazy.slice_mut(w, ..)[0] = 5;
        }
        w.switch(at_home, Home)?;
        if zero {
            at_home.slice(w, ..);
        }
        w.barrier()?;
        if one {
            at_home.slice_mut(w, ..)[0] = 9;
        }
        w.barrier()?;
        Ok(at_home.slice(w, ..)[0])
    });
    assert_eq!(run.unwrap().value, 9);
}

#[test]
fn updates_take_two_messages_for_each_owner_however_many_they_are() {
    for coherence in [Lazy, Update] {
        let ran = run(3, coherence, |w| {
            let counts = w.once(|w| Ok(w.alloc_array::<u64>(300)))?;
            let me = w.node().index();
            counts.slice_mut(w, 100 * me..100 * (me + 1)).fill(0);
            w.barrier()?;
            for _ in 0..5 {
                counts.add_all(w, &[0, 100, 200, 0], &[1; 4])?;
            }
            w.barrier()?;
            assert_eq!(counts.gather(w, &[200, 0, 100]), [15, 30, 15]);
            Ok(())
        });
        assert_eq!(sent(&ran.unwrap())[4..], [6, 6], "{coherence}");
    }
}

#[test]
fn a_process_sends_no_updates() {
    let ran = run(2, Lazy, |w| {
        let counts = w.once(|w| Ok(w.alloc_array::<u64>(3)))?;
        let add = dhole::op!(|w, counts: Array<u64>| {
            let refused = counts.add_all(w, &[2], &[1]).unwrap_err();
            Ok(refused.to_string())
        });
        let said = w.spawn(dhole::on(w.node()), counts, add)?.join(w)?;
        assert!(said.contains("the program alone sends updates"), "{said}");
        assert!(said.contains("arrays.rs:"), "{said}");
        w.barrier()?;
        assert_eq!(counts.gather(w, &[2]), [0]);
        Ok(())
    });
    ran.unwrap();
}
