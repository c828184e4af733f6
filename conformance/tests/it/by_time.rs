//! Wake-ups that are lost, one for each kind of wait, and found: the run says that waits ended only
//! because time had passed.

mod causes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod raw_memory;

use std::panic::{AssertUnwindSafe, catch_unwind};

use conformance::{Deaf, Platform, Simulated, Under, Unwoken, run};
use dhole::MessageKind::{
    self, BarrierArrive, BarrierDepart, BarrierRound, Collective, DiffReply, FetchReply, FlushAck,
    LockGrant, OperationReply, Ordered, PageReply, SyncGrant, SyncRelease,
};
use dhole::protocol::{CoherenceProtocol, Context, Oid, OidRange, Version};
use dhole::{
    Barriers, Coherence, Condvar, Lock, NodeId, Object, Ref, Result, RwLock, Semaphore, Worker, on,
    op, replicated,
};
use dhole_protocol::WorkerIs;
use dhole_protocol::built_in::Directory;
use serde::{Deserialize, Serialize};

/// A program of two nodes that waits in one way.
type Waits = fn(&mut Worker<'_>) -> Result<()>;

/// What a run came to whose nodes are not woken by messages of one kind: what it said of that.
fn said(platform: &dyn Platform, kind: MessageKind, waits: Waits) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(|| run(platform, 2, 3, waits)));
    let outcome = match ended {
        Ok(outcome) => outcome.expect("a wait that ends late ends"),
        Err(panic) => return panic.downcast_ref::<String>().cloned(),
    };
    let sent: u64 = outcome.counters.iter().map(|node| node.sent(kind)).sum();
    assert!(sent > 0, "{}: no message of the kind", platform.name());
    let mut warnings = outcome.warnings.into_iter();
    warnings.find(|warning| warning.contains("waits_ended_by_time"))
}

/// The wake-up that messages of this kind bring is found if it is lost, and only then.
#[track_caller]
fn is_found(platform: impl Platform + Copy, kind: MessageKind, waits: Waits) {
    is_found_on(None, platform, kind, waits);
}

/// As [`is_found`], where the messages do not wake this node alone. What the run said.
#[track_caller]
fn is_found_on(
    node: Option<NodeId>,
    platform: impl Platform + Copy,
    kind: MessageKind,
    waits: Waits,
) -> String {
    assert_eq!(said(&platform, kind, waits), None, "{}", platform.name());
    let unwoken = Unwoken {
        on: platform,
        kind,
        node,
    };
    is_said(said(&unwoken, kind, waits), &unwoken)
}

/// What the run has said, which is that a wait ended by time.
#[track_caller]
fn is_said(said: Option<String>, unwoken: &dyn Platform) -> String {
    let said = said.unwrap_or_else(|| panic!("{}: not found", unwoken.name()));
    assert!(
        said.contains("ended only because time had passed"),
        "{said}"
    );
    said
}

/// Another platform whose barriers are of this kind.
fn meeting(barriers: Barriers) -> conformance::Meeting<Simulated> {
    conformance::Meeting(Simulated::default(), barriers)
}

fn under(coherence: Coherence) -> Under<Simulated> {
    Under(Simulated::default(), coherence)
}

/// One node writes an object, and the other reads it; and the other way round.
fn passes_an_object(w: &mut Worker<'_>) -> Result<()> {
    let number = w.once(|w| Ok(w.alloc(0_u64)))?;
    for round in 0..4 {
        if round % 2 == w.node().index() as u64 {
            *number.get_mut(w) += 1;
        }
        w.barrier()?;
        assert_eq!(number.read(w), round + 1);
        w.barrier()?;
    }
    Ok(())
}

/// Both nodes write their elements of one array, and read the other's.
fn shares_an_array(w: &mut Worker<'_>) -> Result<()> {
    let array = w.once(|w| Ok(w.alloc_array::<u64>(1024)))?;
    let (mine, theirs) = (w.node().index(), 1 - w.node().index());
    array.slice_mut(w, 512 * mine..512 * mine + 512).fill(7);
    w.barrier()?;
    let sum: u64 = array
        .slice(w, 512 * theirs..512 * theirs + 512)
        .iter()
        .sum();
    assert_eq!(sum, 7 * 512);
    w.barrier()?;
    Ok(())
}

#[test]
fn a_miss_that_is_not_woken_is_found() {
    is_found(Simulated::default(), FetchReply, passes_an_object);
    is_found(under(Coherence::Home), FetchReply, passes_an_object);
    is_found(Simulated::default(), FetchReply, shares_an_array);
}

#[test]
fn a_flush_that_is_not_woken_is_found() {
    is_found(under(Coherence::Home), FlushAck, passes_an_object);
}

#[test]
fn a_members_miss_and_its_block_that_are_not_woken_are_found() {
    let directory: Coherence = "directory".parse().expect("dhole brings it");
    let kind = MessageKind::Coherence;
    is_found(under(directory), kind, passes_an_object);
    is_found(under(directory), kind, shares_an_array);
}

#[test]
fn pages_that_are_not_woken_are_found() {
    is_found(under(Coherence::TreadMarks), PageReply, passes_an_object);
    is_found(under(Coherence::TreadMarks), DiffReply, passes_an_object);
}

#[test]
fn a_barrier_that_is_not_woken_is_found() {
    let meets = |w: &mut Worker<'_>| {
        for _ in 0..3 {
            w.work(10_000 * (1 + u64::from(w.node().0)));
            w.barrier()?;
        }
        Ok(())
    };
    is_found(meeting(Barriers::Central), BarrierDepart, meets);
    is_found(meeting(Barriers::Central), BarrierArrive, meets);
    is_found(meeting(Barriers::Dissemination), BarrierRound, meets);
}

#[test]
fn doorbells_that_the_machine_has_lost_are_told() {
    let kind = FetchReply;
    let words = said(&Deaf(Simulated::default()), kind, passes_an_object);
    let words = is_said(words, &Simulated::default());
    assert!(words.starts_with("2 waits"), "{words}");
}

#[test]
fn a_switch_that_is_not_woken_is_found() {
    let switches = |w: &mut Worker<'_>| {
        let number = w.once(|w| Ok(w.alloc(1_u64)))?;
        w.work(20_000 * u64::from(w.node().0));
        w.switch(number, Coherence::Home)?;
        assert_eq!(number.read(w), 1);
        Ok(())
    };
    is_found(meeting(Barriers::Central), BarrierDepart, switches);
    is_found(meeting(Barriers::Central), BarrierArrive, switches);
}

#[test]
fn a_lock_that_is_not_woken_is_found() {
    is_found(Simulated::default(), LockGrant, |w| {
        let lock = Lock::numbered(1);
        for _ in 0..5 {
            lock.with(w, |w| {
                w.work(5_000);
                Ok(())
            })?;
        }
        Ok(())
    });
}

#[test]
fn a_sync_object_that_is_not_woken_is_found() {
    is_found(Simulated::default(), SyncGrant, |w| {
        let lock = RwLock::numbered(1);
        for _ in 0..5 {
            lock.with_write(w, |w| {
                w.work(5_000);
                Ok(())
            })?;
        }
        Ok(())
    });
    // Of one that the node manages which waits, and of one that the other node manages.
    is_found(Simulated::default(), SyncRelease, |w| takes_a_permit(w, 1));
    is_found(Simulated::default(), SyncGrant, |w| takes_a_permit(w, 2));
}

/// Node 1 waits for a permit that node 0 releases.
fn takes_a_permit(w: &mut Worker<'_>, number: u32) -> Result<()> {
    let permits = Semaphore::numbered(number, 0);
    match w.node() {
        NodeId(0) => {
            w.work(50_000);
            Ok(permits.release(w)?)
        }
        _ => Ok(permits.acquire(w)?),
    }
}

#[test]
fn a_condition_that_is_not_woken_is_found() {
    is_found(Simulated::default(), LockGrant, waits_on_a_condition);
}

/// Node 1 waits until node 0 has changed a number.
fn waits_on_a_condition(w: &mut Worker<'_>) -> Result<()> {
    let number = w.once(|w| Ok(w.alloc(0_u64)))?;
    let lock = Lock::numbered(1);
    let changed = Condvar::numbered(lock, 0);
    if w.node() == NodeId(0) {
        w.work(100_000);
        lock.with(w, |w| {
            *number.get_mut(w) = 1;
            Ok(changed.notify_all(w)?)
        })?;
        return Ok(());
    }
    let mut held = lock.acquire(w)?;
    while number.read(w) == 0 {
        held = changed.wait(w, held)?;
    }
    Ok(held.release(w)?)
}

#[test]
fn a_collective_that_is_not_woken_is_found() {
    is_found(Simulated::default(), Collective, |w| {
        let me = u64::from(w.node().0);
        assert_eq!(w.all_reduce(me, |one, next| one + next)?, 1);
        Ok(())
    });
}

/// A door that is opened once.
#[derive(Serialize, Deserialize, Default)]
struct Door(bool);

#[dhole::object(crate = "dhole")]
impl Door {
    pub fn open(&mut self) {
        self.0 = true;
    }

    pub fn is_open(&self) -> bool {
        self.0
    }

    #[when(self.0)]
    pub fn pass(&mut self) {}
}

/// Node 1 opens a door that is on node 0, by itself and where node 0 waits for that.
fn opens(w: &mut Worker<'_>, strategy: dhole::Strategy, guarded: bool) -> Result<()> {
    let door: Object<Door> = w.once(|w| Ok(w.new_object(strategy, Door::default())?))?;
    if w.node() == NodeId(1) {
        door.open(w)?;
    }
    if guarded {
        door.pass(w)?;
    }
    w.barrier()?;
    Ok(())
}

#[test]
fn an_operation_that_is_not_woken_is_found() {
    let at = Simulated::default();
    is_found(at, OperationReply, |w| opens(w, on(NodeId(0)), false));
    // Node 1 waits for what node 0 does later.
    is_found(at, OperationReply, |w| {
        let door: Object<Door> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Door::default())?))?;
        match w.node() {
            NodeId(0) => {
                w.work(50_000);
                Ok(door.open(w)?)
            }
            _ => Ok(door.pass(w)?),
        }
    });
    is_found(at, Ordered, |w| opens(w, replicated(), false));
    is_found(at, Ordered, |w| opens(w, replicated(), true));
}

/// Adds one to a number.
fn add(w: &mut Worker<'_>, number: Ref<u64>) -> Result<()> {
    *number.get_mut(w) += 1;
    Ok(())
}

#[test]
fn a_process_whose_end_does_not_wake_is_found() {
    is_found(Simulated::default(), OperationReply, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        if w.node() == NodeId(0) {
            w.spawn(NodeId(1), number, op!(add))?.join(w)?;
            assert_eq!(number.read(w), 1);
        }
        w.barrier()?;
        Ok(())
    });
}

/// The protocol `directory`, with a mistake: a node puts off the first request that comes while its
/// worker waits, though it could answer it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Late {
    is: Directory,
    has_put_off: bool,
}

type Says = <Directory as CoherenceProtocol>::Message;

impl CoherenceProtocol for Late {
    const NAME: &'static str = "directory-late";
    type Message = Says;
    type Notice = <Directory as CoherenceProtocol>::Notice;

    fn new(me: NodeId, nodes: usize) -> Late {
        let is = Directory::new(me, nodes);
        Late {
            is,
            has_put_off: false,
        }
    }

    fn allocated(&mut self, units: OidRange, cx: &mut Context<'_, Late>) {
        self.is.allocated(units, &mut cx.of());
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Late>) {
        self.is.read_miss(unit, creator, &mut cx.of());
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Late>) {
        self.is.write_fault(unit, &mut cx.of());
    }

    fn must_release(&self) -> bool {
        self.is.must_release()
    }

    fn before_release(&mut self, cx: &mut Context<'_, Late>) {
        self.is.before_release(&mut cx.of());
    }

    fn notice(&mut self, version: Version) -> Option<Self::Notice> {
        self.is.notice(version)
    }

    fn noticed(&mut self, version: Version, notice: Self::Notice, cx: &mut Context<'_, Late>) {
        self.is.noticed(version, notice, &mut cx.of());
    }

    fn after_acquire(&mut self, cx: &mut Context<'_, Late>) {
        self.is.after_acquire(&mut cx.of());
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Late>,
    ) -> std::result::Result<(), &'static str> {
        let waits = cx.worker() == WorkerIs::InCall;
        if waits && !self.has_put_off && matches!(message, Says::Ask(..) | Says::Forward(_)) {
            self.has_put_off = true;
            cx.defer();
            return Ok(());
        }
        self.is.deliver(from, message, &mut cx.of())
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, cx: &mut Context<'_, Late>) {
        self.is.adopt(unit, holder, &mut cx.of());
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Late>) -> NodeId {
        self.is.give_up(unit, creator, &mut cx.of())
    }

    fn freed(&mut self, unit: Oid) {
        self.is.freed(unit);
    }
}

#[test]
fn a_protocol_of_the_program_that_answers_late_is_named() {
    let platform = under(Late::coherence());
    let machine = platform.machine(2, 3);
    let run = dhole_node::run_on(&*machine, &platform.settings(2), passes_an_object);
    let outcome = run.expect("a step after a while answers");
    let counted = outcome.counters.iter().map(|node| node.waits_ended_by_time);
    assert_eq!(counted.sum::<u64>(), 1);
    let named = |warning: &String| warning.contains("the protocol directory-late of this program");
    assert!(outcome.warnings.iter().any(named), "{:?}", outcome.warnings);
}
