//! Messages in flight: the channels that they queue for, and their losses.

use dhole_model::NodeId;
use dhole_net::Envelope;
use dhole_protocol::Message;

use crate::network::{Medium, Network};
use crate::random::Stream;

/// The state of the network.
pub(crate) struct Transit {
    network: Network,
    /// The time at which each channel has transmitted all that queues for it. Channels are the
    /// nodes' links, or their ways into the switch and then their ways out of it, or the hubs.
    free_at: Vec<u64>,
    nodes: usize,
    random: Stream,
}

/// A message that passes more than its sender's link.
pub(crate) struct Flight {
    pub envelope: Envelope<Message>,
    /// The same message to other nodes, transmitted with it.
    others: Vec<Envelope<Message>>,
    /// Its place among the copies of a multicast.
    place: usize,
    trip: Trip,
}

/// How far a message is.
#[derive(Clone, Copy)]
struct Trip {
    bytes: u64,
    /// The time at which its sender's processor was done with it.
    departed: u64,
    stage: Stage,
    /// The earliest time at which its last packet has passed its next channel.
    whole_at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It reaches the channel that its sender transmits on.
    Sent,
    /// It reaches the channel that its receiver is on.
    Switched,
    /// It was lost, and is due again.
    Lost,
}

/// The place that a message reaches.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Onward {
    /// The receiver, at this time.
    Arrives(u64),
    /// The next channel, at this time.
    Flies(u64),
    /// None: it is lost, and its sender sends it again at this time.
    Lost(u64),
}

impl Flight {
    /// A message that its sender's processor is done with.
    #[cfg(test)]
    pub fn new(envelope: Envelope<Message>, bytes: u64, departed: u64) -> Flight {
        Flight::to_many(envelope, Vec::new(), bytes, departed, departed)
    }

    /// A message and its copies to other nodes. The last of its packets passes the sender's channel
    /// at `whole_at` at the earliest.
    pub fn to_many(
        envelope: Envelope<Message>,
        others: Vec<Envelope<Message>>,
        bytes: u64,
        departed: u64,
        whole_at: u64,
    ) -> Flight {
        let trip = Trip {
            bytes,
            departed,
            stage: Stage::Sent,
            whole_at,
        };
        Flight {
            envelope,
            others,
            place: 0,
            trip,
        }
    }

    /// Whether the sender has to send it again.
    pub fn is_lost(&self) -> bool {
        self.trip.stage == Stage::Lost
    }

    /// Whether it goes to several nodes.
    pub fn is_shared(&self) -> bool {
        !self.others.is_empty()
    }

    /// The same message, sent again: its sender's processor was done with it at `departed`; as
    /// [`to_many`](Flight::to_many).
    pub fn again(self, departed: u64, whole_at: u64) -> Flight {
        let bytes = self.trip.bytes;
        Flight::to_many(self.envelope, self.others, bytes, departed, whole_at)
    }

    /// Bytes of the message.
    pub fn bytes(&self) -> u64 {
        self.trip.bytes
    }

    /// All copies, in the order in which they were sent.
    pub fn into_copies(self) -> impl Iterator<Item = Envelope<Message>> {
        std::iter::once(self.envelope).chain(self.others)
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

    /// The arrival of a message that its sender hands to its link at `departs`, if the link alone
    /// [decides](Network::is_direct) it.
    pub fn arrival(&mut self, from: NodeId, departs: u64, bytes: u64) -> u64 {
        let free_at = &mut self.free_at[from.index()];
        let sent = departs
            .max(*free_at)
            .saturating_add(self.network.occupancy_ns(bytes));
        *free_at = sent;
        sent.saturating_add(self.latency_ns())
    }

    /// The arrivals at `to` nodes of a message that its sender hands to its link at `departs`, once
    /// for all of them; as [`arrival`](Transit::arrival).
    pub fn arrivals(&mut self, from: NodeId, departs: u64, bytes: u64, to: usize) -> Vec<u64> {
        let first = self.arrival(from, departs, bytes);
        let sent = self.free_at[from.index()];
        let arrival = |place| match place {
            0 => first,
            _ => {
                let latency_ns = self.latency_ns();
                sent.saturating_add(latency_ns)
                    .saturating_add(self.network.passing_on_ns(place))
            }
        };
        (0..to).map(arrival).collect()
    }

    /// Passes a message through its next channel, which it reached at `now`. Call it in the order
    /// of time, so that messages queue in the order of arrival. The second number is the time for
    /// which the message queued.
    pub fn pass(&mut self, now: u64, flight: &mut Flight) -> (Onward, u64) {
        let Some((begins, ends)) = self.occupy(now, flight) else {
            return (self.lose(now, flight), 0);
        };
        let queued = begins - now;
        if !self.is_last(flight) {
            return (Onward::Flies(self.switched(begins, ends, flight)), queued);
        }
        (self.heard(begins, ends, flight), queued)
    }

    /// The same for a message to several nodes, which takes the channel once. Returns the place
    /// that each copy reaches, or the copies for another hub together. After random losses the
    /// sender sends only to the nodes for which the message was lost.
    pub fn pass_shared(&mut self, now: u64, mut flight: Flight) -> (Vec<(Onward, Flight)>, u64) {
        let Some((begins, ends)) = self.occupy(now, &flight) else {
            let lost = self.lose(now, &mut flight);
            return (vec![(lost, flight)], 0);
        };
        let trip = flight.trip;
        let per_hub = self.network.hub_nodes.max(1) as usize;
        let hub = |flight: &Flight| flight.envelope.to.index() / per_hub;
        let by_hub = trip.stage == Stage::Sent && self.network.medium == Medium::Hubs;
        let mut parts: Vec<Flight> = Vec::new();
        for (place, envelope) in flight.into_copies().enumerate() {
            let part = Flight {
                envelope,
                others: Vec::new(),
                place,
                trip,
            };
            let far = by_hub && !self.is_last(&part);
            let together = |other: &&mut Flight| far && hub(other) == hub(&part);
            match parts.iter_mut().find(together) {
                Some(other) => other.others.push(part.envelope),
                None => parts.push(part),
            }
        }
        let on = |mut part: Flight| {
            let onward = match self.is_last(&part) {
                true => self.heard(begins, ends, &mut part),
                false => Onward::Flies(self.switched(begins, ends, &mut part)),
            };
            (onward, part)
        };
        (parts.into_iter().map(on).collect(), begins - now)
    }

    /// Occupies a channel with a message. Returns from when to when, unless too much waits there.
    fn occupy(&mut self, now: u64, flight: &Flight) -> Option<(u64, u64)> {
        let occupied = self.network.occupancy_ns(flight.trip.bytes);
        let channel = self.channel(flight);
        let begins = now.max(self.free_at[channel]);
        let buffered = self.network.medium == Medium::Hubs || flight.trip.stage == Stage::Switched;
        if buffered && self.overflows(begins - now) {
            return None;
        }
        let ends = begins.saturating_add(occupied).max(flight.trip.whole_at);
        self.free_at[channel] = ends;
        Some((begins, ends))
    }

    /// The time at which a message that has passed its sender's channel reaches its receiver's.
    fn switched(&self, begins: u64, ends: u64, flight: &mut Flight) -> u64 {
        let Network {
            switch_ns,
            cut_through,
            ..
        } = self.network;
        let bytes = flight.trip.bytes;
        let (first, last) = match cut_through {
            true => (0, 0),
            false => (
                self.network.first_packet_ns(bytes),
                self.network.last_packet_ns(bytes),
            ),
        };
        flight.trip.stage = Stage::Switched;
        flight.trip.whole_at = ends.saturating_add(switch_ns).saturating_add(last);
        begins.saturating_add(first).saturating_add(switch_ns)
    }

    /// Decides whether a message that has passed its last channel arrives or is lost.
    fn heard(&mut self, begins: u64, ends: u64, flight: &mut Flight) -> Onward {
        if self.network.loss > 0.0
            && self.random.fraction() < self.network.loss_of(flight.trip.bytes)
        {
            return self.lose(ends, flight);
        }
        // The receiver has worked on the packets before the last one while that was on its way.
        let bytes = flight.trip.bytes;
        let early_ns = self.network.receiving_early_ns(bytes);
        let first = begins.saturating_add(self.network.first_packet_ns(bytes));
        let taken = ends.max(first.saturating_add(early_ns));
        let arrives = taken.saturating_add(self.latency_ns());
        Onward::Arrives(arrives.saturating_add(self.network.passing_on_ns(flight.place)))
    }

    fn channel(&self, flight: &Flight) -> usize {
        let (from, to) = (flight.envelope.from.index(), flight.envelope.to.index());
        let hub = |node| node / self.network.hub_nodes as usize;
        match (self.network.medium, flight.trip.stage) {
            (Medium::Hubs, Stage::Switched) => hub(to),
            (Medium::Hubs, _) => hub(from),
            (Medium::Switch, Stage::Switched) => self.nodes + to,
            (Medium::Switch | Medium::Links, _) => from,
        }
    }

    /// Whether the message's next channel is that of its receiver.
    fn is_last(&self, flight: &Flight) -> bool {
        let (from, to) = (flight.envelope.from.index(), flight.envelope.to.index());
        let per_hub = self.network.hub_nodes as usize;
        flight.trip.stage == Stage::Switched
            || match self.network.medium {
                Medium::Links => true,
                Medium::Switch => false,
                Medium::Hubs => from / per_hub == to / per_hub,
            }
    }

    /// Whether the queue is full before a message that queues for so long.
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
        flight.trip.stage = Stage::Lost;
        let again = flight
            .trip
            .departed
            .saturating_add(self.network.retransmit_ns);
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
    use dhole_protocol::FetchReply;

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
        let body = Message::FetchReply(FetchReply {
            keep: false,
            round: 0,
            sent: Default::default(),
        });
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
            .map(|(place, flight)| (flight.trip.departed, place, flight))
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

    /// When each of these nodes hears one message to all of them that node 0 sends at 0.
    fn heard(transit: &mut Transit, to: &[u16], bytes: u64) -> Vec<u64> {
        let one = |to: u16| flight(0, to, bytes, 0).envelope;
        let mut others: Vec<_> = to.iter().map(|to| one(*to)).collect();
        let first = others.remove(0);
        let mut heard = vec![0; to.len()];
        let mut on_way = vec![(0, Flight::to_many(first, others, bytes, 0, 0))];
        while let Some(next) = (0..on_way.len()).min_by_key(|i| on_way[*i].0) {
            let (now, mut flight) = on_way.swap_remove(next);
            let parts = match flight.is_shared() {
                true => transit.pass_shared(now, flight).0,
                false => vec![(transit.pass(now, &mut flight).0, flight)],
            };
            for (onward, part) in parts {
                match onward {
                    Onward::Arrives(at) => part.into_copies().for_each(|copy| {
                        let place = to.iter().position(|to| *to == copy.to.0).unwrap();
                        assert_eq!(std::mem::replace(&mut heard[place], at), 0, "once");
                    }),
                    Onward::Flies(at) => on_way.push((at, part)),
                    Onward::Lost(_) => panic!("nothing is lost here"),
                }
            }
        }
        heard
    }

    #[test]
    fn a_message_to_many_takes_its_senders_port_once_and_that_of_each_receiver() {
        let network = Network {
            medium: Medium::Switch,
            switch_ns: 10,
            multicast: true,
            ..PLAIN()
        };
        let mut switch = transit(network, 4);
        let all = 1_000 + 10 + 1_000 + 100;
        assert_eq!(heard(&mut switch, &[1, 2, 3], 1_000), [all; 3]);
        assert_eq!(switch.free_at[..4], [1_000, 0, 0, 0], "sent once");
        assert_eq!(switch.free_at[4..], [0, 2_010, 2_010, 2_010]);
        let tree = Network {
            multicast_fanout: 2,
            multicast_hop_ns: 7,
            ..network
        };
        let late: Vec<u64> = heard(&mut transit(tree, 8), &[1, 2, 3, 4, 5, 6, 7], 1_000);
        assert_eq!(late[..2], [all; 2]);
        assert_eq!(late[2..6], [all + 7; 4]);
        assert_eq!(late[6], all + 14);
    }

    #[test]
    fn a_message_to_many_takes_each_hub_once() {
        let network = Network {
            medium: Medium::Hubs,
            hub_nodes: 3,
            switch_ns: 10,
            multicast: true,
            ..PLAIN()
        };
        let mut hubs = transit(network, 9);
        let (near, far) = (1_100, 1_000 + 10 + 1_000 + 100);
        let to = [1, 2, 3, 4, 5, 6, 7, 8];
        let expected = [near, near, far, far, far, far, far, far];
        assert_eq!(heard(&mut hubs, &to, 1_000), expected);
        assert_eq!(hubs.free_at, [1_000, 2_010, 2_010]);
    }

    #[test]
    fn a_message_to_many_takes_its_senders_link_once() {
        let mut links = transit(PLAIN(), 4);
        assert_eq!(links.arrivals(NodeId(0), 10, 50, 3), [160; 3]);
        assert_eq!(links.arrival(NodeId(0), 10, 50), 210);
    }

    #[test]
    fn what_is_lost_of_a_message_to_many_is_sent_again_to_whom_it_was_lost_for() {
        let network = Network {
            loss: 0.3,
            retransmit_ns: 5_000,
            medium: Medium::Switch,
            multicast: true,
            ..PLAIN()
        };
        let mut switch = transit(network, 4);
        let (mut arrived, mut lost) = (0, 0);
        for round in 0..1_000 {
            let now = round * 100_000;
            let one = |to| flight(0, to, 100, now).envelope;
            let shared = Flight::to_many(one(1), vec![one(2), one(3)], 100, now, 0);
            let (parts, _) = switch.pass_shared(now, shared);
            assert_eq!(parts.len(), 3);
            for (onward, mut part) in parts {
                let Onward::Flies(at) = onward else {
                    panic!("it is lost at its end")
                };
                assert!(!part.is_shared());
                match switch.pass(at, &mut part).0 {
                    Onward::Arrives(_) => arrived += 1,
                    Onward::Lost(_) => lost += u32::from(part.is_lost()),
                    Onward::Flies(_) => panic!("it has passed the switch"),
                }
            }
        }
        assert_eq!(arrived + lost, 3_000);
        assert!((850..950).contains(&lost), "{lost}");
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
