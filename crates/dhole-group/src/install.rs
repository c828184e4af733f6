//! How a member goes over to a view that another has made, joins a group, and is told to go.

use dhole_model::{NodeId, NodeMap};

use super::message::{GroupMessage, Member, ViewId};
use super::{Body, Ending, Group, GroupCommand, History, Phase, Sequencer, Tree, View};

impl<B: Body> Group<B> {
    pub(super) fn ask_to_join(&self, out: &mut Vec<GroupCommand<B>>) {
        let incarnation = self.incarnation;
        for to in self.contacts().collect::<Vec<_>>() {
            let message = GroupMessage::Join { incarnation };
            out.push(GroupCommand::Send { to, message });
        }
    }

    /// Nodes that whoever joins may ask.
    fn contacts(&self) -> impl Iterator<Item = NodeId> {
        let all = (0..self.peers.len()).map(NodeId::at);
        all.filter(|node| *node != self.me && !self.is_lost(*node))
    }

    pub(super) fn on_join(
        &mut self,
        from: NodeId,
        incarnation: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        let known = self.peers[from.index()].incarnation;
        if incarnation <= known {
            return;
        }
        if self.view.members.contains(&from) && !self.is_lost(from) {
            // Who asks to be let in again has lost all it knew.
            self.wants.lost.insert(from, known);
        }
        let joining = self.wants.joining.get_or_insert(from, incarnation);
        *joining = incarnation.max(*joining);
        self.consider(out);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "they are the fields of one message"
    )]
    pub(super) fn on_install(
        &mut self,
        from: NodeId,
        attempt: u64,
        id: ViewId,
        members: &[Member],
        electors: Vec<NodeId>,
        end: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        if id == self.view.id && self.phase != Phase::Joining {
            if self.stopped.is_none() {
                self.install_further(out);
            }
            return Ok(());
        }
        let mut lives = members.iter().filter(|member| member.node == self.me);
        let is_listed = lives.any(|member| member.incarnation == self.incarnation);
        let answers = self
            .stopped
            .is_some_and(|s| s.by == from && s.attempt == attempt);
        let lets_in = self.phase == Phase::Joining && self.stopped.is_none();
        let again = self.joins && self.phase == Phase::Installing && self.stopped.is_none();
        let newer = id.number > self.view.id.number || (again && id.number == self.view.id.number);
        if !is_listed || !newer || !(answers || lets_in || again) || self.is_lost(from) {
            return Ok(());
        }
        let window = u64::from(self.settings.window);
        let knows = !(lets_in || again || self.phase == Phase::Joining);
        if knows && (end < self.history.done || end > self.history.done.saturating_add(window)) {
            return Err("a view that begins where it cannot");
        }
        self.adopt(id, members, electors, end, out);
        self.install_further(out);
        Ok(())
    }

    /// Goes over to a view. What the last one has numbered beyond `end` has no number any more.
    pub(super) fn adopt(
        &mut self,
        id: ViewId,
        members: &[Member],
        electors: Vec<NodeId>,
        end: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        if self.joins {
            self.history = History::from(end);
            self.stable = end;
        }
        self.history.cut(end);
        let new_life = |member: &&Member| {
            self.joins || self.peers[member.node.index()].incarnation != member.incarnation
        };
        let new = members.iter().filter(new_life);
        let mut serials = std::mem::take(&mut self.view.serials);
        serials.extend(new.map(|member| (member.node, member.serial)));
        let before = std::mem::replace(
            &mut self.view,
            View {
                id,
                members: members.iter().map(|member| member.node).collect(),
                electors,
                start: end,
                serials,
            },
        );
        let known = before
            .members
            .iter()
            .map(|node| (*node, self.peers[node.index()].incarnation));
        let known: NodeMap<u64> = known.collect();
        for member in members {
            let peer = &mut self.peers[member.node.index()];
            if peer.incarnation != member.incarnation {
                peer.attempt = 0;
            }
            peer.incarnation = member.incarnation;
        }
        if self.before.is_none() {
            self.before = Some(known);
        }
        self.phase = Phase::Installing;
        (self.stopped, self.deferred) = (None, None);
        self.behind.clear();
        self.told = None;
        self.token = None;
        self.last_round = 0;
        self.incoming.clear();
        self.tree = Tree::new();
        self.own.start_over();
        self.safe.start_over();
        self.deliver_to_end(out);
    }

    /// Delivers what is here of the last view, and says what the next one is when that is all.
    pub(super) fn deliver_to_end(&mut self, out: &mut Vec<GroupCommand<B>>) {
        self.deliver(out);
        if self.phase != Phase::Installing || self.history.done < self.view.start {
            return;
        }
        for (node, serial) in std::mem::take(&mut self.view.serials) {
            self.peers[node.index()].serial = serial;
        }
        let Some(before) = self.before.take() else {
            return;
        };
        let members = self.view.members.clone();
        let life = |node: &NodeId| self.peers[node.index()].incarnation;
        let is_new = |node: &&NodeId| {
            self.joins || before.get(node).is_none_or(|known| *known != life(node))
        };
        let joined = match self.joins {
            true => vec![self.me],
            false => members.iter().filter(is_new).copied().collect(),
        };
        let gone = before
            .iter()
            .filter(|(node, known)| !members.contains(node) || life(node) != **known);
        let gone = match self.joins {
            true => Vec::new(),
            false => gone.map(|(node, _)| *node).collect(),
        };
        out.push(GroupCommand::View {
            id: self.view.id,
            members,
            joined,
            gone,
            after: self.view.start,
        });
    }

    /// Fetches what is missing of the last view, or says that nothing is.
    pub(super) fn install_further(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let (view, to) = (self.view.id, self.view.id.sequencer);
        if self.is_sequencer() {
            return;
        }
        if self.history.done >= self.view.start {
            let message = GroupMessage::Installed { view };
            out.push(GroupCommand::Send { to, message });
            return;
        }
        let message = GroupMessage::Fetch {
            view,
            first: self.history.done + 1,
            last: self.view.start,
            done: self.history.done,
        };
        out.push(GroupCommand::Send { to, message });
    }

    pub(super) fn on_active(&mut self, from: NodeId, view: ViewId, out: &mut Vec<GroupCommand<B>>) {
        let sequencer = from == view.sequencer && view == self.view.id;
        let installed = self.phase == Phase::Installing && self.history.done == self.view.start;
        if sequencer && installed && self.stopped.is_none() {
            self.joins = false;
            self.use_view(out);
        }
    }

    pub(super) fn on_out(
        &mut self,
        from: NodeId,
        view: ViewId,
        listed: bool,
        lives: (u64, u64),
        out: &mut Vec<GroupCommand<B>>,
    ) {
        let newer = view.number > self.view.id.number;
        self.behind.remove(&from);
        match self.phase {
            Phase::Ended(_) | Phase::Joining => {}
            _ if newer && !listed => {
                let left = self.wants.leaving.contains_key(&self.me);
                self.end(if left { Ending::Left } else { Ending::Excluded }, out);
            }
            // It goes on so for the rest of these lives, whatever the view.
            _ if listed && lives == (self.peers[from.index()].incarnation, self.incarnation) => {
                self.lose(from, out);
            }
            _ => {}
        }
    }

    /// The sequencer of a view begins, when everybody has installed it.
    pub(super) fn start_sequencer(&mut self) {
        self.joins = false;
        let unnumbered = self.peers.iter().map(|peer| peer.serial).collect();
        self.sequencer = Sequencer::new(self.view.start, unnumbered);
    }
}
