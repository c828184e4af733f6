use dhole::collections::{DistVec, VecError};
use dhole::{Config, NodeId};
use dhole_model::SplitMix64;

#[test]
fn a_vector_is_what_a_plain_one_would_be() {
    for (seed, nodes) in (0..8).zip([1, 2, 3, 5].into_iter().cycle()) {
        let run = Config::nodes(nodes).run(|w| {
            let me = w.node().index();
            let mut vector = DistVec::<u64>::new();
            let mut plain: Vec<u64> = Vec::new();
            let mut random = SplitMix64(seed);
            for round in 0..30 {
                let lengths: Vec<u64> = (0..nodes).map(|_| random.below(300)).collect();
                let values = |node: usize| -> Vec<u64> {
                    let many = if round % 7 == 3 { 0 } else { lengths[node] };
                    (0..many)
                        .map(|it| 1_000 * round + 100 * node as u64 + it)
                        .collect()
                };
                let begins: usize = (0..me).map(|node| values(node).len()).sum();
                let begins = plain.len() + begins;
                let mine = values(me);
                assert_eq!(vector.extend(w, &mine)?, begins..begins + mine.len());
                plain.extend((0..nodes).flat_map(values));
                assert_eq!(vector.len(), plain.len());
                w.barrier()?;
                if plain.is_empty() {
                    continue;
                }
                let mut place = || random.below(plain.len() as u64) as usize;
                let (one, other) = (place(), place());
                let places = one.min(other)..one.max(other);
                assert_eq!(vector.copy(w, places.clone())?, plain[places.clone()]);
                assert_eq!(*vector.get(w, one), plain[one]);
                w.barrier()?;
                let writer = round as usize % nodes == me;
                plain[one] += 1;
                plain[places.clone()].fill(round);
                if writer {
                    *vector.get_mut(w, one) += 1;
                    vector.write(w, places.start, &vec![round; places.len()])?;
                }
                w.barrier()?;
            }
            assert_eq!(vector.slices(w, 0..plain.len())?.concat(), plain);
            w.barrier()?;
            if me == 0 {
                vector.free(w)?;
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}, {nodes} nodes: {error}"));
    }
}

#[test]
fn vectors_that_cannot_be_are_errors_that_say_why() {
    let run = Config::nodes(2).run(|w| {
        let mut vector = DistVec::<u8>::new();
        vector.extend(w, &[1, 2])?;
        w.barrier()?;
        for (start, end) in [(3, 5), (4, 3), (usize::MAX, usize::MAX)] {
            let places = start..end;
            let error = vector.copy(w, places).expect_err("there are none");
            assert!(matches!(error, VecError::OutOfBounds { len: 4, .. }));
        }
        let words = vector
            .write(w, 3, &[1, 2])
            .expect_err("there is one")
            .to_string();
        assert!(
            words.starts_with("elements 3..5 of a vector of 4 on node"),
            "{words}"
        );
        assert!(words.contains("vec.rs:"), "{words}");
        let mut other = vector.clone();
        vector.extend(w, &[3])?;
        let mine = match w.node() {
            NodeId(0) => &mut vector,
            _ => &mut other,
        };
        let words = mine.extend(w, &[3]).expect_err("they differ").to_string();
        assert!(words.contains("extends one of"), "{words}");
        Ok(())
    });
    run.expect("it runs");
    let run = Config::nodes(2).run(|w| match w.node() {
        NodeId(0) => Ok(DistVec::<u8>::new().extend(w, &[1])?),
        _ => Ok(DistVec::<u16>::new().extend(w, &[1])?),
    });
    let words = run.expect_err("their types differ").to_string();
    assert!(
        words.contains("all_gather") && words.contains("vec.rs:"),
        "{words}"
    );
}
