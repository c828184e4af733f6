//! Totally ordered groups: every member delivers the same broadcasts in the same order (Orca,
//! section 2.3.1, after the group communication of Amoeba and Panda).
//!
//! A [`Group`] is one member's part. One of the members, the *sequencer*, gives out numbers, by one
//! of three [methods](Method); all deliver by number. A member keeps what it has delivered until
//! all have, its *history*, so that whatever one lacks another has: a member whose links lose
//! messages asks for them again, and when a member dies the others end the *view* with the same
//! last number and go on in the next, under the most senior of them.
//!
//! ```
//! use dhole_model::NodeId;
//! use dhole_group::{Group, GroupCommand, GroupEvent, Settings};
//!
//! let mut members = [0, 1].map(|node| Group::new(NodeId(node), 2, Settings::reliable()));
//! let mut out = Vec::new();
//! // Node 1 broadcasts: it sends the message to the sequencer, which is node 0.
//! members[1].step(GroupEvent::Broadcast { body: 7_u32, bytes: 4 }, 0, &mut out)?;
//! let Some(GroupCommand::Send { to: NodeId(0), message }) = out.pop() else { panic!() };
//! // Node 0 numbers it, multicasts it, and delivers it.
//! members[0].step(GroupEvent::Message { from: NodeId(1), message }, 0, &mut out)?;
//! assert!(matches!(&out[..], [
//!     GroupCommand::SendAll { .. },
//!     GroupCommand::Deliver { sequence: 1, from: NodeId(1), body: 7 },
//! ]));
//! # Ok::<(), dhole_group::GroupError>(())
//! ```
#![forbid(unsafe_code)]

mod body;
mod change;
mod check;
mod clock;
mod command;
mod coordinator;
mod effects;
mod history;
mod install;
mod message;
mod own;
mod receive;
mod safe;
mod sequencer;
mod settings;
mod tree;
mod uncontended;

use std::collections::{BTreeMap, BTreeSet};

use dhole_model::{NodeId, NodeMap};

use change::Stopped;
use clock::Clock;
use coordinator::Change;
use history::History;
use own::Own;
use safe::Safe;
use sequencer::{Incoming, Sequencer};
use tree::Tree;

pub use body::Body;
pub use command::{Ending, GroupCommand, GroupError, GroupEvent};
pub use effects::GroupEffects;
pub use message::{Cast, GroupMessage, Member, Part, State, ViewId, Wants};
pub use settings::{Method, Quorum, Settings};

/// One member of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group<B> {
    me: NodeId,
    /// Which life of this node it is.
    incarnation: u64,
    settings: Settings,
    phase: Phase,
    view: View,
    /// What is known of each node of the cluster.
    peers: Vec<Peer>,
    history: History<B>,
    /// Up to where all members are known to have delivered.
    stable: u64,
    own: Own<B>,
    /// Broadcasts without number that have come, by originator and serial.
    incoming: BTreeMap<(NodeId, u64), Incoming<B>>,
    sequencer: Sequencer,
    tree: Tree<B>,
    /// A token that is held until what it acknowledges is delivered: its round and that number.
    token: Option<(u64, u64)>,
    last_round: u64,
    safe: Safe,
    /// Whether this member wants to leave.
    leaves: bool,
    /// Whether this member has not yet been in a view that is in use.
    joins: bool,
    /// Why the view should change.
    wants: Wants,
    /// Whom this member told so last, and what.
    told: Option<(NodeId, Wants)>,
    /// The change of the view that this member coordinates.
    change: Option<Change>,
    /// The coordinator for which this member has stopped.
    stopped: Option<Stopped>,
    /// What another coordinator has asked, which takes that one for lost.
    deferred: Option<(NodeId, ViewId, u64, Wants)>,
    /// Who has told this member of losses since the view began.
    accusers: BTreeSet<NodeId>,
    /// Whom this view has left behind, and who may not know.
    behind: BTreeSet<NodeId>,
    /// How many changes this member has tried.
    attempts: u64,
    /// Members, and their lives, of the last view that was told, until the next one is.
    before: Option<NodeMap<u64>>,
    clock: Clock,
}

/// Where a member is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It is in no view yet.
    Joining,
    /// Its view is installed and not known to be in use.
    Installing,
    /// Its view is in use.
    Going,
    /// It is in the group no longer.
    Ended(Ending),
}

/// Who is in the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct View {
    id: ViewId,
    /// By seniority.
    members: Vec<NodeId>,
    /// Who had to agree to the view, until it is known to be in use.
    electors: Vec<NodeId>,
    /// The last number of the view before.
    start: u64,
    /// Where nodes that are new to the view begin to count their broadcasts: they do when all up to
    /// `start` is delivered, which may be of an earlier life.
    serials: Vec<(NodeId, u64)>,
}

/// What is known of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Peer {
    /// Which of its lives is, or was, a member.
    incarnation: u64,
    /// Its next broadcast that is not delivered.
    serial: u64,
    /// The last change that it coordinated, as far as it has been heard.
    attempt: u64,
}

impl<B: Body> Group<B> {
    /// A member of the group of nodes 0 to `nodes - 1`, all of which begin so.
    pub fn new(me: NodeId, nodes: usize, settings: Settings) -> Group<B> {
        let members: Vec<NodeId> = (0..nodes).map(NodeId::at).collect();
        let sequencer = NodeId(0);
        let id = ViewId {
            number: 1,
            sequencer,
        };
        Group::of(me, 0, nodes, settings, id, members)
    }

    /// From now on this member asks for the numbers of all that it broadcasts, whatever the size:
    /// for networks that give numbers themselves, as Orca's on Myrinet (section 2.4).
    pub fn ask_for_numbers(&mut self) {
        self.settings.method = Some(Method::Ask);
    }

    /// A node that joins the group of some nodes of a cluster, out of `nodes`, or joins it again.
    /// `incarnation` is greater than 0, and than in each of this node's lives before. It asks to be
    /// let in at the first step, which may be a tick.
    pub fn joining(me: NodeId, incarnation: u64, nodes: usize, settings: Settings) -> Group<B> {
        let id = ViewId {
            number: 0,
            sequencer: me,
        };
        Group::of(me, incarnation, nodes, settings, id, Vec::new())
    }

    fn of(
        me: NodeId,
        incarnation: u64,
        nodes: usize,
        settings: Settings,
        id: ViewId,
        members: Vec<NodeId>,
    ) -> Group<B> {
        let joins = members.is_empty();
        Group {
            me,
            incarnation,
            settings,
            phase: if joins { Phase::Joining } else { Phase::Going },
            view: View {
                id,
                members,
                electors: Vec::new(),
                start: 0,
                serials: Vec::new(),
            },
            peers: vec![Peer::default(); nodes],
            history: History::from(0),
            stable: 0,
            own: Own::new(),
            incoming: BTreeMap::new(),
            sequencer: Sequencer::new(0, vec![0; nodes]),
            tree: Tree::new(),
            token: None,
            last_round: 0,
            safe: Safe::default(),
            leaves: false,
            joins,
            wants: Wants::default(),
            told: None,
            change: None,
            stopped: None,
            deferred: None,
            accusers: BTreeSet::new(),
            behind: BTreeSet::new(),
            attempts: 0,
            before: None,
            clock: Clock::default(),
        }
    }

    /// The other members.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<'_, B> {
        let members = self.view.members.iter().copied();
        members.filter(|node| *node != self.me)
    }

    /// The members, by seniority: the sequencer first.
    pub fn members(&self) -> &[NodeId] {
        &self.view.members
    }

    /// This member.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// The view.
    pub fn view(&self) -> ViewId {
        self.view.id
    }

    /// The number up to which everything is delivered.
    pub fn delivered(&self) -> u64 {
        self.history.done
    }

    /// How many messages are kept because some member may lack them.
    pub fn history(&self) -> usize {
        self.history.len()
    }

    /// Broadcasts of this member that are not delivered.
    pub fn waiting(&self) -> usize {
        self.own.pending.len()
    }

    /// The same, the oldest first.
    pub fn broadcasts(&self) -> impl Iterator<Item = &B> {
        self.own.pending.iter().map(|pending| &pending.body)
    }

    /// Broadcasts without number that have come, of this member and others.
    pub fn unnumbered(&self) -> usize {
        self.incoming.len()
    }

    /// Messages that wait until other members have passed on what they were sent before.
    pub fn held_back(&self) -> usize {
        self.tree.waiting()
    }

    /// Why this member is in the group no longer, if it is not.
    pub fn ending(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    fn is_sequencer(&self) -> bool {
        self.view.id.sequencer == self.me
    }

    /// Whether the order goes on.
    fn is_going(&self) -> bool {
        self.phase == Phase::Going && self.stopped.is_none()
    }

    /// One step: what happens at `now_ns` nanoseconds. The effects are what is to be done then.
    ///
    /// # Errors
    /// [`GroupError`]: a broadcast that is refused, or a message that no sound member sends, whose
    /// sender should be cut off.
    pub fn step(
        &mut self,
        event: GroupEvent<B>,
        now_ns: u64,
        fx: &mut impl GroupEffects<B>,
    ) -> Result<(), GroupError> {
        if self.is_uncontended(&event) {
            self.take_uncontended(event, fx);
            return Ok(());
        }
        self.general_step(event, now_ns, fx.commands())
    }

    /// As [`step`](Group::step), also of a broadcast that [is uncontended](Group::is_uncontended).
    ///
    /// # Errors
    /// As there.
    pub fn general_step(
        &mut self,
        event: GroupEvent<B>,
        now_ns: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), GroupError> {
        if self.phase == Phase::Joining && self.told.is_none() && self.stopped.is_none() {
            self.told = Some((self.me, Wants::default()));
            self.ask_to_join(out);
        }
        let before = out.len();
        let done = match event {
            GroupEvent::Broadcast { body, bytes } => self.broadcast(body, bytes),
            GroupEvent::Message { from, message } => self
                .receive(from, message, out)
                .map_err(|what| GroupError::Message { from, what }),
            GroupEvent::Confirm => {
                self.confirm(out);
                Ok(())
            }
            GroupEvent::Tick => Ok(()),
            GroupEvent::Lost(node) => {
                self.lose(node, out);
                Ok(())
            }
            GroupEvent::Leave => {
                self.leaves = true;
                Ok(())
            }
        };
        debug_assert!(
            done.is_ok() || out.len() == before,
            "{done:?}: what is refused has called no effect"
        );
        self.go_on(out);
        self.see_what_is_safe(out);
        self.leave_when_done(out);
        self.keep_time(now_ns, out);
        done
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: GroupMessage<B>,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        if from == self.me || from.index() >= self.peers.len() {
            return Err("a message from a node that is not another one of the cluster");
        }
        message.check(from, self.peers.len(), &self.settings)?;
        if let GroupMessage::Out {
            view,
            listed,
            lives,
        } = message
        {
            self.on_out(from, view, listed, lives, out);
            return Ok(());
        }
        if let GroupMessage::Join { incarnation } = message {
            self.on_join(from, incarnation, out);
            return Ok(());
        }
        let ended = matches!(self.phase, Phase::Ended(_));
        let view = message.view();
        let is_listed = self.view.members.contains(&from);
        let is_old = view.is_some_and(|view| view.number < self.view.id.number);
        let is_outside = !is_listed && is_old && self.phase == Phase::Going;
        if ended || is_outside || (is_listed && self.is_lost(from)) {
            self.refuse(from, out);
            return Ok(());
        }
        match message {
            GroupMessage::Suspect { view, wants } => self.on_suspect(from, view, &wants, out),
            // What was meant for an earlier life is none of this one's business.
            GroupMessage::Collect { life, .. } if life != self.incarnation => {}
            GroupMessage::Collect {
                view,
                attempt,
                wants,
                ..
            } => self.on_collect(from, view, attempt, &wants, out),
            GroupMessage::State { attempt, state } => self.on_state(from, attempt, *state, out),
            GroupMessage::Gather { attempt, numbers } => {
                self.on_gather(from, attempt, &numbers, out);
            }
            GroupMessage::Gathered {
                attempt,
                number,
                part,
                body,
            } => return self.on_gathered(attempt, number, part, body, out),
            GroupMessage::Install {
                attempt,
                view,
                members,
                electors,
                end,
            } => return self.on_install(from, attempt, view, &members, electors, end, out),
            GroupMessage::Installed { view } => self.on_installed(from, view, out),
            GroupMessage::Active { view } => self.on_active(from, view, out),
            message if view == Some(self.view.id) && is_listed && self.stopped.is_none() => {
                return self.take_in_view(from, message, out);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a message of the order of the view that this member is in.
    fn take_in_view(
        &mut self,
        from: NodeId,
        message: GroupMessage<B>,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        if self.phase == Phase::Installing {
            let shows_use = self.shows_use(&message);
            if shows_use && !self.is_sequencer() && self.history.done == self.view.start {
                self.joins = false;
                self.use_view(out);
            }
        }
        let of_last_view = matches!(
            message,
            GroupMessage::Data { .. } | GroupMessage::Fetch { .. }
        );
        if self.phase == Phase::Installing && !of_last_view {
            return Ok(());
        }
        self.take(from, message, out)
    }
}
