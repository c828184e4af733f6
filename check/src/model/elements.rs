//! The elements of a program's array. The model keeps and checks each like an object of its own.

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid, OidRange};
use dhole_protocol::{
    ArrayBlocks, ArrayEvent, BlockAccess, BlockEvent, Event, Needs, ReadAhead, Unit, UnreadElements,
};

use crate::model::node::Around;
use crate::model::regions::Modelled;
use crate::model::{Fault, Node, Part, Program};

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

    /// The worker misses these elements, to read them alone or to write them.
    pub(crate) fn read(self, program: &Program, alone: bool) -> Event {
        let missed = unread(self, program, alone);
        Event::Array(ArrayEvent::Read([missed].into_iter().collect()))
    }

    /// The worker writes these elements, of which it has valid copies.
    pub(crate) fn write(self, site: CallSite) -> Event {
        let elements = self.elements();
        Event::Array(ArrayEvent::Write { elements, site })
    }
}

/// These elements as they are missed, to read them alone or to write them.
pub(crate) fn unread(part: Part, program: &Program, alone: bool) -> UnreadElements {
    let ahead = ReadAhead {
        block: 2,
        most: 4,
        least: 1,
        share: ReadAhead::QUARTER,
        first: 0,
        end: program.elements as u64,
    };
    UnreadElements {
        elements: part.elements(),
        within: part.elements(),
        creator: NodeId(0),
        zero_ok: true,
        coherence: program.coherence,
        ahead: (alone && program.reads_ahead).then_some(ahead),
    }
}

/// All elements of the array.
pub(crate) fn all(program: &Program) -> Elements {
    Elements::new(ARRAY, 0..program.elements as u64)
}

/// Elements of a block.
pub(crate) const PER_BLOCK: u64 = 2;

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
    Event::Array(ArrayEvent::Allocated {
        blocks: blocks(program),
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
    Event::Array(ArrayEvent::Switched {
        blocks: blocks(program),
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
        Unit::Object(oid) => oid.places(program),
        Unit::Block(elements) => elements.places(program),
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

    /// Forgets the array.
    pub(crate) fn free_array(&mut self, around: &mut Around<'_>) -> Result<(), Fault> {
        let objects = around.program.objects.len();
        self.unpublish_elements(all(around.program), around);
        let mut elements = all(around.program).range();
        elements.try_for_each(|element| self.free_place(objects + element as usize, around))
    }
}
