//! Fetching from and storing into the memory of others.

use std::ops::Range;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;

use super::calls::Outcome;
use super::frame;
use super::memory::Capability;
use super::{Deal, Doing, Idle, Rpc, RpcError, RpcRefusal};
use dhole_net::Loss;

/// Pieces of a fetch that are asked for at a time.
const AT_ONCE: usize = 16;

/// Where the pieces of a fetch belong that are under way.
pub(super) struct Landing<'a> {
    owner: NodeId,
    into: &'a mut [u8],
    awaited: Vec<(u64, Range<usize>)>,
}

impl Landing<'_> {
    pub fn awaits(&self, from: NodeId, call: u64) -> bool {
        from == self.owner && self.awaited.iter().any(|(awaited, _)| *awaited == call)
    }

    /// Has a piece of so many bytes put where it belongs; what no sound node sends.
    pub fn land(
        &mut self,
        call: u64,
        bytes: usize,
        put: impl FnOnce(&mut [u8]),
    ) -> Result<(), String> {
        let Some(at) = self
            .awaited
            .iter()
            .position(|(awaited, _)| *awaited == call)
        else {
            return Ok(());
        };
        let range = self.awaited[at].1.clone();
        // What has not landed stays awaited, so that a fetch that lacks it never seems complete.
        if range.len() != bytes {
            let asked = range.len();
            return Err(format!("{bytes} bytes where {asked} were fetched"));
        }
        self.awaited.swap_remove(at);
        put(&mut self.into[range]);
        Ok(())
    }
}

impl Rpc {
    /// Fetches bytes from `offset` on of the memory that `from` is for: as many as fit `into`. If
    /// this fails, some may have come.
    ///
    /// # Errors
    /// [`RpcError`]; [`RpcError::Refused`] where the capability does not allow it.
    pub fn fetch(
        &self,
        from: &Capability,
        offset: usize,
        into: &mut [u8],
        within: Duration,
    ) -> Result<(), RpcError> {
        let bytes = into.len();
        let deal = Deal::new(from.owner(), Doing::Fetching { bytes }, within);
        self.until_not_in_use(&deal, || match from.owner() == self.me() {
            true => {
                let place = from.place(offset, bytes);
                let copied = self
                    .grants
                    .read(&place, |bytes| into.copy_from_slice(bytes));
                copied.map_err(|refusal| deal.refused(refusal))
            }
            false => self.fetch_once(&deal, from, offset, into),
        })
    }

    /// Stores bytes from `offset` on into the memory that `to` is for. When this returns they are
    /// there; if it fails, some may be.
    ///
    /// # Errors
    /// As [`Rpc::fetch`].
    pub fn store(
        &self,
        to: &Capability,
        offset: usize,
        bytes: &[u8],
        within: Duration,
    ) -> Result<(), RpcError> {
        let doing = Doing::Storing { bytes: bytes.len() };
        let deal = Deal::new(to.owner(), doing, within);
        self.until_not_in_use(&deal, || match to.owner() == self.me() {
            true => {
                let place = to.place(offset, bytes.len());
                let store = |into: &mut [u8]| into.copy_from_slice(bytes);
                let stored = self.grants.write(&place, store);
                stored.map_err(|refusal| deal.refused(refusal))
            }
            false => self.store_once(&deal, to, offset, bytes),
        })
    }

    /// Tries again where the owner is at work on its memory.
    fn until_not_in_use(
        &self,
        deal: &Deal,
        mut once: impl FnMut() -> Result<(), RpcError>,
    ) -> Result<(), RpcError> {
        loop {
            match once() {
                Err(RpcError::Refused {
                    refusal: RpcRefusal::InUse,
                    ..
                }) if !deal.left().is_zero() => {
                    if self.poll() == 0 {
                        std::thread::yield_now();
                    }
                }
                done => return done,
            }
        }
    }

    fn fetch_once(
        &self,
        deal: &Deal,
        from: &Capability,
        offset: usize,
        into: &mut [u8],
    ) -> Result<(), RpcError> {
        let mut landing = Some(Landing {
            owner: deal.peer,
            into,
            awaited: Vec::with_capacity(AT_ONCE),
        });
        let fetched = self.fetch_pieces(deal, from, offset, &mut landing);
        let awaited = landing.map(|landing| landing.awaited).unwrap_or_default();
        let mut calls = lock(&self.calls);
        for (call, _) in awaited {
            calls.abandon(call, true);
        }
        fetched
    }

    fn fetch_pieces(
        &self,
        deal: &Deal,
        from: &Capability,
        offset: usize,
        landing: &mut Option<Landing<'_>>,
    ) -> Result<(), RpcError> {
        let bytes = landing.as_ref().map_or(0, |landing| landing.into.len());
        let most = AT_ONCE.min(self.limits.unanswered);
        let (mut asked, mut idle) = (0, Idle::default());
        // Also of nothing one piece is asked for: the owner says whether that is allowed.
        let mut all_asked = false;
        loop {
            while !all_asked && under_way(landing) < most {
                let call = lock(&self.calls).begin(deal.peer, self.limits.unanswered);
                let Some(call) = call else { break };
                let range = asked..bytes.min(asked + self.limits.piece);
                let place = from
                    .place(offset.saturating_add(asked), range.len())
                    .to_bytes();
                asked = range.end;
                all_asked = asked == bytes;
                if let Err(unsent) = self.push(deal, &[&frame::fetch(call), &place], landing) {
                    lock(&self.calls).abandon(call, false);
                    return Err(unsent);
                }
                if let Some(landing) = landing {
                    landing.awaited.push((call, range));
                }
            }
            let before = under_way(landing);
            let polled = self.poll_with(landing) > 0;
            // However much comes, what was refused or lost is seen, and what another thread took.
            let others =
                under_way(landing) == before && self.land_what_others_took(deal, landing)?;
            let came = polled || others;
            if all_asked && under_way(landing) == 0 {
                return Ok(());
            }
            let mut found = || self.has_outcome(landing);
            if !idle.goes_on(self, deal.until(), came, &mut found) {
                return Err(deal.late());
            }
        }
    }

    fn has_outcome(&self, landing: &Option<Landing<'_>>) -> bool {
        let calls = lock(&self.calls);
        let mut awaited = landing.iter().flat_map(|landing| &landing.awaited);
        awaited.any(|(call, _)| calls.is_over(*call))
    }

    /// Puts the pieces where they belong that another thread has taken, and finds refusals; whether
    /// there was anything.
    fn land_what_others_took(
        &self,
        deal: &Deal,
        landing: &mut Option<Landing<'_>>,
    ) -> Result<bool, RpcError> {
        let Some(landing) = landing else {
            return Ok(false);
        };
        let mut any = false;
        for at in (0..landing.awaited.len()).rev() {
            let call = landing.awaited[at].0;
            let outcome = lock(&self.calls).take(call);
            let Some(outcome) = outcome else { continue };
            any = true;
            match outcome {
                Outcome::Answer(bytes) => {
                    let put = |into: &mut [u8]| into.copy_from_slice(&bytes);
                    if let Err(what) = landing.land(call, bytes.len(), put) {
                        let loss = Loss::CutOff(what);
                        self.port.give_up(deal.peer, loss.clone());
                        return Err(deal.lost(loss));
                    }
                }
                outcome => {
                    landing.awaited.swap_remove(at);
                    return deal.result(outcome).map(|_| true);
                }
            }
        }
        Ok(any)
    }

    fn store_once(
        &self,
        deal: &Deal,
        to: &Capability,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), RpcError> {
        let call = self.begin_call(deal)?;
        let mut sent = false;
        let stored = self.store_pieces(deal, to, offset, bytes, call, &mut sent);
        lock(&self.calls).abandon(call, sent);
        stored
    }

    fn store_pieces(
        &self,
        deal: &Deal,
        to: &Capability,
        offset: usize,
        bytes: &[u8],
        call: u64,
        sent: &mut bool,
    ) -> Result<(), RpcError> {
        let mut at = 0;
        // What was refused already need not be sent to its end.
        while !lock(&self.calls).is_over(call) {
            let end = bytes.len().min(at + self.limits.piece);
            let last = end == bytes.len();
            let place = to.place(offset.saturating_add(at), end - at).to_bytes();
            let head = frame::store(call, last);
            self.push(deal, &[&head, &place, &bytes[at..end]], &mut None)?;
            // The owner answers a store whose last piece it gets, or one that it refuses.
            *sent = *sent || last;
            at = end;
            if last {
                break;
            }
        }
        let outcome = self.wait_for(deal.until(), &mut None, self.taking(call));
        deal.result(outcome.ok_or_else(|| deal.late())?).map(drop)
    }
}

fn under_way(landing: &Option<Landing<'_>>) -> usize {
    landing.as_ref().map_or(0, |landing| landing.awaited.len())
}
