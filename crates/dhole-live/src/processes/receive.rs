//! What comes from other processes: messages, losses, what begins and ends runs. Whoever sends what
//! no sound process sends is cut off: nothing more of it is listened to, and it is lost to the run.
//!
//! What comes is *collected* first, which takes a moment, and then *delivered*, in its order and by
//! one thread at a time, which takes as long as the node takes: it may be in a call of the program,
//! or execute an operation. Meanwhile others can go on to collect. Who delivers has a queue of its
//! own for what it collects itself, which is all that comes as a rule.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_model::unpoisoned;
use dhole_net::{Envelope, Incoming, Loss, Outbox, Payload, Wake};
use dhole_node::{LostNode, Receivers};
use dhole_protocol::{AbortReason, Message};
use smallvec::SmallVec;

use super::frame::{Frame, Kind};
use super::transmit::AT_ONCE;
use super::{Processes, lock};

/// What a message counts beside its bytes.
const EACH: usize = 128;

/// The frames that have come and cannot be given to the node at once.
pub(super) struct Inbox {
    peers: Box<[Peer]>,
    /// The node is ready for messages.
    ready: AtomicBool,
    early: Mutex<Early>,
    /// What others than who delivers have collected, in the order in which it came, and behind
    /// what lies in the queue.
    collected: Mutex<VecDeque<QueuedMessage>>,
    /// What that counts.
    waits: AtomicUsize,
    /// Whoever delivers has this.
    queue: Mutex<Queue>,
    /// Who was cut off since losses were last looked at, and why.
    cut_off: Mutex<Vec<(NodeId, String)>>,
    any_cut_off: AtomicBool,
}

/// The messages that the delivering thread has collected, in the order in which they came.
#[derive(Default)]
struct Queue {
    /// The beginning of this is the first frame of a look: mostly there is no other.
    first: Vec<u8>,
    /// What came after it.
    rest: VecDeque<ReceivedMessage>,
}

/// A message that lies in [`Queue::first`].
struct FirstMessage {
    from: NodeId,
    /// Where its bytes are, and behind them those of its payload.
    lies: Range<usize>,
    payload: usize,
}

/// A message that has come.
enum ReceivedMessage {
    Whole(Envelope<Message>),
    /// By its bytes and those of its payload, which are so many.
    Bytes(NodeId, SmallVec<[u8; FEW]>, usize),
}

impl ReceivedMessage {
    fn from(&self) -> NodeId {
        match self {
            ReceivedMessage::Whole(envelope) => envelope.from,
            ReceivedMessage::Bytes(from, ..) => *from,
        }
    }
}

/// As long a message is kept by its bytes in place.
const FEW: usize = 64;
/// As long the first frame of a look may be.
const MOST_FIRST: usize = 2 * AT_ONCE;

/// A message as it lies in its frame, or what was made of it.
enum ParsedFrame<'a> {
    Whole(QueuedMessage),
    /// By its bytes and those of its payload, which are so many.
    Bytes(NodeId, &'a [u8], usize),
}

impl ParsedFrame<'_> {
    /// What is kept of it.
    fn into_queued(self) -> QueuedMessage {
        match self {
            ParsedFrame::Whole(queued) => queued,
            ParsedFrame::Bytes(from, bytes, payload) => QueuedMessage(
                ReceivedMessage::Bytes(from, bytes.into(), payload),
                EACH + bytes.len(),
            ),
        }
    }
}

impl Queue {
    /// Room for the first frame of a look.
    #[inline]
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.first.len() < bytes {
            self.first.resize(bytes, 0);
        }
        &mut self.first[..bytes]
    }

    fn clear(&mut self) {
        *self = Queue::default();
    }
}

/// Frames of messages that came before this process was ready for them, in order.
#[derive(Default)]
struct Early {
    frames: Vec<Kept>,
    /// What they count, by sender.
    bytes: Vec<usize>,
}

/// One of them.
struct Kept {
    from: NodeId,
    run: u32,
    frame: Vec<u8>,
}

impl Early {
    fn keep(&mut self, kept: Kept) {
        self.bytes[kept.from.index()] += EACH + kept.frame.len();
        self.frames.push(kept);
    }

    /// What was kept for this run.
    fn take(&mut self, run: u32) -> Vec<Kept> {
        self.bytes.fill(0);
        let all = std::mem::take(&mut self.frames).into_iter();
        let (now, later): (_, Vec<_>) = all.partition(|kept| kept.run <= run);
        later.into_iter().for_each(|kept| self.keep(kept));
        now
    }
}

#[derive(Default)]
struct Peer {
    /// Nothing that it sends is listened to.
    cut_off: AtomicBool,
    /// Nor is anything delivered that it has sent before.
    refused: AtomicBool,
    /// Its next message, as far as it has come.
    parts: Mutex<Parts>,
    /// There is some of it.
    begun: AtomicBool,
}

/// What has come of a message that is longer than a frame.
#[derive(Default)]
struct Parts {
    message: Vec<u8>,
    payload: Vec<u8>,
}

impl Parts {
    fn bytes(&self) -> usize {
        self.message.len() + self.payload.len()
    }
}

/// A message, and what it counts.
struct QueuedMessage(ReceivedMessage, usize);

impl QueuedMessage {
    /// A message whose body was `bytes` long.
    fn new(envelope: Envelope<Message>, bytes: usize) -> QueuedMessage {
        let counts = EACH + bytes + envelope.payload.len();
        QueuedMessage(ReceivedMessage::Whole(envelope), counts)
    }
}

impl Inbox {
    pub fn new(nodes: usize) -> Inbox {
        Inbox {
            peers: (0..nodes).map(|_| Peer::default()).collect(),
            ready: AtomicBool::new(false),
            early: Mutex::new(Early {
                bytes: vec![0; nodes],
                ..Early::default()
            }),
            collected: Mutex::default(),
            waits: AtomicUsize::new(0),
            queue: Mutex::default(),
            cut_off: Mutex::default(),
            any_cut_off: AtomicBool::new(false),
        }
    }

    /// A run begins or is over: nothing of the one before is left, and its node is gone.
    pub fn clear(&self) {
        self.ready.store(false, Ordering::SeqCst);
        lock(&self.queue).clear();
        lock(&self.collected).clear();
        self.waits.store(0, Ordering::SeqCst);
        for peer in &self.peers {
            peer.begin_anew();
        }
    }

    /// The queue, where no thread has it.
    fn try_queue(&self) -> Option<MutexGuard<'_, Queue>> {
        match self.queue.try_lock() {
            Ok(queue) => Some(queue),
            Err(TryLockError::Poisoned(queue)) => Some(queue.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn is_refused(&self, node: NodeId) -> bool {
        self.peers[node.index()].refused.load(Ordering::Relaxed)
    }

    fn has_collected(&self) -> bool {
        self.waits.load(Ordering::SeqCst) > 0
    }

    fn put(&self, message: QueuedMessage) {
        let counts = message.1;
        lock(&self.collected).push_back(message);
        self.waits.fetch_add(counts, Ordering::SeqCst);
    }

    fn next(&self) -> Option<ReceivedMessage> {
        if !self.has_collected() {
            return None;
        }
        let QueuedMessage(message, counts) = lock(&self.collected).pop_front()?;
        self.waits.fetch_sub(counts, Ordering::SeqCst);
        Some(message)
    }
}

impl Peer {
    fn begin_anew(&self) {
        self.take_parts();
    }

    /// What has come of its next message; after it comes another.
    fn take_parts(&self) -> Parts {
        let parts = std::mem::take(&mut *lock(&self.parts));
        self.begun.store(false, Ordering::Release);
        parts
    }
}

impl Processes {
    /// Takes what has come, and returns how much that was. What it leads to goes to `out`.
    pub(super) fn poll(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) -> usize {
        let inbox = &self.inbox;
        let (mut queue, mut first) = (None, None);
        let mut taken = self.collect(&mut |from, frame| {
            if queue.is_none() {
                queue = inbox.try_queue();
            }
            match &mut queue {
                // What was collected before by others goes first. No frame is taken by two threads
                // at once, so none of them comes in between.
                Some(queue) if !inbox.has_collected() => {
                    self.take_to(queue, &mut first, from, frame);
                }
                _ => self.take_aside(from, frame),
            }
        });
        // What a node has said goes before its loss.
        taken += self.deliver((queue, first), receivers, out);
        self.port.lost(&mut |node, loss| {
            taken += 1;
            self.lose(receivers, node, &loss.to_string(), out);
        });
        if inbox.any_cut_off.load(Ordering::Relaxed) {
            taken += self.lose_cut_off(receivers, out);
        }
        taken
    }

    /// Has frames taken that have come to the port, and returns how many those were.
    fn collect(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        if self.inbox.waits.load(Ordering::SeqCst) > self.limits.collected {
            // The others take what is kept for them, and hear that this process is alive.
            self.port.flush();
            return 0;
        }
        self.port.poll_in_place(take)
    }

    /// Takes a frame to the queue. The first of a look is copied there from where it came, and its
    /// message stays there.
    #[inline]
    fn take_to(
        &self,
        queue: &mut Queue,
        first: &mut Option<FirstMessage>,
        from: NodeId,
        mut frame: Incoming<'_>,
    ) {
        let (ready, bytes) = (self.inbox.ready.load(Ordering::SeqCst), frame.len());
        if first.is_some() || !queue.rest.is_empty() || bytes > MOST_FIRST {
            let put = &mut |message: ParsedFrame<'_>| queue.rest.push_back(message.into_queued().0);
            return self.take(ready, from, frame.bytes(), put);
        }
        frame.copy(0, queue.room(bytes));
        let Queue { first: room, rest } = queue;
        self.take(ready, from, &room[..bytes], &mut |message| match message {
            ParsedFrame::Bytes(from, message, payload) => {
                let lies = bytes - message.len()..bytes;
                *first = Some(FirstMessage {
                    from,
                    lies,
                    payload,
                });
            }
            message @ ParsedFrame::Whole(_) => rest.push_back(message.into_queued().0),
        });
    }

    /// Takes a frame for who delivers.
    fn take_aside(&self, from: NodeId, mut frame: Incoming<'_>) {
        let ready = self.inbox.ready.load(Ordering::SeqCst);
        self.take(ready, from, frame.bytes(), &mut |message| {
            self.inbox.put(message.into_queued());
        });
    }

    /// Those that were cut off are lost to the run; how many they are.
    fn lose_cut_off(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) -> usize {
        self.inbox.any_cut_off.store(false, Ordering::SeqCst);
        let cut_off = std::mem::take(&mut *lock(&self.inbox.cut_off));
        let many = cut_off.len();
        for (node, why) in cut_off {
            let how = format!("it was cut off by {}, for it sent {why}", self.me);
            self.lose(receivers, node, &how, out);
            // Nobody is told why while the run is parted from, and the others wait for the peer.
            if lock(&self.table).is_parting() {
                self.give_up_cut_off();
            }
        }
        many
    }

    /// Gives what was collected to the node, first what came first and what lies in the queue of
    /// who has it, and returns how many messages that were: none while another thread does so,
    /// which will find what was collected meanwhile. Nothing more is delivered of a node that sent
    /// bytes which are no message.
    fn deliver<'a>(
        &'a self,
        (mut queue, first): (Option<MutexGuard<'a, Queue>>, Option<FirstMessage>),
        receivers: &Receivers<'_>,
        out: &mut Outbox<Message>,
    ) -> usize {
        let mut delivered = 0;
        if let (Some(queue), Some(first)) = (&queue, first) {
            let bytes = &queue.first[first.lies];
            self.hand_over_bytes(receivers, first.from, (bytes, first.payload), out);
            delivered += 1;
        }
        loop {
            if let Some(mut queue) = queue {
                while let Some(message) = queue.rest.pop_front().or_else(|| self.inbox.next()) {
                    match message {
                        message if self.inbox.is_refused(message.from()) => continue,
                        ReceivedMessage::Whole(envelope) => {
                            self.hand_over(receivers, envelope, out)
                        }
                        ReceivedMessage::Bytes(from, bytes, payload) => {
                            self.hand_over_bytes(receivers, from, (&bytes, payload), out);
                        }
                    }
                    delivered += 1;
                }
            }
            if !self.inbox.has_collected() {
                return delivered;
            }
            queue = self.inbox.try_queue();
            if queue.is_none() {
                return delivered;
            }
        }
    }

    /// Gives a message to the node that is here by its bytes, the last of which are its payload, or
    /// as a value where the node does not take it so. Cuts its sender off where it is none.
    fn hand_over_bytes(
        &self,
        receivers: &Receivers<'_>,
        from: NodeId,
        (bytes, payload): (&[u8], usize),
        out: &mut Outbox<Message>,
    ) {
        let (message, payload) = bytes.split_at(bytes.len() - payload);
        let at_once = &mut |to, parts: [&[u8]; 3], notify| self.post_bytes(to, parts, notify);
        let node = receivers.first();
        match node.and_then(|node| node.deliver_bytes(from, message, payload, out, at_once)) {
            Some(Wake::Yes) => self.progress.wake(&*self.port),
            Some(Wake::No) => {}
            None => match self.whole(from, message, Payload::NONE, payload) {
                Ok(Some(envelope)) => self.hand_over(receivers, envelope, out),
                Ok(None) => {}
                Err(why) => {
                    let peer = &self.inbox.peers[from.index()];
                    peer.refused.store(true, Ordering::Relaxed);
                    self.cut_off(from, why);
                }
            },
        }
    }

    /// Does what is due by time alone, for a thread that does so however long the others are stuck
    /// in the node or in the program; how long it may take until it does so again.
    pub fn attend(&self) -> Duration {
        let due = self.port.beat();
        let stuck = self.inbox.try_queue().is_none();
        if stuck && self.collect(&mut |from, frame| self.take_aside(from, frame)) > 0 {
            // Whoever was stuck may have looked for the last time before.
            self.port.unpark();
        }
        due
    }

    /// Takes the messages that came before the node was ready for them, and hears of the peers
    /// that were lost before.
    pub(super) fn take_early(&self, receivers: &Receivers<'_>) {
        let mut out = Outbox::default();
        // Whoever has seen that this process is not ready keeps its frame before, or learns
        // afterwards that it is: what came first is put first, and nothing stays behind. Who has
        // the queue, whose frames go before what was put, has given it back by then.
        let queue = lock(&self.inbox.queue);
        let mut early = lock(&self.inbox.early);
        for Kept { from, frame, .. } in early.take(self.run()) {
            self.take(true, from, &frame, &mut |message| {
                self.inbox.put(message.into_queued());
            });
        }
        self.inbox.ready.store(true, Ordering::SeqCst);
        drop((early, queue));
        let lost: Vec<LostNode> = lock(&self.table).lost().cloned().collect();
        for LostNode { node, how } in lost {
            self.tell_of_loss(receivers, node, &how, &mut out);
        }
        self.deliver((None, None), receivers, &mut out);
        self.post_all(receivers, &mut out);
    }

    /// Takes one frame, of a node that is ready for messages or is not yet, and cuts its sender off
    /// if it is one that no sound process sends.
    fn take(&self, ready: bool, from: NodeId, bytes: &[u8], put: &mut dyn FnMut(ParsedFrame<'_>)) {
        if self.inbox.peers[from.index()]
            .cut_off
            .load(Ordering::Relaxed)
        {
            return;
        }
        if let Err(why) = self.understand(ready, from, bytes, put) {
            self.cut_off(from, why);
        }
    }

    /// Puts the message that a frame brings, if it does; or why it is one that no sound process
    /// sends.
    fn understand(
        &self,
        ready: bool,
        from: NodeId,
        bytes: &[u8],
        put: &mut dyn FnMut(ParsedFrame<'_>),
    ) -> Result<(), String> {
        let peer = &self.inbox.peers[from.index()];
        let run = self.run();
        let frame = Frame::parse(bytes).map_err(|error| error.to_string())?;
        let kind = frame.header.kind;
        if !matches!(kind, Kind::Message | Kind::Payload | Kind::Part) {
            let of = (run, self.survives());
            return lock(&self.table).put(self.me, from, of, frame);
        }
        match frame.header.run {
            its if its < run => Ok(()),
            its if its > run + 1 => Err(format!("a message of run {its} in run {run}")),
            its if its > run || !ready => match self.keep_early(from, its, bytes)? {
                true => Ok(()),
                false => self.understand(true, from, bytes, put),
            },
            _ if kind != Kind::Message => {
                let mut parts = lock(&peer.parts);
                self.check_message(parts.bytes() + frame.payload.len())?;
                let part = match kind {
                    Kind::Part => &mut parts.message,
                    _ => &mut parts.payload,
                };
                part.extend_from_slice(frame.payload);
                peer.begun.store(true, Ordering::Release);
                Ok(())
            }
            _ => self.take_message(from, frame, put),
        }
    }

    /// Whether a message may be so long.
    fn check_message(&self, bytes: usize) -> Result<(), String> {
        let most = self.limits.message;
        match bytes <= most {
            true => Ok(()),
            false => Err(format!(
                "a message of {bytes} bytes, where {most} are allowed (DHOLE_MESSAGE_MIB)"
            )),
        }
    }

    fn take_message(
        &self,
        from: NodeId,
        frame: Frame<'_>,
        put: &mut dyn FnMut(ParsedFrame<'_>),
    ) -> Result<(), String> {
        let peer = &self.inbox.peers[from.index()];
        let begun = match peer.begun.load(Ordering::Acquire) {
            true => lock(&peer.parts).bytes(),
            false => 0,
        };
        if !frame.message.is_empty() {
            self.check_message(begun + frame.body.len())?;
        }
        if !frame.told.is_empty() {
            let here = unpoisoned::read(&self.here);
            let Some(here) = &*here else { return Ok(()) };
            let learnt = here.cluster.learn(from, frame.told);
            learnt.map_err(|error| error.to_string())?;
        }
        if frame.message.is_empty() {
            return Ok(());
        }
        if begun == 0 && frame.payload.len() < AT_ONCE {
            put(ParsedFrame::Bytes(from, frame.body, frame.payload.len()));
            return Ok(());
        }
        let Parts {
            mut message,
            payload: mut before,
        } = match begun {
            0 => Parts::default(),
            _ => peer.take_parts(),
        };
        let mut payload = Payload::NONE;
        if !before.is_empty() {
            std::mem::swap(payload.buffer(), &mut before);
        }
        message.extend_from_slice(frame.message);
        if let Some(envelope) = self.whole(from, &message, payload, frame.payload)? {
            let queued = QueuedMessage::new(envelope, message.len());
            put(ParsedFrame::Whole(queued));
        }
        Ok(())
    }

    /// The message of these bytes, with its payload, of which some may be there already. `None`
    /// where there is no run.
    fn whole(
        &self,
        from: NodeId,
        message: &[u8],
        mut payload: Payload,
        more: &[u8],
    ) -> Result<Option<Envelope<Message>>, String> {
        let body = Message::decode(message).map_err(|error| error.to_string())?;
        if let Message::Abort {
            node,
            reason: AbortReason::Lost(how),
        } = &body
            && *node != self.me
            && node.index() < self.nodes
            && !self.survives()
        {
            lock(&self.table).lose(*node, how);
        }
        if payload.has_no_buffer() && !more.is_empty() {
            let here = unpoisoned::read(&self.here);
            let Some(here) = &*here else { return Ok(None) };
            payload = here.pool.take();
        }
        payload.extend(more);
        let to = self.me;
        Ok(Some(Envelope {
            from,
            to,
            body,
            payload,
        }))
    }

    /// Keeps a message of run `run` until the node is ready for it, unless it has become so
    /// meanwhile; whether it is kept, or needed no more.
    fn keep_early(&self, from: NodeId, run: u32, bytes: &[u8]) -> Result<bool, String> {
        if lock(&self.table).is_parting() {
            return Ok(true);
        }
        let mut early = lock(&self.inbox.early);
        if self.inbox.ready.load(Ordering::SeqCst) && run <= self.run() {
            return Ok(false);
        }
        // One message may be as long as any, and more than all others together.
        let most = self.limits.early.saturating_add(self.limits.message);
        if early.bytes[from.index()] + EACH + bytes.len() > most {
            return Err(format!("more than {most} bytes before the run has begun"));
        }
        let frame = bytes.to_vec();
        early.keep(Kept { from, run, frame });
        Ok(true)
    }

    /// Listens to a peer no longer.
    fn cut_off(&self, node: NodeId, why: String) {
        let peer = &self.inbox.peers[node.index()];
        peer.cut_off.store(true, Ordering::Relaxed);
        peer.begin_anew();
        lock(&self.inbox.cut_off).push((node, why));
        self.inbox.any_cut_off.store(true, Ordering::SeqCst);
    }

    /// Ends the connections to those that were cut off, now that they have heard why.
    pub(super) fn give_up_cut_off(&self) {
        for node in self.others() {
            if self.inbox.peers[node.index()]
                .cut_off
                .load(Ordering::Relaxed)
            {
                let loss = Loss::CutOff("what no sound process sends".into());
                self.port.give_up(node, loss);
            }
        }
    }

    /// A peer is lost: the run is over, unless it is for the peer.
    fn lose(&self, receivers: &Receivers<'_>, node: NodeId, how: &str, out: &mut Outbox<Message>) {
        let mut table = lock(&self.table);
        let (first, parting) = (table.lose(node, how), table.is_parting());
        drop(table);
        if first && !parting {
            self.port.missed(node, how);
        }
        // A run that survives needs the group to its end, and that is when all have ended.
        if first && (!parting || self.survives()) {
            self.tell_of_loss(receivers, node, how, out);
        }
    }

    /// Ends the run for all, or tells the node here alone where it goes on, after all that the
    /// lost one has said.
    fn tell_of_loss(
        &self,
        receivers: &Receivers<'_>,
        node: NodeId,
        how: &str,
        out: &mut Outbox<Message>,
    ) {
        let reason = AbortReason::Lost(how.into());
        if !self.survives() {
            return self.end_for_all(receivers, node, &reason, out);
        }
        let (from, to) = (self.me, self.me);
        let body = Message::Abort { node, reason };
        let payload = Payload::NONE;
        let envelope = Envelope {
            from,
            to,
            body,
            payload,
        };
        self.inbox.put(QueuedMessage::new(envelope, 0));
    }
}
