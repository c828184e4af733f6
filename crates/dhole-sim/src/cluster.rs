use std::collections::BTreeMap;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use dhole_model::NodeId;
use dhole_net::{Envelope, Outbox, Payload, Wake};
use dhole_node::{Fiber, MessageSizes, Woken};
use dhole_protocol::{AbortReason, Message};

use crate::agenda::{Agenda, Event};
use crate::node::{Node, Suspended, Worker};
use crate::random::Stream;
use crate::stopwatch::Stopwatches;
use crate::timers::Timers;
use crate::transit::{Flight, Onward, Transit};
use crate::{Computation, Report, Settings};

/// The state of a run, except the coroutines and the receivers. No code of the user runs within a
/// method of this type.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) agenda: Agenda,
    pub(crate) timers: Timers,
    transit: Transit,
    pub(crate) settings: Settings,
    /// The random times at which nodes learn of crashes.
    pub(crate) notices: Stream,
    /// The random times at which nodes that compute look for messages.
    sweeps: Stream,
    /// Whether every message costs the processors the same.
    plain: bool,
    /// Whether the sender's link alone decides when a message arrives.
    direct: bool,
    /// How many bytes messages have.
    sizes: MessageSizes,
    /// The stopwatches of the programs, if computation is measured.
    stopwatches: Stopwatches,
    /// The node whose coroutine runs.
    running: Option<NodeId>,
    /// Bodies that have not returned.
    pub(crate) unfinished: usize,
    /// Whether a body or a handler has unwound. Then no worker is suspended any more.
    ending: bool,
    /// Suspensions refused to workers that unwind already.
    refused: u32,
    report: Report,
    /// The stacks of bodies that have not begun to run.
    pub(crate) stacks: BTreeMap<(NodeId, Fiber), DefaultStack>,
}

/// The next step of the scheduler.
pub(crate) enum Next {
    /// Delivers this message.
    Deliver(Arrival, Envelope<Message>),
    /// Resumes this node's coroutine.
    Resume(NodeId),
    /// Returns: all bodies have.
    Finish,
}

/// The arrival of a message.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub from: NodeId,
    pub to: NodeId,
    /// The time.
    pub at: u64,
    /// Nanoseconds of its receiver's processor, without an interrupt.
    pub receive_ns: u64,
    /// The part of them that was spent before the last packet arrived.
    early_ns: u64,
    /// Whether the network's adapter handles it, and not the node's processor.
    by_card: bool,
}

/// The answer to a worker that asks to be suspended.
pub(crate) enum Suspension {
    /// Suspend this coroutine, which is the one that runs.
    By(Suspended),
    /// The run is ending: the worker unwinds.
    Unwind,
    /// The run is ending, and the worker unwinds already.
    Refused,
}

impl Cluster {
    /// A cluster at time 0, all of whose workers are ready.
    pub(crate) fn new(settings: &Settings) -> Cluster {
        let Settings {
            nodes,
            seed,
            network,
            compute_scale,
            ..
        } = *settings;
        let stream = |number: usize| Stream::new(seed, number as u64);
        let mut agenda = Agenda::new(stream(nodes));
        for node in 0..nodes {
            agenda.go_on(0, NodeId::at(node));
        }
        for crash in &settings.crashes {
            agenda.crash(crash.at_ns, crash.node);
        }
        Cluster {
            nodes: (0..nodes)
                .map(|node| Node::new(stream(node), compute_scale))
                .collect(),
            agenda,
            timers: Timers::new(nodes),
            transit: Transit::new(network, nodes, stream(nodes + 1)),
            settings: settings.clone(),
            notices: stream(nodes + 2),
            sweeps: stream(nodes + 3),
            plain: network.is_plain(),
            direct: network.is_direct(),
            sizes: network.sizes(),
            stopwatches: Stopwatches::new(),
            running: None,
            unfinished: nodes,
            ending: false,
            refused: 0,
            report: Report::default(),
            stacks: BTreeMap::new(),
        }
    }

    pub(crate) fn node(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.index()]
    }

    /// The time on a node's clock, including the computation under way.
    pub(crate) fn now(&self, node: NodeId) -> u64 {
        let node = &self.nodes[node.index()];
        let computing = node
            .stopwatch
            .map_or(0, |stopwatch| node.scaled_ns(stopwatch.elapsed()));
        node.clock.saturating_add(computing)
    }

    /// Takes the next event out of the agenda and the timers. At one instant deliveries come first,
    /// then deadlines, then workers that go on.
    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        loop {
            if self.unfinished == 0 {
                return Next::Finish;
            }
            let deadline = self.timers.earliest();
            let due = match self.agenda.next() {
                Some((time, delivery)) => deadline < time || (deadline == time && !delivery),
                None => true,
            };
            self.report.events += 1;
            if due {
                assert!(
                    deadline != Timers::NEVER,
                    "a worker that waits has a deadline"
                );
                self.expire(deadline);
                continue;
            }
            let (time, event) = self.agenda.pop().expect("an event that was seen is there");
            match event {
                Event::Deliver(envelope) if self.went_down(&envelope) => {}
                Event::Deliver(envelope) => {
                    let Some(envelope) = self.unless_swept(time, envelope) else {
                        continue;
                    };
                    self.report.messages += 1;
                    return Next::Deliver(self.arrival(time, &envelope), envelope);
                }
                Event::Pass(flight) => self.pass(time, flight),
                // Unless it has waited meanwhile.
                Event::Sweep(node) if self.nodes[node.index()].sweeps_at == time => {
                    self.take_held(time, node);
                }
                Event::Sweep(_) => {}
                Event::Crash(node) => self.crash(time, node),
                Event::GoOn(node) if self.has_crashed(node) => {}
                Event::GoOn(node) => {
                    let it = &mut self.nodes[node.index()];
                    if it.clock > time {
                        let stolen_until = it.clock;
                        self.agenda.go_on(stolen_until, node);
                        continue;
                    }
                    it.worker = Worker::Running;
                    self.running = Some(node);
                    return Next::Resume(node);
                }
            }
        }
    }

    /// A message that has come, unless its receiver computes and has yet to look for messages.
    fn unless_swept(
        &mut self,
        time: u64,
        envelope: Envelope<Message>,
    ) -> Option<Envelope<Message>> {
        let mean_ns = self.settings.network.sweep_ns;
        if mean_ns == 0 || envelope.from == envelope.to {
            return Some(envelope);
        }
        let to = envelope.to;
        let node = &mut self.nodes[to.index()];
        let runs = matches!(node.worker, Worker::Ready | Worker::Running);
        if !runs || node.swept_until >= time {
            return Some(envelope);
        }
        if node.held.is_empty() {
            node.sweeps_at = time.saturating_add(self.sweeps.exponential(mean_ns));
            self.agenda.sweep(node.sweeps_at, to);
        }
        node.held.push(envelope);
        None
    }

    /// A node takes the messages that have come while it computed, in their order, for it has
    /// looked for them or waits.
    fn take_held(&mut self, time: u64, node: NodeId) {
        let it = &mut self.nodes[node.index()];
        let mut at = time;
        for envelope in it.held.drain(..) {
            // At one instant their order would be another.
            self.agenda.deliver(at, envelope);
            at = at.saturating_add(1);
        }
        it.swept_until = at;
    }

    fn expire(&mut self, deadline: u64) {
        let index = self.timers.first();
        let node = &mut self.nodes[index];
        node.clock = node.clock.max(deadline).max(node.handlers_done);
        node.worker = Worker::Ready;
        node.wait_ended = Woken::ByTime;
        self.timers.set(index, Timers::NEVER);
        self.agenda.go_on(node.clock, NodeId::at(index));
    }

    #[inline]
    fn arrival(&self, at: u64, envelope: &Envelope<Message>) -> Arrival {
        let Envelope {
            from,
            to,
            body,
            payload,
        } = envelope;
        let network = &self.settings.network;
        let asks = |body: &Message| matches!(body, Message::Objects(it) if it.asks_for_number());
        let by_card = network.card_sequencer && asks(body);
        let (receive_ns, early_ns) = match from == to || by_card {
            true => (0, 0),
            false if self.plain => (network.receive_ns, 0),
            false => {
                let bytes = (self.sizes.frame)(body) + payload.len() as u64;
                let early_ns = network.receiving_early_ns(bytes);
                (network.receiving_ns(body.kind(), bytes), early_ns)
            }
        };
        Arrival {
            from: *from,
            to: *to,
            at,
            receive_ns: receive_ns - early_ns,
            early_ns,
            by_card,
        }
    }

    /// Nanoseconds of an interrupt, if a message takes one. The message that a worker waits for
    /// takes none. Nor does one that arrives while the node handles another.
    fn interrupt_ns(&self, arrival: Arrival, wake: Wake) -> u64 {
        let network = &self.settings.network;
        if network.interrupt_ns == 0 || arrival.from == arrival.to {
            return 0;
        }
        let node = &self.nodes[arrival.to.index()];
        let handling = node.handlers_done > arrival.at;
        let computing = node.computes.contains(&arrival.at);
        let interrupted = computing || (network.interrupt_when_waiting && wake == Wake::No);
        match interrupted && !handling {
            true => network.interrupt_ns,
            false => 0,
        }
    }

    /// Charges a handled message to the node's processor: the receiver answered `wake` and sends
    /// `out`.
    pub(crate) fn handled(&mut self, arrival: Arrival, wake: Wake, out: &mut Outbox<Message>) {
        let Arrival {
            to, at, by_card, ..
        } = arrival;
        if by_card {
            let mut answered = at;
            while let Some(envelope) = out.pop() {
                answered = self.post(to, answered, envelope, out);
            }
            // What else the question brought about is the processor's.
            let work_ns = self.work_ns(to, out);
            if work_ns > 0 || wake == Wake::Yes {
                let begun = self.nodes[to.index()].handle(at, 0);
                self.occupied(to, begun, begun.saturating_add(work_ns), wake);
            }
            return;
        }
        let handling_ns = self.interrupt_ns(arrival, wake) + arrival.receive_ns;
        // What was done before all of it was there waited for the processor too.
        let early_at = at.saturating_sub(arrival.early_ns);
        let begun = self.nodes[to.index()].handle(early_at, 0);
        let work_ns = self.work_ns(to, out).saturating_add(arrival.early_ns);
        let all_ns = handling_ns.saturating_add(work_ns);
        let mut done = self.nodes[to.index()].handle(early_at, all_ns);
        while let Some(envelope) = out.pop() {
            done = self.post(to, done, envelope, out);
        }
        self.occupied(to, begun, done, wake);
    }

    /// Occupies the processor of `node` from `begun` to `done`, instead of its worker.
    fn occupied(&mut self, node: NodeId, begun: u64, done: u64, wake: Wake) {
        let it = &mut self.nodes[node.index()];
        it.handlers_done = done;
        match it.worker {
            Worker::Waiting if wake == Wake::Yes => {
                it.clock = it.clock.max(done);
                it.worker = Worker::Ready;
                it.wait_ended = Woken::ByWake;
                self.timers.set(node.index(), Timers::NEVER);
                self.agenda.go_on(it.clock, node);
            }
            Worker::Waiting | Worker::Done | Worker::Crashed => {}
            Worker::Ready | Worker::Running => {
                it.steal(begun, done);
                it.woken |= wake == Wake::Yes;
            }
        }
    }

    /// Sends the messages in `out` for the worker of `node`.
    pub(crate) fn send(&mut self, node: NodeId, out: &mut Outbox<Message>) {
        self.node(node).stop_computing();
        let work_ns = self.work_ns(node, out);
        let mut clock = self.node(node).clock.saturating_add(work_ns);
        while let Some(envelope) = out.pop() {
            clock = self.post(node, clock, envelope, out);
        }
        self.node(node).clock = clock;
    }

    /// Nanoseconds for which a node's processor worked before it sends. Operations and sections
    /// that it executed, for whatever node, count as computation.
    fn work_ns(&mut self, node: NodeId, out: &mut Outbox<Message>) -> u64 {
        let work = out.take_work();
        let computation = self.settings.computation;
        let it = self.node(node);
        let mut operations_ns = it.scaled_ns(Duration::from_nanos(work.operations_ns));
        if let Computation::FixedCost { unit_ns } = computation {
            operations_ns = operations_ns.saturating_add(it.units_ns(work.units, unit_ns));
        }
        it.computed_ns = it.computed_ns.saturating_add(operations_ns);
        let runtime_ns = self.settings.network.work_ns(work);
        runtime_ns.saturating_add(operations_ns)
    }

    /// Sends a message at `at`. If the medium carries one message to many nodes at once, the same
    /// message to other nodes that follows in `out` goes with it. Returns when the sender's
    /// processor is done.
    fn post(
        &mut self,
        from: NodeId,
        at: u64,
        envelope: Envelope<Message>,
        out: &mut Outbox<Message>,
    ) -> u64 {
        let (to, nodes) = (envelope.to, self.nodes.len());
        assert!(
            to.index() < nodes,
            "{from} sends to {to} in a cluster of {nodes} nodes"
        );
        if to == from {
            self.agenda.deliver(at, envelope);
            return at;
        }
        let others = match self.settings.network.multicast {
            true => alike(&envelope, out),
            false => Vec::new(),
        };
        let bytes = (self.sizes.frame)(&envelope.body) + envelope.payload.len() as u64;
        let sending_ns = match self.is_cards(&envelope.body) {
            true => 0,
            false if self.plain => self.settings.network.send_ns,
            false => self
                .settings
                .network
                .sending_ns(envelope.body.kind(), bytes),
        };
        let done = at.saturating_add(sending_ns);
        let departs = done.saturating_add(self.settings.network.rendezvous_ways_ns(bytes));
        self.report.bytes += bytes;
        if !self.direct {
            let (passes, whole_at) = self.handed_on(bytes, sending_ns, departs);
            let flight = Flight::to_many(envelope, others, bytes, departs, whole_at);
            self.agenda.pass(passes, flight);
        } else if others.is_empty() {
            let arrives = self.transit.arrival(from, departs, bytes);
            self.agenda.deliver(arrives, envelope);
        } else {
            let to = 1 + others.len();
            let arrivals = self.transit.arrivals(from, departs, bytes, to);
            let copies = std::iter::once(envelope).chain(others);
            for (arrives, copy) in arrivals.into_iter().zip(copies) {
                self.agenda.deliver(arrives, copy);
            }
        }
        done
    }

    /// Whether the network's adapter sends this message, and not the node's processor.
    fn is_cards(&self, body: &Message) -> bool {
        let gives = |body: &Message| matches!(body, Message::Objects(it) if it.gives_number());
        self.settings.network.card_sequencer && gives(body)
    }

    /// Two times of a message with which its sender's processor is done at `departs`: when it
    /// reaches the sender's channel, and the earliest at which its last packet has passed that
    /// channel.
    fn handed_on(&self, bytes: u64, sending_ns: u64, departs: u64) -> (u64, u64) {
        let late_ns = self.settings.network.sending_late_ns(bytes).min(sending_ns);
        let last_ns = match late_ns {
            0 => 0,
            _ => self.settings.network.last_packet_ns(bytes),
        };
        (departs - late_ns, departs.saturating_add(last_ns))
    }

    /// Handles a message that reaches its next channel, or that was lost and is due again.
    fn pass(&mut self, now: u64, mut flight: Flight) {
        if flight.is_lost() {
            self.send_again(now, flight);
            return;
        }
        if flight.is_shared() {
            let (parts, queued_ns) = self.transit.pass_shared(now, flight);
            self.report.queued_ns = self.report.queued_ns.saturating_add(queued_ns);
            for (onward, part) in parts {
                self.passed(onward, part);
            }
            return;
        }
        let (onward, queued_ns) = self.transit.pass(now, &mut flight);
        self.report.queued_ns = self.report.queued_ns.saturating_add(queued_ns);
        self.passed(onward, flight);
    }

    fn passed(&mut self, onward: Onward, flight: Flight) {
        match onward {
            Onward::Arrives(at) => flight
                .into_copies()
                .for_each(|copy| self.agenda.deliver(at, copy)),
            Onward::Flies(at) => self.agenda.pass(at, flight),
            Onward::Lost(again_at) => {
                self.report.lost += 1;
                self.agenda.pass(again_at, flight);
            }
        }
    }

    /// Sends a lost message again. It costs its sender's processor what handling a message costs,
    /// or the adapter's if the adapter sent it.
    fn send_again(&mut self, now: u64, flight: Flight) {
        let (from, bytes) = (flight.envelope.from, flight.bytes());
        if self.has_crashed(from) {
            return;
        }
        self.report.bytes += bytes;
        if self.is_cards(&flight.envelope.body) {
            self.agenda.pass(now, flight.again(now, now));
            return;
        }
        let kind = flight.envelope.body.kind();
        let sending_ns = self.settings.network.sending_ns(kind, bytes);
        let begun = self.nodes[from.index()].handle(now, 0);
        let done = self.nodes[from.index()].handle(now, sending_ns);
        let (passes, whole_at) = self.handed_on(bytes, sending_ns, done);
        self.agenda.pass(passes, flight.again(done, whole_at));
        self.occupied(from, begun, done, Wake::No);
    }

    /// The worker of `node` enters the runtime. Returns whether an event comes before its clock, so
    /// that it must be suspended.
    pub(crate) fn enter(&mut self, node: NodeId) -> bool {
        let call_ns = self.settings.call_ns;
        let it = self.node(node);
        it.stop_computing();
        it.computes.end = it.clock;
        it.spend(call_ns);
        self.is_ahead(node)
    }

    /// The next of the three steps of a one-sided read takes its third of the time. Returns whether
    /// an event comes before the node's clock, so that its worker must be suspended.
    pub(crate) fn read_there(&mut self, node: NodeId, bytes: u64) -> bool {
        let third_ns = self.settings.network.remote_read_ns(bytes).div_ceil(3);
        let it = self.node(node);
        it.stop_computing();
        it.spend(third_ns);
        self.is_ahead(node)
    }

    /// Whether an event comes before, or at, the time on a node's clock.
    pub(crate) fn is_ahead(&self, node: NodeId) -> bool {
        let clock = self.nodes[node.index()].clock;
        self.timers.earliest() <= clock || self.agenda.next().is_some_and(|(time, _)| time <= clock)
    }

    /// The worker of `node` returns to the program.
    pub(crate) fn leave(&mut self, node: NodeId) {
        let it = self.node(node);
        it.computes = it.clock..it.clock;
        self.computes(node, true);
    }

    /// Counts the time of the worker of `node` as the program's from here on, or as the runtime's.
    pub(crate) fn computes(&mut self, node: NodeId, begins: bool) {
        match begins {
            true if self.settings.computation == Computation::Measured => {
                self.node(node).stopwatch = Some(self.stopwatches.start());
            }
            true => {}
            false => self.node(node).stop_computing(),
        }
    }

    /// Charges `units` of work to the program of `node`.
    pub(crate) fn work(&mut self, node: NodeId, units: u64) {
        if let Computation::FixedCost { unit_ns } = self.settings.computation {
            self.node(node).work(units, unit_ns);
        }
    }

    /// Takes the wake that arrived before the worker of `node` waited.
    pub(crate) fn take_wake(&mut self, node: NodeId) -> bool {
        let it = self.node(node);
        it.stop_computing();
        std::mem::take(&mut it.woken)
    }

    /// Suspends the worker of `node` until its clock is reached.
    pub(crate) fn suspend_until_clock(&mut self, node: NodeId) -> Suspension {
        let suspension = self.suspension(node);
        if let Suspension::By(_) = suspension {
            let it = self.node(node);
            it.worker = Worker::Ready;
            let clock = it.clock;
            self.agenda.go_on(clock, node);
        }
        suspension
    }

    /// Suspends the worker of `node` until a wake, or for `at_most` but at least for 1 ns: with
    /// 0 a program that polls would stop the virtual clock.
    pub(crate) fn suspend_until_wake(&mut self, node: NodeId, at_most: Duration) -> Suspension {
        let suspension = self.suspension(node);
        if let Suspension::By(_) = suspension {
            let at_most_ns = u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX).max(1);
            let it = self.node(node);
            it.worker = Worker::Waiting;
            it.handlers_done = it.handlers_done.max(it.clock);
            let deadline = it.clock.saturating_add(at_most_ns).min(Timers::NEVER - 1);
            self.timers.set(node.index(), deadline);
            let clock = self.node(node).clock;
            self.take_held(clock, node);
        }
        suspension
    }

    fn suspension(&mut self, node: NodeId) -> Suspension {
        let it = &self.nodes[node.index()];
        let on_its_stack = it.bodies.get(&it.fiber).is_some_and(Suspended::is_running);
        assert!(
            self.running == Some(node) && on_its_stack,
            "{node} waits, but {} runs: only a node's own worker may, and on its own stack",
            self.running
                .map_or_else(|| "a handler".to_string(), |running| running.to_string())
        );
        if self.ending {
            if !std::thread::panicking() {
                return Suspension::Unwind;
            }
            const PATIENCE: u32 = 100_000;
            self.refused += 1;
            assert!(
                self.refused < PATIENCE,
                "{node} waits on and on while its run is ending"
            );
            return Suspension::Refused;
        }
        let it = &self.nodes[node.index()];
        match it.bodies.get(&it.fiber) {
            Some(body) => Suspension::By(body.clone()),
            None => unreachable!("{node} runs without a coroutine"),
        }
    }

    /// The coroutine of the present body of `node` runs for the first time.
    pub(crate) fn begin(&mut self, node: NodeId, body: Suspended) {
        let it = self.node(node);
        it.bodies.insert(it.fiber, body);
    }

    /// The present body of `node` has returned; `next` goes on, unless it was the program's.
    pub(crate) fn finish(&mut self, node: NodeId, next: Fiber) {
        let it = self.node(node);
        it.stop_computing();
        it.bodies.remove(&it.fiber);
        if it.fiber != Fiber::PROGRAM {
            (it.fiber, it.worker) = (next, Worker::Ready);
            let clock = it.clock;
            self.agenda.go_on(clock, node);
            return;
        }
        it.handlers_done = it.handlers_done.max(it.clock);
        it.worker = Worker::Done;
        let clock = it.clock;
        self.unfinished -= 1;
        self.take_held(clock, node);
    }

    /// Suspends the present body of `node`; another body of the node goes on.
    pub(crate) fn hand_over(&mut self, node: NodeId, to: Fiber) -> Suspension {
        let suspension = self.suspend_until_clock(node);
        if let Suspension::By(_) = suspension {
            self.node(node).fiber = to;
        }
        suspension
    }

    /// The body of `node` that goes on.
    pub(crate) fn fiber(&self, node: NodeId) -> Fiber {
        self.nodes[node.index()].fiber
    }

    /// The scheduler runs again, not a coroutine.
    pub(crate) fn suspended(&mut self) {
        self.running = None;
    }

    /// The run is ending: the coroutine of `node` is resumed to unwind.
    pub(crate) fn end(&mut self, node: NodeId, fiber: Fiber) {
        self.ending = true;
        self.running = Some(node);
        self.node(node).fiber = fiber;
    }

    /// Whether the run is ending.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    /// The report of the run.
    pub(crate) fn report(&mut self) -> Report {
        let mut report = std::mem::take(&mut self.report);
        report.elapsed_ns = self.nodes.iter().map(|node| node.clock).max().unwrap_or(0);
        report.computed_ns = self.nodes.iter().map(|node| node.computed_ns).collect();
        report
    }

    /// A node crashes.
    pub(crate) fn crash(&mut self, now: u64, node: NodeId) {
        let worker = std::mem::replace(&mut self.node(node).worker, Worker::Crashed);
        if worker == Worker::Crashed {
            return;
        }
        if worker != Worker::Done {
            self.unfinished -= 1;
        }
        self.timers.set(node.index(), Timers::NEVER);
        for to in (0..self.nodes.len()).map(NodeId::at) {
            let late_ns = (self.notices.fraction() * self.settings.notice_ns as f64) as u64;
            let how = format!("it crashed at {now} ns").into();
            let notice = Envelope {
                from: to,
                to,
                body: Message::Abort {
                    node,
                    reason: AbortReason::Lost(how),
                },
                payload: Payload::NONE,
            };
            let at = now.saturating_add(self.settings.notice_ns + late_ns);
            self.agenda.deliver(at, notice);
        }
    }

    /// Whether a message that has come is lost with its receiver, or its sender: a connection
    /// that breaks takes with it some of what was on its way.
    pub(crate) fn went_down(&mut self, envelope: &Envelope<Message>) -> bool {
        let Envelope { from, to, .. } = *envelope;
        self.has_crashed(to) || (self.has_crashed(from) && self.notices.fraction() < 0.5)
    }

    pub(crate) fn has_crashed(&self, node: NodeId) -> bool {
        self.nodes[node.index()].worker == Worker::Crashed
    }
}

/// Takes the same message to other nodes that follows in `out`, such as an ordered broadcast.
fn alike(first: &Envelope<Message>, out: &mut Outbox<Message>) -> Vec<Envelope<Message>> {
    let mut others: Vec<Envelope<Message>> = Vec::new();
    if !matches!(first.body, Message::Objects(_)) {
        return others;
    }
    while let Some(next) = out.pop_if(|next| {
        let same = next.body == first.body && *next.payload == *first.payload;
        let mut told = std::iter::once(first).chain(&others);
        same && next.to != first.from && told.all(|told| told.to != next.to)
    }) {
        others.push(next);
    }
    others
}
