//! The elements of a program's array, each kept and checked like an object of its own.

use dhole_model::{CallSite, Elements, NodeId, Oid};
use dhole_protocol::{ArrayCommand, ArrayEvent, Event, Message, UnreadElements};

use crate::model::node::Around;
use crate::model::{Fault, Node, Part, Program, WriteId};

/// The id of the array.
const ARRAY: Oid = Oid(2 * dhole_model::CHUNK);

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
    pub(crate) fn read(self) -> Event {
        Event::Array(ArrayEvent::Read(
            [UnreadElements {
                elements: self.elements(),
                within: self.elements(),
                creator: NodeId(0),
                zero_ok: true,
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

impl Node {
    /// Does what the protocol says of an array, element by element.
    pub(crate) fn carry_out_on_array(
        &mut self,
        command: ArrayCommand,
        payload: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, objects) = (self.presence(), around.program.objects.len());
        let places = |elements: Elements| elements.range().map(move |e| objects + e as usize);
        match command {
            ArrayCommand::Reply { to, round, sent } => {
                let mut values = Vec::new();
                for element in sent.iter().flat_map(|sent| places(sent.elements)) {
                    let value = self.heap.gather(element, at)?;
                    if self.heap.is_writable(element) {
                        around.history.peeked(value);
                    }
                    values.push(value);
                }
                let message = Message::ElementsReply { round, sent };
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
                    self.heap.make_writable(element, false, at)?;
                }
            }
            ArrayCommand::MakeClean(elements) => {
                for element in places(elements) {
                    self.heap.make_clean(element, at)?;
                }
            }
        }
        Ok(())
    }
}
