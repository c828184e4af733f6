//! The elements of a program's array. The model keeps and checks each like an object of its own.

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid, OidRange};
use dhole_protocol::{
    ArrayBlocks, ArrayCommand, ArrayEvent, BlockAccess, BlockEvent, Event, FlushedElements,
    Message, Needs, PushedElements, Unit, UnreadElements,
};

use crate::model::node::Around;
use crate::model::{Fault, Node, Part, Program, WriteId};

/// The id of the array.
pub(crate) const ARRAY: Oid = Oid(2 * dhole_model::CHUNK);

impl Part {
    fn elements(self) -> Elements {
        Elements::new(ARRAY, self.0.into()..self.1.into())
    }

    /// The elements as numbers of objects, behind those that are objects.
    pub(crate) fn objects(self, program: &Program) -> impl Iterator<Item = u8> {
        let objects = program.objects.len() as u8;
        (self.0..self.1).map(move |element| objects + element)
    }

    /// The worker reads these elements.
    pub(crate) fn read(self, coherence: Coherence) -> Event {
        Event::Array(ArrayEvent::Read(
            [UnreadElements {
                elements: self.elements(),
                within: self.elements(),
                creator: NodeId(0),
                zero_ok: true,
                coherence,
            }]
            .into_iter()
            .collect(),
        ))
    }

    /// The worker writes these elements, of which it has valid copies.
    pub(crate) fn write(self, site: CallSite) -> Event {
        let elements = self.elements();
        Event::Array(ArrayEvent::Write { elements, site })
    }
}

/// All elements of the array.
fn all(program: &Program) -> Elements {
    Elements::new(ARRAY, 0..program.elements as u64)
}

/// Elements of a block, where blocks are units.
const PER_BLOCK: u64 = 2;

/// How the array lies in blocks.
fn blocks(program: &Program) -> ArrayBlocks {
    ArrayBlocks {
        array: ARRAY,
        len: program.elements as u64,
        per_block: PER_BLOCK,
    }
}

/// The worker does something with the array, whose blocks are units.
fn block_event(program: &Program, needs: Option<Needs>, what: BlockAccess) -> Event {
    Event::Array(ArrayEvent::Blocks(BlockEvent {
        blocks: blocks(program),
        creator: NodeId(0),
        coherence: program.coherence,
        needs,
        what,
    }))
}

/// Node 0 allocated the array, where it has a home or its blocks are units.
pub(crate) fn allocated(program: &Program) -> Event {
    if program.coherence.member().is_some() {
        return block_event(program, None, BlockAccess::Allocated);
    }
    Event::Array(ArrayEvent::Allocated {
        elements: all(program),
        coherence: program.coherence,
    })
}

/// A barrier at which the array changes protocol.
pub(crate) fn switch(to: Coherence, site: CallSite, program: &Program) -> Event {
    Event::SwitchArray {
        array: all(program),
        creator: NodeId(0),
        zero_ok: true,
        to,
        site,
    }
}

/// The worker has left it.
pub(crate) fn switched(to: Coherence, program: &Program) -> Event {
    if to.member().or(program.coherence.member()).is_some() {
        return block_event(program, None, BlockAccess::Switched(to));
    }
    Event::Array(ArrayEvent::Switched {
        array: all(program),
        creator: NodeId(0),
        allocated: program.coherence,
        to,
    })
}

/// The worker frees the array.
pub(crate) fn free(site: CallSite) -> Event {
    let ids = OidRange {
        first: ARRAY,
        count: dhole_model::CHUNK as u32,
    };
    Event::Array(ArrayEvent::Free { ids, site })
}

/// The places of a freed object or of the freed array.
pub(crate) fn freed(oid: Oid, program: &Program) -> std::ops::Range<usize> {
    let objects = program.objects.len();
    match oid == ARRAY {
        true => objects..objects + program.elements,
        false => program.leaves(oid),
    }
}

/// The name of the barrier at which the array changes protocol.
pub(crate) fn barrier(number: u64, to: Coherence) -> dhole_protocol::BarrierId {
    let array = ARRAY;
    dhole_protocol::BarrierId::SwitchArray { number, array, to }
}

/// The places of a unit.
pub(crate) fn of_unit(unit: Unit, program: &Program) -> std::ops::Range<usize> {
    match unit {
        Unit::Object(oid) => program.leaves(oid),
        Unit::Block(elements) => {
            let range = elements.range();
            let objects = program.objects.len();
            objects + range.start as usize..objects + range.end as usize
        }
    }
}

impl Node {
    /// Whether the blocks of the array are units.
    pub(crate) fn keeps_blocks(&self, program: &Program) -> bool {
        program.elements > 0 && self.protocol.keeps_blocks(ARRAY, program.coherence)
    }

    /// What a call that needs elements does next, where blocks are units, as in the engine.
    pub(crate) fn next_of_blocks(
        &self,
        part: Part,
        to_write: bool,
        begins: bool,
        program: &Program,
    ) -> Option<Event> {
        let (elements, objects) = (part.elements(), program.objects.len());
        let place = |element: u64| objects + element as usize;
        let has = |part: &Elements| {
            let mut elements = part.range().map(place);
            elements.all(|element| self.heap.readable(element).is_some())
        };
        let may_write = |part: &Elements| {
            let mut elements = part.range().map(place);
            elements.all(|element| self.heap.is_writable(element))
        };
        let parts = || blocks(program).parts(elements);
        let absent = parts().filter(|(_, part)| !has(part));
        let absent: Vec<Oid> = absent.map(|(unit, _)| unit).collect();
        if begins && absent.len() > 1 {
            let all = BlockAccess::Read(absent.into_iter().collect());
            return Some(block_event(program, None, all));
        }
        let what = parts().find_map(|(unit, part)| {
            if !has(&part) {
                return Some(BlockAccess::Read([unit].into_iter().collect()));
            }
            let lacks = to_write && !may_write(&part);
            lacks.then_some(BlockAccess::Write(part))
        });
        let needs = Some(Needs { elements, to_write });
        what.map(|what| block_event(program, needs, what))
    }

    /// Does what the protocol says of an array, element by element.
    pub(crate) fn carry_out_on_array(
        &mut self,
        command: ArrayCommand,
        payload: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, objects) = (self.presence(), around.program.objects.len());
        // A block that leaves its protocol is made clean after it has left.
        let program = around.program;
        let by_blocks = self.keeps_blocks(program) || program.coherence.member().is_some();
        let places = |elements: Elements| elements.range().map(move |e| objects + e as usize);
        match command {
            ArrayCommand::Reply {
                to,
                round,
                sent,
                keep,
            } => {
                let mut values = Vec::new();
                for element in sent.iter().flat_map(|sent| places(sent.elements)) {
                    let value = self.heap.gather(element, at)?;
                    if self.heap.is_writable(element) {
                        around.history.peeked(value);
                    }
                    values.push(value);
                }
                let message = Message::ElementsReply { round, sent, keep };
                self.send(to, message, values, false, around);
            }
            ArrayCommand::Install(sent) => {
                for element in places(sent.elements) {
                    let value = payload.next().ok_or(Fault::Heap)?;
                    self.heap.install(element, value, at)?;
                }
            }
            ArrayCommand::ZeroFill(elements) => {
                for element in places(elements) {
                    self.heap.install(element, WriteId::INITIAL, at)?;
                }
            }
            ArrayCommand::Invalidate(elements) => {
                for element in places(elements) {
                    self.heap.invalidate(element, at)?;
                }
            }
            ArrayCommand::MakeWritable(elements) => {
                for element in places(elements) {
                    // Of a block a part may be writable already.
                    if !(by_blocks && self.heap.is_writable(element)) {
                        self.heap.make_writable(element, false, at)?;
                    }
                }
            }
            ArrayCommand::MakeClean(elements) => {
                for element in places(elements) {
                    if !by_blocks || self.heap.is_writable(element) {
                        self.heap.make_clean(element, at)?;
                    }
                }
            }
            ArrayCommand::Push { to, sent } => {
                let values = sent.iter().flat_map(|sent| places(sent.elements));
                let values = values.map(|element| self.heap.gather(element, at));
                let values = values.collect::<Result<_, _>>()?;
                let pushed = sent.into_iter().map(|sent| {
                    let bytes = sent.elements.count;
                    PushedElements { sent, bytes }
                });
                let pushed = pushed.collect();
                let message = Message::UpdateElements { pushed };
                self.send(to, message, values, false, around);
            }
            ArrayCommand::Keep { elements, .. } => {
                for element in places(elements) {
                    let value = payload.next().ok_or(Fault::Heap)?;
                    self.heap.keep(element, Some(value));
                }
            }
            ArrayCommand::Discard(elements) => {
                places(elements).for_each(|element| self.heap.keep(element, None));
            }
            ArrayCommand::InstallKept(elements) => {
                places(elements).try_for_each(|e| self.heap.install_kept(e, at))?;
            }
            ArrayCommand::Flush {
                to,
                number,
                elements,
                at: written_at,
            } => {
                let values = elements.iter().flat_map(|elements| places(*elements));
                let values = values.map(|element| self.heap.gather(element, at));
                let values = values.collect::<Result<_, _>>()?;
                let flushed = elements.into_iter().map(|elements| FlushedElements {
                    elements,
                    bytes: elements.count,
                });
                let flushed = flushed.collect();
                let message = Message::FlushElements {
                    number,
                    flushed,
                    at: written_at,
                };
                self.send(to, message, values, false, around);
            }
            ArrayCommand::Hold { from } => {
                self.held_elements.push((from, payload.collect()));
            }
            ArrayCommand::Merge {
                from,
                flushed,
                held,
            } => {
                let held_from = self
                    .held_elements
                    .iter()
                    .position(|(node, _)| *node == from);
                let values: Vec<_> = match held {
                    true => self.held_elements.remove(held_from.ok_or(Fault::Heap)?).1,
                    false => payload.collect(),
                };
                let elements = flushed.iter().flat_map(|flushed| places(flushed.elements));
                for (element, value) in elements.zip(values) {
                    self.heap.merge(element, value, at)?;
                }
            }
            ArrayCommand::Free(_) => self.free_array(around)?,
            ArrayCommand::Skip(elements) => {
                for _element in places(elements) {
                    payload.next().ok_or(Fault::Heap)?;
                }
            }
            ArrayCommand::MergeNext(elements) => {
                for element in places(elements) {
                    let value = payload.next().ok_or(Fault::Heap)?;
                    self.heap.merge(element, value, at)?;
                }
            }
        }
        Ok(())
    }

    /// Forgets the array.
    pub(crate) fn free_array(&mut self, around: &mut Around<'_>) -> Result<(), Fault> {
        let objects = around.program.objects.len();
        let mut elements = all(around.program).range();
        elements.try_for_each(|element| self.free_place(objects + element as usize, around))
    }
}
