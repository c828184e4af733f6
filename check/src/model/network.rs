use std::fmt;
use std::hash::{Hash, Hasher};

use dhole_model::NodeId;
use dhole_protocol::Message;

use crate::model::WriteId;
use crate::model::calls::Order;
use crate::model::sealed::Sealed;

/// A message in flight, with the values of the objects in its payload.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Parcel {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The protocol's message.
    pub message: Message,
    /// The values of the objects that travel with it.
    pub payload: Vec<WriteId>,
    /// Whether a value was taken from a pre-image.
    pub from_pre_image: bool,
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} -> {:?}: {:?}", self.from, self.to, self.message)?;
        match self.payload.is_empty() {
            true => Ok(()),
            false => write!(f, " with {:?}", self.payload),
        }
    }
}

/// Messages in flight: any of them may arrive next.
#[derive(Clone, Default)]
pub struct Network {
    /// In the order of their hashes, so that the order of sending is forgotten.
    parcels: Vec<Sealed<Parcel>>,
    pub(crate) order: Order,
}

impl Network {
    /// Sends a message.
    pub fn send(&mut self, parcel: Parcel) {
        let parcel = Sealed::new(parcel);
        let before = |other: &Sealed<Parcel>| other.fingerprint() < parcel.fingerprint();
        let place = self.parcels.partition_point(before);
        self.parcels.insert(place, parcel);
    }

    /// The messages in flight.
    pub fn parcels(&self) -> impl Iterator<Item = &Parcel> {
        self.parcels.iter().map(|parcel| &**parcel)
    }

    /// The places of messages that differ.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        let differs = |place: &usize| match place.checked_sub(1) {
            Some(before) => {
                self.parcels[before].fingerprint() != self.parcels[*place].fingerprint()
            }
            None => true,
        };
        (0..self.parcels.len()).filter(differs)
    }

    /// Takes the message of this place.
    pub(crate) fn take(&mut self, place: usize) -> Sealed<Parcel> {
        self.parcels.remove(place)
    }

    /// The message of this place.
    pub(crate) fn at(&self, place: usize) -> &Sealed<Parcel> {
        &self.parcels[place]
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.order.is_empty()
    }
}

impl Hash for Network {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.parcels.hash(hasher);
        self.order.hash(hasher);
    }
}

impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        self.parcels == other.parcels && self.order == other.order
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parcels()).finish()
    }
}
