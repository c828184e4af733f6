//! The model of pages under TreadMarks. It explores every run of a small program, as
//! [`Cluster`](super::Cluster) does over objects.
//!
//! A page has two words, each with the number of its last write. Programs are free of races, so a
//! read must return the last write.

use std::collections::BTreeMap;
use std::fmt;

use dhole_model::{CallSite, NodeId, PageId};
use dhole_protocol::{
    Command, Commands, DiffId, Event, LockId, LogLimits, Message, PageCommand, PageEvent, Protocol,
    Races, SentDiff, WorkerIs,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::Bug;

/// Words of a page.
const WORDS: usize = 2;

/// A step of a node. Words are numbered through all pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageOp {
    /// Reads a word.
    Read(u8),
    /// Writes a word.
    Write(u8),
    /// Acquires a lock.
    Acquire(u8),
    /// Releases it.
    Release(u8),
    /// Meets the others.
    Barrier,
}

/// A program on nodes whose pages are kept by TreadMarks.
#[derive(Clone, Debug)]
pub struct PagesModel {
    /// The steps of each node.
    pub nodes: Vec<Vec<PageOp>>,
    /// Pages that there are.
    pub pages: usize,
    /// A node with so many bytes of diffs, twins and records has them collected at the next
    /// barrier.
    pub collect_from: u64,
    /// A mistake that the checker is to find.
    pub bug: Option<Bug>,
}

/// A page's words.
type Words = [u8; WORDS];

/// The words that a diff changes.
type Diff = Vec<(u8, u8)>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Page {
    words: Words,
    valid: bool,
    writable: bool,
    twin: Option<Words>,
}

/// Where a worker is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Computing,
    /// In a call that waits; what its worker lent, and whether an operation is done then.
    Waiting(WorkerIs, bool),
    /// Past a barrier at which diffs are collected: pages to bring up to date, one of which it may
    /// wait for.
    Validating(Vec<PageId>, bool),
    /// Waits for the others to have done so.
    Collecting,
    Finished,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    protocol: Protocol,
    pages: Vec<Page>,
    diffs: BTreeMap<DiffId, Diff>,
    done: usize,
    phase: Phase,
    /// Its memory was full when it arrived at a barrier.
    full: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Payload {
    None,
    Page(Words),
    Diffs(Vec<Diff>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Parcel {
    from: NodeId,
    to: NodeId,
    message: Message,
    payload: Payload,
}

/// One moment of a run.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Moment {
    nodes: Vec<Node>,
    parcels: Vec<Parcel>,
    /// The last write of each word, and how many there were.
    latest: Vec<u8>,
    writes: u8,
    fault: Option<String>,
    /// A whole page was sent; a request waited; diffs were collected.
    seen: [bool; 3],
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, node) in self.nodes.iter().enumerate() {
            writeln!(
                f,
                "  n{number}: {} done, {:?}, {:?}",
                node.done, node.phase, node.pages
            )?;
        }
        write!(f, "  {:?}", self.fault)
    }
}

/// Something that can happen next.
#[derive(Clone, PartialEq, Debug)]
pub enum Move {
    /// The worker of a node goes on.
    Compute(usize),
    /// The message at this place arrives.
    Deliver(usize),
}

fn site() -> CallSite {
    CallSite {
        file: "model",
        line: 1,
        column: 1,
    }
}

fn place(word: u8) -> (usize, usize) {
    (usize::from(word) / WORDS, usize::from(word) % WORDS)
}

impl Node {
    fn worker(&self) -> WorkerIs {
        match self.phase {
            Phase::Computing => WorkerIs::Computing,
            Phase::Waiting(lent, _) => lent,
            _ => WorkerIs::InCall,
        }
    }

    fn words(&mut self, page: PageId) -> &mut Page {
        &mut self.pages[page.0 as usize]
    }
}

/// The surroundings of a node in a step.
struct Step<'a> {
    me: NodeId,
    moment: &'a mut Moment,
    bug: Option<Bug>,
    payload: Payload,
}

type Done = Result<(), String>;

fn only(allowed: bool, what: &str) -> Done {
    allowed.then_some(()).ok_or_else(|| what.to_owned())
}

impl Step<'_> {
    fn node(&mut self) -> &mut Node {
        &mut self.moment.nodes[self.me.index()]
    }

    /// As the engine: what waited for a call is answered first.
    fn call(&mut self, event: Event) -> Done {
        if self.node().protocol.has_deferred() {
            self.step(Event::Serve)?;
        }
        self.step(event)
    }

    fn step(&mut self, event: Event) -> Done {
        let (mut commands, worker) = (Commands::new(), self.node().worker());
        let stepped = self.node().protocol.step(event, worker, &mut commands);
        stepped.map_err(|error| error.to_string())?;
        for command in commands {
            let changed = self
                .bug
                .map_or(Some(command.clone()), |bug| bug.command(command));
            changed.map_or(Ok(()), |command| self.carry_out(command))?;
        }
        Ok(())
    }

    fn send(&mut self, mut to: NodeId, mut message: Message, payload: Payload) {
        let from = self.me;
        if let Some(bug) = self.bug {
            bug.message(from, &mut to, &mut message);
        }
        self.moment.parcels.push(Parcel {
            from,
            to,
            message,
            payload,
        });
        let order = |parcel: &Parcel| super::Sealed::new(parcel.clone()).fingerprint();
        self.moment.parcels.sort_by_key(order);
    }

    fn carry_out(&mut self, command: Command) -> Done {
        match command {
            Command::Send { to, message } => self.send(to, message, Payload::None),
            Command::Pages(command) => self.on_page(command)?,
            Command::Done => self.over()?,
            Command::Deferred => self.moment.seen[1] = true,
            Command::IntervalEnded => {}
            other => return Err(format!("a command that is not about pages: {other:?}")),
        }
        Ok(())
    }

    fn on_page(&mut self, command: PageCommand) -> Done {
        let worker = self.node().worker();
        let (called, owned) = (worker != WorkerIs::Computing, worker == WorkerIs::InCall);
        match command {
            PageCommand::ZeroFill(page) => {
                only(
                    self.node().words(page).words == [0; WORDS],
                    "zeros are not there",
                )?;
            }
            PageCommand::MakeValid(page) => self.node().words(page).valid = true,
            PageCommand::Install(page) => {
                only(
                    called && !self.node().words(page).valid,
                    "a page in use is replaced",
                )?;
                let Payload::Page(words) = self.payload else {
                    return Err("no page came".into());
                };
                self.node().words(page).words = words;
            }
            PageCommand::Apply(id) => {
                only(
                    called && !self.node().words(id.page).valid,
                    "a page in use is changed",
                )?;
                let diff = self.node().diffs.get(&id).cloned().ok_or("no such diff")?;
                let words = &mut self.node().words(id.page).words;
                diff.iter()
                    .for_each(|(at, value)| words[usize::from(*at)] = *value);
            }
            PageCommand::Invalidate(page) => {
                only(owned, "a page is taken away")?;
                let page = self.node().words(page);
                (page.valid, page.writable) = (false, false);
            }
            PageCommand::MakeTwin(page) => {
                only(
                    owned && self.node().words(page).valid,
                    "an invalid page is written",
                )?;
                let page = self.node().words(page);
                (page.twin, page.writable) = (Some(page.words), true);
            }
            PageCommand::MakeWritable(page) => {
                let page = self.node().words(page);
                only(
                    owned && page.valid && page.twin.is_some(),
                    "written without a twin",
                )?;
                page.writable = true;
            }
            PageCommand::Protect(page) => self.node().words(page).writable = false,
            PageCommand::MakeDiff(id) => self.make_diff(id, called)?,
            PageCommand::Keep(SentDiff { id, .. }) => {
                let diff = self.next_diff()?;
                self.node().keep(id, diff);
            }
            PageCommand::PassOver(_) => drop(self.next_diff()?),
            PageCommand::Drop(page) => {
                only(!self.node().words(page).valid, "a valid page is dropped")?;
                self.node().words(page).words = [0; WORDS];
            }
            PageCommand::DropTwin(page) => {
                let page = self.node().words(page);
                (page.twin, page.writable) = (None, false);
            }
            PageCommand::ForgetDiffs => self.node().diffs.clear(),
            reply => self.reply(reply, called)?,
        }
        Ok(())
    }

    fn next_diff(&mut self) -> Result<Diff, String> {
        match &mut self.payload {
            Payload::Diffs(diffs) if !diffs.is_empty() => Ok(diffs.remove(0)),
            _ => Err("no diff came".into()),
        }
    }

    fn make_diff(&mut self, id: DiffId, called: bool) -> Done {
        let kept = self.bug == Some(Bug::KeepTwin);
        let page = self.node().words(id.page);
        only(
            called || !page.writable,
            "a page is read that is being written",
        )?;
        let twin = page.twin.ok_or("a diff without a twin")?;
        let changed = (0..WORDS).filter(|at| twin[*at] != page.words[*at]);
        let diff = changed.map(|at| (at as u8, page.words[at])).collect();
        if !kept {
            (page.twin, page.writable) = (None, false);
        }
        self.node().keep(id, diff);
        Ok(())
    }

    fn reply(&mut self, reply: PageCommand, called: bool) -> Done {
        match reply {
            PageCommand::ReplyPage {
                to,
                round,
                page,
                twin,
                applied,
            } => {
                let copy = self.node().words(page);
                let words = match twin {
                    true => copy.twin.ok_or("a reply from no twin")?,
                    false => copy.words,
                };
                only(
                    twin || called || !copy.writable,
                    "a page is sent that is being written",
                )?;
                self.moment.seen[0] = true;
                let message = Message::PageReply {
                    round,
                    page,
                    applied,
                };
                self.send(to, message, Payload::Page(words));
            }
            PageCommand::ReplyDiffs {
                to,
                round,
                page,
                got,
                diffs,
            } => {
                let kept =
                    |(id, _): &(DiffId, u64)| self.moment.nodes[self.me.index()].diffs.get(id);
                let bytes: Option<Vec<Diff>> = diffs.iter().map(|id| kept(id).cloned()).collect();
                let bytes = bytes.ok_or("a reply of no diff")?;
                let sent = diffs.iter().map(|&(id, lamport)| SentDiff {
                    id,
                    lamport,
                    bytes: 0,
                });
                let message = Message::DiffReply {
                    round,
                    page,
                    got,
                    diffs: sent.collect(),
                };
                self.send(to, message, Payload::Diffs(bytes));
            }
            other => return Err(format!("no reply: {other:?}")),
        }
        Ok(())
    }

    /// Ends the worker's wait.
    fn over(&mut self) -> Done {
        let validate = self.node().protocol.pages_to_validate();
        let me = self.me.index();
        let node = self.node();
        match &mut node.phase {
            Phase::Validating(_, waits) => *waits = false,
            Phase::Collecting => {
                node.phase = Phase::Waiting(WorkerIs::InCall, true);
                self.moment.seen[2] = true;
                self.call(Event::Pages(PageEvent::Collect))?;
                self.moment.nodes[me].phase = Phase::Computing;
                self.moment.nodes[me].done += 1;
            }
            Phase::Waiting(..) if validate.is_some() => {
                node.full = false;
                node.phase = Phase::Validating(validate.unwrap_or_default(), false);
            }
            Phase::Waiting(..) if node.full => {
                return Err("a node goes on whose memory was full".into());
            }
            Phase::Waiting(_, done) => {
                node.done += usize::from(*done);
                node.phase = Phase::Computing;
            }
            Phase::Computing | Phase::Finished => {}
        }
        Ok(())
    }

    /// The worker goes on with its program.
    fn compute(&mut self, op: Option<PageOp>) -> Done {
        use WorkerIs::{InCall, Sharing};
        let lock = |lock: u8| LockId(u64::from(lock));
        if let Phase::Validating(..) = self.node().phase {
            return self.validate();
        }
        match op {
            Some(PageOp::Read(word)) => {
                let (page, at) = place(word);
                let latest = self.moment.latest[usize::from(word)];
                let page = &self.node().pages[page];
                if !page.valid {
                    return self.wait(Sharing, false, read(word));
                }
                let seen = page.words[at];
                only(seen == latest, "a read returns an old value")?;
                self.node().done += 1;
                Ok(())
            }
            Some(PageOp::Write(word)) => self.write(word),
            Some(PageOp::Acquire(of)) => {
                let (lock, site) = (lock(of), site());
                self.wait(InCall, true, Event::Acquire { lock, site })
            }
            Some(PageOp::Release(of)) => {
                self.wait(InCall, true, Event::Release { lock: lock(of) })?;
                self.over()
            }
            Some(PageOp::Barrier) => {
                let (once, site) = (false, site());
                self.node().full = self.node().protocol.is_full_of_pages();
                self.wait(InCall, true, Event::Arrive { once, site })
            }
            None => self.wait(InCall, true, Event::Finish),
        }
    }

    fn write(&mut self, word: u8) -> Done {
        let (page, at) = place(word);
        let Page {
            valid, writable, ..
        } = self.node().pages[page];
        if !valid {
            return self.wait(WorkerIs::InCall, false, read(word));
        }
        if !writable {
            let page = PageId(page as u64);
            self.wait(
                WorkerIs::InCall,
                false,
                Event::Pages(PageEvent::Write { page }),
            )?;
            return self.over();
        }
        self.moment.writes += 1;
        let value = self.moment.writes;
        self.moment.latest[usize::from(word)] = value;
        let node = self.node();
        node.pages[page].words[at] = value;
        node.done += 1;
        Ok(())
    }

    /// Brings the next page up to date that this node keeps, or meets the others.
    fn validate(&mut self) -> Done {
        let node = self.node();
        let Phase::Validating(pages, waits) = &mut node.phase else {
            return Ok(());
        };
        let Some(page) = pages.pop() else {
            node.phase = Phase::Collecting;
            return self.call(Event::ArriveToCollect { site: site() });
        };
        *waits = true;
        let creator = None;
        self.call(Event::Pages(PageEvent::Read { page, creator }))
    }

    fn wait(&mut self, lent: WorkerIs, done: bool, event: Event) -> Done {
        self.node().phase = Phase::Waiting(lent, done);
        self.call(event)
    }
}

impl Node {
    fn keep(&mut self, id: DiffId, diff: Diff) {
        self.protocol.keeps_diff(diff.len() as u64);
        self.diffs.insert(id, diff);
    }
}

fn read(word: u8) -> Event {
    let (page, creator) = (PageId(place(word).0 as u64), None);
    Event::Pages(PageEvent::Read { page, creator })
}

impl Moment {
    fn has_move(&self, node: usize) -> bool {
        matches!(
            self.nodes[node].phase,
            Phase::Computing | Phase::Validating(_, false)
        )
    }

    fn is_stuck(&self) -> bool {
        let finished = |node: &Node| node.phase == Phase::Finished;
        let moves = (0..self.nodes.len()).any(|node| self.has_move(node));
        !moves && self.parcels.is_empty() && !self.nodes.iter().all(finished)
    }
}

impl Model for PagesModel {
    type State = Moment;
    type Action = Move;

    fn init_states(&self) -> Vec<Moment> {
        let limits = LogLimits {
            collect_pages_from: self.collect_from,
            ..LogLimits::default()
        };
        let nodes = self.nodes.len();
        let node = |me| Node {
            protocol: Protocol::with(NodeId::at(me), nodes, limits, Races::Ignore)
                .paging(0..self.pages as u64),
            pages: vec![Page::default(); self.pages],
            diffs: BTreeMap::new(),
            done: 0,
            phase: Phase::Computing,
            full: false,
        };
        vec![Moment {
            nodes: (0..nodes).map(node).collect(),
            parcels: Vec::new(),
            latest: vec![0; self.pages * WORDS],
            writes: 0,
            fault: None,
            seen: [false; 3],
        }]
    }

    fn actions(&self, moment: &Moment, actions: &mut Vec<Move>) {
        if moment.fault.is_some() {
            return;
        }
        let moving = (0..self.nodes.len()).filter(|node| moment.has_move(*node));
        actions.extend(moving.map(Move::Compute));
        actions.extend((0..moment.parcels.len()).map(Move::Deliver));
    }

    fn next_state(&self, last: &Moment, action: Move) -> Option<Moment> {
        let mut moment = last.clone();
        let (me, parcel) = match action {
            Move::Compute(node) => (NodeId::at(node), None),
            Move::Deliver(place) => {
                let parcel = moment.parcels.remove(place);
                (parcel.to, Some(parcel))
            }
        };
        let op = self.nodes[me.index()]
            .get(moment.nodes[me.index()].done)
            .copied();
        let ends = self.nodes[me.index()].len() + 1;
        let payload = parcel
            .as_ref()
            .map_or(Payload::None, |parcel| parcel.payload.clone());
        let mut step = Step {
            me,
            moment: &mut moment,
            bug: self.bug,
            payload,
        };
        let done = match parcel {
            None => step.compute(op),
            Some(Parcel { from, message, .. }) => step.step(Event::Deliver { from, message }),
        };
        moment.fault = done.err();
        let node = &mut moment.nodes[me.index()];
        if node.done == ends {
            node.phase = Phase::Finished;
        }
        Some(moment)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SOUND, |_, moment: &Moment| moment.fault.is_none()),
            Property::always(ENDS, |_, moment: &Moment| !moment.is_stuck()),
            Property::sometimes(WHOLE_PAGE, |_, moment: &Moment| moment.seen[0]),
            Property::sometimes(WAITED, |_, moment: &Moment| moment.seen[1]),
            Property::sometimes(COLLECTED, |_, moment: &Moment| moment.seen[2]),
        ]
    }
}

const SOUND: &str = "every read returns the last write and nothing in use is touched";
const ENDS: &str = "no state is without a way on";

/// A whole page was sent in some run.
pub const WHOLE_PAGE: &str = "a whole page is sent";
/// A request waited for its page's writer in some run.
pub const WAITED: &str = "a request waits";
/// Diffs were collected in some run.
pub const COLLECTED: &str = "diffs are collected";

/// The result of an exploration: the number of states, the fault, and the events that were seen.
pub struct Found {
    /// Different states.
    pub states: usize,
    /// The way to what went wrong, if anything did.
    pub fault: Option<String>,
    /// The events of some run.
    pub seen: Vec<&'static str>,
}

impl PagesModel {
    /// Takes every step from every state; ends at the first fault.
    pub fn explore(self) -> Found {
        let end = HasDiscoveries::AnyFailures;
        let checker = self
            .checker()
            .threads(2)
            .finish_when(end)
            .spawn_dfs()
            .join();
        let discoveries = checker.discoveries();
        let fault = [SOUND, ENDS].iter().find_map(|property| {
            let path = discoveries.get(property)?;
            let mut way = format!("not so: {property}\n");
            for (number, action) in path.clone().into_actions().iter().enumerate() {
                way += &format!("{number:4} {action:?}\n");
            }
            Some(format!("{way}{:?}", path.last_state()))
        });
        let seen = [WHOLE_PAGE, WAITED, COLLECTED];
        Found {
            states: checker.unique_state_count(),
            fault,
            seen: seen
                .into_iter()
                .filter(|seen| discoveries.contains_key(seen))
                .collect(),
        }
    }
}
