//! How the view changes when members are lost, leave or join.
//!
//! The most senior member that stays coordinates. It stops all others and hears what they have
//! (`Collect`, `State`); it gets the messages that it lacks (`Gather`); the order of the view ends
//! where the first message is missing that nobody has, or before. What one of them has delivered is
//! within that, for it has the message. Then it says so (`Install`); each fetches what it lacks,
//! delivers to the end and answers (`Installed`); when all have, the view is in use (`Active`) and
//! its sequencer, which is the coordinator, gives out numbers.

use std::collections::{BTreeMap, BTreeSet};

use dhole_model::NodeId;

use super::message::{GroupMessage, Member, State, ViewId, Wants};
use super::{Body, Ending, Group, GroupCommand, Phase, Quorum};

/// What a coordinator keeps of the change that it brings about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Change {
    attempt: u64,
    /// Whom it took for lost when it began.
    lost: BTreeSet<NodeId>,
    /// Whom it asked, beside the members of its view.
    asked: BTreeSet<NodeId>,
    states: BTreeMap<NodeId, State>,
    /// Whom the next view leaves behind.
    behind: BTreeSet<NodeId>,
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

/// A coordinator for which this member has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stopped {
    pub(super) by: NodeId,
    pub(super) attempt: u64,
    /// The number of the coordinator's view.
    view: u64,
}

impl<B: Body> Group<B> {
    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        let lost = self.wants.lost.get(&node);
        lost.is_some_and(|life| *life >= self.peers[node.index()].incarnation)
    }

    fn leaves_now(&self, node: NodeId) -> bool {
        let leaving = self.wants.leaving.get(&node);
        leaving.is_some_and(|life| *life >= self.peers[node.index()].incarnation)
    }

    fn joins(&self) -> Vec<(NodeId, u64)> {
        let joining = self.wants.joining.iter();
        let fresh = joining.filter(|(node, life)| {
            let lost = self.wants.lost.get(node);
            **life > self.peers[node.index()].incarnation && lost.is_none_or(|lost| lost < *life)
        });
        fresh.map(|(node, life)| (*node, *life)).collect()
    }

    fn is_listed(&self, node: NodeId) -> bool {
        self.view.members.contains(&node)
    }

    /// The port has lost a node.
    pub(super) fn lose(&mut self, node: NodeId, out: &mut Vec<GroupCommand<B>>) {
        let Some(peer) = self.peers.get(node.index()) else {
            return;
        };
        let joining = self.wants.joining.get(&node).copied().unwrap_or(0);
        let life = peer.incarnation.max(joining);
        let lost = self.wants.lost.entry(node).or_insert(life);
        *lost = life.max(*lost);
        if self.awaited().is_none()
            && let Some((from, view, attempt, wants)) = self.deferred.take()
        {
            self.on_collect(from, view, attempt, &wants, out);
        }
        self.consider(out);
    }

    /// Wants to leave, once all that it has broadcast is delivered.
    pub(super) fn leave_when_done(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let done = self.leaves && self.own.pending.is_empty() && self.is_going();
        if done && !self.wants.leaving.contains_key(&self.me) {
            self.wants.leaving.insert(self.me, self.incarnation);
            self.consider(out);
        }
    }

    /// Who should change the view, as far as this member knows.
    fn coordinator(&self) -> Option<NodeId> {
        let alive = || {
            self.view
                .members
                .iter()
                .filter(|node| !self.is_lost(**node))
        };
        let stays = alive().find(|node| !self.leaves_now(**node));
        stays.or_else(|| alive().next()).copied()
    }

    /// Whether those that are not lost may go on without the others.
    fn is_quorum(&self, of: &[NodeId]) -> bool {
        let alive = of.iter().filter(|node| !self.is_lost(**node)).count();
        let senior = of.first().is_some_and(|node| !self.is_lost(*node));
        match self.settings.quorum {
            Quorum::Survivors => alive > 0,
            Quorum::Majority => 2 * alive > of.len() || (2 * alive == of.len() && senior),
        }
    }

    /// Ends where too few are left of those whose consent a next view needs.
    fn may_go_on(
        &mut self,
        members: &[NodeId],
        electors: &[NodeId],
        out: &mut Vec<GroupCommand<B>>,
    ) -> bool {
        let enough = |of: &[NodeId]| of.is_empty() || self.is_quorum(of);
        if enough(members) && enough(electors) {
            return true;
        }
        let left = members.iter().filter(|node| !self.is_lost(**node)).count();
        let of = members.len();
        self.end(Ending::Minority { left, of }, out);
        false
    }

    pub(super) fn end(&mut self, reason: Ending, out: &mut Vec<GroupCommand<B>>) {
        if reason != Ending::Left {
            // Nobody should wait for this node.
            self.others().for_each(|node| self.refuse(node, out));
        }
        self.phase = Phase::Ended(reason);
        (self.change, self.stopped) = (None, None);
        self.incoming.clear();
        out.push(GroupCommand::Stuck { reason });
    }

    fn suspicion(&self) -> GroupMessage<B> {
        GroupMessage::Suspect {
            view: self.view.id,
            wants: self.wants.clone(),
        }
    }

    /// Whether a view is on its way, or should be.
    pub(super) fn is_changing(&self) -> bool {
        match self.phase {
            Phase::Ended(_) => false,
            Phase::Joining | Phase::Installing => true,
            Phase::Going => self.change.is_some() || self.stopped.is_some() || self.should_change(),
        }
    }

    fn should_change(&self) -> bool {
        let mut members = self.view.members.iter();
        members.any(|node| self.is_lost(*node) || self.leaves_now(*node))
            || !self.joins().is_empty()
    }

    /// Looks whether the view has to change, and sees to it.
    pub(super) fn consider(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if matches!(self.phase, Phase::Ended(_) | Phase::Joining) {
            return;
        }
        let (members, electors) = (self.view.members.clone(), self.view.electors.clone());
        if !self.should_change() || !self.may_go_on(&members, &[], out) {
            return;
        }
        if members == [self.me] && self.leaves_now(self.me) {
            self.end(Ending::Left, out);
            return;
        }
        let loss = members
            .iter()
            .chain(&electors)
            .any(|node| self.is_lost(*node));
        let stopped = self.stopped.filter(|stopped| {
            stopped.by != self.me && stopped.view > self.view.id.number && !self.is_lost(stopped.by)
        });
        match stopped
            .map(|stopped| stopped.by)
            .or_else(|| self.coordinator())
        {
            Some(node) if node != self.me => self.tell(node, out),
            // What waits until the view is in use is looked at again then.
            Some(_) if self.phase == Phase::Installing && !loss => {}
            Some(_) => {
                let lost = self.lost_now();
                if self
                    .change
                    .as_ref()
                    .is_none_or(|change| change.lost != lost)
                {
                    self.begin(lost, out);
                }
            }
            None => {}
        }
    }

    /// Lost nodes, of those that matter to a change.
    fn lost_now(&self) -> BTreeSet<NodeId> {
        let asked = self.change.iter().flat_map(|change| &change.asked);
        let all = self
            .view
            .members
            .iter()
            .chain(&self.view.electors)
            .chain(asked);
        all.copied().filter(|node| self.is_lost(*node)).collect()
    }

    /// Tells the coordinator why the view should change, if it has not been told.
    fn tell(&mut self, node: NodeId, out: &mut Vec<GroupCommand<B>>) {
        let told = (node, self.wants.clone());
        if self.told.as_ref() != Some(&told) {
            self.told = Some(told);
            let message = self.suspicion();
            out.push(GroupCommand::Send { to: node, message });
        }
    }

    fn begin(&mut self, lost: BTreeSet<NodeId>, out: &mut Vec<GroupCommand<B>>) {
        self.attempts += 1;
        let asked = match self.change.take() {
            Some(change) => change.asked,
            None => BTreeSet::new(),
        };
        self.change = Some(Change {
            attempt: self.attempts,
            lost,
            asked,
            states: BTreeMap::new(),
            behind: BTreeSet::new(),
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

    fn state(&self) -> State {
        State {
            view: self.view.id,
            members: self.view.members.clone(),
            electors: self.view.electors.clone(),
            start: self.view.start,
            done: self.history.done,
            held: self.history.held(),
            wants: self.wants.clone(),
        }
    }

    /// The newest of the views that the coordinator knows of: its own, or that of a member.
    fn newest(&self) -> State {
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
    fn needed(&self, newest: &State) -> BTreeSet<NodeId> {
        let all = newest.members.iter().chain(&newest.electors).copied();
        all.filter(|node| !self.is_lost(*node) && *node != self.me)
            .collect()
    }

    /// Asks those whose word is missing.
    fn ask_states(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let needed = self.needed(&self.newest());
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
            let message = GroupMessage::Collect {
                view,
                attempt,
                wants,
            };
            out.push(GroupCommand::Send { to, message });
        }
        change.asked.extend(needed);
    }

    pub(super) fn on_suspect(
        &mut self,
        from: NodeId,
        view: ViewId,
        wants: &Wants,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        self.accusers.insert(from);
        if view.number < self.view.id.number {
            return;
        }
        self.adopt_wants(from, wants);
        self.consider(out);
        // It may know of a newer view, of which this node has to hear.
        let unheard = view > self.view.id && !self.is_listed(from) && !self.is_lost(from);
        if let Some(change) = self.change.as_mut().filter(|_| unheard)
            && change.asked.insert(from)
        {
            self.ask_states(out);
        }
    }

    /// Takes over why the view should change; who takes this node for lost is lost to it.
    ///
    /// That the coordinator is lost for which this node has stopped it only believes its own port:
    /// a member that answers two coordinators which take each other for lost is of no use to either.
    fn adopt_wants(&mut self, from: NodeId, wants: &Wants) {
        let awaited = self
            .awaited()
            .map(|node| (node, self.wants.lost.get(&node).copied()));
        self.wants.merge(wants);
        match awaited {
            Some((node, Some(life))) => drop(self.wants.lost.insert(node, life)),
            Some((node, None)) => drop(self.wants.lost.remove(&node)),
            None => {}
        }
        let incarnation = self.incarnation;
        let mine = self.wants.lost.get(&self.me);
        if mine.is_some_and(|life| *life >= incarnation) {
            self.wants.lost.remove(&self.me);
            let life = self.peers[from.index()].incarnation;
            self.wants.lost.insert(from, life);
        }
    }

    /// The other coordinator for which this member has stopped.
    fn awaited(&self) -> Option<NodeId> {
        let by = self.stopped.map(|stopped| stopped.by);
        by.filter(|node| *node != self.me && !self.is_lost(*node))
    }

    pub(super) fn on_collect(
        &mut self,
        from: NodeId,
        view: ViewId,
        attempt: u64,
        wants: &Wants,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        let mine = self.view.id;
        let fresh = self.phase == Phase::Joining;
        if self.is_lost(from) || (!self.is_listed(from) && view.number <= mine.number && !fresh) {
            self.refuse(from, out);
            return;
        }
        let seen = self.peers[from.index()].attempt;
        if seen >= attempt || (mine.sequencer == from && view.number < mine.number) {
            if self
                .stopped
                .is_some_and(|s| s.by == from && s.attempt == attempt)
            {
                self.tell_state(from, attempt, out);
            }
            return;
        }
        let awaited = self.awaited().filter(|node| *node != from);
        if let Some(node) = awaited
            && let Some(life) = wants.lost.get(&node)
            && *life >= self.peers[node.index()].incarnation
        {
            self.accusers.insert(from);
            self.deferred = Some((from, view, attempt, wants.clone()));
            return;
        }
        self.adopt_wants(from, wants);
        if self.is_lost(from) {
            self.refuse(from, out);
            self.consider(out);
            return;
        }
        // Of two that coordinate at once, the more senior goes on, or who knows a newer view.
        if self.change.is_some() && view <= mine && self.coordinator() == Some(self.me) {
            self.consider(out);
            return;
        }
        self.peers[from.index()].attempt = attempt;
        self.change = None;
        self.stopped = Some(Stopped {
            by: from,
            attempt,
            view: view.number,
        });
        self.told = Some((from, self.wants.clone()));
        self.tell_state(from, attempt, out);
    }

    fn tell_state(&self, to: NodeId, attempt: u64, out: &mut Vec<GroupCommand<B>>) {
        let state = Box::new(self.state());
        let message = GroupMessage::State { attempt, state };
        out.push(GroupCommand::Send { to, message });
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
    fn hear_all(&mut self, out: &mut Vec<GroupCommand<B>>) {
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
    fn reach(&self, newest: &State) -> u64 {
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
    fn gather(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let Some(change) = &self.change else { return };
        let Stage::Gathering(end) = change.stage else {
            return;
        };
        let mut from: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
        for number in self.history.done + 1..=end {
            if self.history.has(number) {
                continue;
            }
            let has =
                |state: &State| number <= state.done || state.held.binary_search(&number).is_ok();
            let mut holders = change.states.iter().filter(|(_, state)| has(state));
            if let Some((holder, _)) = holders.next() {
                from.entry(*holder).or_default().push(number);
            }
        }
        let attempt = change.attempt;
        for (to, numbers) in from {
            let message = GroupMessage::Gather { attempt, numbers };
            out.push(GroupCommand::Send { to, message });
        }
    }

    pub(super) fn on_gather(
        &mut self,
        from: NodeId,
        attempt: u64,
        numbers: &[u64],
        out: &mut Vec<GroupCommand<B>>,
    ) {
        let stopped = self
            .stopped
            .is_some_and(|s| s.by == from && s.attempt == attempt);
        for number in numbers.iter().copied().filter(|_| stopped) {
            let Some(slot) = self.history.at(number) else {
                continue;
            };
            if let Some(body) = slot.body.clone() {
                let part = slot.part;
                let message = GroupMessage::Gathered {
                    attempt,
                    number,
                    part,
                    body,
                };
                out.push(GroupCommand::Send { to: from, message });
            }
        }
    }

    pub(super) fn on_gathered(
        &mut self,
        attempt: u64,
        number: u64,
        part: super::Part,
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
    fn conclude_if_whole(&mut self, out: &mut Vec<GroupCommand<B>>) {
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
        let behind = newest.members.iter().chain(&newest.electors);
        let mut behind: BTreeSet<NodeId> = behind.copied().collect();
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
        behind.retain(|node| !self.is_listed(*node));
        if let Some(change) = &mut self.change {
            change.behind = behind;
            change.stage = Stage::Installing(BTreeSet::new());
        }
        self.tell_view(attempt, out);
        self.activate_if_installed(out);
    }

    fn tell_view(&self, attempt: u64, out: &mut Vec<GroupCommand<B>>) {
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

    fn activate_if_installed(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let Some(change) = &self.change else { return };
        let Stage::Installing(done) = &change.stage else {
            return;
        };
        if !self.others().all(|node| done.contains(&node)) {
            return;
        }
        let view = self.view.id;
        // Who left waits for this; who was taken for lost should know, if it lives.
        self.behind = change.behind.clone();
        self.behind.iter().for_each(|node| self.refuse(*node, out));
        self.start_sequencer();
        self.use_view(out);
        if self.others().next().is_some() {
            let message = GroupMessage::Active { view };
            out.push(GroupCommand::SendAll { message });
        }
    }

    /// The view is in use from here on.
    pub(super) fn use_view(&mut self, out: &mut Vec<GroupCommand<B>>) {
        self.phase = Phase::Going;
        (self.change, self.stopped) = (None, None);
        self.view.electors.clear();
        // Whoever took the new sequencer for lost may hear of this from nobody else.
        for node in std::mem::take(&mut self.accusers) {
            if !self.is_listed(node) {
                self.refuse(node, out);
            }
        }
        self.learn_stable(self.view.start);
        self.consider(out);
    }

    /// Tells a node that it is no member, or lost.
    pub(super) fn refuse(&self, to: NodeId, out: &mut Vec<GroupCommand<B>>) {
        let message = GroupMessage::Out {
            view: self.view.id,
            listed: self.is_listed(to),
            lives: (self.incarnation, self.peers[to.index()].incarnation),
        };
        out.push(GroupCommand::Send { to, message });
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
                let stopped = self.stopped.map(|stopped| stopped.by);
                if self.phase == Phase::Installing && stopped.is_none() {
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
