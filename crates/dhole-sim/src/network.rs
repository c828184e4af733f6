use dhole_model::{MessageKind, Work};
use dhole_node::MessageSizes;

use crate::paper_sizes;

mod description;
mod keys;
mod presets;
mod primitive;

pub use description::{Description, NetworkError};
pub(crate) use description::{LEAST_SCALE, MOST_SCALE, MOST_UNIT_NS};
pub(crate) use keys::{BY_KIND, Expected, KEYS, Key, Wrong, parsed, set_by_kind};
pub use primitive::{Primitive, Published};

/// The costs of messages, and of a page-based runtime's work for them. The model is LogGP
/// (Alexandrov, Ionescu, Schauser, Scheiman 1995) with packets, interrupts, and a shared
/// [medium](Medium). Every field is a key of the same name in a network's
/// [description](Description) and in the textual form of the [settings](crate::Settings).
///
/// Bytes of a message are those of its frame ([`paper_sizes`](Network::paper_sizes) aside), its
/// payload included. The packets' headers come on top.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Nanoseconds of a message besides its transmission, until the receiver's processor could
    /// handle it.
    pub latency_ns: u64,
    /// Bytes a second that a link, a port or a hub transmits.
    pub bytes_per_second: u64,
    /// Nanoseconds of the sender's processor for every message.
    pub send_ns: u64,
    /// Nanoseconds of the receiver's processor for every message.
    pub receive_ns: u64,
    /// The largest part of the latency that is added to it at random, in `0.0..=1.0`. With more
    /// than 0 messages overtake each other.
    pub jitter: f64,
    /// Nanoseconds of the sender's processor for every byte.
    pub send_ns_per_byte: f64,
    /// Nanoseconds of the receiver's processor for every byte.
    pub receive_ns_per_byte: f64,
    /// Nanoseconds of the receiver's processor for a message that interrupts its computation: the
    /// cost of a signal above that of polling. A message that arrives while another is handled
    /// costs no interrupt: that handler finds it.
    pub interrupt_ns: u64,
    /// Whether a message that finds the receiver waiting for another one interrupts too. The
    /// message that the worker waits for never does.
    pub interrupt_when_waiting: bool,
    /// Nanoseconds of the receiver's processor for the runtime's work on a message of a
    /// [kind](MessageKind), by the kind's place in [`MessageKind::ALL`].
    pub handling_ns: [u64; MessageKind::ALL.len()],
    /// Nanoseconds of the sender's processor for the runtime's work before a message of a
    /// [kind](MessageKind) is sent, by the kind's place in [`MessageKind::ALL`].
    pub making_ns: [u64; MessageKind::ALL.len()],
    /// A message of more bytes first takes a *rendezvous*: the smallest message there, and one
    /// back. Libraries of messages do so before a transfer for which the receiver must have room.
    /// Each end's processor sends one of them and receives the other. 0 if no message does.
    pub rendezvous_bytes: u64,
    /// The most bytes of a message that a packet carries; 0 if a message of any size is one.
    pub packet_bytes: u64,
    /// The size that a smaller packet is padded to.
    pub least_packet_bytes: u64,
    /// Bytes that are transmitted with every packet besides the message's.
    pub packet_header_bytes: u64,
    /// Nanoseconds of the sender's processor for every packet after a message's first.
    pub packet_send_ns: u64,
    /// Nanoseconds of the receiver's processor for every packet after a message's first.
    pub packet_receive_ns: u64,
    /// Whether the processors handle a message's packets one by one: one is sent while another is
    /// transmitted and a third received. Otherwise either end hands a message on as a whole, as UDP
    /// does.
    pub pipelined: bool,
    /// The medium that messages share.
    pub medium: Medium,
    /// Nanoseconds in a switch, from a packet's arrival to the earliest start of its departure.
    pub switch_ns: u64,
    /// Whether a switch forwards a packet before the whole packet has arrived.
    pub cut_through: bool,
    /// Nodes at a hub: node `i` is at hub `i / hub_nodes`.
    pub hub_nodes: u64,
    /// Whether the medium carries one message to many nodes at once, as IP multicast and the
    /// adapters of some networks do. Its sender pays and transmits once, and so does a hub. A
    /// switch copies it to the ports of its receivers. Otherwise it is as many messages as
    /// receivers.
    pub multicast: bool,
    /// The number of receivers to which a network adapter forwards a multicast, along a tree whose
    /// root is the sender's adapter; 0 if a multicast reaches all at once.
    pub multicast_fanout: u64,
    /// Nanoseconds of each such forwarding, on top of the latency.
    pub multicast_hop_ns: u64,
    /// Whether a network adapter gives the numbers of broadcasts. A member that asks for a number
    /// waits for the way there and back. No node's processor is interrupted.
    pub card_sequencer: bool,
    /// Whether messages count as many bytes as the papers' systems would have sent: a source line
    /// as 8 bytes, for instance. Otherwise they count the bytes that processes send.
    pub paper_sizes: bool,
    /// Whether a node reads the memory of another without that node's processor, as adapters with
    /// remote direct memory access do. A read takes the reader's processor as long as sending a
    /// message and receiving one, and waits for the way there and back and the bytes' transmission.
    pub remote_memory: bool,
    /// Bytes that may queue for a switch's port or a hub. A message that finds more is lost. 0
    /// means no limit.
    pub queue_bytes: u64,
    /// The part of the packets that is lost at random, in `0.0..=0.5`. A message is lost with any
    /// of its packets.
    pub loss: f64,
    /// Nanoseconds after its departure at which the sender sends a lost message again.
    pub retransmit_ns: u64,
    /// Bytes of pages of shared objects for which a node has memory; 0 if there is no limit.
    pub memory_bytes: u64,
    /// Nanoseconds of a fault on a protected page: the signal, and protecting it anew.
    pub page_fault_ns: u64,
    /// Nanoseconds of a fault on an object or an element of an array, if the runtime finds accesses
    /// by memory protection (DOSA, section 3.4); 0 if it tests them.
    pub object_fault_ns: u64,
    /// Nanoseconds of a call that changes a page's protection.
    pub protect_ns: u64,
    /// Nanoseconds in which the manager of a minipage finds it by an address (MultiView's table).
    pub translate_ns: u64,
    /// Nanoseconds from the message that ends a thread's wait for a minipage until the thread goes
    /// on.
    pub wake_ns: u64,
    /// The mean of the time after which a node that computes takes a message: a thread looks for
    /// messages at random times, with exponential intervals. A node that waits takes messages at
    /// once. 0 if a node that computes does too.
    pub sweep_ns: u64,
    /// Nanoseconds a byte of copying a page, or an object, to its twin.
    pub twin_ns_per_byte: f64,
    /// Nanoseconds a byte of comparing a page with its twin, for a diff of the page or for its
    /// written objects.
    pub diff_make_ns_per_byte: f64,
    /// Nanoseconds a byte of applying a diff.
    pub diff_apply_ns_per_byte: f64,
}

/// The medium that messages share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// Only their sender's link. A receiver takes any number of messages at once.
    Links,
    /// A port of one full-duplex switch for every node: messages queue for their sender's way in
    /// and for their receiver's way out.
    Switch,
    /// Hubs, each of which carries one transmission at a time, joined by a switch.
    Hubs,
}

impl Medium {
    pub(crate) const ALL: [(&'static str, Medium); 3] = [
        ("links", Medium::Links),
        ("switch", Medium::Switch),
        ("hubs", Medium::Hubs),
    ];
}

impl Default for Network {
    /// A data centre's 10 Gbit/s Ethernet in round numbers: 10 us of latency, 1.25e9 bytes a
    /// second, 1 us of processor for every message at either end, and nothing else. The description
    /// `default` has the same numbers.
    fn default() -> Network {
        Network {
            latency_ns: 10_000,
            bytes_per_second: 1_250_000_000,
            send_ns: 1_000,
            receive_ns: 1_000,
            jitter: 0.0,
            send_ns_per_byte: 0.0,
            receive_ns_per_byte: 0.0,
            interrupt_ns: 0,
            interrupt_when_waiting: false,
            handling_ns: [0; MessageKind::ALL.len()],
            making_ns: [0; MessageKind::ALL.len()],
            rendezvous_bytes: 0,
            packet_bytes: 0,
            least_packet_bytes: 0,
            packet_header_bytes: 0,
            packet_send_ns: 0,
            packet_receive_ns: 0,
            pipelined: false,
            medium: Medium::Links,
            switch_ns: 0,
            cut_through: false,
            hub_nodes: 0,
            multicast: false,
            multicast_fanout: 0,
            multicast_hop_ns: 0,
            card_sequencer: false,
            paper_sizes: false,
            remote_memory: false,
            queue_bytes: 0,
            loss: 0.0,
            retransmit_ns: 0,
            memory_bytes: 0,
            page_fault_ns: 0,
            object_fault_ns: 0,
            protect_ns: 0,
            translate_ns: 0,
            wake_ns: 0,
            sweep_ns: 0,
            twin_ns_per_byte: 0.0,
            diff_make_ns_per_byte: 0.0,
            diff_apply_ns_per_byte: 0.0,
        }
    }
}

impl Network {
    /// Nanoseconds for which a message of `bytes` bytes occupies a link, a port or a hub, rounded
    /// up.
    pub fn occupancy_ns(&self, bytes: u64) -> u64 {
        self.transmission_ns(self.transmitted_bytes(bytes))
    }

    /// Nanoseconds of the sender's processor for a message of `bytes` bytes, including the
    /// runtime's work on one of this kind.
    #[inline]
    pub fn sending_ns(&self, kind: MessageKind, bytes: u64) -> u64 {
        self.handing_on_ns(bytes)
            .saturating_add(self.making_ns[kind as usize])
            .saturating_add(self.rendezvous_processor_ns(bytes))
    }

    /// Nanoseconds in which a processor hands the packets of a message to its link.
    fn handing_on_ns(&self, bytes: u64) -> u64 {
        let more_packets = (self.packets(bytes) - 1).saturating_mul(self.packet_send_ns);
        self.send_ns
            .saturating_add((bytes as f64 * self.send_ns_per_byte) as u64)
            .saturating_add(more_packets)
    }

    /// Whether a message of `bytes` bytes takes a [rendezvous](Network::rendezvous_bytes) first.
    fn meets(&self, bytes: u64) -> bool {
        self.rendezvous_bytes > 0 && bytes > self.rendezvous_bytes
    }

    /// Nanoseconds of either end's processor for the rendezvous of a message.
    fn rendezvous_processor_ns(&self, bytes: u64) -> u64 {
        match self.meets(bytes) {
            true => self.send_ns.saturating_add(self.receive_ns),
            false => 0,
        }
    }

    /// Nanoseconds for which the two small messages of a rendezvous are on their way.
    pub(crate) fn rendezvous_ways_ns(&self, bytes: u64) -> u64 {
        if !self.meets(bytes) {
            return 0;
        }
        let way_ns = self.latency_ns.saturating_add(self.switch_ns);
        way_ns
            .saturating_add(self.occupancy_ns(0))
            .saturating_mul(2)
    }

    /// Nanoseconds of the receiver's processor for a message of `bytes` bytes, including the
    /// runtime's work on one of this kind, without an interrupt.
    #[inline]
    pub fn receiving_ns(&self, kind: MessageKind, bytes: u64) -> u64 {
        let more_packets = (self.packets(bytes) - 1).saturating_mul(self.packet_receive_ns);
        self.receive_ns
            .saturating_add((bytes as f64 * self.receive_ns_per_byte) as u64)
            .saturating_add(more_packets)
            .saturating_add(self.handling_ns[kind as usize])
            .saturating_add(self.rendezvous_processor_ns(bytes))
    }

    /// Nanoseconds of the sender's processor that remain when the link gets the first packet: those
    /// for the other packets, if messages are [pipelined](Network::pipelined).
    pub(crate) fn sending_late_ns(&self, bytes: u64) -> u64 {
        match self.pipelined {
            true => self.handing_on_ns(bytes) - self.handing_on_ns(bytes.min(self.packet_bytes)),
            false => 0,
        }
    }

    /// Nanoseconds of the receiver's processor that are spent when the last packet arrives, if
    /// messages are pipelined.
    pub(crate) fn receiving_early_ns(&self, bytes: u64) -> u64 {
        let packets = self.packets(bytes);
        if !self.pipelined || packets == 1 {
            return 0;
        }
        let before = (packets - 1).saturating_mul(self.packet_bytes);
        ((before as f64 * self.receive_ns_per_byte) as u64)
            .saturating_add((packets - 1).saturating_mul(self.packet_receive_ns))
    }

    /// Packets of a message of `bytes` bytes.
    #[inline]
    pub fn packets(&self, bytes: u64) -> u64 {
        match self.packet_bytes {
            0 => 1,
            most => bytes.div_ceil(most).max(1),
        }
    }

    /// Bytes that are transmitted for a message of `bytes` bytes, with the packets' headers.
    #[inline]
    pub fn transmitted_bytes(&self, bytes: u64) -> u64 {
        if self.packet_bytes == 0 {
            let filled = bytes.max(self.least_packet_bytes);
            return filled.saturating_add(self.packet_header_bytes);
        }
        let packets = self.packets(bytes);
        let full = (packets - 1).saturating_mul(self.packet_bytes);
        let last = (bytes - full.min(bytes)).max(self.least_packet_bytes);
        full.saturating_add(last)
            .saturating_add(packets.saturating_mul(self.packet_header_bytes))
    }

    /// Nanoseconds for which the first packet of a message occupies a port.
    pub(crate) fn first_packet_ns(&self, bytes: u64) -> u64 {
        match self.packet_bytes {
            0 => self.occupancy_ns(bytes),
            most => self.occupancy_ns(bytes.min(most)),
        }
    }

    /// How many bytes messages have.
    pub(crate) fn sizes(&self) -> MessageSizes {
        match self.paper_sizes {
            true => MessageSizes {
                frame: paper_sizes::message_bytes,
                notices: paper_sizes::notice_bytes,
            },
            false => MessageSizes::SENT,
        }
    }

    /// Nanoseconds of a [read of another node's memory](Network::remote_memory), of so many bytes.
    pub(crate) fn remote_read_ns(&self, bytes: u64) -> u64 {
        let way_ns = self.latency_ns.saturating_add(self.switch_ns);
        let processor_ns = self.send_ns.saturating_add(self.receive_ns);
        way_ns
            .saturating_mul(2)
            .saturating_add(processor_ns)
            .saturating_add(self.transmission_ns(self.transmitted_bytes(bytes)))
    }

    /// Nanoseconds for which adapters forward a multicast before the receiver at this place, from 0
    /// on, has it.
    pub(crate) fn passing_on_ns(&self, place: usize) -> u64 {
        let Some(fanout) = std::num::NonZeroU64::new(self.multicast_fanout) else {
            return 0;
        };
        // The root's children are not passed anything on, their children once.
        let (mut level, mut before) = (0_u64, place as u64);
        let mut wide = fanout.get();
        while before >= wide {
            before -= wide;
            wide = wide.saturating_mul(fanout.get());
            level += 1;
        }
        level.saturating_mul(self.multicast_hop_ns)
    }

    /// Nanoseconds for which the last packet of a message occupies a port.
    pub(crate) fn last_packet_ns(&self, bytes: u64) -> u64 {
        let before = (self.packets(bytes) - 1).saturating_mul(self.packet_bytes);
        self.occupancy_ns(bytes.saturating_sub(before))
    }

    /// The part of the messages of `bytes` bytes that are lost at random.
    pub(crate) fn loss_of(&self, bytes: u64) -> f64 {
        1.0 - (1.0 - self.loss).powf(self.packets(bytes) as f64)
    }

    fn transmission_ns(&self, bytes: u64) -> u64 {
        match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => scaled.div_ceil(self.bytes_per_second),
            None => {
                let exact = u128::from(bytes) * 1_000_000_000;
                let ns = exact.div_ceil(u128::from(self.bytes_per_second));
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        }
    }

    /// Nanoseconds of a processor for keeping pages and objects consistent, beside messages.
    pub fn work_ns(&self, work: Work) -> u64 {
        let per_byte = [
            (work.twin_bytes, self.twin_ns_per_byte),
            (work.compared_bytes, self.diff_make_ns_per_byte),
            (work.made_bytes, self.diff_make_ns_per_byte),
            (work.applied_bytes, self.diff_apply_ns_per_byte),
        ];
        let bytes_ns: f64 = per_byte.iter().map(|(bytes, ns)| *bytes as f64 * ns).sum();
        let faults_ns = work.faults.saturating_mul(self.page_fault_ns);
        let object_faults_ns = work.object_faults.saturating_mul(self.object_fault_ns);
        let protections_ns = work.protections.saturating_mul(self.protect_ns);
        let translations_ns = work.translations.saturating_mul(self.translate_ns);
        let wakes_ns = work.wakes.saturating_mul(self.wake_ns);
        faults_ns
            .saturating_add(object_faults_ns)
            .saturating_add(protections_ns)
            .saturating_add(translations_ns)
            .saturating_add(wakes_ns)
            .saturating_add(bytes_ns as u64)
    }

    /// Whether every message costs the processors the same.
    pub(crate) fn is_plain(&self) -> bool {
        let per_byte = self.send_ns_per_byte + self.receive_ns_per_byte;
        per_byte == 0.0
            && self.packet_send_ns == 0
            && self.packet_receive_ns == 0
            && !self.pipelined
            && self.handling_ns == [0; MessageKind::ALL.len()]
            && self.making_ns == [0; MessageKind::ALL.len()]
            && self.rendezvous_bytes == 0
    }

    /// Whether the sender's link alone decides when a message arrives.
    pub(crate) fn is_direct(&self) -> bool {
        self.medium == Medium::Links && self.loss == 0.0 && !self.pipelined
    }

    /// Checks that the numbers agree with each other. Each key checks its own number.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        for key in KEYS {
            key.check(self)?;
        }
        let lossy = self.loss > 0.0 || self.queue_bytes > 0;
        if lossy && self.retransmit_ns == 0 {
            let range = "at least 1 where messages can be lost";
            return Err(Wrong::range("retransmit_ns", 0, range));
        }
        if self.medium == Medium::Hubs && self.hub_nodes == 0 {
            return Err(Wrong::range(
                "hub_nodes",
                0,
                "at least 1 where there are hubs",
            ));
        }
        if self.packet_bytes > 0 && self.least_packet_bytes > self.packet_bytes {
            let range = "at most packet_bytes";
            let value = self.least_packet_bytes;
            return Err(Wrong::range("least_packet_bytes", value, range));
        }
        self.check_unused()
    }

    /// Refuses a number that this network would not use.
    fn check_unused(&self) -> Result<(), Wrong> {
        let of_switches = &["switch_ns", "cut_through", "queue_bytes"][..];
        let of_packets = &["packet_send_ns", "packet_receive_ns", "pipelined"][..];
        let of_multicast = &["multicast_fanout", "multicast_hop_ns"][..];
        let plain = Network::default();
        for (used, names, what) in [
            (
                self.medium != Medium::Links,
                of_switches,
                "a switch or hubs",
            ),
            (self.medium == Medium::Hubs, &["hub_nodes"], "hubs"),
            (self.packet_bytes > 0, of_packets, "packet_bytes"),
            (self.multicast, of_multicast, "multicast"),
            (
                self.medium != Medium::Hubs,
                &["multicast_fanout"],
                "another medium than hubs",
            ),
            (
                self.multicast_fanout > 0,
                &["multicast_hop_ns"],
                "multicast_fanout",
            ),
        ] {
            let unused = KEYS.iter().filter(|key| !used && names.contains(&key.name));
            for key in unused {
                let (said, nothing) = (key.text(self), key.text(&plain));
                if said != nothing {
                    return Err(Wrong::range(
                        key.name,
                        said,
                        format!("{nothing} without {what}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet() -> Network {
        Network {
            bytes_per_second: 12_500_000,
            packet_bytes: 1_472,
            least_packet_bytes: 18,
            packet_header_bytes: 66,
            ..Network::default()
        }
    }

    #[test]
    fn occupancy_is_rounded_up_and_does_not_overflow() {
        let network = Network::default();
        assert_eq!(network.occupancy_ns(16), 13);
        assert_eq!(network.occupancy_ns(1 << 40), 879_609_302_221);
    }

    #[test]
    fn a_message_is_cut_into_packets_with_headers_and_the_last_is_filled_up() {
        let network = ethernet();
        let of = |bytes| (network.packets(bytes), network.transmitted_bytes(bytes));
        assert_eq!(of(0), (1, 84));
        assert_eq!(of(18), (1, 84));
        assert_eq!(of(1_472), (1, 1_538));
        assert_eq!(of(1_473), (2, 1_538 + 84));
        assert_eq!(of(4_096), (3, 4_096 + 3 * 66));
        assert_eq!(network.occupancy_ns(18), 84 * 80);
        assert_eq!(network.first_packet_ns(4_096), 1_538 * 80);
        let fixed = Network {
            packet_bytes: 256,
            least_packet_bytes: 256,
            ..ethernet()
        };
        assert_eq!(fixed.transmitted_bytes(300), 2 * (256 + 66));
    }

    #[test]
    fn bytes_packets_and_kinds_cost_processor_time() {
        let mut network = Network {
            send_ns: 100,
            send_ns_per_byte: 0.5,
            packet_send_ns: 7,
            receive_ns: 200,
            receive_ns_per_byte: 2.0,
            packet_receive_ns: 11,
            ..ethernet()
        };
        network.handling_ns[MessageKind::LockGrant as usize] = 5_000;
        let sending = |bytes| network.sending_ns(MessageKind::Fetch, bytes);
        assert_eq!(sending(10), 105);
        assert_eq!(sending(3_000), 100 + 1_500 + 2 * 7);
        assert_eq!(
            network.receiving_ns(MessageKind::Fetch, 3_000),
            200 + 6_000 + 2 * 11
        );
        assert_eq!(network.receiving_ns(MessageKind::LockGrant, 0), 5_200);
    }

    #[test]
    fn faults_twins_and_comparisons_of_objects_cost_processor_time() {
        let network = Network {
            page_fault_ns: 1_000,
            object_fault_ns: 300,
            twin_ns_per_byte: 2.0,
            diff_make_ns_per_byte: 0.5,
            ..Network::default()
        };
        let work = Work {
            object_faults: 3,
            twin_bytes: 40,
            compared_bytes: 10,
            ..Work::default()
        };
        assert_eq!(network.work_ns(work), 3 * 300 + 80 + 5);
        let network = Network {
            translate_ns: 7,
            wake_ns: 100,
            ..network
        };
        let served = Work {
            translations: 2,
            wakes: 3,
            ..work
        };
        assert_eq!(network.work_ns(served), 3 * 300 + 80 + 5 + 14 + 300);
        assert_eq!(Network::default().work_ns(work), 0);
    }

    #[test]
    fn a_tree_passes_on_once_a_level() {
        let tree = Network {
            multicast: true,
            multicast_fanout: 2,
            multicast_hop_ns: 10,
            ..Network::default()
        };
        let hops: Vec<u64> = (0..15).map(|place| tree.passing_on_ns(place)).collect();
        assert_eq!(hops[..2], [0; 2]);
        assert_eq!(hops[2..6], [10; 4]);
        assert_eq!(hops[6..14], [20; 8]);
        assert_eq!(hops[14], 30);
        let chain = Network {
            multicast_fanout: 1,
            ..tree
        };
        assert_eq!(chain.passing_on_ns(30), 300);
        assert_eq!(Network::default().passing_on_ns(30), 0);
    }

    #[test]
    fn every_kind_has_its_place() {
        for (place, kind) in MessageKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn a_message_is_lost_with_any_of_its_packets() {
        let network = Network {
            loss: 0.1,
            ..ethernet()
        };
        assert!((network.loss_of(100) - 0.1).abs() < 1e-12);
        assert!((network.loss_of(4_096) - (1.0 - 0.9f64.powi(3))).abs() < 1e-12);
    }

    #[test]
    fn numbers_that_make_no_network_together_are_refused() {
        let bad = |network: Network| network.check().unwrap_err().key;
        let lossy = Network {
            loss: 0.1,
            ..ethernet()
        };
        assert_eq!(bad(lossy), "retransmit_ns");
        let hubs = Network {
            medium: Medium::Hubs,
            ..ethernet()
        };
        assert_eq!(bad(hubs), "hub_nodes");
        let packets = Network {
            least_packet_bytes: 2_000,
            ..ethernet()
        };
        assert_eq!(bad(packets), "least_packet_bytes");
        assert_eq!(ethernet().check(), Ok(()));
    }

    #[test]
    fn numbers_that_a_network_would_not_look_at_are_refused() {
        let unpacked = || Network {
            packet_bytes: 0,
            ..ethernet()
        };
        for (key, value, range, network) in [
            ("switch_ns", "7", "0 without a switch or hubs", ethernet()),
            (
                "cut_through",
                "true",
                "false without a switch or hubs",
                ethernet(),
            ),
            ("queue_bytes", "9", "0 without a switch or hubs", ethernet()),
            ("hub_nodes", "12", "0 without hubs", ethernet()),
            ("packet_send_ns", "5", "0 without packet_bytes", unpacked()),
            (
                "multicast_hop_ns",
                "5",
                "0 without multicast_fanout",
                Network {
                    multicast: true,
                    ..ethernet()
                },
            ),
            (
                "multicast_fanout",
                "2",
                "0 without another medium than hubs",
                Network {
                    multicast: true,
                    medium: Medium::Hubs,
                    hub_nodes: 12,
                    ..ethernet()
                },
            ),
            (
                "packet_receive_ns",
                "5",
                "0 without packet_bytes",
                unpacked(),
            ),
        ] {
            let mut said = Network {
                retransmit_ns: 1,
                ..network
            };
            Key::named(key).unwrap().set(&mut said, value).unwrap();
            assert_eq!(said.check(), Err(Wrong::range(key, value, range)));
        }
    }
}
