//! Raw shared memory in units of any size: Millipage's thin protocol (MultiView and Millipage,
//! section 3.3).
//!
//! A [`Millipage`] is one node's part. It keeps *minipages* sequentially consistent: at any time
//! several nodes may read one, or a single node may read and write it. Each minipage has a
//! *manager*: the node that allocated it, or one of the nodes that manage all
//! ([`with_managers`](Millipage::with_managers)). A node that lacks a permission asks the
//! manager by the address alone. The manager knows which minipage that is, and who has copies. It
//! lets a holder send its copy to the asker directly, and takes other copies away where the asker
//! writes.
//!
//! The manager has one *operation* on a minipage at a time; further requests wait in its queue, and
//! nowhere else. An operation has a number, and ends when the asker acknowledges it. So all
//! messages in flight about a minipage belong to one operation, and the machine relies on no order
//! of messages. A node that is asked for a copy has one, and answers at once, or as soon as no
//! thread of it holds the minipage.
//!
//! ```
//! use dhole_model::NodeId;
//! use dhole_protocol::memory::{
//!     Accessed, MemoryAct, MemoryEffect, MemoryKind, MemoryOperation, Millipage, Permission,
//! };
//! use dhole_protocol::part::NodePart;
//!
//! let mut nodes = [0, 1].map(|node| Millipage::new(NodeId(node), 2, 1 << 30, 16));
//! let mut out = Vec::new();
//! // Node 0 allocates a minipage and manages it. Node 1 reads it, and asks node 0.
//! let run = nodes[0].allocate(1, 256, 8)?;
//! let accessed = nodes[1].access(run.at, MemoryOperation::Read, true, &mut out);
//! assert_eq!(accessed, Accessed::Asked);
//! let Some(MemoryEffect::Send { to, message }) = out.pop() else { panic!() };
//! // Node 0 may only read its copy from here on, before it sends it.
//! nodes[to.index()].deliver(NodeId(1), message, 0, &mut out).unwrap();
//! assert!(matches!(&out[..], [
//!     MemoryEffect::Act(MemoryAct::Permit { permission: Permission::Read, .. }),
//!     MemoryEffect::Send { to: NodeId(1), message },
//! ] if message.kind == MemoryKind::Data));
//! # Ok::<(), dhole_protocol::memory::MinipageRefusal>(())
//! ```

mod ahead;
mod allocation;
mod command;
mod domain;
mod freed;
mod group;
mod hold;
mod holder;
mod manager;
mod message;
mod minipage;
mod release;
mod run;
pub mod sync;
mod table;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use dhole_model::{NodeId, NodeMap, SortedMap};
use dhole_part::{NodePart, PartEffects};

use ahead::Waits;
use allocation::Allocation;
use domain::Lent;
use group::Group;
use hold::Hold;
use manager::Managed;
use minipage::{first_of_page, offset_of};
use release::Released;
use table::Table;

pub use ahead::{MOST_PREFETCH_BYTES, MOST_PREFETCHES};
pub use command::{MemoryAct, MemoryEffect, MemoryEvent, Permission};
pub use group::MOST_IN_A_GROUP;
pub use hold::{HoldRefusal, WantedHold};
pub use message::{MOST_WORDS, MemoryKind, MemoryMessage, MemoryOperation};
pub use minipage::{MINIPAGE_PAGE, MOST_MINIPAGE_BYTES, Minipage, VIEW_BITS};
pub use release::MemoryFlush;
pub use run::MinipageRun;
pub use table::MinipageRefusal;

/// With copies of so many minipages a node takes none for which it has not asked.
const MOST_HELD: usize = 1 << 24;

/// Most requests of one node of a domain that its leader keeps: more than threads of a node wait,
/// and more than it makes ahead.
const MOST_MEMBER_REQUESTS: usize = 1 << 13;

/// One node's part of the memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Millipage {
    me: NodeId,
    nodes: usize,
    /// Bytes of the memory object.
    object_bytes: u64,
    /// Bytes of each manager's part of it.
    window_bytes: u64,
    /// The nodes that manage all minipages, each an equal part of the memory object; none where
    /// each node manages what it allocates.
    managers: Arc<[NodeId]>,
    /// What this node has asked a manager to allocate, by the tickets of the requests.
    allocations: SortedMap<u32, Allocation>,
    views: u64,
    /// What this node manages.
    table: Table,
    /// By address: those that some node has used.
    managed: SortedMap<u64, Managed>,
    /// By the offset of the first of them: minipages that come in groups.
    groups: SortedMap<u64, Group>,
    /// What the threads of this node may do, by the addresses of minipages; nothing elsewhere.
    held: SortedMap<u64, Held>,
    /// Where those lie in the memory object, with their bytes: no two have some in common.
    places: SortedMap<u64, u32>,
    /// Those that threads hold, by their addresses.
    holds: SortedMap<u64, Hold>,
    /// What this node has asked for, by the addresses of pages.
    asked: SortedMap<u64, Asked>,
    /// How many of those no thread waits for alone, and bytes of their minipages.
    prefetches: usize,
    prefetched_bytes: u64,
    /// Minipages that this node pushes, until the push begins.
    pushing: BTreeSet<u64>,
    /// What this node writes together with others.
    released: Released,
    tickets: u32,
    /// As [`MOST_HELD`] and [`MOST_MEMBER_REQUESTS`].
    most_held: usize,
    most_member_requests: usize,
    /// By node: the leader of its domain.
    leaders: Vec<NodeId>,
    /// As a leader: what the other nodes of the domain may do, by the addresses of minipages.
    lent: SortedMap<u64, Lent>,
    /// As a leader: what those have asked for that is not answered, by the addresses of pages.
    members_ask: SortedMap<u64, VecDeque<MemoryMessage>>,
    /// How many of those are which node's.
    member_requests: NodeMap<usize>,
    /// What this node says to itself within a step.
    own: VecDeque<MemoryMessage>,
}

/// A minipage of which this node has a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Held {
    minipage: Minipage,
    permission: Permission,
}

/// What this node has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Asked {
    ticket: u32,
    operation: MemoryOperation,
    waits: Waits,
    /// Whether a thread of this node waits, and not only another node of its domain.
    threads: bool,
    /// The node of the domain whose request led to this one.
    member: Option<NodeId>,
    answer: Option<Answer>,
}

/// The answer to a request, which no thread has taken yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Answer {
    /// The permission, and what is to be acknowledged.
    Granted(MemoryMessage),
    /// That no node has the minipage any more.
    Freed(Minipage),
    /// Nothing is allocated there.
    Gone,
}

/// What comes of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Accessed {
    /// It may be made. It was permitted before, and is [permitted](MemoryAct::Permit) again.
    Permitted,
    /// It was asked for.
    Asked,
    /// Something on the same page was asked for before, which is not answered.
    Joined,
    /// No thread waits, and too many requests are under way.
    Dropped,
}

/// How a request stands, for a thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestState {
    /// It is not answered.
    Waits,
    /// The thread tries its access again.
    Over,
    /// Nothing is allocated at the address, or no longer.
    Gone,
}

impl NodePart for Millipage {
    const TAG: u8 = 0;

    type Message = MemoryMessage;
    type Act = MemoryAct;
    /// The page of an address.
    type Waiter = u64;
    type Event = MemoryEvent;

    fn deliver(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        payload: usize,
        fx: &mut impl PartEffects<Self>,
    ) -> Result<(), &'static str> {
        self.sound(from, &message, payload)?;
        self.take(from, message, fx)?;
        self.take_own(fx)
    }

    fn is_at_rest(&self) -> bool {
        let works = |managed: &Managed| managed.copies_at_rest().is_none();
        self.asked.is_empty()
            && self.allocations.is_empty()
            && self.members_ask.is_empty()
            && self.only_lends()
            && self.pushing.is_empty()
            && self.released.is_at_rest()
            && (self.prefetches, self.prefetched_bytes) == (0, 0)
            && !self.managed.values().any(works)
    }
}

impl Millipage {
    /// The part of node `me` of `nodes`, of a memory object of so many bytes, which `views` views
    /// show. Each node manages an equal part of it.
    ///
    /// # Panics
    /// When there is not a page for each node, no view, or a view is larger than 2^38 bytes.
    pub fn new(me: NodeId, nodes: usize, object_bytes: u64, views: u64) -> Millipage {
        let window_bytes = first_of_page(object_bytes / nodes as u64);
        let fits = window_bytes > 0 && object_bytes <= 1 << VIEW_BITS;
        let has_views = (1..=1 << (64 - VIEW_BITS)).contains(&views);
        assert!(fits && has_views, "{object_bytes} bytes in {views} views");
        let start = window_bytes * me.index() as u64;
        Millipage {
            me,
            nodes,
            object_bytes,
            window_bytes,
            managers: Arc::new([]),
            allocations: SortedMap::new(),
            views,
            table: Table::new(start..start + window_bytes, views),
            managed: SortedMap::new(),
            groups: SortedMap::new(),
            held: SortedMap::new(),
            places: SortedMap::new(),
            holds: SortedMap::new(),
            asked: SortedMap::new(),
            prefetches: 0,
            prefetched_bytes: 0,
            pushing: BTreeSet::new(),
            released: Released::default(),
            tickets: 0,
            most_held: MOST_HELD,
            most_member_requests: MOST_MEMBER_REQUESTS,
            leaders: (0..nodes).map(NodeId::at).collect(),
            lent: SortedMap::new(),
            members_ask: SortedMap::new(),
            member_requests: NodeMap::new(),
            own: VecDeque::new(),
        }
    }

    /// The same node in a run in which these nodes manage all minipages, before any is allocated.
    /// Each manages an equal part of the memory object. Other nodes
    /// [ask](Millipage::ask_to_allocate) one of them for new ones: node `i` that at place `i` of
    /// the list, from the start again behind its end.
    ///
    /// # Panics
    /// When there is none, one comes twice or is no node, or there is not a page for each.
    pub fn with_managers(self, managers: &[NodeId]) -> Millipage {
        let mut all = managers.to_vec();
        all.sort_unstable();
        all.dedup();
        let are_nodes = all.iter().all(|it| it.index() < self.nodes);
        let are_sound = are_nodes && !all.is_empty() && all.len() == managers.len();
        assert!(are_sound, "{managers:?} of {} nodes", self.nodes);
        let window_bytes = first_of_page(self.object_bytes / managers.len() as u64);
        assert!(window_bytes > 0, "{} bytes", self.object_bytes);
        let window = match managers.iter().position(|it| *it == self.me) {
            Some(place) => {
                let start = window_bytes * place as u64;
                start..start + window_bytes
            }
            None => 0..0,
        };
        Millipage {
            table: Table::new(window, self.views),
            managers: managers.into(),
            window_bytes,
            ..self
        }
    }

    /// With room for so many copies, and requests of each node of its domain: for tests.
    #[doc(hidden)]
    pub fn with_limits(self, most_held: usize, most_member_requests: usize) -> Millipage {
        Millipage {
            most_held,
            most_member_requests,
            ..self
        }
    }

    /// From here on this node allocates no freed minipage again.
    pub fn keep_freed(&mut self) {
        self.table.keeps_freed = true;
    }

    /// Allocates `count` minipages of so many bytes, which begin at multiples of `align`. This node
    /// manages them. Their bytes are zero. Minipages that were freed are allocated again where as
    /// many bytes are asked for, at multiples of the same number: a single one, or all of those
    /// that were allocated together.
    ///
    /// # Errors
    /// [`MinipageRefusal`]; nothing is allocated then.
    pub fn allocate(
        &mut self,
        count: u64,
        bytes: u64,
        align: u64,
    ) -> Result<MinipageRun, MinipageRefusal> {
        let (run, were_freed) = self.table.allocate(count, bytes, align)?;
        if were_freed {
            let all = (0..count).filter_map(|index| run.minipage(index));
            // Nothing is under way about a freed minipage. It is as one that nobody has used.
            all.for_each(|minipage| _ = self.managed.remove(&minipage.at));
            if count > 1 {
                self.groups.remove(&offset_of(run.at));
            }
        }
        Ok(run)
    }

    /// Most minipages of this node that lie on one page: so many views they need.
    pub fn views_used(&self) -> u64 {
        self.table.views_used()
    }

    /// Bytes of all minipages of this node.
    pub fn minipage_bytes(&self) -> u64 {
        self.table.minipage_bytes()
    }

    /// Bytes of the memory object that this node has allocated, by whole pages.
    pub fn allocated_bytes(&self) -> u64 {
        self.table.taken()
    }

    /// Bytes of the memory object that are left of this node's part, by whole pages.
    pub fn bytes_left(&self) -> u64 {
        self.table.left()
    }

    /// Who manages the minipage at an address, if anybody does.
    pub fn manager_of(&self, address: u64) -> Option<NodeId> {
        let has_view = address >> VIEW_BITS < self.views;
        let place = (offset_of(address) / self.window_bytes) as usize;
        let manager = match self.managers.is_empty() {
            true => (place < self.nodes).then(|| NodeId::at(place)),
            false => self.managers.get(place).copied(),
        };
        manager.filter(|_| has_view)
    }

    /// A thread of this node wants to read or write at an address, or to free what is there. It may
    /// wait for that (`waits`) until its [`state`](Millipage::state) is another, and tries again.
    /// A request for which no thread waits, to read as much as a page, may be dropped (as of
    /// [`prefetch`](Millipage::prefetch)).
    pub fn access(
        &mut self,
        address: u64,
        operation: MemoryOperation,
        waits: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Accessed {
        if let Some(held) = self.held_at(address)
            && needed(operation).is_some_and(|needed| held.permission >= needed)
        {
            let Held {
                minipage,
                permission,
            } = held;
            out.act(MemoryAct::Permit {
                minipage,
                permission,
            });
            return Accessed::Permitted;
        }
        let waits = match waits {
            true => Waits::Thread,
            false => Waits::Nobody {
                bytes: MINIPAGE_PAGE as u32,
            },
        };
        self.joins_or_asks(address, operation, waits, out)
    }

    /// Joins a request for something on the page of an address, or makes one.
    fn joins_or_asks(
        &mut self,
        address: u64,
        operation: MemoryOperation,
        waits: Waits,
        out: &mut impl PartEffects<Self>,
    ) -> Accessed {
        let page = first_of_page(address);
        if self.joins_ahead(page, waits) {
            return Accessed::Joined;
        }
        if !self.has_room_ahead(waits) {
            // What a thread waits for is asked for later.
            if matches!(waits, Waits::Nobody { .. }) {
                out.happens(MemoryEvent::Dropped);
            }
            return Accessed::Dropped;
        }
        self.count_ahead(waits);
        let ticket = self.next_ticket();
        let answer = None;
        let asked = Asked {
            ticket,
            operation,
            waits,
            threads: waits == Waits::Thread,
            member: None,
            answer,
        };
        self.asked.insert(page, asked);
        self.ask(address, operation, ticket, out);
        self.own_messages(out);
        Accessed::Asked
    }

    /// This node has written a minipage, and wants all others to have a copy. Nothing happens
    /// where it has no copy itself, or has pushed the minipage and that has not begun.
    pub fn push(&mut self, address: u64, out: &mut impl PartEffects<Self>) {
        let Some(Held { minipage, .. }) = self.held_at(address) else {
            return;
        };
        if self.domains().count() > 1 && self.pushing.insert(minipage.at) {
            let ticket = self.next_ticket();
            self.ask(minipage.at, MemoryOperation::Push, ticket, out);
            self.own_messages(out);
        }
    }

    fn next_ticket(&mut self) -> u32 {
        self.tickets = self.tickets.wrapping_add(1);
        self.tickets
    }

    /// Asks the manager of an address, if it has one.
    fn ask(
        &mut self,
        address: u64,
        operation: MemoryOperation,
        ticket: u32,
        out: &mut impl PartEffects<Self>,
    ) {
        self.ask_for(None, address, operation, ticket, out);
    }

    /// The same, for another node of this one's domain if one is named.
    fn ask_for(
        &mut self,
        member: Option<NodeId>,
        address: u64,
        operation: MemoryOperation,
        ticket: u32,
        out: &mut impl PartEffects<Self>,
    ) {
        let message = MemoryMessage {
            kind: MemoryKind::Request,
            operation,
            asker: self.me,
            number: member.map_or(0, |member| u32::from(member.0) + 1),
            ticket,
            address,
            minipage: Minipage::NONE,
        };
        match self.asks(address) {
            Some(asked) => self.send(asked, message, out),
            None => {
                let kind = MemoryKind::Gone;
                self.own.push_back(MemoryMessage { kind, ..message });
            }
        }
    }

    /// How the request stands that a thread has made, or joined, for an address.
    pub fn state(&self, address: u64) -> RequestState {
        let asked = self.asked.get(&first_of_page(address));
        match asked.map(|asked| asked.answer) {
            Some(None) => RequestState::Waits,
            Some(Some(Answer::Gone)) => RequestState::Gone,
            Some(Some(Answer::Granted(_) | Answer::Freed(_))) | None => RequestState::Over,
        }
    }

    /// A thread that waited for something at an address is about to go on: the manager hears that
    /// the operation is over, unless it has.
    pub fn goes_on(&mut self, address: u64, out: &mut impl PartEffects<Self>) {
        let page = first_of_page(address);
        if self.goes_on_at(page, out) {
            self.serve(page, out);
            self.own_messages(out);
        }
    }

    /// Whether there was an answer to a request for something on a page, which is over now.
    fn goes_on_at(&mut self, page: u64, out: &mut impl PartEffects<Self>) -> bool {
        let answer = self.asked.get(&page).and_then(|asked| asked.answer);
        if let Some(answer) = answer {
            self.asked.remove(&page);
            if let Answer::Granted(message) = answer {
                self.acknowledge(message, out);
            }
        }
        answer.is_some()
    }

    /// Whether a message makes sense, whatever has happened.
    fn sound(
        &self,
        from: NodeId,
        message: &MemoryMessage,
        payload: usize,
    ) -> Result<(), &'static str> {
        message.check(self.nodes)?;
        if message.payload_bytes() != payload as u64 {
            return Err("a minipage with more bytes, or fewer, than it has");
        }
        let MemoryMessage {
            kind,
            minipage,
            address,
            ..
        } = message;
        let names = !matches!(
            kind,
            MemoryKind::Request | MemoryKind::Gone | MemoryKind::Dropped | MemoryKind::Diff
        );
        if !names {
            let is_long = message.has_words() && minipage.bytes > MOST_WORDS;
            return match is_long {
                true => Err("more words about a minipage than there may be"),
                false => Ok(()),
            };
        }
        // Only an address within the views is counted on from.
        let is_one = minipage.is_within(self.object_bytes, self.views) && {
            let last = minipage.at + u64::from(minipage.bytes - 1);
            minipage.covers(*address) && self.manager_of(last) == self.manager_of(minipage.at)
        };
        if !is_one {
            return Err("a minipage that cannot be one, or is not at the address");
        }
        let gives = matches!(kind, MemoryKind::Data | MemoryKind::Grant);
        match gives && self.asks(minipage.at) == Some(self.me) {
            true => self.gives_its_own(from, message),
            false => Ok(()),
        }
    }

    fn take(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), &'static str> {
        if message.operation.allocates() {
            return match message.kind {
                MemoryKind::Request => self.take_allocation(from, message, out),
                _ => self.take_allocated(from, message, out),
            };
        }
        if self.leads(from) {
            match message.kind {
                MemoryKind::Request => return self.take_members_request(from, message, out),
                MemoryKind::Invalidated => return self.take_members_return(from, message, out),
                MemoryKind::Ack => return self.take_members_ack(from, message, out),
                _ => {}
            }
        }
        match message.kind {
            MemoryKind::Request => self.take_request(from, message, out),
            MemoryKind::Forward => self.take_forward(from, message, out),
            MemoryKind::Invalidate => self.take_invalidate(from, message, out),
            MemoryKind::Invalidated => self.take_invalidated(from, message, out),
            MemoryKind::Data => self.take_data(from, message, out),
            MemoryKind::Grant => self.take_grant(from, message, out),
            MemoryKind::Ack => self.take_ack(from, message, out),
            MemoryKind::Gone => self.take_gone(from, message, out),
            MemoryKind::Dropped => self.take_dropped(from, message, out),
            MemoryKind::Diff => self.take_diff(from, message, out),
            MemoryKind::Merged => self.take_merged(from, message, out),
        }
    }

    /// Takes what this node says to itself because of another node's message: of a forged one
    /// comes what makes no sense.
    fn take_own(&mut self, out: &mut impl PartEffects<Self>) -> Result<(), &'static str> {
        while let Some(message) = self.own.pop_front() {
            self.take(self.me, message, out)?;
        }
        Ok(())
    }

    /// Takes what this node says to itself because of a step of its own.
    fn own_messages(&mut self, out: &mut impl PartEffects<Self>) {
        let taken = self.take_own(out);
        taken.expect("what a node says to itself is sound");
    }

    fn send(&mut self, to: NodeId, message: MemoryMessage, out: &mut impl PartEffects<Self>) {
        match to == self.me {
            true => self.own.push_back(message),
            false => out.send(to, message),
        }
    }

    /// Answers a request with a message of this kind about a minipage.
    fn reply(
        &mut self,
        request: MemoryMessage,
        kind: MemoryKind,
        minipage: Minipage,
        out: &mut impl PartEffects<Self>,
    ) {
        let message = MemoryMessage {
            kind,
            minipage,
            ..request
        };
        self.send(request.asker, message, out);
    }

    /// Who has copies of the minipage at an address, on its manager, once some node has used it and
    /// where no operation is under way: for models and tests.
    #[doc(hidden)]
    pub fn copies_at_rest(&self, address: u64) -> Option<Vec<NodeId>> {
        let minipage = self.table.find(address)?;
        self.managed.get(&minipage.at)?.copies_at_rest()
    }

    /// How many requests wait for one minipage here, at most: for models and tests.
    #[doc(hidden)]
    pub fn longest_queue(&self) -> usize {
        self.managed
            .values()
            .map(Managed::queued)
            .max()
            .unwrap_or(0)
    }
}

/// What a thread must be permitted for an operation; more than there is where it must always ask.
fn needed(operation: MemoryOperation) -> Option<Permission> {
    match operation {
        MemoryOperation::Read => Some(Permission::Read),
        MemoryOperation::Write => Some(Permission::Write),
        _ => None,
    }
}
