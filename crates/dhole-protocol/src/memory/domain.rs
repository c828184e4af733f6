//! Domains: nodes whose memory is the same pages. The protocol runs between the leaders of domains.
//!
//! The lowest node of a domain is its *leader*: it alone has copies, asks managers and is asked by
//! them. Another node of the domain asks its leader, and gets at most the permission that the
//! leader has: it is *lent* a minipage. Its bytes need not be sent. Several nodes of a domain may
//! write a minipage at once, as threads of one node may.
//!
//! What is lent counts as held by a thread of the leader ([`hold`](super::hold)). So what would
//! take it away waits until the leader has withdrawn it: it asks each node that was lent more than
//! is left, once that has acknowledged what it got, and goes on when all have answered.

use dhole_model::{NodeId, NodeMap};
use dhole_part::PartEffects;

use super::ahead::Waits;
use super::command::Permission;
use super::hold::Hold;
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::{Minipage, first_of_page};
use super::{Answer, Asked, Millipage, needed};

type Taken = Result<(), &'static str>;

/// A minipage of which other nodes of the domain were lent something.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lent {
    minipage: Minipage,
    to: NodeMap<Lease>,
}

/// What a node was lent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Lease {
    permission: Permission,
    /// Of the request that it answers.
    ticket: u32,
    /// The node has acknowledged it: its thread goes on.
    acknowledged: bool,
    /// What it was asked to leave of it, and has not answered.
    withdrawn: Option<Permission>,
}

impl Millipage {
    /// The same node in a run whose nodes have these leaders, in their order, before any of them
    /// has used a minipage. A node that is alone in its domain is its own leader.
    ///
    /// # Panics
    /// Unless each leader is its own, and is no higher than the nodes that it leads.
    pub fn set_leaders(&mut self, leaders: &[NodeId]) {
        let leads_itself = |(node, leader): (usize, &NodeId)| {
            leader.index() <= node && leaders[leader.index()] == *leader
        };
        let are_leaders = leaders.iter().enumerate().all(leads_itself);
        assert!(leaders.len() == self.nodes && are_leaders, "{leaders:?}");
        self.leaders = leaders.to_vec();
    }

    /// The leader of this node's domain.
    pub(super) fn leader(&self) -> NodeId {
        self.leaders[self.me.index()]
    }

    /// Whether another node leads this one.
    pub(super) fn is_member(&self) -> bool {
        self.leader() != self.me
    }

    /// Whether this node leads another one.
    pub(super) fn leads(&self, node: NodeId) -> bool {
        node != self.me && self.leaders.get(node.index()) == Some(&self.me)
    }

    /// The leaders of all domains.
    pub(super) fn domains(&self) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.leaders.iter().enumerate();
        all.filter(|(node, leader)| leader.index() == *node)
            .map(|(_, leader)| *leader)
    }

    /// Whom this node asks for a minipage: its manager, or the leader of the domain.
    pub(super) fn asks(&self, address: u64) -> Option<NodeId> {
        let manager = self.manager_of(address)?;
        Some(match self.is_member() {
            true => self.leader(),
            false => manager,
        })
    }

    /// Whether this node asks itself for a minipage: it leads its domain and manages it.
    pub fn asks_itself(&self, address: u64) -> bool {
        self.asks(address) == Some(self.me)
    }

    /// A node of the domain asks for something.
    pub(super) fn take_members_request(
        &mut self,
        from: NodeId,
        request: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if request.asker != from || self.manager_of(request.address).is_none() {
            return Err("a request for another node, or for what nobody manages");
        }
        if !request.operation.is_asked_for() {
            return Err("a request for what no node of a domain asks its leader");
        }
        if request.operation == MemoryOperation::Flush {
            return self.take_members_flush(request, out);
        }
        if request.operation == MemoryOperation::Push {
            self.push(request.address, out);
            self.reply(request, MemoryKind::Dropped, request.minipage, out);
            return Ok(());
        }
        let page = first_of_page(request.address);
        let asks = self.members_ask.get_or_default(page);
        if asks.iter().any(|waits| waits.asker == from) {
            return Err("a request for a minipage that waits already");
        }
        self.keeps_request(from)?;
        let asks = self.members_ask.get_or_default(page);
        asks.push_back(request);
        self.serve(page, out);
        Ok(())
    }

    /// Keeps one more request of a node of the domain.
    pub(super) fn keeps_request(&mut self, from: NodeId) -> Taken {
        let kept = self.member_requests.get_or_default(from);
        if *kept >= self.most_member_requests {
            return Err("more requests of a node of the domain than its leader keeps");
        }
        *kept += 1;
        Ok(())
    }

    /// A request of a node of the domain has its answer.
    pub(super) fn forgets_request(&mut self, from: NodeId) {
        if let Some(kept) = self.member_requests.get_mut(&from) {
            *kept -= 1;
            if *kept == 0 {
                self.member_requests.remove(&from);
            }
        }
    }

    /// Answers what nodes of the domain have asked for on a page, as far as that can be, and asks
    /// for the rest.
    pub(super) fn serve(&mut self, page: u64, out: &mut impl PartEffects<Self>) {
        while let Some(asks) = self.members_ask.get_mut(&page) {
            let Some(request) = asks.front().copied() else {
                self.members_ask.remove(&page);
                break;
            };
            let held = self.held_at(request.address);
            let lends = needed(request.operation)
                .and_then(|needed| held.filter(|held| held.permission >= needed));
            if let Some(held) = lends {
                let hold = self.holds.get(&held.minipage.at);
                if hold.is_some_and(|hold| hold.deferred.is_some()) {
                    return;
                }
                // The manager does not wait for that.
                if self.keeps(held.minipage.at) {
                    break;
                }
                self.lend(request, held.minipage, out);
                self.answered_first(page);
                continue;
            }
            let Some(asked) = self.asked.get_mut(&page) else {
                self.asks_for_members(page, request, out);
                return;
            };
            let before = std::mem::replace(&mut asked.waits, Waits::Thread);
            let (answer, threads) = (asked.answer, asked.threads);
            let is_same = asked.operation == request.operation;
            let is_members = asked.member == Some(request.asker);
            self.uncount_ahead(before);
            match answer {
                None => return,
                Some(Answer::Gone) => {
                    self.reply(request, MemoryKind::Gone, Minipage::NONE, out);
                    self.answered_first(page);
                }
                Some(Answer::Freed(minipage)) if is_same && is_members => {
                    self.reply(request, MemoryKind::Grant, minipage, out);
                    self.answered_first(page);
                    // Others ask again: the manager says who has freed it.
                    self.goes_on_at(page, out);
                }
                // It was for something else. A thread of this node may have to go on first.
                Some(_) if threads => return,
                Some(_) => _ = self.goes_on_at(page, out),
            }
        }
        let asked = self.asked.get(&page);
        if asked.is_some_and(|asked| asked.answer.is_some() && !asked.threads) {
            self.goes_on_at(page, out);
        }
    }

    /// Whether a minipage is not lent: while a flush waits until it is not held or is under way,
    /// and while what was lent of it is withdrawn.
    fn keeps(&self, at: u64) -> bool {
        let lent = self.lent.get(&at);
        let withdraws = |lent: &Lent| lent.to.values().any(|lease| lease.withdrawn.is_some());
        self.released.keeps(at) || lent.is_some_and(withdraws)
    }

    /// Serves all that waits for a minipage.
    pub(super) fn serve_all(&mut self, minipage: Minipage, out: &mut impl PartEffects<Self>) {
        let lent = self.lent.get(&minipage.at);
        if lent.is_some_and(|lent| lent.to.is_empty()) {
            self.lent.remove(&minipage.at);
        }
        let pages = minipage.first_page()..minipage.end_of_pages();
        let waiting = self.members_ask.range(pages);
        let waiting: Vec<u64> = waiting.map(|(page, _)| *page).collect();
        waiting.into_iter().for_each(|page| self.serve(page, out));
    }

    /// The first that waits for something on a page has its answer.
    fn answered_first(&mut self, page: u64) {
        if let Some(asks) = self.members_ask.get_mut(&page) {
            let answered = asks.pop_front();
            if asks.is_empty() {
                self.members_ask.remove(&page);
            }
            if let Some(request) = answered {
                self.forgets_request(request.asker);
            }
        }
    }

    /// Asks for what another node of the domain needs.
    fn asks_for_members(
        &mut self,
        page: u64,
        request: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) {
        let ticket = self.next_ticket();
        let asked = Asked {
            ticket,
            operation: request.operation,
            waits: Waits::Thread,
            threads: false,
            member: Some(request.asker),
            answer: None,
        };
        self.asked.insert(page, asked);
        let (address, operation) = (request.address, request.operation);
        self.ask_for(Some(request.asker), address, operation, ticket, out);
    }

    /// Lends a node what it asks for, which this node has.
    fn lend(
        &mut self,
        request: MemoryMessage,
        minipage: Minipage,
        out: &mut impl PartEffects<Self>,
    ) {
        let permission = match request.operation {
            MemoryOperation::Write => Permission::Write,
            _ => Permission::Read,
        };
        let to = NodeMap::new();
        let lent = || Lent { minipage, to };
        let lent = self.lent.get_or_insert_with(minipage.at, lent);
        let before = lent.to.get(&request.asker).map(|lease| lease.permission);
        let lease = Lease {
            permission: before.map_or(permission, |before| before.max(permission)),
            ticket: request.ticket,
            acknowledged: false,
            withdrawn: None,
        };
        lent.to.insert(request.asker, lease);
        let hold = self.holds.get_or_default(minipage.at);
        count(hold, lease.permission, true);
        if let Some(before) = before {
            count(hold, before, false);
        }
        let operation = match permission {
            Permission::Write if self.released.has_twin(minipage) => MemoryOperation::WriteTogether,
            _ => request.operation,
        };
        let request = MemoryMessage {
            operation,
            ..request
        };
        self.reply(request, MemoryKind::Grant, minipage, out);
    }

    /// The nodes to which something of a minipage is lent.
    pub(super) fn lent_to(&self, at: u64) -> impl Iterator<Item = NodeId> + '_ {
        let lent = self.lent.get(&at).into_iter();
        lent.flat_map(|lent| lent.to.keys().copied())
    }

    /// Withdraws what was lent of a minipage, as far as a message that waits leaves less, or all of
    /// it where a flush waits until it is not held.
    pub(super) fn withdraw(&mut self, at: u64, out: &mut impl PartEffects<Self>) {
        let deferred = self.holds.get(&at).and_then(|hold| hold.deferred);
        let Some(lent) = self.lent.get_mut(&at) else {
            return;
        };
        let left = match deferred {
            Some((
                _,
                MemoryMessage {
                    kind, operation, ..
                },
            )) => match kind == MemoryKind::Forward && !operation.takes_copies() {
                true => Permission::Read,
                false => Permission::Nothing,
            },
            None if self.released.wants(at) => Permission::Nothing,
            None => return,
        };
        let minipage = lent.minipage;
        let mut asked = Vec::new();
        for (node, lease) in lent.to.iter_mut() {
            let is_settled = lease.acknowledged && lease.withdrawn.is_none();
            let stays = deferred.is_none() && self.released.waits(*node, at);
            if is_settled && lease.permission > left && !stays {
                lease.withdrawn = Some(left);
                asked.push(*node);
            }
        }
        let operation = match left {
            Permission::Nothing => MemoryOperation::Write,
            _ => MemoryOperation::Read,
        };
        for node in asked {
            let withdrawal = MemoryMessage {
                kind: MemoryKind::Invalidate,
                operation,
                asker: self.me,
                number: 0,
                ticket: 0,
                address: minipage.at,
                minipage,
            };
            self.send(node, withdrawal, out);
        }
    }

    /// What a node was lent, of a message that speaks of it.
    fn lease(&mut self, node: NodeId, minipage: Minipage) -> Option<&mut Lease> {
        let lent = self.lent.get_mut(&minipage.at);
        let lent = lent.filter(|lent| lent.minipage == minipage);
        lent?.to.get_mut(&node)
    }

    /// A node that was lent something goes on.
    pub(super) fn take_members_ack(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        // The acknowledgement of what was lent before may come late: that is over.
        let lease = self.lease(from, message.minipage);
        if let Some(lease) = lease.filter(|lease| lease.ticket == message.ticket) {
            lease.acknowledged = true;
            self.withdraw(message.minipage.at, out);
        }
        Ok(())
    }

    /// A node has left what it was asked for.
    pub(super) fn take_members_return(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let at = message.minipage.at;
        let lease = self.lease(from, message.minipage);
        let lease = lease.and_then(|lease| Some((lease.withdrawn.take()?, lease)));
        let (left, lease) = lease.ok_or("a node leaves what it was not asked for")?;
        let before = std::mem::replace(&mut lease.permission, left);
        let hold = self.holds.get_mut(&at);
        let hold = hold.ok_or("a node leaves what it does not hold")?;
        if left == Permission::Nothing {
            self.lent.get_mut(&at).map(|lent| lent.to.remove(&from));
        } else {
            count(hold, left, true);
        }
        self.release_at(at, before == Permission::Write, out)?;
        self.serve_all(message.minipage, out);
        Ok(())
    }

    /// Whether nothing is held but what is lent, and nothing is withdrawn.
    pub(super) fn only_lends(&self) -> bool {
        let lent = |at: &u64| self.lent.get(at).map_or(0, |lent| lent.to.len());
        let mut all = self.holds.iter();
        all.all(|(at, hold)| {
            let held = (hold.readers + hold.writers) as usize;
            hold.deferred.is_none() && held == lent(at)
        })
    }
}

/// Counts a lease as a thread that holds the minipage, or no more.
fn count(hold: &mut Hold, permission: Permission, begins: bool) {
    let of = match permission {
        Permission::Write => &mut hold.writers,
        _ => &mut hold.readers,
    };
    match begins {
        true => *of += 1,
        false => *of -= 1,
    }
}
