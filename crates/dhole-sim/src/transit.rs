//! Messages on their way: what they queue for, and what is lost.

use dhole_model::NodeId;
use dhole_net::Envelope;
use dhole_protocol::Message;

use crate::network::{Medium, Network};
use crate::random::Stream;

/// The network at work.
pub(crate) struct Transit {
    network: Network,
    /// When each channel has transmitted all that queues for it. Channels are the nodes' links,
    /// or their ways into the switch and then their ways out of it, or the hubs.
    free_at: Vec<u64>,
    nodes: usize,
    random: Stream,
}

/// A message on its way through more than its sender's link.
pub(crate) struct Flight {
    pub envelope: Envelope<Message>,
    pub bytes: u64,
    /// When its sender's processor was done with it.
    pub departed: u64,
    stage: Stage,
    /// When all of it has passed the switch.
    whole_at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It comes to the channel that its sender transmits on.
    Sent,
    /// It comes to the channel that its receiver is on.
    Switched,
    /// It was lost, and its sender's patience is over.
    Lost,
}

/// Where a message gets to.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Onward {
    /// The receiver, at this time.
    Arrives(u64),
    /// The next channel, at this time.
    Flies(u64),
    /// Nowhere. Its sender sends it again at this time.
    Lost(u64),
}

impl Flight {
    /// A message that its sender's processor is done with.
    pub fn new(envelope: Envelope<Message>, bytes: u64, departed: u64) -> Flight {
        Flight {
            envelope,
            bytes,
            departed,
            stage: Stage::Sent,
            whole_at: 0,
        }
    }

    /// Whether the sender has to send it again.
    pub fn is_lost(&self) -> bool {
        self.stage == Stage::Lost
    }
}

impl Transit {
    /// The channels of `nodes` nodes, all free.
    pub fn new(network: Network, nodes: usize, random: Stream) -> Transit {
        let channels = match network.medium {
            Medium::Links => nodes,
            Medium::Switch => 2 * nodes,
            Medium::Hubs => nodes.div_ceil(network.hub_nodes as usize),
        };
        Transit {
            network,
            free_at: vec![0; channels],
            nodes,
            random,
        }
    }

    /// When a message arrives that its sender hands to its link at `departs`, where nothing else
    /// [decides](Network::is_direct) that.
    pub fn arrival(&mut self, from: NodeId, departs: u64, bytes: u64) -> u64 {
        let free_at = &mut self.free_at[from.index()];
        let sent = departs
            .max(*free_at)
            .saturating_add(self.network.occupancy_ns(bytes));
        *free_at = sent;
        sent.saturating_add(self.latency_ns())
    }

    /// Takes a message, which has come to its next channel at `now`, through it. Called in the
    /// order of time, so that messages queue in the order in which they come. The second number
    /// is the time for which it queued.
    pub fn pass(&mut self, now: u64, flight: &mut Flight) -> (Onward, u64) {
        let Network {
            medium,
            switch_ns,
            cut_through,
            ..
        } = self.network;
        let occupied = self.network.occupancy_ns(flight.bytes);
        let channel = self.channel(flight);
        let begins = now.max(self.free_at[channel]);
        let queued = begins - now;
        let buffered = medium == Medium::Hubs || flight.stage == Stage::Switched;
        if buffered && self.overflows(queued) {
            return (self.lose(now, flight), 0);
        }
        let ends = begins.saturating_add(occupied).max(flight.whole_at);
        self.free_at[channel] = ends;
        if !self.is_last(flight) {
            let first = match cut_through {
                true => 0,
                false => self.network.first_packet_ns(flight.bytes),
            };
            flight.stage = Stage::Switched;
            flight.whole_at = ends.saturating_add(switch_ns);
            let at_port = begins.saturating_add(first).saturating_add(switch_ns);
            return (Onward::Flies(at_port), queued);
        }
        if self.network.loss > 0.0 && self.random.fraction() < self.network.loss_of(flight.bytes) {
            return (self.lose(ends, flight), queued);
        }
        let arrives = ends.saturating_add(self.latency_ns());
        (Onward::Arrives(arrives), queued)
    }

    fn channel(&self, flight: &Flight) -> usize {
        let (from, to) = (flight.envelope.from.index(), flight.envelope.to.index());
        let hub = |node| node / self.network.hub_nodes as usize;
        match (self.network.medium, flight.stage) {
            (Medium::Hubs, Stage::Switched) => hub(to),
            (Medium::Hubs, _) => hub(from),
            (Medium::Switch, Stage::Switched) => self.nodes + to,
            (Medium::Switch | Medium::Links, _) => from,
        }
    }

    /// Whether the receiver hears what is on the channel.
    fn is_last(&self, flight: &Flight) -> bool {
        let (from, to) = (flight.envelope.from.index(), flight.envelope.to.index());
        let per_hub = self.network.hub_nodes as usize;
        flight.stage == Stage::Switched
            || match self.network.medium {
                Medium::Links => true,
                Medium::Switch => false,
                Medium::Hubs => from / per_hub == to / per_hub,
            }
    }

    /// Whether more queues than there is room for, in front of a message that queues for so long.
    fn overflows(&self, queued_ns: u64) -> bool {
        let Network {
            queue_bytes,
            bytes_per_second,
            ..
        } = self.network;
        let bytes = u128::from(queued_ns) * u128::from(bytes_per_second) / 1_000_000_000;
        queue_bytes > 0 && bytes > u128::from(queue_bytes)
    }

    fn lose(&mut self, now: u64, flight: &mut Flight) -> Onward {
        flight.stage = Stage::Lost;
        let again = flight.departed.saturating_add(self.network.retransmit_ns);
        Onward::Lost(again.max(now))
    }

    /// The latency of one message.
    fn latency_ns(&mut self) -> u64 {
        let Network {
            latency_ns, jitter, ..
        } = self.network;
        if jitter > 0.0 {
            let late_ns = (latency_ns as f64 * jitter * self.random.fraction()) as u64;
            latency_ns.saturating_add(late_ns)
        } else {
            latency_ns
        }
    }
}
