//! Monitors and clerks: callers of several nodes whose calls nest, in every order of messages and
//! of processes. The clerks are the engine's own ([`Clerk`]). Callers, processes and messages are
//! the model's.

use std::collections::{BTreeSet, VecDeque};

use dhole_model::{NodeId, ObjectId};
use dhole_protocol::objects::clerk::Clerk;
use dhole_protocol::objects::{Bytes, Call, CallId};

/// What a caller does with an object, which is named by its number. Each operation takes a worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Does {
    /// Reads it.
    Reads(u8),
    /// Adds one to it.
    Adds(u8),
    /// Takes one away, once there is one.
    Takes(u8),
    /// Writes it, and calls the other for reading meanwhile.
    Calls(u8, u8),
}

impl Does {
    fn object(self) -> u8 {
        match self {
            Does::Reads(object) | Does::Adds(object) | Does::Takes(object) => object,
            Does::Calls(object, _) => object,
        }
    }

    fn writes(self) -> bool {
        !matches!(self, Does::Reads(_))
    }
}

/// A mistake that is planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A call begins that writes, though others hold the monitor.
    TwoWriters,
    /// A reader begins at once while only readers hold the monitor, whoever waits.
    Overtakes,
    /// A call whose guard is false keeps the monitor.
    KeepsMonitor,
    /// The monitor of a call is not given back if its caller is dead.
    DeadKeepsMonitor,
}

/// Callers, each with what it does in turn, and the objects that they use.
#[derive(Clone, Debug)]
pub struct ClerkProgram {
    /// How many nodes there are. Object and caller `n` are on node `n` modulo that.
    pub nodes: u8,
    /// The objects.
    pub objects: u8,
    /// What each caller does.
    pub callers: Vec<Vec<Does>>,
    /// This node may be lost at any time, with its callers: no object is on it.
    pub may_lose: Option<u8>,
    /// What is planted.
    pub mistake: Option<Mistake>,
}

/// How an exploration went on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clerked {
    /// Every run comes to its end, in so many states.
    Sound(usize),
    /// Calls that exclude each other are in progress together.
    Together,
    /// A call began before one that came earlier, waits for the same object, and has no guard.
    Overtaken,
    /// A caller waits for ever.
    Stuck,
}

/// Who waits for a call: a caller, or a call in progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum By {
    Caller(u8),
    Running(u64),
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Asked {
    number: u64,
    by: By,
    from: u8,
    does: Does,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Phase {
    Begun,
    Waits,
    Returned,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    /// Of each node.
    clerks: Vec<Clerk>,
    values: Vec<u8>,
    /// Requests and replies on their way.
    requests: BTreeSet<Asked>,
    replies: BTreeSet<(By, u64)>,
    /// What waits with each object, in the order of coming: what the clerks must not change.
    came: Vec<VecDeque<Asked>>,
    running: Vec<(Asked, Phase)>,
    /// How far each caller is, and whether it waits.
    callers: Vec<(usize, bool)>,
    lost: bool,
}

fn id_of(object: u8) -> ObjectId {
    ObjectId(u64::from(object) + 1)
}

/// A call within a call has the number of that, and so much more.
const NESTED: u64 = 10_000;

impl ClerkProgram {
    /// Takes every run of the program.
    pub fn explore(&self) -> Clerked {
        let first = self.first();
        let (mut seen, mut next) = (std::collections::HashSet::new(), vec![first]);
        while let Some(state) = next.pop() {
            if !seen.insert(state.clone()) {
                continue;
            }
            let steps = match self.steps(&state) {
                Ok(steps) => steps,
                Err(fault) => return fault,
            };
            let over = |(it, (at, waits)): (usize, &(usize, bool))| {
                !waits && *at == self.callers[it].len() || self.is_lost(&state, it as u8)
            };
            if steps.is_empty() && !state.callers.iter().enumerate().all(over) {
                return Clerked::Stuck;
            }
            next.extend(steps);
        }
        Clerked::Sound(seen.len())
    }

    fn first(&self) -> State {
        let mut clerks = vec![Clerk::default(); usize::from(self.nodes)];
        for object in 0..self.objects {
            let here = &mut clerks[usize::from(object % self.nodes)];
            here.add(id_of(object));
        }
        State {
            clerks,
            values: vec![0; usize::from(self.objects)],
            requests: BTreeSet::new(),
            replies: BTreeSet::new(),
            came: vec![VecDeque::new(); usize::from(self.objects)],
            running: Vec::new(),
            callers: vec![(0, false); self.callers.len()],
            lost: false,
        }
    }

    fn is_lost(&self, state: &State, caller: u8) -> bool {
        state.lost && self.may_lose == Some(caller % self.nodes)
    }

    fn steps(&self, state: &State) -> Result<Vec<State>, Clerked> {
        let mut all = Vec::new();
        for (caller, (at, waits)) in state.callers.iter().enumerate() {
            let does = self.callers[caller].get(*at);
            if let Some(does) = does.filter(|_| !waits && !self.is_lost(state, caller as u8)) {
                let mut next = state.clone();
                next.callers[caller].1 = true;
                let from = caller as u8 % self.nodes;
                let number = 100 * (caller as u64 + 1) + *at as u64;
                next.asks(By::Caller(caller as u8), number, from, *does);
                all.push(next);
            }
        }
        for request in &state.requests {
            let mut next = state.clone();
            next.requests.remove(request);
            self.comes(&mut next, request.clone())?;
            all.push(next);
        }
        for reply in &state.replies {
            let mut next = state.clone();
            next.replies.remove(reply);
            match reply.0 {
                By::Caller(caller) => {
                    let caller = &mut next.callers[usize::from(caller)];
                    *caller = (caller.0 + 1, false);
                }
                By::Running(call) => {
                    let mut running = next.running.iter_mut();
                    let waiting = running.find(|(it, _)| it.number == call);
                    waiting.ok_or(Clerked::Stuck)?.1 = Phase::Returned;
                }
            }
            all.push(next);
        }
        for (place, (asked, phase)) in state.running.iter().enumerate() {
            let mut next = state.clone();
            match (asked.does, phase) {
                (_, Phase::Waits) => continue,
                (Does::Calls(object, other), Phase::Begun) => {
                    next.running[place].1 = Phase::Waits;
                    let by = By::Running(asked.number);
                    let (number, from) = (asked.number + NESTED, object % self.nodes);
                    next.asks(by, number, from, Does::Reads(other));
                }
                _ => self.ends(&mut next, place)?,
            }
            all.push(next);
        }
        if let Some(node) = self.may_lose.filter(|_| !state.lost) {
            let mut next = state.clone();
            next.lost = true;
            next.requests.retain(|it| it.from != node);
            let lost = NodeId(u16::from(node));
            for (here, clerks) in next.clerks.iter_mut().enumerate() {
                if here != usize::from(node) {
                    clerks.lose(|it| it == lost);
                }
            }
            for came in &mut next.came {
                came.retain(|it| it.from != node);
            }
            for object in 0..self.objects {
                self.admit(&mut next, object)?;
            }
            all.push(next);
        }
        Ok(all)
    }

    fn comes(&self, state: &mut State, asked: Asked) -> Result<(), Clerked> {
        let object = asked.does.object();
        let call = Call {
            id: CallId {
                node: NodeId(u16::from(asked.from)),
                number: asked.number,
            },
            object: id_of(object),
            kind: 0,
            operation: 0,
            writes: asked.does.writes(),
            started: false,
            arguments: Bytes::default(),
        };
        state.came[usize::from(object)].push_back(asked.clone());
        let in_progress = |it: &&(Asked, Phase)| it.0.does.object() == object;
        let mut holders = state.running.iter().filter(in_progress);
        let begins_wrongly = match self.mistake {
            Some(Mistake::TwoWriters) => asked.does.writes() && holders.next().is_some(),
            Some(Mistake::Overtakes) => {
                let clerk = &state.clerks[usize::from(object % self.nodes)];
                let waits = !asked.does.writes() && !clerk.is_free(id_of(object), false);
                waits && holders.all(|it| !it.0.does.writes())
            }
            _ => false,
        };
        if begins_wrongly {
            return self.begins(state, &asked);
        }
        let known = state.clerks[usize::from(object % self.nodes)].comes(call);
        assert!(known, "every object has a monitor");
        self.admit(state, object)
    }

    /// Lets all calls begin that may, under the clerk of this object.
    fn admit(&self, state: &mut State, object: u8) -> Result<(), Clerked> {
        let node = usize::from(object % self.nodes);
        while let Some(call) = state.clerks[node].begin(id_of(object)) {
            let came = state.came.iter().flatten();
            let asked = came.into_iter().find(|it| it.number == call.id.number);
            let asked = asked.expect("what begins came").clone();
            let value = state.values[usize::from(asked.does.object())];
            if matches!(asked.does, Does::Takes(_)) && value == 0 {
                if self.mistake != Some(Mistake::KeepsMonitor) {
                    state.clerks[node].is_blocked(call.object, call.id);
                }
                continue;
            }
            self.begins(state, &asked)?;
        }
        Ok(())
    }

    fn begins(&self, state: &mut State, asked: &Asked) -> Result<(), Clerked> {
        let object = asked.does.object();
        let came = &mut state.came[usize::from(object)];
        let place = came.iter().position(|it| it.number == asked.number);
        let place = place.expect("what begins came");
        let waits = |it: &Asked| !matches!(it.does, Does::Takes(_));
        if came.iter().take(place).any(waits) {
            return Err(Clerked::Overtaken);
        }
        came.remove(place);
        let of_it = |it: &&(Asked, Phase)| it.0.does.object() == object;
        let others = state.running.iter().filter(of_it);
        let excludes = |it: &(Asked, Phase)| asked.does.writes() || it.0.does.writes();
        if others.into_iter().any(excludes) {
            return Err(Clerked::Together);
        }
        state.running.push((asked.clone(), Phase::Begun));
        state.running.sort();
        Ok(())
    }

    fn ends(&self, state: &mut State, place: usize) -> Result<(), Clerked> {
        let (asked, _) = state.running.remove(place);
        let object = asked.does.object();
        let value = &mut state.values[usize::from(object)];
        match asked.does {
            Does::Adds(_) => *value += 1,
            Does::Takes(_) => *value -= 1,
            Does::Reads(_) | Does::Calls(..) => {}
        }
        let dead = state.lost && self.may_lose == Some(asked.from);
        if !(dead && self.mistake == Some(Mistake::DeadKeepsMonitor)) {
            let call = CallId {
                node: NodeId(u16::from(asked.from)),
                number: asked.number,
            };
            state.clerks[usize::from(object % self.nodes)].over(id_of(object), call);
        }
        if !dead {
            state.replies.insert((asked.by, asked.number));
        }
        self.admit(state, object)
    }
}

impl State {
    fn asks(&mut self, by: By, number: u64, from: u8, does: Does) {
        self.requests.insert(Asked {
            number,
            by,
            from,
            does,
        });
    }
}
