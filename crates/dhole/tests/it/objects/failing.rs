//! What goes wrong with objects, and what is said of it.

use dhole::{Config, Error, NodeId, Object, ObjectError, Refusal, RunError, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Account {
    balance: u32,
    open: bool,
}

#[dhole::object]
impl Account {
    pub fn balance(&self) -> u32 {
        self.balance
    }

    pub fn share(&self, among: u32) -> u32 {
        self.balance / among
    }

    pub fn withdraw(&mut self, amount: u32) {
        assert!(amount <= self.balance, "only {} are left", self.balance);
        self.balance -= amount;
    }

    #[when(self.open)]
    pub fn opened(&self) -> u32 {
        self.balance
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Other(u8);

#[dhole::object]
impl Other {
    pub fn set(&mut self, to: u8) {
        self.0 = to;
    }
}

/// Whoever reads one from bytes panics where its number is 13.
#[derive(Serialize)]
struct Fragile(u8);

impl<'de> Deserialize<'de> for Fragile {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Fragile, D::Error> {
        let number = u8::deserialize(from)?;
        assert_ne!(number, 13, "an unlucky number");
        Ok(Fragile(number))
    }
}

#[dhole::object]
impl Fragile {
    pub fn set(&mut self, to: u8) {
        self.0 = to;
    }
}

#[test]
fn a_state_that_panics_while_it_is_read_is_an_error_of_the_object() {
    for strategy in [on(NodeId(0)), on(NodeId(1)), replicated()] {
        let run = Config::nodes(2).run(|w| {
            let error = w.new_object(strategy, Fragile(13)).unwrap_err();
            assert!(error.to_string().contains("an unlucky number"), "{error}");
            let fragile: Object<Fragile> =
                w.once(|w| Ok(w.new_object(on(NodeId(0)), Fragile(1))?))?;
            if w.node() == NodeId(0) {
                fragile.set(w, 13)?;
                Object::strategy(&fragile, w, on(NodeId(1)))?;
            }
            w.barrier()?;
            let error = fragile.set(w, 1).unwrap_err();
            assert!(error.to_string().contains("an unlucky number"), "{error}");
            Ok(())
        });
        run.unwrap();
    }
}

fn refusal(error: &ObjectError) -> &Refusal {
    match error {
        ObjectError::Refused { cause, .. } | ObjectError::NotMade { cause, .. } => cause,
        ObjectError::Sync(cause) => panic!("{cause}"),
    }
}

fn poisoned_under(strategy: dhole::Strategy) {
    let run = Config::nodes(3).run(|w| {
        let account: Object<Account> =
            w.once(|w| Ok(w.new_object(strategy, Account::default())?))?;
        if w.node() == NodeId(0) {
            let error = account.withdraw(w, 5).unwrap_err();
            let text = error.to_string();
            for part in [
                "Account::withdraw of object 0",
                "node 0",
                "failing.rs",
                "only 0 are left",
            ] {
                assert!(text.contains(part), "{text}");
            }
        }
        w.barrier()?;
        let error = account.balance(w).unwrap_err();
        let Refusal::Poisoned { operation, words } = refusal(&error) else {
            panic!("{error}");
        };
        assert_eq!(
            (&**operation, &**words),
            ("Account::withdraw", "only 0 are left")
        );
        Ok(())
    });
    run.unwrap();
}

#[test]
fn an_operation_that_panics_poisons_its_object_for_all() {
    poisoned_under(on(NodeId(1)));
    poisoned_under(replicated());
}

#[test]
fn a_read_that_panics_is_its_callers_alone() {
    let run = Config::nodes(2).run(|w| {
        let account: Object<Account> =
            w.once(|w| Ok(w.new_object(on(NodeId(1)), Account::default())?))?;
        let error = account.share(w, 0).unwrap_err();
        assert!(error.to_string().contains("divide by zero"), "{error}");
        Ok(account.balance(w)?)
    });
    assert_eq!(run.unwrap().value, 0);
}

#[test]
fn an_object_that_nobody_made_is_unknown() {
    let run = Config::nodes(2).run(|w| {
        let account: Object<Account> = postcard_of(1000);
        let error = account.balance(w).unwrap_err();
        assert_eq!(*refusal(&error), Refusal::Unknown, "{error}");
        let other: Object<Account> = postcard_of(1001);
        let error = other.balance(w).unwrap_err();
        assert_eq!(*refusal(&error), Refusal::Unknown, "{error}");
        Ok(())
    });
    run.unwrap();
}

#[test]
fn an_object_that_nobody_made_can_be_kept_nowhere() {
    for strategy in [on(NodeId(0)), on(NodeId(1)), on(NodeId(2)), replicated()] {
        let run = Config::nodes(3).run(|w| {
            let of_node_1: Object<Account> = postcard_of(3001);
            if w.node() == NodeId(2) {
                let error = Object::strategy(&of_node_1, w, strategy).unwrap_err();
                assert_eq!(*refusal(&error), Refusal::Unknown, "{error}");
            }
            w.barrier()?;
            let error = of_node_1.balance(w).unwrap_err();
            assert_eq!(*refusal(&error), Refusal::Unknown, "{error}");
            let own = 6000 + 30 * w.node().index() as u64;
            let error = Object::strategy(&postcard_of::<Account>(own), w, strategy);
            assert!(error.is_err());
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn an_object_goes_to_no_node_that_is_not_there() {
    for strategy in [on(NodeId(1)), replicated()] {
        let run = Config::nodes(2).run(|w| {
            let account: Object<Account> =
                w.once(|w| Ok(w.new_object(strategy, Account::default())?))?;
            let error = Object::strategy(&account, w, on(NodeId(9))).unwrap_err();
            assert!(
                error.to_string().contains("node 9 is not one of 2 nodes"),
                "{error}"
            );
            w.barrier()?;
            Ok(account.balance(w)?)
        });
        assert_eq!(run.unwrap().value, 0);
    }
}

/// A handle of a number, as nobody should make one.
fn postcard_of<T: dhole::ObjectType>(number: u64) -> Object<T> {
    use serde::de::IntoDeserializer;
    let number: serde::de::value::U64Deserializer<serde::de::value::Error> =
        number.into_deserializer();
    Object::deserialize(number).unwrap()
}

#[test]
fn a_handle_of_another_run_names_nothing_in_this_one() {
    let make = |w: &mut dhole::Worker<'_>| {
        let made = w.once(|w| Ok(w.new_object(on(NodeId(1)), Account::default())?))?;
        Ok(made)
    };
    let before: Object<Account> = Config::nodes(2).run(make).unwrap().value;
    for nodes in [2, 3] {
        let run = Config::nodes(nodes).run(|w| {
            make(w)?;
            let error = before.balance(w).unwrap_err();
            assert_eq!(*refusal(&error), Refusal::Unknown, "{error}");
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn a_handle_of_another_type_is_refused() {
    let run = Config::nodes(2).run(|w| {
        let real: Object<Account> =
            w.once(|w| Ok(w.new_object(on(NodeId(1)), Account::default())?))?;
        let forged: Object<Other> = postcard_of(Object::id(&real).0);
        let error = forged.set(w, 9).unwrap_err();
        let Refusal::OtherType(name) = refusal(&error) else {
            panic!("{error}");
        };
        assert!(name.ends_with("Account"), "{name}");
        w.barrier()?;
        Ok(real.balance(w)?)
    });
    assert_eq!(run.unwrap().value, 0);
}

#[test]
fn a_guard_that_nobody_can_satisfy_is_a_deadlock_that_names_the_operation() {
    let config = Config::nodes(3).suspect_after(std::time::Duration::from_millis(1));
    for strategy in [on(NodeId(1)), replicated()] {
        let run = config.run(|w| {
            let account: Object<Account> =
                w.once(|w| Ok(w.new_object(strategy, Account::default())?))?;
            account.opened(w)?;
            Ok(())
        });
        let Err(RunError::Failed { error, .. }) = run else {
            panic!("{run:?}");
        };
        assert!(
            matches!(&*error, Error::Object(ObjectError::Sync(_))),
            "{error}"
        );
        let text = error.to_string();
        for part in [
            "deadlock",
            "node 2 waits for Account::opened of object 0 (made at ",
            "failing.rs",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

/// Two objects that different nodes have made, and on which all wait.
#[test]
fn a_deadlock_of_operations_names_where_each_object_was_made() {
    let config = Config::nodes(3).suspect_after(std::time::Duration::from_millis(1));
    for strategy in [on(NodeId(1)), on(NodeId(2)), replicated()] {
        let program = |w: &mut dhole::Worker<'_>| {
            let given = w.alloc([None::<Object<Account>>; 3]);
            let given = w.once(|_| Ok(given))?;
            let me = w.node().index();
            if me < 2 {
                let made = w.new_object(strategy, Account::default())?; // made here
                dhole::Lock::numbered(1).with(w, |w| {
                    given.get_mut(w)[me] = Some(made);
                    Ok(())
                })?;
            }
            w.barrier()?;
            let accounts = given.read(w);
            let account = accounts[me % 2].ok_or("nobody has made it")?;
            account.opened(w)?;
            Ok(())
        };
        let made = include_str!("failing.rs").lines();
        let mut lines = made
            .zip(1..)
            .filter(|(line, _)| line.ends_with("// made here"));
        let (_, line) = lines.next().unwrap();
        let sim = dhole::sim::Settings::fixed_cost(3);
        for run in [config.run(program), config.simulate(sim, program)] {
            let text = run.map(drop).unwrap_err().to_string();
            for node in 0..3 {
                let object = node % 2;
                let waits = format!(
                    "node {node} waits for Account::opened of object {object} (made at \
                     crates/dhole/tests/it/objects/failing.rs:{line}:"
                );
                assert!(text.contains(&waits), "{waits}: {text}");
            }
        }
    }
}
