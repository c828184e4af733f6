//! Objects that are larger than the stack of whoever allocates, reads or writes them.

use std::num::NonZeroU32;

use dhole::{AllocError, Coherence, Config, Error, Ref, Result, Run, RunError, Share, Worker};

/// 16 MiB: twice the stack of a thread that is a node, and sixteen times that of a simulated one.
#[derive(Share)]
struct Field {
    rows: [[f64; 1024]; 2048],
    written: u64,
}

/// The program on threads, and simulated.
fn on_both<R: Send>(
    config: &Config,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> [std::result::Result<Run<R>, RunError>; 2] {
    let simulated = config.simulate(dhole::sim::Settings::fixed_cost(2), &program);
    [config.run(&program), simulated]
}

/// Node 0 makes it; node 1 reads it, writes it, and node 0 sees that.
fn goes_there_and_back(coherence: Coherence) {
    let config = Config::nodes(2).coherence(coherence);
    for run in on_both(&config, |w| {
        let field = w.once(|w| {
            let field = w.alloc_with(|field: &mut Field| {
                assert_eq!((field.written, field.rows[2047][1023]), (0, 0.0));
                field.rows[7].fill(7.0);
            });
            Ok(field)
        })?;
        if w.node().index() == 1 {
            assert_eq!(field.get(w).rows[7][1023], 7.0);
            let field = field.get_mut(w);
            (field.rows[2047][1023], field.written) = (1.0, 1);
        }
        w.barrier()?;
        let field = field.get(w);
        Ok(field.rows[7][0] + field.rows[2047][1023] + field.written as f64)
    }) {
        assert_eq!(run.unwrap().value, 9.0, "{coherence}");
    }
}

#[test]
fn an_object_larger_than_a_stack_goes_there_and_back() {
    for coherence in [Coherence::Lazy, Coherence::Home, Coherence::TreadMarks] {
        goes_there_and_back(coherence);
    }
}

#[test]
fn several_large_objects_are_made_in_place_each_from_its_number() {
    for run in on_both(&Config::nodes(2), |w| {
        let fields = w.once(|w| {
            let fields = w.alloc_range_with(2, |i, field: &mut Field| field.written = i as u64);
            Ok(fields)
        })?;
        Ok(fields.iter().map(|field| field.get(w).written).sum::<u64>())
    }) {
        assert_eq!(run.unwrap().value, 1);
    }
}

#[derive(Share)]
struct Link {
    next: Ref<u64>,
    weights: [u32; 1 << 22],
}

#[test]
fn a_boxed_value_that_zeros_cannot_begin_goes_into_an_object() {
    for run in on_both(&Config::nodes(2), |w| {
        let link = w.once(|w| {
            let weights: Vec<NonZeroU32> = (1..=1 << 22).filter_map(NonZeroU32::new).collect();
            let weights: Box<[NonZeroU32; 1 << 22]> = weights
                .into_boxed_slice()
                .try_into()
                .map_err(|_| "their number")?;
            Ok(w.alloc_boxed(weights))
        })?;
        Ok(link.get(w)[(1 << 22) - 1].get())
    }) {
        assert_eq!(run.unwrap().value, 1 << 22);
    }
}

/// What is refused, and what the error says.
fn refused<T: Share>(parts: &[&str]) {
    let run = Config::nodes(1).run(|w| {
        w.alloc_with(|_: &mut T| panic!("zeros are lent that are no value"));
        Ok(())
    });
    let Err(RunError::Failed { error, .. }) = run else {
        panic!("{run:?}");
    };
    let Error::Alloc(AllocError::NoZeros { .. }) = &*error else {
        panic!("{error}");
    };
    let words = error.to_string();
    for part in parts.iter().chain(&["in_place.rs:", "use `alloc_boxed`"]) {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[derive(Share, Clone, Copy)]
#[repr(u8)]
enum From1 {
    _One = 1,
    _Two = 2,
}

#[test]
fn what_zeros_are_no_value_of_is_refused_before_they_are_lent() {
    refused::<Link>(&["reference", "Link"]);
    refused::<NonZeroU32>(&["non-zero number"]);
    refused::<(u64, [From1; 3])>(&["enum"]);
    let run = Config::nodes(1).run(|w| {
        let maybe = w.alloc_with(|(at, _, letter): &mut (Option<Ref<u64>>, bool, char)| {
            assert!(at.is_none() && *letter == '\0');
            *letter = 'x';
        });
        Ok(maybe.get(w).2)
    });
    assert_eq!(run.unwrap().value, 'x');
}

/// Storage that another object has had is zero again.
#[test]
fn what_is_made_in_place_begins_as_zeros_where_another_object_was() {
    let run = Config::nodes(1).run(|w| {
        for _ in 0..100 {
            let old = w.alloc([u64::MAX; 700]);
            w.free(old)?;
            w.barrier()?;
            let new = w.alloc_with(|new: &mut [u64; 700]| {
                assert!(new.iter().all(|number| *number == 0));
            });
            w.free(new)?;
            w.barrier()?;
        }
        Ok(())
    });
    run.unwrap();
}
