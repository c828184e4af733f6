//! Active messages over any port: a node calls procedures of other nodes, with or without an
//! answer, and fetches from and stores into their memory (Orca's Panda, section 2.3; PEACE's
//! `fetch` and `store`: VOTE, section 3).
//!
//! A thread that waits also serves: procedures run in the thread that polls, and must not wait.
//! Large data is no argument: it goes in pieces, each from its memory to the port and from the port
//! to its destination, as far as a [`Capability`] allows.
#![forbid(unsafe_code)]

mod calls;
mod error;
mod frame;
mod memory;
mod place;
mod serving;
#[cfg(test)]
mod tests;
mod transfer;

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;

pub use self::error::{Doing, RpcError, RpcRefusal, UnfitPort};
pub use self::memory::{Capability, GrantError, Memory, Rights};

use self::calls::{Calls, Outcome};
use self::memory::Grants;
use self::serving::Due;
use self::transfer::Landing;
use dhole_net::{Loss, Port, SendError, Waiting};

/// The longest that a thread parks: of two that do, a doorbell wakes one, which may be the wrong
/// one.
const LONGEST_PARK: Duration = Duration::from_millis(20);
/// The longest that a node parks where it waits for room.
const NO_ROOM: Duration = Duration::from_millis(1);
/// Looks in vain, while a thread spins, to one at the clock, which takes as long as many of them.
const LOOKS: u32 = 16;

type Procedure = Box<dyn Fn(NodeId, &[u8]) -> Vec<u8> + Send + Sync>;

/// Limits of what is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RpcLimits {
    /// Calls of one node that another has not answered. All nodes must say the same: a node that
    /// exceeds it is cut off.
    pub unanswered: usize,
    /// Bytes of a piece of what is fetched or stored.
    pub piece: usize,
    /// Bytes of an answer. All nodes must say the same: a node that answers with more is cut off.
    pub answer: usize,
}

impl Default for RpcLimits {
    fn default() -> Self {
        RpcLimits {
            unanswered: 64,
            // With its head it goes as one record of a shared ring.
            piece: (32 << 10) - 64,
            answer: 1 << 20,
        }
    }
}

/// One node's end of remote procedures, over a port that is reliable and ordered.
pub struct Rpc {
    port: Box<dyn Port>,
    limits: RpcLimits,
    procedures: Vec<Procedure>,
    grants: Arc<Grants>,
    calls: Mutex<Calls>,
    /// How often something has come of a call that somebody may wait for.
    outcomes: AtomicU64,
    due: Mutex<Due>,
    /// Something may be due.
    owes: AtomicBool,
    spins: bool,
    waiting: Waiting,
    /// Threads that are parked.
    parked: AtomicUsize,
}

impl Rpc {
    /// The node at this end of `port`.
    ///
    /// # Errors
    /// [`UnfitPort`] when it is not reliable and ordered.
    pub fn new(port: Box<dyn Port>) -> Result<Rpc, UnfitPort> {
        Rpc::with_limits(port, RpcLimits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// As [`Rpc::new`].
    pub fn with_limits(port: Box<dyn Port>, limits: RpcLimits) -> Result<Rpc, UnfitPort> {
        let (nodes, offers) = (port.nodes(), port.offers());
        if !offers.reliable || !offers.ordered {
            let port = port.name();
            return Err(UnfitPort { port, offers });
        }
        let largest = offers.largest;
        let most = largest.saturating_sub(frame::HEAD + place::PLACE);
        Ok(Rpc {
            limits: RpcLimits {
                unanswered: limits.unanswered.max(1),
                piece: limits.piece.clamp(1, most.max(1)),
                answer: limits.answer.min(largest.saturating_sub(frame::HEAD)),
            },
            procedures: Vec::new(),
            grants: Arc::default(),
            calls: Mutex::new(Calls::new(nodes)),
            outcomes: AtomicU64::new(0),
            due: Mutex::new(Due::new(nodes)),
            owes: AtomicBool::new(false),
            spins: nodes <= cores(),
            waiting: Waiting::default(),
            parked: AtomicUsize::new(0),
            port,
        })
    }

    /// How threads wait here; a node spins if there are as many cores as nodes. What the command
    /// or the environment says of it is [`Waiting::or_env`]'s to say. Here no thread parks for more
    /// than 20 ms at a time.
    pub fn waiting(mut self, waiting: Waiting) -> Rpc {
        self.waiting = waiting;
        self
    }

    /// How many nodes share the cores that this process may run on, if not all do: 1 where each is
    /// bound to a core of its own.
    pub fn neighbours(mut self, nodes: usize) -> Rpc {
        self.spins = nodes <= cores();
        self
    }

    /// Adds a procedure that others may call: it gets the caller and the arguments, and returns the
    /// answer. The first one has the number 0. It must not wait, nor use this `Rpc`.
    pub fn procedure(
        mut self,
        procedure: impl Fn(NodeId, &[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Rpc {
        self.procedures.push(Box::new(procedure));
        self
    }

    /// This node.
    pub fn me(&self) -> NodeId {
        self.port.me()
    }

    /// Nodes of the cluster.
    pub fn nodes(&self) -> usize {
        self.port.nodes()
    }

    /// What the port is called.
    pub fn transport(&self) -> &'static str {
        self.port.name()
    }

    /// Makes memory of which others may use what they are granted.
    pub fn memory(&self, bytes: Vec<u8>) -> Memory {
        Memory::new(self.me(), bytes, &self.grants)
    }

    /// Calls a procedure of `peer`, and waits for the answer.
    ///
    /// # Errors
    /// [`RpcError`]: late, lost, refused, too much under way, or not to be sent.
    pub fn call(
        &self,
        peer: NodeId,
        procedure: u16,
        arguments: &[u8],
        within: Duration,
    ) -> Result<Vec<u8>, RpcError> {
        self.begin(peer, procedure, arguments, within)?.wait()
    }

    /// Calls a procedure of `peer`, whose answer is taken later. Waits only where too much is
    /// under way, and while there is no room.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub fn begin(
        &self,
        peer: NodeId,
        procedure: u16,
        arguments: &[u8],
        within: Duration,
    ) -> Result<PendingCall<'_>, RpcError> {
        let deal = Deal::new(peer, Doing::Calling { procedure }, within);
        let call = self.begin_call(&deal)?;
        let mut pending = PendingCall {
            rpc: self,
            deal,
            call,
            sent: false,
            taken: false,
        };
        let head = frame::call(procedure, call);
        self.push(&pending.deal, &[&head, arguments], &mut None)?;
        pending.sent = true;
        // The clock is looked at while the call is on its way.
        pending.deal.until();
        Ok(pending)
    }

    /// Calls a procedure of `peer` without an answer. Nothing says whether the call arrived, but
    /// `peer` gets it before any later message of this node.
    ///
    /// # Errors
    /// As [`Rpc::call`], as far as this node can know.
    pub fn tell(
        &self,
        peer: NodeId,
        procedure: u16,
        arguments: &[u8],
        within: Duration,
    ) -> Result<(), RpcError> {
        let deal = Deal::new(peer, Doing::Telling { procedure }, within);
        self.push(&deal, &[&frame::tell(procedure), arguments], &mut None)
    }

    /// Serves the others once: runs what they call, and takes their answers. Returns how much that
    /// was.
    pub fn poll(&self) -> usize {
        self.poll_with(&mut None)
    }

    /// Serves the others until `done`, or for so long; whether it is done.
    pub fn serve_until(&self, within: Duration, done: &dyn Fn() -> bool) -> bool {
        let until = moment(within);
        let done = || done().then_some(());
        self.wait_for(until, &mut None, done).is_some()
    }

    /// Ends the park of the thread that serves, so that it looks whether it is done.
    pub fn wake(&self) {
        self.port.unpark();
    }

    /// Who is lost, and how, as far as this node knows.
    pub fn lost(&self, peer: NodeId) -> Option<Loss> {
        lock(&self.calls).lost(peer)
    }

    /// Sends what is kept back, and says goodbye.
    pub fn close(&self, at_most: Duration) {
        let until = moment(at_most);
        self.wait_for(until, &mut None, || {
            lock(&self.due).is_empty().then_some(())
        });
        let left = until.saturating_duration_since(Instant::now());
        self.port.close(left);
    }

    /// A call that there is room for, waiting for that if need be.
    fn begin_call(&self, deal: &Deal) -> Result<u64, RpcError> {
        let most = self.limits.unanswered;
        let begin = || lock(&self.calls).begin(deal.peer, most);
        if let Some(call) = begin() {
            return Ok(call);
        }
        let begun = self.wait_for(deal.until(), &mut None, begin);
        begun.ok_or(RpcError::Crowded {
            doing: deal.doing,
            peer: deal.peer,
            most,
        })
    }

    /// Sends a frame as soon as there is room, and serves until then.
    fn push(
        &self,
        deal: &Deal,
        parts: &[&[u8]],
        landing: &mut Option<Landing<'_>>,
    ) -> Result<(), RpcError> {
        loop {
            match self.port.send(deal.peer, parts) {
                Ok(()) => return Ok(()),
                Err(SendError::Busy { .. }) => {}
                Err(SendError::Lost { loss, .. }) => return Err(deal.lost(loss)),
                Err(cause) => return Err(deal.unsent(cause)),
            }
            let came = self.poll_with(landing) > 0;
            if deal.left().is_zero() {
                return Err(deal.late());
            }
            if !came {
                self.port.park(NO_ROOM.min(deal.left()));
            }
        }
    }

    /// Serves until something is there, or until a moment, in ever milder ways.
    fn wait_for<T>(
        &self,
        until: Instant,
        landing: &mut Option<Landing<'_>>,
        mut there: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let mut idle = Idle::default();
        loop {
            if let Some(there) = there() {
                return Some(there);
            }
            let came = self.poll_with(landing) > 0;
            if came && let Some(there) = there() {
                return Some(there);
            }
            let mut found = None;
            let goes_on = idle.goes_on(self, until, came, &mut || {
                found = there();
                found.is_some()
            });
            if found.is_some() {
                return found;
            }
            if !goes_on {
                return there();
            }
        }
    }

    /// Takes what has come of a call, and looks for it only where something has come of any.
    fn taking(&self, call: u64) -> impl FnMut() -> Option<Outcome> {
        let mut seen = None;
        move || {
            let outcomes = Some(self.outcomes.load(Ordering::SeqCst));
            if seen == outcomes {
                return None;
            }
            seen = outcomes;
            lock(&self.calls).take(call)
        }
    }

    /// Something has come of calls that a thread other than this one may wait for.
    fn wake_waiting(&self) {
        self.outcomes.fetch_add(1, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) > 0 {
            self.port.unpark();
        }
    }
}

/// How long a thread has waited in vain: it spins, then yields as long, then parks.
#[derive(Default)]
struct Idle {
    looks: u32,
    since: Option<Instant>,
}

impl Idle {
    /// After a look at the port: whether it is not over yet. Where nothing `came` time passes, but
    /// not where there is something after all.
    #[inline]
    fn goes_on(
        &mut self,
        rpc: &Rpc,
        until: Instant,
        came: bool,
        found: &mut dyn FnMut() -> bool,
    ) -> bool {
        if came {
            *self = Idle::default();
            return Instant::now() < until;
        }
        self.looks += 1;
        if rpc.spins && !self.looks.is_multiple_of(LOOKS) {
            std::hint::spin_loop();
            return true;
        }
        self.lets_time_pass(rpc, until, found)
    }

    fn lets_time_pass(
        &mut self,
        rpc: &Rpc,
        until: Instant,
        found: &mut dyn FnMut() -> bool,
    ) -> bool {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let (waited, spin) = (now - since, rpc.waiting.spin);
        if rpc.spins && waited < spin {
            std::hint::spin_loop();
        } else if waited < 2 * spin {
            std::thread::yield_now();
        } else if now < until {
            rpc.parked.fetch_add(1, Ordering::SeqCst);
            // What another thread has taken since the last look is seen here, or ends the park.
            if !found() {
                rpc.port.park(LONGEST_PARK.min(until - now));
            }
            rpc.parked.fetch_sub(1, Ordering::SeqCst);
        }
        now < until
    }
}

/// Cores that this process may run on.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// So long from now on, or as good as for ever: a moment that a clock can say.
fn moment(within: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(1 << 30);
    Instant::now() + within.min(LONGEST)
}

/// What is done with whom, and until when: for so long from when it was sent, or first had to
/// wait.
struct Deal {
    peer: NodeId,
    doing: Doing,
    within: Duration,
    until: OnceCell<Instant>,
}

impl Deal {
    fn new(peer: NodeId, doing: Doing, within: Duration) -> Deal {
        Deal {
            peer,
            doing,
            within,
            until: OnceCell::new(),
        }
    }

    fn until(&self) -> Instant {
        *self.until.get_or_init(|| moment(self.within))
    }

    fn left(&self) -> Duration {
        self.until().saturating_duration_since(Instant::now())
    }

    fn late(&self) -> RpcError {
        RpcError::Late {
            doing: self.doing,
            peer: self.peer,
            within: self.within,
        }
    }

    fn lost(&self, loss: Loss) -> RpcError {
        RpcError::Lost {
            doing: self.doing,
            peer: self.peer,
            loss,
        }
    }

    fn refused(&self, refusal: RpcRefusal) -> RpcError {
        RpcError::Refused {
            doing: self.doing,
            peer: self.peer,
            refusal,
        }
    }

    fn unsent(&self, cause: SendError) -> RpcError {
        RpcError::Unsent {
            doing: self.doing,
            peer: self.peer,
            cause,
        }
    }

    /// What the caller is told of an outcome.
    fn result(&self, outcome: Outcome) -> Result<Vec<u8>, RpcError> {
        match outcome {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::Refused(refusal) => Err(self.refused(refusal)),
            Outcome::Lost(loss) => Err(self.lost(loss)),
        }
    }
}

/// A call that is under way. Dropping it forgets it; the peer does what it was asked all the same.
pub struct PendingCall<'a> {
    rpc: &'a Rpc,
    deal: Deal,
    call: u64,
    sent: bool,
    /// What came of it.
    taken: bool,
}

impl PendingCall<'_> {
    /// Serves once, and says whether there is an answer, or never will be.
    pub fn is_done(&self) -> bool {
        self.rpc.poll();
        lock(&self.rpc.calls).is_over(self.call)
    }

    /// Waits for the answer, for as long as was said when the call began.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub fn wait(mut self) -> Result<Vec<u8>, RpcError> {
        let take = self.rpc.taking(self.call);
        let outcome = self.rpc.wait_for(self.deal.until(), &mut None, take);
        self.taken = outcome.is_some();
        self.deal.result(outcome.ok_or_else(|| self.deal.late())?)
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.taken {
            lock(&self.rpc.calls).abandon(self.call, self.sent);
        }
    }
}
