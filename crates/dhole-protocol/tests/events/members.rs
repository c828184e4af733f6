//! A protocol that the program brings: what becomes of its messages and notices.
//!
//! The protocol here has one copy of each object. It moves to the node that accesses it; who has
//! it is announced by notices.

use std::collections::{BTreeMap, BTreeSet};

use dhole_model::{Coherence, Elements, MessageKind, NodeId, Oid, OidRange, Version};
use dhole_protocol::{
    ArrayBlocks, ArrayEvent, Attached, BlockAccess, BlockEvent, CoherenceProtocol, Command,
    Context, Event, MemberMessage, Message, Needs, Operation, Protocol, ProtocolError,
    RegionCommand, Unread, WaitingFor, WorkerIs,
};
use dhole_wire::Wire;

use crate::pack::{
    OBJECT, Pack, acquire, allocated_under, arrive, from, miss_under, n, release, site,
};

/// One copy, which moves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Moving {
    me: NodeId,
    /// Where each unit is, if that is not its creator.
    at: BTreeMap<Oid, NodeId>,
    here: BTreeSet<Oid>,
    /// What came here in the interval.
    came: BTreeSet<Oid>,
}

#[derive(Wire)]
pub enum Says {
    Ask(u64),
    Move(u64),
    /// A copy that was not asked for, with its number.
    Give(u64, u64),
}

impl CoherenceProtocol for Moving {
    const NAME: &'static str = "moving";
    type Message = Says;
    type Notice = BTreeSet<u64>;

    fn new(me: NodeId, _: usize) -> Moving {
        Moving {
            me,
            at: BTreeMap::new(),
            here: BTreeSet::new(),
            came: BTreeSet::new(),
        }
    }

    fn allocated(&mut self, units: OidRange, cx: &mut Context<'_, Moving>) {
        assert!(units.iter().all(|unit| !cx.is_freed(unit)));
        self.here.extend(units.iter());
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Moving>) {
        if cx.take_kept(unit, 2) {
            return cx.ready(unit);
        }
        let at = self.at.get(&unit).copied().unwrap_or(creator);
        cx.send(at, &Says::Ask(unit.0));
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Moving>) {
        cx.make_writable(unit);
        cx.ready(unit);
    }

    fn must_release(&self) -> bool {
        false
    }

    fn before_release(&mut self, cx: &mut Context<'_, Moving>) {
        cx.released();
    }

    fn notice(&mut self, _: Version) -> Option<BTreeSet<u64>> {
        let came = std::mem::take(&mut self.came);
        (!came.is_empty()).then(|| came.into_iter().map(|unit| unit.0).collect())
    }

    fn noticed(&mut self, version: Version, came: BTreeSet<u64>, _: &mut Context<'_, Moving>) {
        let at = came.into_iter().map(|unit| (Oid(unit), version.node));
        self.at.extend(at);
    }

    fn after_acquire(&mut self, _: &mut Context<'_, Moving>) {}

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Moving>,
    ) -> Result<(), &'static str> {
        match message {
            Says::Ask(unit) if !self.here.contains(&Oid(unit)) => Err("it is not here"),
            Says::Ask(_) if cx.worker() != WorkerIs::InCall => {
                cx.defer();
                Ok(())
            }
            Says::Ask(unit) => {
                self.here.remove(&Oid(unit));
                self.at.insert(Oid(unit), from);
                cx.invalidate(Oid(unit));
                cx.send_bytes(from, &Says::Move(unit), &[Oid(unit)]);
                Ok(())
            }
            Says::Move(unit) => {
                self.here.insert(Oid(unit));
                self.came.insert(Oid(unit));
                cx.install(Oid(unit));
                cx.ready(Oid(unit));
                Ok(())
            }
            Says::Give(unit, number) => {
                cx.keep(Oid(unit), number);
                Ok(())
            }
        }
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, _: &mut Context<'_, Moving>) {
        self.at.insert(unit, holder);
        if holder == self.me {
            self.here.insert(unit);
        }
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, _: &mut Context<'_, Moving>) -> NodeId {
        let last = self.at.remove(&unit).unwrap_or(creator);
        match self.here.remove(&unit) {
            true => self.me,
            false => last,
        }
    }

    fn freed(&mut self, unit: Oid) {
        self.here.remove(&unit);
    }
}

/// A pack whose node 0 has allocated [`OBJECT`] under the protocol.
pub fn pack(nodes: usize) -> Pack {
    let mut pack = Pack::new(nodes);
    let range = OidRange::one(OBJECT);
    assert_eq!(
        pack.local(0, allocated_under(range, Moving::coherence())),
        []
    );
    pack
}

fn written(oid: Oid) -> Event {
    Event::WriteFault { oid, site: site(1) }
}

#[test]
fn a_miss_moves_the_object_and_its_bytes_go_behind_the_message() {
    let mut pack = pack(2);
    let done = pack.run(1, miss_under(OBJECT, 0, Moving::coherence()));
    let came = |command: &Command| match command {
        Command::Objects(RegionCommand::Install(sent)) => sent.region == OBJECT,
        _ => false,
    };
    assert!(matches!(&done[..], [installed, Command::Done] if came(installed)));
    assert_eq!(
        pack.done[0],
        [Command::Objects(RegionCommand::Invalidate(OBJECT))]
    );
    assert_eq!(pack.messages(), 2);
    let done = pack.local(1, written(OBJECT));
    let (oid, pre_image) = (OBJECT, false);
    assert_eq!(
        done,
        [
            Command::Objects(RegionCommand::MakeWritable {
                region: oid,
                pre_image
            }),
            Command::Done
        ]
    );
}

#[test]
fn a_message_that_is_deferred_is_taken_again_at_the_next_call() {
    let mut pack = pack(2);
    pack.begin(1, miss_under(OBJECT, 0, Moving::coherence()));
    let (_, _, message) = pack.in_flight.pop_front().expect("it asks");
    let asked = from(1, message.clone());
    let kept = pack.step(0, asked, WorkerIs::Computing).expect("it waits");
    let again = Command::DeliverAgain {
        from: n(1),
        message: message.clone(),
    };
    assert_eq!(kept, [again]);
    assert!(pack.nodes[0].has_deferred() && !pack.nodes[0].is_quiescent());
    let from = n(1);
    let done = pack.begin(0, Event::DeliverAgain { from, message });
    assert_eq!(done, [Command::Objects(RegionCommand::Invalidate(OBJECT))]);
    assert!(!pack.nodes[0].has_deferred());
    pack.settle();
    assert_eq!(pack.done[1].last(), Some(&Command::Done));
}

#[test]
fn what_a_call_waited_for_stays_until_the_call_has_returned() {
    let mut pack = pack(2);
    pack.run(1, miss_under(OBJECT, 0, Moving::coherence()));
    // The worker of node 1 is still in its call.
    pack.begin(0, miss_under(OBJECT, 1, Moving::coherence()));
    pack.settle();
    assert!(matches!(
        pack.done[1].last(),
        Some(Command::DeliverAgain { .. })
    ));
}

/// What a worker does by a method of the protocol, and no event.
type Act = fn(&mut Protocol, &mut Vec<Command>);

#[test]
fn a_worker_that_waits_by_a_method_answers_as_by_an_event() {
    let arrives: Act = |node, out| node.arrive_at_rounds(site(1), out).expect("it arrives");
    let misses: Act = |node, out| {
        let (oid, creator) = (OBJECT.plus(1), n(0));
        let miss = Unread {
            oid,
            creator,
            zero_ok: false,
            coherence: Moving::coherence(),
        };
        node.read_misses(&[miss], out).expect("it is not freed");
    };
    let calls: Act = |node, _| {
        let name = site(2);
        let operation = Operation {
            object: Operation::NO_OBJECT,
            name,
            made: None,
        };
        node.awaits(WaitingFor::Operation(operation), site(1));
    };
    for acts in [arrives, misses, calls] {
        let mut pack = pack(2);
        let all = pack.nodes.iter_mut();
        all.for_each(|node| *node = node.clone().disseminating(u32::MAX));
        pack.run(1, miss_under(OBJECT, 0, Moving::coherence()));
        acts(&mut pack.nodes[1], &mut Vec::new());
        pack.run(0, miss_under(OBJECT, 1, Moving::coherence()));
        assert_eq!(pack.done[0].last(), Some(&Command::Done));
    }
}

#[test]
fn a_notice_reaches_who_acquires() {
    let mut pack = Pack::new(3);
    let (range, coherence) = (OidRange::one(OBJECT), Moving::coherence());
    pack.local(0, allocated_under(range, coherence));
    pack.run(1, miss_under(OBJECT, 0, coherence));
    pack.run(1, acquire(1));
    let done = pack.run(1, release(1));
    assert!(done.contains(&Command::IntervalEnded));
    pack.run(2, acquire(1));
    pack.begin(2, miss_under(OBJECT, 0, coherence));
    let (_, to, _) = pack.in_flight.pop_front().expect("it asks");
    assert_eq!(to, n(1), "node 2 has heard where the object is");
}

#[test]
fn a_notice_of_other_bytes_is_refused() {
    let mut pack = pack(2);
    pack.run(1, miss_under(OBJECT, 0, Moving::coherence()));
    pack.begin(0, arrive());
    pack.begin(1, arrive());
    let mut arrival = pack.in_flight.pop_back().expect("node 1 arrives").2;
    let Message::BarrierArrive { news, .. } = &mut arrival else {
        panic!("{arrival:?}");
    };
    let interval = std::sync::Arc::make_mut(&mut news.intervals[0]);
    let Attached::Notices(notices) = &mut interval.attached else {
        panic!("{interval:?}");
    };
    notices[0].body = [0xff; 3].into();
    pack.refuse(0, from(1, arrival));
}

#[test]
fn bytes_that_are_no_message_of_the_protocol_are_refused() {
    let mut pack = pack(2);
    pack.run(1, miss_under(OBJECT, 0, Moving::coherence()));
    let Some(member) = Moving::coherence().member() else {
        panic!("it is a protocol of the program");
    };
    for body in [vec![], vec![7], vec![0, 64, 0]] {
        let message = MemberMessage {
            member,
            body,
            sizes: vec![].into(),
        };
        pack.refuse(0, from(1, Message::Coherence(message)));
    }
}

#[test]
fn a_protocol_that_fails_ends_the_run() {
    let mut pack = pack(2);
    let mine = miss_under(OBJECT.plus(1), 0, Moving::coherence());
    let done = pack.local(0, mine);
    let words = |cause: &ProtocolError| cause.to_string().contains("moving has made a mistake");
    assert!(
        matches!(&done[..], [Command::Fail(cause)] if words(cause)),
        "it asked itself"
    );
}

#[test]
fn objects_change_between_the_protocol_and_those_of_dhole() {
    let mut pack = pack(2);
    let moving = Moving::coherence();
    pack.run(1, miss_under(OBJECT, 0, moving));
    pack.local(1, written(OBJECT));
    for (allocated, to) in [(moving, Coherence::Lazy), (moving, moving)] {
        let (range, creator) = (OidRange::one(OBJECT), n(0));
        for node in 0..2 {
            let (zero_ok, site) = (false, site(9));
            pack.begin(
                node,
                Event::Switch {
                    range,
                    creator,
                    zero_ok,
                    to,
                    site,
                },
            );
        }
        pack.settle();
        for node in 0..2 {
            pack.local(
                node,
                Event::Switched {
                    range,
                    creator,
                    allocated,
                    to,
                },
            );
        }
        let asked = match to {
            Coherence::Lazy => MessageKind::Fetch,
            _ => MessageKind::Coherence,
        };
        pack.begin(0, miss_under(OBJECT, 0, moving));
        let (_, at, message) = pack.in_flight.pop_back().expect("node 0 has no copy");
        assert_eq!((at, message.kind()), (n(1), asked));
        pack.in_flight.push_back((n(0), at, message));
        // Node 1 still counts as in the call that switched.
        let done = pack.begin(1, Event::Serve);
        assert_eq!(done, []);
        pack.settle();
        assert_eq!(pack.done[0].last(), Some(&Command::Done), "{to}");
    }
}

/// An array of two blocks, which node 0 has allocated.
const BLOCKS: ArrayBlocks = ArrayBlocks {
    array: Oid(1 << 20),
    len: 4,
    per_block: 2,
};

fn on_blocks(needs: Option<Needs>, what: BlockAccess) -> Event {
    let (blocks, creator, coherence) = (BLOCKS, n(0), Moving::coherence());
    Event::Array(ArrayEvent::Blocks(BlockEvent {
        blocks,
        creator,
        coherence,
        needs,
        what,
    }))
}

/// A worker reads a block in a call that needs the whole array.
fn reads(block: u64) -> Event {
    let units = [BLOCKS.array.plus(block)].into_iter().collect();
    let needs = Needs {
        elements: BLOCKS.all(),
        to_write: false,
    };
    on_blocks(Some(needs), BlockAccess::Read(units))
}

/// A pack whose node 0 has allocated the array.
fn pack_with_blocks() -> Pack {
    let mut pack = Pack::new(2);
    let (blocks, coherence) = (BLOCKS, Moving::coherence());
    let allocated = ArrayEvent::Allocated { blocks, coherence };
    assert_eq!(pack.local(0, Event::Array(allocated)), []);
    pack
}

#[test]
fn a_block_of_an_array_moves_as_an_object_does() {
    let mut pack = pack_with_blocks();
    let done = pack.run(1, reads(1));
    let block = Elements::new(BLOCKS.array, 2..4);
    let came = |command: &Command| match command {
        Command::Array(RegionCommand::Install(sent)) => sent.region == block,
        _ => false,
    };
    assert!(matches!(&done[..], [installed, Command::Done] if came(installed)));
    let invalidated = Command::Array(RegionCommand::Invalidate(block));
    assert_eq!(pack.done[0], [invalidated]);
    let part = Elements::new(BLOCKS.array, 3..4);
    let done = pack.local(1, on_blocks(None, BlockAccess::Write(part)));
    let writable = Command::Array(RegionCommand::MakeWritable {
        region: part,
        pre_image: false,
    });
    assert_eq!(
        done,
        [writable, Command::Done],
        "what is written, and no more"
    );
}

#[test]
fn a_block_stays_while_its_call_waits_for_another_one() {
    let mut pack = pack_with_blocks();
    pack.run(1, reads(0));
    pack.begin(1, reads(1));
    let asked = pack.in_flight.pop_front().expect("node 1 asks");
    // However long it waits.
    pack.local(1, Event::WaitedLong);
    let units = [BLOCKS.array].into_iter().collect();
    pack.begin(0, on_blocks(None, BlockAccess::Read(units)));
    pack.settle();
    let Some(Command::DeliverAgain { from, message }) = pack.done[1].pop() else {
        panic!("what node 0 asks for waits: {:?}", pack.done[1]);
    };
    assert_eq!(from, n(0));
    pack.in_flight.push_back(asked);
    pack.settle();
    assert_eq!(
        pack.done[1].last(),
        Some(&Command::Done),
        "the call has both blocks"
    );
    let done = pack.begin(1, Event::DeliverAgain { from, message });
    let first = Elements::new(BLOCKS.array, 0..2);
    assert_eq!(done, [Command::Array(RegionCommand::Invalidate(first))]);
    pack.settle();
    assert_eq!(pack.done[0].last(), Some(&Command::Done));
}

/// Node 0 pushes a unit, as so many bytes.
fn gives(unit: Oid, number: u64, sizes: &[u64]) -> Event {
    let message = MemberMessage {
        member: Moving::coherence().member().expect("it is a member"),
        body: Says::Give(unit.0, number).to_bytes(),
        sizes: sizes.into(),
    };
    from(0, Message::Coherence(message))
}

fn keeps(region: Oid, bytes: u64) -> Command {
    Command::Objects(RegionCommand::Keep { region, bytes })
}

#[test]
fn a_push_waits_in_the_inbox_until_the_worker_reads() {
    let mut pack = pack(2);
    let done = pack.step(1, gives(OBJECT, 2, &[8]), WorkerIs::Computing);
    assert_eq!(done, Ok(vec![keeps(OBJECT, 8)]));
    let older = pack.local(1, gives(OBJECT, 1, &[8]));
    assert_eq!(older, [Command::PassOver { bytes: 8 }]);
    let done = pack.local(1, miss_under(OBJECT, 0, Moving::coherence()));
    let taken = Command::Objects(RegionCommand::InstallKept(OBJECT));
    assert_eq!(done, [taken, Command::Done]);
}

#[test]
fn a_push_that_is_too_old_or_has_no_room_is_fetched() {
    for push in [gives(OBJECT, 1, &[8]), gives(OBJECT, 2, &[17 << 20])] {
        let mut pack = pack(2);
        pack.local(1, push);
        let done = pack.run(1, miss_under(OBJECT, 0, Moving::coherence()));
        let kept = |it: &Command| *it == Command::Objects(RegionCommand::InstallKept(OBJECT));
        assert!(!done.iter().any(kept), "{done:?}");
        assert_eq!(pack.messages(), 2);
    }
}

#[test]
fn a_push_of_a_block_is_kept_as_elements_once_its_array_is_known() {
    let mut pack = pack_with_blocks();
    let unit = BLOCKS.array.plus(1);
    assert_eq!(pack.local(1, gives(unit, 2, &[8])), [keeps(unit, 8)]);
    let done = pack.run(1, reads(0));
    let dropped = Command::Objects(RegionCommand::Discard(unit));
    assert!(done.contains(&dropped), "{done:?}");
    let block = Elements::new(BLOCKS.array, 2..4);
    let kept = Command::Array(RegionCommand::Keep {
        region: block,
        bytes: 16,
    });
    assert_eq!(pack.local(1, gives(unit, 2, &[16])), [kept]);
    let done = pack.local(1, reads(1));
    let taken = Command::Array(RegionCommand::InstallKept(block));
    assert_eq!(done, [taken, Command::Done]);
}

#[test]
fn a_push_of_fewer_units_or_of_parts_of_elements_ends_the_run() {
    let mut pack = pack_with_blocks();
    pack.run(1, reads(0));
    let unit = BLOCKS.array.plus(1);
    for sizes in [&[][..], &[15]] {
        let done = pack.local(1, gives(unit, 2, sizes));
        let is_bad = |cause: &ProtocolError| matches!(cause, ProtocolError::BadMessage { .. });
        assert!(matches!(&done[..], [Command::Fail(cause)] if is_bad(cause)));
    }
}

#[test]
fn nothing_waits_in_the_inbox_of_a_unit_that_was_freed_or_switched() {
    let (range, site) = (OidRange::one(OBJECT), site(9));
    let switched = Event::Switched {
        range,
        creator: n(0),
        allocated: Moving::coherence(),
        to: Coherence::Lazy,
    };
    let mut pack = pack(2);
    for ends in [switched, Event::Free { range, site }] {
        pack.local(1, gives(OBJECT, 2, &[8]));
        let done = pack.local(1, ends);
        let dropped = Command::Objects(RegionCommand::Discard(OBJECT));
        assert!(done.contains(&dropped), "{done:?}");
    }
    let late = pack.local(1, gives(OBJECT, 3, &[8]));
    assert_eq!(late, [Command::PassOver { bytes: 8 }]);
}
