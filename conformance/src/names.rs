//! Names in simulated clusters, under seeds of jitter: nodes bind, look up, claim and unbind a few
//! names. There must be one order of all calls in which one table gives each node what it got. A
//! lookup reads the replica of its node, and may be late. All other calls keep the order of real
//! time.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use dhole::names::NameError;
use dhole::sim::{Crash, Settings};
use dhole::{Config, Error, NodeId, Object, Result, RunError, Worker, replicated};
use dhole_check::history::{History, OneCopy};
use dhole_model::Variants;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: u16,
    /// Names.
    pub names: u8,
    /// Calls of each node.
    pub calls: usize,
    /// Nodes that crash, of a run that survives that.
    pub crashes: u16,
}

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// A name is bound on the node that binds it, and on no other.
    OnOneNode,
    /// A node that finds no value makes one without a claim.
    WithoutClaim,
    /// A claim is given up as soon as its value is made, and not when it is bound.
    GivenUpEarly,
}

/// A call, with the name. Every value is bound by one call at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Bind(u8, u64),
    Unbind(u8),
    Lookup(u8),
    Await(u8),
    Claim(u8),
    /// Ends a claim, with a value or without.
    Ends(u8, Option<u64>),
}

impl Call {
    /// Whether the call reads the replica of its node, so that it may be late.
    fn reads(&self, got: &Got) -> bool {
        match self {
            Call::Lookup(_) | Call::Await(_) => true,
            Call::Claim(_) => matches!(got, Got::Value(_)),
            _ => false,
        }
    }
}

/// What a call returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Got {
    Done,
    Refused,
    Value(u64),
}

/// One table.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Table(Vec<Entry>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    Free,
    Claimed,
    Bound(u64),
}

impl OneCopy for Table {
    type Call = Call;
    type Result = Got;

    fn apply(&mut self, call: &Call) -> Option<Got> {
        let (Call::Bind(name, _)
        | Call::Unbind(name)
        | Call::Lookup(name)
        | Call::Await(name)
        | Call::Claim(name)
        | Call::Ends(name, _)) = *call;
        let entry = &mut self.0[usize::from(name)];
        Some(match (*call, *entry) {
            (Call::Bind(_, value), Entry::Free) => {
                *entry = Entry::Bound(value);
                Got::Done
            }
            (Call::Unbind(_), Entry::Bound(_)) => {
                *entry = Entry::Free;
                Got::Done
            }
            (Call::Lookup(_) | Call::Await(_) | Call::Claim(_), Entry::Bound(value)) => {
                Got::Value(value)
            }
            (Call::Claim(_), Entry::Free) => {
                *entry = Entry::Claimed;
                Got::Done
            }
            (Call::Await(_), _) | (Call::Claim(_), Entry::Claimed) => return None,
            (Call::Ends(_, value), Entry::Claimed) => {
                *entry = value.map_or(Entry::Free, Entry::Bound);
                Got::Done
            }
            _ => Got::Refused,
        })
    }
}

/// A table of names that is wrong: binding changes the replica of the caller's node alone.
#[derive(Serialize, Deserialize, Default)]
struct OnOneNode(Mutex<Vec<(u8, u64)>>);

#[dhole::object]
impl OnOneNode {
    pub fn bind(&self, name: u8, value: u64) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = names.iter().all(|(it, _)| *it != name);
        if free {
            names.push((name, value));
        }
        free
    }

    pub fn unbind(&self, name: u8) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = names.len();
        names.retain(|(it, _)| *it != name);
        names.len() < before
    }

    pub fn lookup(&self, name: u8) -> Option<u64> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = names.iter().find(|(it, _)| *it == name);
        found.map(|(_, value)| *value)
    }
}

/// What a node saw, at a time of the cluster.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at_ns: u128,
    node: usize,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Calls(Call),
    Gets(Got),
}

#[derive(Default)]
struct Observed(Mutex<Vec<Seen>>);

impl Observed {
    fn note(&self, w: &Worker<'_>, what: What) {
        let seen = Seen {
            at_ns: w.now().as_nanos(),
            node: w.node().index(),
            what,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(seen);
    }
}

/// Runs a random program under a random schedule.
///
/// # Errors
/// The error in what the nodes saw.
pub fn run(shape: Shape, seed: u64, planted: Planted) -> std::result::Result<(), String> {
    let mut random = Random::seed_from_u64(seed);
    let mut value = 0;
    let mut call = |random: &mut Random| {
        value += 1;
        let name = random.random_range(0..shape.names);
        match random.random_range(0..16) {
            0..=3 => Call::Bind(name, value),
            4..=6 => Call::Unbind(name),
            7..=10 => Call::Lookup(name),
            11 => Call::Await(name),
            12 => Call::Ends(name, None),
            _ => Call::Ends(name, Some(value)),
        }
    };
    let mut calls = || (0..shape.calls).map(|_| call(&mut random)).collect();
    let programs: Vec<Vec<Call>> = (0..shape.nodes).map(|_| calls()).collect();
    let mut settings = Settings::fixed_cost(usize::from(shape.nodes));
    settings.seed = seed;
    settings.network.jitter = 1.0;
    for _ in 0..shape.crashes {
        let node = NodeId(random.random_range(0..shape.nodes));
        let at_ns = random.random_range(20_000..900_000);
        settings.crashes.push(Crash { node, at_ns });
    }
    let history = Observed::default();
    let config = Config::nodes(1).survive(shape.crashes > 0);
    let ran = config.simulate(settings, |w| {
        let wrong = w.once(|w| Ok(w.new_object(replicated(), OnOneNode::default())?))?;
        for call in &programs[w.node().index()] {
            w.work(w.random() % 40_000);
            perform(w, wrong, *call, planted, &history)?;
        }
        Ok(())
    });
    match ran {
        Ok(_) => {}
        Err(error) if waits_in_vain(&error) => {}
        Err(error) => return Err(error.to_string()),
    }
    let seen = history
        .0
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    check(shape, seen)
}

/// Whether a run has ended because a name that a node waits for will not be bound.
fn waits_in_vain(error: &RunError) -> bool {
    let words = error.to_string();
    matches!(error, RunError::Failed { .. }) && words.contains("waits for the name \"")
}

fn perform(
    w: &mut Worker<'_>,
    wrong: Object<OnOneNode>,
    call: Call,
    planted: Planted,
    history: &Observed,
) -> Result<()> {
    if let Call::Ends(name, value) = call {
        return claim(w, (name, value), planted, history);
    }
    history.note(w, What::Calls(call));
    let name = |name: u8| format!("name {name}");
    let got = match (call, planted) {
        (Call::Bind(it, value), Planted::OnOneNode) => done(wrong.bind(w, it, value)?),
        (Call::Unbind(it), Planted::OnOneNode) => done(wrong.unbind(w, it)?),
        (Call::Lookup(it), Planted::OnOneNode) => {
            wrong.lookup(w, it)?.map_or(Got::Refused, Got::Value)
        }
        (Call::Bind(it, value), _) => got(w.bind(&name(it), &value).map(|()| Got::Done))?,
        (Call::Unbind(it), _) => got(w.unbind(&name(it)).map(|()| Got::Done))?,
        (Call::Lookup(it), _) => got(w.lookup(&name(it)).map(Got::Value))?,
        (Call::Await(it), _) => got(w.await_name(&name(it)).map(Got::Value))?,
        (Call::Claim(_) | Call::Ends(..), _) => Got::Refused,
    };
    history.note(w, What::Gets(got));
    Ok(())
}

fn done(done: bool) -> Got {
    if done { Got::Done } else { Got::Refused }
}

/// What a call came to, if nothing went wrong that must not.
fn got(called: std::result::Result<Got, NameError>) -> Result<Got> {
    match called {
        Err(NameError::Taken { .. } | NameError::NoSuch { .. }) => Ok(Got::Refused),
        called => Ok(called?),
    }
}

/// A `bind_or_get`, which is a claim and, where the value is made, the end of the claim.
fn claim(
    w: &mut Worker<'_>,
    (name, value): (u8, Option<u64>),
    planted: Planted,
    history: &Observed,
) -> Result<()> {
    const FAILS: &str = "no value is made";
    history.note(w, What::Calls(Call::Claim(name)));
    let named = format!("name {name}");
    let made = Cell::new(false);
    let make = |w: &mut Worker<'_>| {
        history.note(w, What::Gets(Got::Done));
        history.note(w, What::Calls(Call::Ends(name, value)));
        made.set(true);
        w.work(w.random() % 20_000);
        value.ok_or_else(|| FAILS.into())
    };
    let got: Result<u64> = match planted {
        Planted::WithoutClaim => match w.lookup(&named) {
            Ok(value) => Ok(value),
            Err(_) => make(w).inspect(|value| drop(w.bind(&named, value))),
        },
        Planted::GivenUpEarly => {
            let mut value = None;
            let given_up = w.bind_or_get(&named, |w| {
                value = Some(make(w)?);
                Err::<u64, Error>(FAILS.into())
            });
            match (value, given_up) {
                (Some(value), _) => Ok(value).inspect(|value| drop(w.bind(&named, value))),
                (None, got) => got,
            }
        }
        Planted::Nothing | Planted::OnOneNode => w.bind_or_get(&named, make),
    };
    let got = match got {
        Ok(_) if made.get() => Got::Done,
        Ok(value) => Got::Value(value),
        Err(error) if error.to_string() == FAILS => Got::Done,
        Err(error) => return Err(error),
    };
    history.note(w, What::Gets(got));
    Ok(())
}

fn check(shape: Shape, mut seen: Vec<Seen>) -> std::result::Result<(), String> {
    // The sort is stable: a node's result comes before the call that it makes at the same moment.
    seen.sort_by_key(|seen| seen.at_ns);
    let result = |place: usize| {
        let node = seen[place].node;
        let mut later = seen[place + 1..].iter().filter(|it| it.node == node);
        later.find_map(|it| match it.what {
            What::Gets(got) => Some(got),
            What::Calls(_) => None,
        })
    };
    let (mut history, mut writes) = (History::default(), History::default());
    let mut reads = vec![false; usize::from(shape.nodes)];
    for (place, Seen { node, what, .. }) in seen.iter().enumerate() {
        match *what {
            What::Calls(call) => {
                history.calls(*node, call)?;
                // A node that crashes may leave a claim behind, which is given up at some time.
                if let Call::Claim(name) | Call::Ends(name, _) = call
                    && result(place).is_none()
                {
                    let another = usize::from(shape.nodes) + place;
                    history.calls(another, Call::Ends(name, None))?;
                    writes.calls(another, Call::Ends(name, None))?;
                }
                // A call without a result may have happened.
                reads[*node] = call.reads(&result(place).unwrap_or(Got::Done));
                if !reads[*node] {
                    writes.calls(*node, call)?;
                }
            }
            What::Gets(got) => {
                history.hears(*node, got)?;
                if !reads[*node] {
                    writes.hears(*node, got)?;
                }
            }
        }
    }
    let free = Table(vec![Entry::Free; usize::from(shape.names)]);
    if !history.is_sequentially_consistent(free.clone()) {
        return Err(format!("no order explains {seen:?}"));
    }
    if !writes.is_linearizable(free) {
        return Err(format!("no order in real time explains {seen:?}"));
    }
    Ok(())
}
