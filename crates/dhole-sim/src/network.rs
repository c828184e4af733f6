use dhole_model::NodeId;

use crate::random::Stream;

/// What a message costs: the LogGP model with a link of its own for every node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Nanoseconds on the way, from the last byte's departure to its arrival.
    pub latency_ns: u64,
    /// Bytes a second that a node's link to the network takes. Messages queue for it.
    pub bytes_per_second: u64,
    /// Nanoseconds of the sender's processor for every message.
    pub send_ns: u64,
    /// Nanoseconds of the receiver's processor for every message.
    pub receive_ns: u64,
    /// The largest part of the latency that is added to it at random, in `0.0..=1.0`. With more
    /// than 0 messages overtake each other.
    pub jitter: f64,
}

impl Default for Network {
    /// A data centre's 10 Gbit/s Ethernet: 10 us of latency, 1.25e9 bytes a second, 1 us of
    /// processor for every message at either end, no jitter.
    fn default() -> Network {
        Network {
            latency_ns: 10_000,
            bytes_per_second: 1_250_000_000,
            send_ns: 1_000,
            receive_ns: 1_000,
            jitter: 0.0,
        }
    }
}

impl Network {
    /// Nanoseconds for which a message of `bytes` bytes occupies the sender's link, rounded up.
    pub fn occupancy_ns(&self, bytes: u64) -> u64 {
        match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => scaled.div_ceil(self.bytes_per_second),
            None => {
                let exact = u128::from(bytes) * 1_000_000_000;
                let ns = exact.div_ceil(u128::from(self.bytes_per_second));
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The network at work.
pub(crate) struct Links {
    network: Network,
    /// When the link of each node has sent all that queues for it.
    free_at: Vec<u64>,
    random: Stream,
}

impl Links {
    /// The links of `nodes` nodes, all free.
    pub(crate) fn new(network: Network, nodes: usize, random: Stream) -> Links {
        Links {
            network,
            free_at: vec![0; nodes],
            random,
        }
    }

    /// When a message arrives that its sender hands to its link at `departs`. The one place that
    /// decides what becomes of a message on its way.
    pub(crate) fn arrival(&mut self, from: NodeId, departs: u64, bytes: u64) -> u64 {
        let Network {
            latency_ns, jitter, ..
        } = self.network;
        let free_at = &mut self.free_at[from.index()];
        let sent = departs
            .max(*free_at)
            .saturating_add(self.network.occupancy_ns(bytes));
        *free_at = sent;
        let late_ns = if jitter > 0.0 {
            (latency_ns as f64 * jitter * self.random.fraction()) as u64
        } else {
            0
        };
        sent.saturating_add(latency_ns).saturating_add(late_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_sender_queue_for_its_link() {
        let network = Network {
            latency_ns: 100,
            bytes_per_second: 1_000_000_000,
            ..Network::default()
        };
        let mut links = Links::new(network, 2, Stream::new(0, 0));
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
        let mut links = Links::new(network, 1, Stream::new(0, 0));
        let late: Vec<u64> = (0..1000u64)
            .map(|i| links.arrival(NodeId(0), i * 10_000, 0) - i * 10_000)
            .collect();
        assert!(late.iter().all(|ns| (1_000..=1_500).contains(ns)));
        assert!(late.iter().any(|ns| *ns < 1_100) && late.iter().any(|ns| *ns > 1_400));
    }

    #[test]
    fn occupancy_is_rounded_up_and_does_not_overflow() {
        let network = Network::default();
        assert_eq!(network.occupancy_ns(16), 13);
        assert_eq!(network.occupancy_ns(1 << 40), 879_609_302_221);
    }
}
