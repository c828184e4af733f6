//! How the view changes when members are lost, leave or join.
//!
//! The most senior member that stays coordinates. It stops all others and hears what they have
//! (`Collect`, `State`); it gets the messages that it lacks (`Gather`); the order of the view ends
//! where the first message is missing that nobody has, or before. What one of them has delivered is
//! within that, for it has the message. Then it says so (`Install`); each fetches what it lacks,
//! delivers to the end and answers (`Installed`); when all have, the view is in use (`Active`) and
//! its sequencer, which is the coordinator, gives out numbers.

use std::collections::BTreeSet;

use dhole_model::NodeId;

use super::message::{GroupMessage, State, ViewId, Wants};
use super::{Body, Ending, Group, GroupCommand, Phase, Quorum};

/// A coordinator for which this member has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stopped {
    pub(super) by: NodeId,
    pub(super) attempt: u64,
    /// The number of the coordinator's view.
    pub(super) view: u64,
}

impl<B: Body> Group<B> {
    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        let lost = self.wants.lost.get(&node);
        lost.is_some_and(|life| *life >= self.peers[node.index()].incarnation)
    }

    pub(super) fn leaves_now(&self, node: NodeId) -> bool {
        let leaving = self.wants.leaving.get(&node);
        leaving.is_some_and(|life| *life >= self.peers[node.index()].incarnation)
    }

    pub(super) fn joins(&self) -> Vec<(NodeId, u64)> {
        let joining = self.wants.joining.iter();
        let fresh = joining.filter(|(node, life)| {
            let lost = self.wants.lost.get(node);
            let is_new = **life > self.peers[node.index()].incarnation && **node != self.me;
            is_new && lost.is_none_or(|lost| lost < *life)
        });
        fresh.map(|(node, life)| (*node, *life)).collect()
    }

    pub(super) fn is_listed(&self, node: NodeId) -> bool {
        self.view.members.contains(&node)
    }

    /// The port has lost a node.
    pub(super) fn lose(&mut self, node: NodeId, out: &mut Vec<GroupCommand<B>>) {
        let peer = self.peers.get(node.index());
        let Some(peer) = peer.filter(|_| node != self.me) else {
            return;
        };
        let joining = self.wants.joining.get(&node).copied().unwrap_or(0);
        let life = peer.incarnation.max(joining);
        let lost = self.wants.lost.get_or_insert(node, life);
        *lost = life.max(*lost);
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
    pub(super) fn coordinator(&self) -> Option<NodeId> {
        let alive = || {
            self.view
                .members
                .iter()
                .filter(|node| !self.is_lost(**node))
        };
        let stays = alive().find(|node| !self.leaves_now(**node));
        stays.or_else(|| alive().next()).copied()
    }

    /// Whether these members may go on without all others, by themselves.
    pub(super) fn may_go_on_alone(&self, alive: &[NodeId]) -> bool {
        let of = &self.view.members;
        let senior = of.first().is_some_and(|node| alive.contains(node));
        self.is_enough(alive.len(), of.len(), senior)
    }

    fn is_enough(&self, alive: usize, of: usize, senior: bool) -> bool {
        match self.settings.quorum {
            Quorum::Survivors => alive > 0,
            Quorum::Majority => 2 * alive > of || (2 * alive == of && senior),
        }
    }

    /// Whether those that are not lost may go on without the others.
    fn is_quorum(&self, of: &[NodeId]) -> bool {
        let alive = of.iter().filter(|node| !self.is_lost(**node)).count();
        let senior = of.first().is_some_and(|node| !self.is_lost(*node));
        self.is_enough(alive, of.len(), senior)
    }

    /// Ends where too few are left of those whose consent a next view needs.
    pub(super) fn may_go_on(
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
            // Nobody should wait for this node: neither a member, nor who is none and may not know.
            let mut waiting = std::mem::take(&mut self.accusers);
            waiting.extend(self.others());
            waiting.into_iter().for_each(|node| self.refuse(node, out));
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
        if self.awaited().is_none()
            && let Some((from, view, attempt, wants)) = self.deferred.take()
        {
            self.on_collect(from, view, attempt, &wants, out);
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
    pub(super) fn lost_now(&self) -> BTreeSet<NodeId> {
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
    pub(super) fn tell(&mut self, node: NodeId, out: &mut Vec<GroupCommand<B>>) {
        let told = (node, self.wants.clone());
        if self.told.as_ref() != Some(&told) {
            self.told = Some(told);
            let message = self.suspicion();
            out.push(GroupCommand::Send { to: node, message });
        }
    }

    pub(super) fn state(&self) -> State {
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
    /// a member that answers two coordinators which take each other for lost is of no use to
    /// either.
    pub(super) fn adopt_wants(&mut self, from: NodeId, wants: &Wants) {
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
    pub(super) fn awaited(&self) -> Option<NodeId> {
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
}
