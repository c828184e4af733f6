//! Names: values that all nodes find under a text.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use dhole::names::{LARGEST_VALUE, LONGEST_NAME, NameError};
use dhole::{Client, Error, Lock, NodeId, Ref, Result, Worker, on, replicated};
use serde::{Deserialize, Serialize};

use super::{assert_says, fail, succeed};
use crate::{ByMessage, Platform};

/// How often somebody has read.
#[derive(Serialize, Deserialize, Default)]
struct Visits(u64);

#[dhole::object(crate = "dhole", client = String)]
impl Visits {
    pub fn visit(&mut self, visitor: &String) -> String {
        self.0 += 1;
        format!("{visitor}: {}", self.0)
    }
}

/// Node 0 binds values of all kinds; the others find them. The value of a reference is visible.
pub fn what_is_bound_is_found_on_every_node(on_: &dyn Platform) {
    succeed(on_, 3, |w| {
        let me = w.node().index();
        if me == 0 {
            let number = w.alloc(5_u64);
            *number.get_mut(w) = 6;
            w.bind("number", &number)?;
            w.bind("words", &"some words".to_owned())?;
            let lock = w.new_lock();
            w.bind("lock", &lock)?;
            let visits = w.new_object(on(NodeId(2)), Visits::default())?;
            w.bind("visits", &Client::of(visits, "guest".to_owned()))?;
            w.bind("", &())?;
        }
        w.barrier()?;
        let number: Ref<u64> = w.lookup("number")?;
        assert_eq!(number.read(w), 6);
        w.barrier()?;
        assert_eq!(w.lookup::<String>("words")?, "some words");
        let lock: Lock = w.lookup("lock")?;
        lock.with(w, |w| {
            *number.get_mut(w) += 1;
            Ok(())
        })?;
        let mut visits: Client<Visits> = w.lookup("visits")?;
        assert!(visits.visit(w)?.starts_with("guest: "));
        *Client::user_mut(&mut visits) = me.to_string();
        assert!(visits.visit(w)?.starts_with(&me.to_string()));
        assert_eq!(w.names()?, ["", "lock", "number", "visits", "words"]);
        w.barrier()?;
        assert_eq!(number.read(w), 9);
        if me == 1 {
            w.unbind("words")?;
        }
        w.barrier()?;
        let error = w.lookup::<String>("words").expect_err("it is free");
        assert!(matches!(error, NameError::NoSuch { similar: None, .. }));
        Ok(())
    });
}

/// All nodes bind one name at once: one of them does, and all find its value.
pub fn of_nodes_that_bind_a_name_at_once_one_does(on: &dyn Platform) {
    let bound = AtomicUsize::new(0);
    succeed(on, 3, |w| {
        for round in 0..5 {
            let (name, me) = (format!("round {round}"), w.node());
            match w.bind(&name, &me) {
                Ok(()) => drop(bound.fetch_add(1, SeqCst)),
                Err(NameError::Taken { by, .. }) => assert_ne!(by, me),
                Err(error) => return Err(error.into()),
            }
            w.barrier()?;
            let found: NodeId = w.lookup(&name)?;
            assert!(w.all_gather(found)?.iter().all(|it| *it == found));
        }
        Ok(())
    });
    assert_eq!(bound.into_inner(), 5);
}

/// Nodes wait for names that others bind, also within processes.
pub fn who_waits_for_a_name_goes_on_when_it_is_bound(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let me = w.node().index();
        if me == 0 {
            w.bind("step 0", &0_u64)?;
        }
        // Each node waits for the name that the node before it binds.
        for step in 0..9_u64 {
            if step % 3 == me as u64 {
                let value: u64 = w.await_name(&format!("step {step}"))?;
                assert_eq!(value, step * step);
                let next = step + 1;
                w.bind(&format!("step {next}"), &(next * next))?;
            }
        }
        assert_eq!(w.await_name::<u64>("step 9")?, 81);
        Ok(())
    });
}

/// All nodes ask for a value at once: one makes it. If its making fails another node makes it.
pub fn a_value_is_made_once_for_a_name(on_: &dyn Platform) {
    let (made, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    succeed(on_, 3, |w| {
        for round in 0..4_usize {
            let name = format!("round {round}");
            let got = w.bind_or_get(&name, |w| {
                let visits = w.new_object(replicated(), Visits::default())?;
                made.fetch_add(1, SeqCst);
                Ok(visits)
            })?;
            got.visit(w, &"one".to_owned())?;
            w.barrier()?;
            assert!(!got.visit(w, &"last".to_owned())?.contains(": 3"));
            w.barrier()?;
            // The first that is asked fails, and another one goes on.
            let name = format!("failing {round}");
            let got = w.bind_or_get(&name, |w| match failed.fetch_add(1, SeqCst) % 3 {
                0 => Err("the first fails".into()),
                _ => Ok(w.node()),
            });
            match got {
                Ok(node) => assert_eq!(w.await_name::<NodeId>(&name)?, node),
                Err(error) => assert!(error.to_string().contains("the first fails"), "{error}"),
            }
            w.barrier()?;
            failed.store(0, SeqCst);
            w.barrier()?;
        }
        Ok(())
    });
    assert_eq!(made.into_inner(), 4);
}

/// A node waits for a name that no node binds: the error names it, and where.
pub fn a_name_that_no_node_binds_is_a_deadlock_that_names_it(on: &dyn Platform) {
    let wait = |w: &mut Worker<'_>| match w.node().index() + 1 == w.nodes() {
        true => Ok(w.await_name("jobs")?),
        false => Ok(()),
    };
    for nodes in [1, 3] {
        let error = fail(on, nodes, wait);
        assert_says(&error, &["waits for the name \"jobs\" at", "names.rs:"]);
        if nodes == 1 {
            let words = "waiting for the name \"jobs\" on node 0";
            assert_says(&error, &[words, "no node can bind it any more"]);
        }
    }
    // A claim that is never fulfilled: its node waits for itself.
    let error = fail(on, 2, |w| {
        if w.node().index() == 1 {
            w.bind_or_get("own", |w| w.bind_or_get("own", |_| Ok(1_u64)))?;
        }
        w.barrier()?;
        Ok(())
    });
    assert_says(&error, &["the name \"own\""]);
}

/// What a program gets wrong about names.
pub fn names_that_cannot_be_are_errors_that_say_why(on: &dyn Platform) {
    succeed(on, 2, |w| {
        if w.node().index() == 0 {
            w.bind("jobs", &7_u32)?;
        }
        w.barrier()?;
        let says = |error: NameError, words: &[&str]| {
            let text = error.to_string();
            words
                .iter()
                .for_each(|it| assert!(text.contains(it), "{it} is not in {text}"));
        };
        let error = w.bind("jobs", &8_u32).expect_err("it is bound");
        says(
            error,
            &[
                "\"jobs\"",
                "node 0 has taken it",
                "names.rs:",
                "bind_or_get",
            ],
        );
        let error = w.lookup::<u32>("jbos").expect_err("it is misspelt");
        says(
            error,
            &["\"jbos\"", "no value is bound to it. \"jobs\" is bound"],
        );
        let error = w.unbind("work").expect_err("it is free");
        assert!(
            matches!(error, NameError::NoSuch { similar: None, .. }),
            "{error}"
        );
        let error = w.lookup::<u64>("jobs").expect_err("it is no u64");
        says(error, &["a u64 was asked for", "node 0 has bound a u32"]);
        assert!(matches!(
            w.await_name::<u64>("jobs"),
            Err(NameError::OtherType { .. })
        ));
        assert!(w.bind_or_get("jobs", |_| Ok("words".to_owned())).is_err());
        let long = "x".repeat(LONGEST_NAME + 1);
        for error in [
            w.bind(&long, &1).expect_err("a long name"),
            w.await_name::<u32>(&long).expect_err("a long name"),
        ] {
            says(error, &["the name has 257 bytes, and may have 256"]);
        }
        let mine = format!("longest {}", w.node().index());
        let mine = format!("{mine}{}", "x".repeat(LONGEST_NAME - mine.len()));
        w.bind(&mine, &vec![1_u8; LARGEST_VALUE - 2])?;
        let error = w.bind("large", &vec![1_u8; LARGEST_VALUE - 1]);
        says(
            error.expect_err("a large value"),
            &["the value has 4097 bytes", "4096"],
        );
        assert_eq!(w.lookup::<Vec<u8>>(&mine)?.len(), LARGEST_VALUE - 2);
        let large = w.bind_or_get("large", |_| Ok(vec![1_u8; LARGEST_VALUE]));
        assert!(
            large
                .expect_err("a large value")
                .to_string()
                .contains("4098 bytes")
        );
        w.barrier()?;
        let large: NodeId = w.bind_or_get("large", |w| Ok(w.node()))?;
        assert_eq!(large, w.lookup::<NodeId>("large")?);
        w.barrier()?;
        Ok(())
    });
}

/// Messages that a node sends in `f`, while the others wait at a barrier.
fn sends(w: &mut Worker<'_>, node: u16, f: impl Fn(&mut Worker<'_>) -> Result<()>) -> Result<u64> {
    let before = w.counters();
    w.barrier()?;
    if w.node() == NodeId(node) {
        f(w)?;
    }
    w.barrier()?;
    let after = w.counters();
    let ordered = |it: &dhole::Counters| it.sent(dhole::MessageKind::Ordered);
    w.all_reduce(ordered(&after) - ordered(&before), |a, b| a + b)
        .map_err(Error::from)
}

/// On three nodes a binding takes 2 messages at the sequencer and 3 elsewhere; a lookup takes none.
pub fn a_name_is_bound_by_one_ordered_write_and_looked_up_without_a_message(on: &dyn Platform) {
    succeed(&ByMessage(on), 3, |w| {
        assert_eq!(sends(w, 0, |w| Ok(w.bind("zero", &0)?))?, 2);
        assert_eq!(sends(w, 1, |w| Ok(w.bind("one", &1)?))?, 3);
        let look = |w: &mut Worker<'_>| -> Result<()> {
            assert_eq!(w.lookup::<i32>("zero")? + 1, w.await_name::<i32>("one")?);
            assert_eq!(w.bind_or_get("one", |_| Ok(7))?, 1);
            assert_eq!(w.names()?.len(), 2);
            Ok(())
        };
        assert_eq!(sends(w, 0, look)?, 0);
        assert_eq!(sends(w, 2, look)?, 0);
        assert_eq!(
            sends(w, 2, |w| w.bind_or_get("two", |_| Ok(2)).map(drop))?,
            6
        );
        assert_eq!(sends(w, 1, |w| Ok(w.unbind("two")?))?, 3);
        Ok(())
    });
}
