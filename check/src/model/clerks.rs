//! Monitors and clerks: callers of several nodes whose calls nest, in every order of messages and
//! of processes. The clerks are the engine's own ([`Clerks`]), and so are chains of calls. Callers,
//! processes and messages are the model's.

use std::collections::{BTreeSet, VecDeque};

use dhole_model::{NodeId, ObjectId};
use dhole_protocol::objects::chain::Chain;
use dhole_protocol::objects::clerk::Clerks;
use dhole_protocol::objects::{Bytes, Call, CallId, ClerkId};

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
    /// Writes it, and starts a call of the other for reading meanwhile, whose end it awaits.
    Starts(u8, u8),
    /// Writes it, and calls the other, which calls the first for reading.
    CallsBack(u8, u8),
    /// As `Takes`, and withdraws the call at some moment.
    TakesWithin(u8),
}

impl Does {
    fn object(self) -> u8 {
        match self {
            Does::Reads(object)
            | Does::Adds(object)
            | Does::Takes(object)
            | Does::TakesWithin(object)
            | Does::Calls(object, _)
            | Does::Starts(object, _)
            | Does::CallsBack(object, _) => object,
        }
    }

    fn writes(self) -> bool {
        !matches!(self, Does::Reads(_))
    }

    fn has_guard(self) -> bool {
        matches!(self, Does::Takes(_) | Does::TakesWithin(_))
    }

    /// What it calls meanwhile.
    fn calls(self) -> Option<Does> {
        match self {
            Does::Calls(_, other) | Does::Starts(_, other) => Some(Does::Reads(other)),
            Does::CallsBack(object, other) => Some(Does::Calls(other, object)),
            _ => None,
        }
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
    /// A call goes without the chain of its callers.
    NoChain,
    /// A call that an operation starts goes without it.
    NoChainOfStarted,
    /// The objects of a clerk that admits one call at a time are not in one.
    NoGroup,
    /// A call that was withdrawn is executed.
    ExecutesWithdrawn,
    /// A call that is withdrawn while it writes gives the monitor back.
    WithdrawsBegun,
}

/// Callers, each with what it does in turn, and the objects that they use.
#[derive(Clone, Debug)]
pub struct ClerkProgram {
    /// How many nodes there are. Object and caller `n` are on node `n` modulo that.
    pub nodes: u8,
    /// The objects.
    pub objects: u8,
    /// How many calls of all objects of a node a clerk admits at a time, where there is one.
    pub most: Option<u32>,
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
    /// A call was executed that its caller had withdrawn.
    Withdrawn,
    /// More calls of a clerk are in progress than it admits.
    TooMany,
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
    /// The objects of its callers, the first caller's first.
    chain: Vec<u8>,
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
    clerks: Vec<Clerks>,
    values: Vec<u8>,
    /// Requests and replies on their way.
    requests: BTreeSet<Asked>,
    replies: BTreeSet<(By, u64)>,
    /// Withdrawals on their way, and calls that were withdrawn.
    withdrawals: BTreeSet<Asked>,
    withdrawn: BTreeSet<u64>,
    /// Calls that were refused because they would wait for their callers.
    refused: BTreeSet<u64>,
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
        let mut clerks = vec![Clerks::default(); usize::from(self.nodes)];
        for object in 0..self.objects {
            let node = object % self.nodes;
            let here = &mut clerks[usize::from(node)];
            match self.most.filter(|_| self.mistake != Some(Mistake::NoGroup)) {
                None => here.add(id_of(object)),
                Some(most) => {
                    let clerk = ClerkId {
                        node: NodeId(u16::from(node)),
                        number: ObjectId(0),
                        most,
                    };
                    here.add_to(clerk, id_of(object));
                }
            }
        }
        State {
            clerks,
            values: vec![0; usize::from(self.objects)],
            requests: BTreeSet::new(),
            replies: BTreeSet::new(),
            withdrawals: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            refused: BTreeSet::new(),
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
                next.asks(Asked {
                    number,
                    by: By::Caller(caller as u8),
                    from,
                    does: *does,
                    chain: Vec::new(),
                });
                all.push(next);
            }
        }
        for request in &state.requests {
            let mut next = state.clone();
            next.requests.remove(request);
            self.comes(&mut next, request.clone())?;
            all.push(next);
        }
        self.withdraw(state, &mut all)?;
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
                (does, Phase::Begun) if does.calls().is_some() => {
                    next.running[place].1 = Phase::Waits;
                    self.calls_on(&mut next, asked);
                }
                _ => self.ends(&mut next, place)?,
            }
            all.push(next);
        }
        if let Some(node) = self.may_lose.filter(|_| !state.lost) {
            let mut next = state.clone();
            next.lost = true;
            next.requests.retain(|it| it.from != node);
            next.withdrawals.retain(|it| it.from != node);
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

    /// An operation in progress makes its call.
    fn calls_on(&self, state: &mut State, asked: &Asked) {
        let Some(does) = asked.does.calls() else {
            return;
        };
        let mut chain = asked.chain.clone();
        chain.push(asked.does.object());
        let is_started = matches!(asked.does, Does::Starts(..));
        if self.mistake == Some(Mistake::NoChain)
            || is_started && self.mistake == Some(Mistake::NoChainOfStarted)
        {
            chain.clear();
        }
        state.requests.insert(Asked {
            number: asked.number + NESTED,
            by: By::Running(asked.number),
            from: asked.does.object() % self.nodes,
            does,
            chain,
        });
    }

    /// Callers withdraw their calls, and withdrawals come behind the calls.
    fn withdraw(&self, state: &State, all: &mut Vec<State>) -> Result<(), Clerked> {
        for (caller, (at, waits)) in state.callers.iter().enumerate() {
            let number = 100 * (caller as u64 + 1) + *at as u64;
            let does = self.callers[caller].get(*at).copied();
            let does = does.filter(|it| *waits && matches!(it, Does::TakesWithin(_)));
            let Some(does) = does.filter(|_| !state.withdrawn.contains(&number)) else {
                continue;
            };
            if self.is_lost(state, caller as u8) {
                continue;
            }
            let mut next = state.clone();
            next.withdrawn.insert(number);
            next.withdrawals.insert(Asked {
                number,
                by: By::Caller(caller as u8),
                from: caller as u8 % self.nodes,
                does,
                chain: Vec::new(),
            });
            all.push(next);
        }
        for asked in &state.withdrawals {
            if state.requests.contains(asked) {
                continue;
            }
            let mut next = state.clone();
            next.withdrawals.remove(asked);
            let object = asked.does.object();
            let clerk = &mut next.clerks[usize::from(object % self.nodes)];
            let mut taken = clerk.withdraw(id_of(object), asked.id());
            if self.mistake == Some(Mistake::WithdrawsBegun) && !taken {
                let begun = clerk.knows(id_of(object), asked.id());
                clerk.over(id_of(object), asked.id());
                taken = begun;
            }
            if taken {
                if self.mistake != Some(Mistake::ExecutesWithdrawn) {
                    let came = &mut next.came[usize::from(object)];
                    came.retain(|it| it.number != asked.number);
                } else if let Some(call) = next.came[usize::from(object)]
                    .iter()
                    .find(|it| it.number == asked.number)
                {
                    let call = self.call(call);
                    next.clerks[usize::from(object % self.nodes)].comes(call);
                }
                next.replies.insert((asked.by, asked.number));
                next.refused.insert(asked.number);
            }
            self.admit(&mut next, object)?;
            all.push(next);
        }
        Ok(())
    }

    fn call(&self, asked: &Asked) -> Call {
        Call {
            id: asked.id(),
            object: id_of(asked.does.object()),
            kind: 0,
            operation: 0,
            writes: asked.does.writes(),
            started: false,
            chain: Bytes::default(),
            arguments: Bytes::default(),
        }
    }

    fn comes(&self, state: &mut State, asked: Asked) -> Result<(), Clerked> {
        let object = asked.does.object();
        let chain = asked.chain.iter().fold(Chain::default(), |chain, held| {
            chain.then(id_of(*held), "an operation".into())
        });
        let here = &state.clerks[usize::from(object % self.nodes)];
        if here.waits_for(id_of(object), chain.links()) {
            state.replies.insert((asked.by, asked.number));
            state.refused.insert(asked.number);
            return Ok(());
        }
        let call = self.call(&asked);
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
            if state.refused.contains(&asked.number) {
                return Err(Clerked::Withdrawn);
            }
            let value = state.values[usize::from(asked.does.object())];
            if asked.does.has_guard() && value == 0 {
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
        let waits = |it: &Asked| !it.does.has_guard();
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
        let node = object % self.nodes;
        let here = |it: &&(Asked, Phase)| it.0.does.object() % self.nodes == node;
        let in_progress = state.running.iter().filter(here).count();
        if self.most.is_some_and(|most| in_progress >= most as usize) {
            return Err(Clerked::TooMany);
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
            Does::Takes(_) | Does::TakesWithin(_) => *value -= 1,
            Does::Reads(_) | Does::Calls(..) | Does::Starts(..) | Does::CallsBack(..) => {}
        }
        let dead = state.lost && self.may_lose == Some(asked.from);
        if !(dead && self.mistake == Some(Mistake::DeadKeepsMonitor)) {
            state.clerks[usize::from(object % self.nodes)].over(id_of(object), asked.id());
        }
        if !dead {
            state.replies.insert((asked.by, asked.number));
        }
        self.admit(state, object)
    }
}

impl State {
    fn asks(&mut self, asked: Asked) {
        self.requests.insert(asked);
    }
}

impl Asked {
    fn id(&self) -> CallId {
        CallId {
            node: NodeId(u16::from(self.from)),
            number: self.number,
        }
    }
}
