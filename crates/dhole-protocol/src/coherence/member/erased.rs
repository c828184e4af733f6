//! Members of which the runtime does not know the type.

use std::any::Any;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use dhole_model::{NodeId, Oid, OidRange, Version};
use dhole_wire::Wire;

use super::{CoherenceProtocol, Context, Turn};

/// What can be done with a protocol before there is a node's part of it.
pub(crate) struct Make {
    pub make: fn(NodeId, usize) -> Box<dyn AnyMember>,
    /// Whether bytes are a notice.
    pub is_notice: fn(&[u8]) -> bool,
    /// Whether several nodes may write one unit at once.
    pub several_writers: bool,
}

impl Make {
    pub(super) const fn of<P: CoherenceProtocol>() -> Make {
        Make {
            make: |me, nodes| Box::new(Erased(P::new(me, nodes))),
            several_writers: P::SEVERAL_WRITERS,
            is_notice: |bytes| P::Notice::parse(bytes).is_ok(),
        }
    }
}

/// A [`CoherenceProtocol`], with messages and notices as bytes.
pub(crate) trait AnyMember: Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn AnyMember>;
    fn is(&self, other: &dyn AnyMember) -> bool;
    fn hashes(&self, hasher: &mut dyn Hasher);
    fn as_any(&self) -> &dyn Any;
    fn allocated(&mut self, units: OidRange, turn: Turn<'_>);
    fn read_miss(&mut self, unit: Oid, creator: NodeId, turn: Turn<'_>);
    fn write_fault(&mut self, unit: Oid, turn: Turn<'_>);
    fn must_release(&self) -> bool;
    fn before_release(&mut self, turn: Turn<'_>);
    fn notice(&mut self, version: Version) -> Option<Vec<u8>>;
    fn noticed(&mut self, version: Version, notice: &[u8], turn: Turn<'_>);
    fn after_acquire(&mut self, turn: Turn<'_>);
    fn unit_of(&self, body: &[u8]) -> Option<Oid>;
    fn deliver(&mut self, from: NodeId, body: &[u8], turn: Turn<'_>) -> Result<(), &'static str>;
    fn adopt(&mut self, unit: Oid, holder: NodeId, turn: Turn<'_>);
    fn give_up(&mut self, unit: Oid, creator: NodeId, turn: Turn<'_>) -> NodeId;
    fn freed(&mut self, unit: Oid);
    fn is_quiescent(&self) -> bool;
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Erased<P>(P);

impl<P: CoherenceProtocol> AnyMember for Erased<P> {
    fn boxed(&self) -> Box<dyn AnyMember> {
        Box::new(self.clone())
    }

    fn is(&self, other: &dyn AnyMember) -> bool {
        let other = other.as_any().downcast_ref();
        other.is_some_and(|other| self == other)
    }

    fn hashes(&self, mut hasher: &mut dyn Hasher) {
        self.0.hash(&mut hasher);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn allocated(&mut self, units: OidRange, turn: Turn<'_>) {
        self.0.allocated(units, &mut Context::new(turn));
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, turn: Turn<'_>) {
        self.0.read_miss(unit, creator, &mut Context::new(turn));
    }

    fn write_fault(&mut self, unit: Oid, turn: Turn<'_>) {
        self.0.write_fault(unit, &mut Context::new(turn));
    }

    fn must_release(&self) -> bool {
        self.0.must_release()
    }

    fn before_release(&mut self, turn: Turn<'_>) {
        self.0.before_release(&mut Context::new(turn));
    }

    fn notice(&mut self, version: Version) -> Option<Vec<u8>> {
        self.0.notice(version).map(|notice| notice.to_bytes())
    }

    fn noticed(&mut self, version: Version, notice: &[u8], turn: Turn<'_>) {
        if let Ok(notice) = P::Notice::parse(notice) {
            self.0.noticed(version, notice, &mut Context::new(turn));
        }
    }

    fn after_acquire(&mut self, turn: Turn<'_>) {
        self.0.after_acquire(&mut Context::new(turn));
    }

    fn unit_of(&self, body: &[u8]) -> Option<Oid> {
        P::unit_of(&P::Message::parse(body).ok()?)
    }

    fn deliver(&mut self, from: NodeId, body: &[u8], turn: Turn<'_>) -> Result<(), &'static str> {
        let message = P::Message::parse(body);
        let message = message.map_err(|_| "bytes that are no message of their protocol")?;
        self.0.deliver(from, message, &mut Context::new(turn))
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, turn: Turn<'_>) {
        self.0.adopt(unit, holder, &mut Context::new(turn));
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, turn: Turn<'_>) -> NodeId {
        self.0.give_up(unit, creator, &mut Context::new(turn))
    }

    fn freed(&mut self, unit: Oid) {
        self.0.freed(unit);
    }

    fn is_quiescent(&self) -> bool {
        self.0.is_quiescent()
    }
}
