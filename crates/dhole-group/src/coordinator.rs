//! The coordinator of a change of the view: whom it asks, what it gathers, where the view ends.

use std::collections::BTreeSet;

use dhole_model::{NodeId, NodeMap};

use super::change::Stopped;
use super::message::{GroupMessage, Member, Part, State, ViewId};
use super::{Body, Ending, Group, GroupCommand, Phase};

/// What a coordinator keeps of the change that it brings about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Change {
    attempt: u64,
    /// Whom it took for lost when it began.
    pub(super) lost: BTreeSet<NodeId>,
    /// Whom it asked, beside the members of its view.
    pub(super) asked: BTreeSet<NodeId>,
    states: NodeMap<State>,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Collecting,
    /// Messages up to this number are gathered.
    Gathering(u64),
    /// The view is told, and these have installed it.
    Installing(BTreeSet<NodeId>),
}

impl<B: Body> Group<B> {
    /// The newest of the views that the coordinator knows of: its own, or that of a member.
    pub(super) fn newest(&self) -> State {
        let mut newest = self.state();
        for state in self.change.iter().flat_map(|change| change.states.values()) {
            let in_use = state.view == newest.view && state.electors.is_empty();
            if state.view > newest.view || in_use {
                newest = state.clone();
            }
        }
        newest
    }

    /// Whose word the change needs: all that are not lost of the newest view, and of those that
    /// had to agree to it while it may not be in use.
    pub(super) fn needed(&self, newest: &State) -> BTreeSet<NodeId> {
        let all = newest.members.iter().chain(&newest.electors).copied();
        all.filter(|node| !self.is_lost(*node) && *node != self.me)
            .collect()
    }

    pub(super) fn begin(&mut self, lost: BTreeSet<NodeId>, out: &mut Vec<GroupCommand<B>>) {
        self.attempts += 1;
        let asked = match self.change.take() {
            Some(change) => change.asked,
            None => BTreeSet::new(),
        };
        self.change = Some(Change {
            attempt: self.attempts,
            lost,
            asked,
            states: NodeMap::new(),
            stage: Stage::Collecting,
        });
        self.stopped = Some(Stopped {
            by: self.me,
            attempt: self.attempts,
            view: self.view.id.number,
        });
        self.ask_states(out);
        self.hear_all(out);
    }

    /// Asks those whose word is missing.
    pub(super) fn ask_states(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let (needed, joins) = (self.needed(&self.newest()), self.joins());
        let view = self.view.id;
        let wants = self.wants.clone();
        let Some(change) = &mut self.change else {
            return;
        };
        let attempt = change.attempt;
        let more = change.asked.iter().filter(|node| {
            let lost = self.wants.lost.get(node);
            lost.is_none_or(|life| *life < self.peers[node.index()].incarnation)
        });
        let all: BTreeSet<_> = needed.iter().chain(more).copied().collect();
        for to in all.into_iter().filter(|to| !change.states.contains_key(to)) {
            let wants = wants.clone();
            let joins = joins.iter().find(|(node, _)| *node == to);
            let life = joins.map_or(self.peers[to.index()].incarnation, |(_, life)| *life);
            let message = GroupMessage::Collect {
                view,
                life,
                attempt,
                wants,
            };
            out.push(GroupCommand::Send { to, message });
        }
        change.asked.extend(needed);
    }

    pub(super) fn on_state(
        &mut self,
        from: NodeId,
        attempt: u64,
        state: State,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        let Some(change) = &mut self.change else {
            return;
        };
        if change.attempt != attempt || change.stage != Stage::Collecting {
            return;
        }
        let wants = state.wants.clone();
        change.states.insert(from, state);
        self.adopt_wants(from, &wants);
        self.consider(out);
        if self
            .change
            .as_ref()
            .is_some_and(|change| change.attempt == attempt)
        {
            self.hear_all(out);
        }
    }

    /// When all have told what they know: gathers what this node lacks of it.
    pub(super) fn hear_all(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let newest = self.newest();
        if !newest.members.contains(&self.me) && !newest.electors.contains(&self.me) {
            self.end(Ending::Excluded, out);
            return;
        }
        if !self.may_go_on(&newest.members, &newest.electors, out) {
            return;
        }
        let needed = self.needed(&newest);
        let Some(change) = &mut self.change else {
            return;
        };
        if change.stage != Stage::Collecting {
            return;
        }
        if !needed.iter().all(|node| change.states.contains_key(node)) {
            if !needed.iter().all(|node| change.asked.contains(node)) {
                self.ask_states(out);
            }
            return;
        }
        let end = self.reach(&newest);
        if let Some(change) = &mut self.change {
            change.stage = Stage::Gathering(end);
        }
        self.gather(out);
        self.conclude_if_whole(out);
    }

    /// The number up to which somebody has each message.
    pub(super) fn reach(&self, newest: &State) -> u64 {
        let mine = self.state();
        let states = self.change.iter().flat_map(|change| change.states.values());
        let states: Vec<&State> = states.chain([&mine]).collect();
        let mut end = states.iter().map(|state| state.done).max().unwrap_or(0);
        // An older view may have numbered other messages beyond the start of the newest.
        let counts =
            |state: &State, number: u64| state.view == newest.view || number <= newest.start;
        let held = |number: u64| {
            let mut states = states.iter().filter(|state| counts(state, number));
            states.any(|state| state.held.binary_search(&number).is_ok())
        };
        let most = self
            .history
            .done
            .saturating_add(u64::from(self.settings.window));
        while end < most && held(end + 1) {
            end += 1;
        }
        end.min(most)
    }

    /// Asks for messages that this node lacks, each of one member that has it.
    pub(super) fn gather(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let Some(change) = &self.change else { return };
        let Stage::Gathering(end) = change.stage else {
            return;
        };
        let mut from: NodeMap<Vec<u64>> = NodeMap::new();
        for number in self.history.done + 1..=end {
            if self.history.has(number) {
                continue;
            }
            let has =
                |state: &State| number <= state.done || state.held.binary_search(&number).is_ok();
            let mut holders = change.states.iter().filter(|(_, state)| has(state));
            if let Some((holder, _)) = holders.next() {
                from.get_or_default(*holder).push(number);
            }
        }
        let attempt = change.attempt;
        for (to, numbers) in from {
            let message = GroupMessage::Gather { attempt, numbers };
            out.push(GroupCommand::Send { to, message });
        }
    }

    pub(super) fn on_gathered(
        &mut self,
        attempt: u64,
        number: u64,
        part: Part,
        body: B,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        let current = self
            .change
            .as_ref()
            .filter(|change| change.attempt == attempt);
        let Some(Stage::Gathering(end)) = current.map(|change| &change.stage) else {
            return Ok(());
        };
        if number <= *end {
            self.history.check(number, part, self.settings.window)?;
            self.history.put(number, part, Some(body));
        }
        self.conclude_if_whole(out);
        Ok(())
    }

    /// With all messages here: ends the view and begins the next.
    pub(super) fn conclude_if_whole(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let Some(change) = &self.change else { return };
        let Stage::Gathering(end) = change.stage else {
            return;
        };
        if !(self.history.done + 1..=end).all(|number| self.history.has(number)) {
            return;
        }
        let attempt = change.attempt;
        let end = self.history.whole(end);
        let newest = self.newest();
        let mut electors: Vec<_> = self.needed(&newest).into_iter().collect();
        electors.insert(0, self.me);
        let stays = |node: &NodeId| !self.is_lost(*node) && !self.leaves_now(*node);
        let mut members: Vec<_> = newest.members.iter().copied().filter(stays).collect();
        members.retain(|node| *node != self.me);
        members.insert(0, self.me);
        let joins = self.joins();
        members.retain(|node| !joins.iter().any(|(joining, _)| joining == node));
        self.history.cut(end);
        self.deliver(out);
        let member = |node: NodeId| Member {
            node,
            incarnation: self.peers[node.index()].incarnation,
            serial: self.peers[node.index()].serial,
        };
        let mut all: Vec<Member> = members.into_iter().map(member).collect();
        all.extend(joins.iter().map(|(node, incarnation)| Member {
            node: *node,
            incarnation: *incarnation,
            serial: 0,
        }));
        let view = ViewId {
            number: newest.view.number + 1,
            sequencer: self.me,
        };
        self.adopt(view, &all, electors, end, out);
        if let Some(change) = &mut self.change {
            change.stage = Stage::Installing(BTreeSet::new());
        }
        self.tell_view(attempt, out);
        self.activate_if_installed(out);
    }

    pub(super) fn tell_view(&self, attempt: u64, out: &mut Vec<GroupCommand<B>>) {
        let Some(Stage::Installing(done)) = self.change.as_ref().map(|change| &change.stage) else {
            return;
        };
        let member = |node: &NodeId| Member {
            node: *node,
            incarnation: self.peers[node.index()].incarnation,
            serial: self.peers[node.index()].serial,
        };
        let members: Vec<Member> = self.view.members.iter().map(member).collect();
        for to in self.others().filter(|node| !done.contains(node)) {
            let message = GroupMessage::Install {
                attempt,
                view: self.view.id,
                members: members.clone(),
                electors: self.view.electors.clone(),
                end: self.view.start,
            };
            out.push(GroupCommand::Send { to, message });
        }
    }

    pub(super) fn on_installed(
        &mut self,
        from: NodeId,
        view: ViewId,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        if view != self.view.id || !self.is_sequencer() || !self.is_listed(from) {
            return;
        }
        if self.phase == Phase::Going {
            let message = GroupMessage::Active { view };
            out.push(GroupCommand::Send { to: from, message });
            return;
        }
        if let Some(Stage::Installing(done)) = self.change.as_mut().map(|change| &mut change.stage)
        {
            done.insert(from);
            self.activate_if_installed(out);
        }
    }

    pub(super) fn activate_if_installed(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let Some(change) = &self.change else { return };
        let Stage::Installing(done) = &change.stage else {
            return;
        };
        if !self.others().all(|node| done.contains(&node)) {
            return;
        }
        let view = self.view.id;
        // Who left waits for this; who was taken for lost should know, if it lives.
        let behind = self.wants.lost.keys().chain(self.wants.leaving.keys());
        let behind = behind.filter(|node| !self.is_listed(**node));
        self.behind = behind.copied().collect();
        self.behind.iter().for_each(|node| self.refuse(*node, out));
        self.start_sequencer();
        self.use_view(out);
        if self.others().next().is_some() {
            let message = GroupMessage::Active { view };
            out.push(GroupCommand::SendAll { message });
        }
    }

    /// Tells those that the view has left behind once more.
    pub(super) fn refuse_again(&self, out: &mut Vec<GroupCommand<B>>) {
        self.behind.iter().for_each(|node| self.refuse(*node, out));
    }

    /// Does again what the change of the view waits for.
    pub(super) fn press_on(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if self.phase == Phase::Joining && self.stopped.is_none() {
            self.ask_to_join(out);
            return;
        }
        match self
            .change
            .as_ref()
            .map(|change| (change.attempt, &change.stage))
        {
            Some((_, Stage::Collecting)) => self.ask_states(out),
            Some((_, Stage::Gathering(_))) => self.gather(out),
            Some((attempt, Stage::Installing(_))) => self.tell_view(attempt, out),
            None => {
                let stopped = self.awaited();
                if self.phase == Phase::Installing && self.stopped.is_none() {
                    self.install_further(out);
                }
                self.told = None;
                match stopped {
                    Some(node) => self.tell(node, out),
                    None => self.consider(out),
                }
            }
        }
    }
}
