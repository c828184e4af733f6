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

#[cfg(test)]
mod tests {
    use dhole_net::Payload;

    use super::*;

    /// A microsecond for a thousand bytes.
    const PLAIN: fn() -> Network = || Network {
        latency_ns: 100,
        bytes_per_second: 1_000_000_000,
        ..Network::default()
    };

    fn transit(network: Network, nodes: usize) -> Transit {
        Transit::new(network, nodes, Stream::new(7, 0))
    }

    fn flight(from: u16, to: u16, bytes: u64, departed: u64) -> Flight {
        let (from, to) = (NodeId(from), NodeId(to));
        let body = Message::FetchReply {
            keep: false,
            round: 0,
            sent: Default::default(),
        };
        let payload = Payload::NONE;
        let envelope = Envelope {
            from,
            to,
            body,
            payload,
        };
        Flight::new(envelope, bytes, departed)
    }

    /// When each of these messages arrives; none is lost.
    fn arrivals(transit: &mut Transit, flights: Vec<Flight>) -> Vec<u64> {
        let mut arrived = vec![0; flights.len()];
        let mut on_way: Vec<(u64, usize, Flight)> = flights
            .into_iter()
            .enumerate()
            .map(|(place, flight)| (flight.departed, place, flight))
            .collect();
        while let Some(next) = (0..on_way.len()).min_by_key(|i| (on_way[*i].0, on_way[*i].1)) {
            let (now, place, mut flight) = on_way.swap_remove(next);
            match transit.pass(now, &mut flight).0 {
                Onward::Arrives(at) => arrived[place] = at,
                Onward::Flies(at) => {
                    assert!(at >= now, "time runs forward");
                    on_way.push((at, place, flight));
                }
                Onward::Lost(_) => panic!("nothing is lost here"),
            }
        }
        arrived
    }

    #[test]
    fn messages_of_one_sender_queue_for_its_link() {
        let mut links = transit(PLAIN(), 2);
        assert_eq!(links.arrival(NodeId(0), 10, 50), 160);
        assert_eq!(links.arrival(NodeId(0), 20, 50), 210);
        assert_eq!(links.arrival(NodeId(1), 20, 50), 170);
        assert_eq!(links.arrival(NodeId(0), 500, 50), 650);
    }

    #[test]
    fn jitter_adds_at_most_its_part_of_the_latency() {
        let network = Network {
            latency_ns: 1_000,
            jitter: 0.5,
            ..Network::default()
        };
        let mut links = transit(network, 1);
        let late: Vec<u64> = (0..1000u64)
            .map(|i| links.arrival(NodeId(0), i * 10_000, 0) - i * 10_000)
            .collect();
        assert!(late.iter().all(|ns| (1_000..=1_500).contains(ns)));
        assert!(late.iter().any(|ns| *ns < 1_100) && late.iter().any(|ns| *ns > 1_400));
    }

    #[test]
    fn a_switch_sends_packets_on_and_queues_for_a_receiver_and_for_no_other() {
        let network = Network {
            medium: Medium::Switch,
            switch_ns: 10,
            packet_bytes: 1_000,
            ..PLAIN()
        };
        let mut switch = transit(network, 4);
        let two = vec![flight(0, 3, 3_000, 0)];
        assert_eq!(arrivals(&mut switch, two), [1_000 + 10 + 3_000 + 100]);
        let mut switch = transit(network, 4);
        let both = vec![
            flight(0, 3, 1_000, 0),
            flight(1, 3, 1_000, 0),
            flight(2, 1, 1_000, 0),
        ];
        assert_eq!(arrivals(&mut switch, both), [2_110, 3_110, 2_110]);
        let cut_through = Network {
            cut_through: true,
            ..network
        };
        let mut switch = transit(cut_through, 4);
        let one = vec![flight(0, 3, 3_000, 0)];
        assert_eq!(arrivals(&mut switch, one), [10 + 3_000 + 100]);
    }

    #[test]
    fn a_hub_carries_one_transmission_at_a_time_whoever_sends() {
        let network = Network {
            medium: Medium::Hubs,
            hub_nodes: 2,
            switch_ns: 10,
            ..PLAIN()
        };
        let mut hubs = transit(network, 5);
        let there_and_back = vec![flight(0, 1, 1_000, 0), flight(1, 0, 1_000, 0)];
        assert_eq!(arrivals(&mut hubs, there_and_back), [1_100, 2_100]);
        let mut hubs = transit(network, 5);
        let apart = vec![
            flight(0, 1, 1_000, 0),
            flight(2, 3, 1_000, 0),
            flight(0, 4, 1_000, 5),
        ];
        assert_eq!(arrivals(&mut hubs, apart), [1_100, 1_100, 3_110]);
        let mut hubs = transit(network, 5);
        let across = vec![flight(0, 2, 1_000, 0), flight(2, 3, 1_000, 500)];
        assert_eq!(arrivals(&mut hubs, across), [2_600, 1_600]);
    }

    #[test]
    fn a_message_that_finds_too_much_in_front_of_it_is_lost() {
        let network = Network {
            medium: Medium::Hubs,
            hub_nodes: 4,
            queue_bytes: 1_500,
            retransmit_ns: 1_000_000,
            ..PLAIN()
        };
        let mut hub = transit(network, 4);
        let mut pass = |now| hub.pass(now, &mut flight(0, 1, 1_000, now));
        assert_eq!(pass(0), (Onward::Arrives(1_100), 0));
        assert_eq!(pass(0), (Onward::Arrives(2_100), 1_000));
        assert_eq!(pass(10), (Onward::Lost(1_000_010), 0));
        assert_eq!(pass(1_000), (Onward::Arrives(3_100), 1_000));
    }

    #[test]
    fn as_many_packets_are_lost_as_is_said_and_the_same_ones_by_the_seed() {
        let network = Network {
            loss: 0.1,
            retransmit_ns: 5_000,
            packet_bytes: 100,
            ..PLAIN()
        };
        let lost = |seed, bytes| -> Vec<bool> {
            let mut transit = Transit::new(network, 2, Stream::new(seed, 0));
            let pass = |now| {
                let mut flight = flight(0, 1, bytes, now);
                let lost = matches!(transit.pass(now, &mut flight).0, Onward::Lost(_));
                assert_eq!(flight.is_lost(), lost);
                lost
            };
            (0..10_000).map(|i| i * 10_000).map(pass).collect()
        };
        let count = |lost: Vec<bool>| lost.into_iter().filter(|lost| *lost).count();
        assert_eq!(lost(1, 100), lost(1, 100));
        assert_ne!(lost(1, 100), lost(2, 100));
        assert!((900..1_100).contains(&count(lost(1, 100))));
        assert!((1_750..2_050).contains(&count(lost(1, 200))));
    }
}
