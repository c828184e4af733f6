//! Messages that go to other processes, and the runs of objects that go before them.
//!
//! A sender to a node holds its *send channel* from the moment at which it is decided what the node
//! has to be told of objects until that is on its way: so nothing that goes there later can name
//! an object before it is told of. A sender that finds no room takes what comes meanwhile, for its
//! peer may be in the same position; what that leads to goes to the outbox that is being sent, and
//! so a sender waits for no channel while it holds one.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::unpoisoned;
use dhole_model::{NodeId, Notify};
use dhole_net::{Envelope, Outbox, Payload, Port, Receiver, SendError, Wake};
use dhole_node::Receivers;
use dhole_protocol::{AbortReason, Message};

use super::frame::{self, HEADER, Header, Kind};
use super::oversize::oversize;
use super::{Processes, lock};

/// What this node sends to one other node.
#[derive(Default)]
pub(super) struct SendChannel {
    /// The beginning of the frame that is made.
    buffer: Vec<u8>,
    /// What it is told of, while a run is on.
    pub cluster: Option<Arc<Cluster>>,
}

/// Bytes of a message and of its payload that went in frames of their own.
#[derive(Default)]
struct Before {
    message: usize,
    payload: usize,
}

/// What one thread sends.
struct Posting<'a> {
    out: &'a mut Outbox<Message>,
    /// Nodes to which it has sent lazily what notifies them, sorted. It notifies each once: before
    /// it waits, executes operations of its own node, or returns.
    owed: Vec<NodeId>,
}

impl<'a> Posting<'a> {
    fn of(out: &'a mut Outbox<Message>) -> Posting<'a> {
        let owed = Vec::new();
        Posting { out, owed }
    }

    fn owes(&mut self, to: NodeId) {
        if let Err(at) = self.owed.binary_search(&to) {
            self.owed.insert(at, to);
        }
    }

    /// The node has been notified.
    fn owes_no_more(&mut self, to: NodeId) {
        if let Ok(at) = self.owed.binary_search(&to) {
            self.owed.remove(at);
        }
    }

    fn settle(&mut self, port: &dyn Port) {
        self.owed.drain(..).for_each(|node| port.notify(node));
    }
}

/// A channel's buffer that has grown past this is not kept.
const MOST_KEPT: usize = 1 << 20;

/// A frame that is longer takes its time, for which nobody is to wait who needs the node's lock.
pub(super) const AT_ONCE: usize = 4096;

/// How long a sender that finds no room and nothing to take sleeps before it tries again. It does
/// not sleep in the port: whoever gets up there is taken for the one who sleeps, and that may be
/// another.
const NO_ROOM: Duration = Duration::from_micros(100);
/// How often it yields before it sleeps.
const YIELDS: u32 = 100;

impl Processes {
    /// Sends everything in `out`, and what comes of it meanwhile. Several messages notify their
    /// receiver once.
    pub(super) fn post_all(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) {
        // It took the time that it took.
        out.take_work();
        let mut posting = Posting::of(out);
        while let Some(envelope) = posting.out.pop() {
            if envelope.to == self.me {
                posting.settle(&*self.port);
                self.hand_over(receivers, envelope, posting.out);
                continue;
            }
            match self.alike(&envelope, posting.out) {
                Some(to) => self.post_alike(receivers, &envelope, to, &mut posting),
                None => self.post(receivers, envelope, &mut posting),
            }
        }
        posting.settle(&*self.port);
    }

    /// Sends what is in `out`, for which the worker waits next. Where that is one message, the
    /// worker notifies its receiver only when it has spun in vain.
    pub(super) fn post_and_wait(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) {
        let one = out.len() == 1;
        let notifies = |next: &Envelope<Message>| next.body.notify(next.to) == Notify::Now;
        let next = out.pop_if(|next| one && next.to != self.me && notifies(next));
        if let Some(envelope) = next {
            self.progress.asks(envelope.to);
            let mut posting = Posting::of(out);
            self.post_by(receivers, envelope, Notify::Lazy, &mut posting);
            posting.settle(&*self.port);
        }
        self.post_all(receivers, out);
    }

    /// To whom else the same message goes at once, as what a group orders does, where the port
    /// sends to all as easily as to one.
    fn alike(&self, first: &Envelope<Message>, out: &mut Outbox<Message>) -> Option<Vec<NodeId>> {
        if !matches!(first.body, Message::Objects(_)) || !self.port.multicasts() {
            return None;
        }
        let me = self.me;
        let mut to = vec![first.to];
        while let Some(next) = out.pop_if(|next| {
            let same = next.body == first.body && *next.payload == *first.payload;
            same && next.to != me && !to.contains(&next.to)
        }) {
            to.push(next.to);
        }
        (to.len() > 1).then_some(to)
    }

    /// Sends one message to several nodes in one frame, but for those that have to be told of
    /// objects before it. Their channels are taken in the order of their numbers, and nobody else
    /// waits for one while it has others.
    fn post_alike(
        &self,
        receivers: &Receivers<'_>,
        envelope: &Envelope<Message>,
        mut to: Vec<NodeId>,
        posting: &mut Posting<'_>,
    ) {
        let (message, payload) = (&envelope.body, &envelope.payload);
        to.sort_unstable();
        let channels = to.iter().filter_map(|to| self.channels.get(to.index()));
        let channels: Vec<_> = channels.map(lock).collect();
        let cluster = channels
            .first()
            .and_then(|channel| channel.cluster.as_ref());
        let mut news = Vec::new();
        let has_news = |node: &mut NodeId| {
            news.clear();
            let announcement = cluster.map(|cluster| cluster.announce(*node, &mut news));
            !news.is_empty() || announcement.is_some_and(|announcement| announcement.more)
        };
        let mut apart: Vec<NodeId> = to.extract_if(.., has_news).collect();
        let mut frame = vec![0; HEADER];
        message.encode(&mut frame);
        let header = self.header(Kind::Message, 0, frame.len() - HEADER);
        frame[..HEADER].copy_from_slice(&header);
        let bytes = frame.len() + payload.len();
        if bytes > self.most_in_a_frame().min(self.limits.message) {
            apart.append(&mut to);
        }
        if !to.is_empty() {
            let send = &mut || self.port.send_each(&mut to, &[&frame[..], &payload[..]]);
            // Whoever is lost is found out about where losses are told.
            let _ = self.push_by(receivers, send, posting);
        }
        drop(channels);
        for to in apart {
            let sent = self.post_message(receivers, to, message, payload, Notify::Now, posting);
            posting.owes_no_more(to);
            self.fail_if_impossible(receivers, message, sent, posting.out);
        }
    }

    /// Gives a message to the node that is here.
    pub(super) fn hand_over(
        &self,
        receivers: &Receivers<'_>,
        envelope: Envelope<Message>,
        out: &mut Outbox<Message>,
    ) {
        if let Some(node) = receivers.first()
            && Receiver::deliver(*node, envelope, out) == Wake::Yes
        {
            self.progress.wake(&*self.port);
        }
    }

    fn post(
        &self,
        receivers: &Receivers<'_>,
        envelope: Envelope<Message>,
        posting: &mut Posting<'_>,
    ) {
        let (to, body) = (envelope.to, &envelope.body);
        let notifies = body.notify(to) == Notify::Now || posting.owed.binary_search(&to).is_ok();
        let starts = body.is_started();
        // The receiver takes a long message while it goes.
        let at_once = envelope.payload.len() > AT_ONCE || posting.out.is_empty();
        let notify = match notifies && at_once {
            true => Notify::Now,
            false => Notify::Lazy,
        };
        self.post_by(receivers, envelope, notify, posting);
        if notify == Notify::Now {
            posting.owes_no_more(to);
        } else if notifies || (starts && self.progress.starts(to)) {
            posting.owes(to);
        }
    }

    fn post_by(
        &self,
        receivers: &Receivers<'_>,
        envelope: Envelope<Message>,
        notify: Notify,
        posting: &mut Posting<'_>,
    ) {
        let Envelope {
            to, body, payload, ..
        } = envelope;
        let sent = self.post_message(receivers, to, &body, &payload, notify, posting);
        if !payload.has_no_buffer() {
            let here = unpoisoned::read(&self.here);
            if let Some(here) = &*here {
                here.pool.give_back(payload);
            }
        }
        self.fail_if_impossible(receivers, &body, sent, posting.out);
    }

    /// Ends the run where a message cannot be sent at all.
    fn fail_if_impossible(
        &self,
        receivers: &Receivers<'_>,
        message: &Message,
        sent: Result<(), SendError>,
        out: &mut Outbox<Message>,
    ) {
        let why = match sent {
            Err(SendError::TooLarge { to, bytes, .. }) if bytes > self.limits.message => {
                oversize(message, to, bytes, self.limits.message)
            }
            Err(error @ (SendError::NoSuchNode { .. } | SendError::TooLarge { .. })) => {
                error.to_string()
            }
            // Whoever is lost is found out about where losses are told.
            _ => return,
        };
        self.fail_here(receivers, &why, out);
    }

    fn post_message(
        &self,
        receivers: &Receivers<'_>,
        to: NodeId,
        message: &Message,
        payload: &[u8],
        notify: Notify,
        posting: &mut Posting<'_>,
    ) -> Result<(), SendError> {
        let nodes = self.nodes;
        let channel = self.channels.get(to.index());
        let mut channel = lock(channel.ok_or(SendError::NoSuchNode { to, nodes })?);
        let SendChannel { buffer, cluster } = &mut *channel;
        loop {
            let mut frame = std::mem::take(buffer);
            frame.clear();
            frame.extend_from_slice(&[0; HEADER]);
            let announcement = cluster
                .as_ref()
                .map(|cluster| cluster.announce(to, &mut frame));
            let told = frame.len() - HEADER;
            let more = announcement.is_some_and(|announcement| announcement.more);
            let (mut gone, mut payload) = (0, payload);
            if !more {
                message.encode(&mut frame);
                let (begins, most) = (HEADER + told, self.limits.message);
                let bytes = frame.len() - begins + payload.len();
                if bytes > most {
                    let largest = most;
                    return Err(SendError::TooLarge { to, bytes, largest });
                }
                let before = self.post_parts(receivers, to, (&frame, begins), payload, posting)?;
                (gone, payload) = (before.message, &payload[before.payload..]);
            }
            let begins = HEADER + told;
            let header = self.header(Kind::Message, told, frame.len() - begins - gone);
            frame[..HEADER].copy_from_slice(&header);
            let (told, message) = (&frame[..begins], &frame[begins + gone..]);
            let parts: &[&[u8]] = &[told, message, if more { &[] } else { payload }];
            let send = &mut || self.port.send_with(to, parts, notify);
            let sent = self.push_by(receivers, send, posting);
            if frame.capacity() <= MOST_KEPT {
                *buffer = frame;
            }
            sent?;
            if let (Some(cluster), Some(announcement)) = (&cluster, announcement) {
                cluster.announced(to, announcement);
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Sends what does not fit into one frame with the rest: of a message, which lies in `frame`
    /// behind `begins` bytes of other things, and of its payload. Some of the message stays.
    fn post_parts(
        &self,
        receivers: &Receivers<'_>,
        to: NodeId,
        (frame, begins): (&[u8], usize),
        payload: &[u8],
        posting: &mut Posting<'_>,
    ) -> Result<Before, SendError> {
        let most = self.most_in_a_frame();
        let mut before = Before::default();
        let mut message = &frame[begins..];
        while begins + message.len() > most && message.len() > 1 {
            let fits = (most - HEADER).min(message.len() - 1);
            let header = self.header(Kind::Part, 0, 0);
            self.push(receivers, to, &[&header, &message[..fits]], posting)?;
            before.message += fits;
            message = &message[fits..];
        }
        let mut payload = payload;
        while begins + message.len() + payload.len() > most && !payload.is_empty() {
            let fits = (most - HEADER).min(payload.len());
            let header = self.header(Kind::Payload, 0, 0);
            self.push(receivers, to, &[&header, &payload[..fits]], posting)?;
            before.payload += fits;
            payload = &payload[fits..];
        }
        Ok(before)
    }

    /// Bytes of the longest frame.
    fn most_in_a_frame(&self) -> usize {
        self.port.offers().largest.min(frame::MOST)
    }

    /// Sends a message, of which these are two parts and the payload, if nothing has to go before
    /// it, nobody sends there and there is room; whether it was sent. Waits for nobody: whoever has
    /// a channel may wait for the node's lock, which the caller may hold.
    pub(super) fn post_bytes(&self, to: NodeId, parts: [&[u8]; 3], notify: Notify) -> bool {
        let channel = self.channels.get(to.index());
        let Some(Ok(channel)) = channel.map(Mutex::try_lock) else {
            return false;
        };
        let [first, second, payload] = parts;
        let message = first.len() + second.len();
        let bytes = message + payload.len();
        let cluster = channel.cluster.as_ref();
        let most = self.port.offers().largest.min(self.limits.message);
        if HEADER + bytes > most.min(AT_ONCE)
            || cluster.is_some_and(|cluster| cluster.has_to_announce(to))
        {
            return false;
        }
        let header = self.header(Kind::Message, 0, message);
        let parts = &[&header[..], first, second, payload];
        self.port.send_with(to, parts, notify).is_ok()
    }

    fn header(&self, kind: Kind, told: usize, message: usize) -> [u8; HEADER] {
        let run = self.run();
        let (told, message) = (told as u32, message as u32);
        Header {
            kind,
            run,
            told,
            message,
        }
        .to_bytes()
    }

    /// Sends a frame as soon as there is room, and takes what comes until then.
    fn push(
        &self,
        receivers: &Receivers<'_>,
        to: NodeId,
        parts: &[&[u8]],
        posting: &mut Posting<'_>,
    ) -> Result<(), SendError> {
        self.push_by(receivers, &mut || self.port.send(to, parts), posting)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a live machine is where threads wait for each other"
    )]
    fn push_by(
        &self,
        receivers: &Receivers<'_>,
        send: &mut dyn FnMut() -> Result<(), SendError>,
        posting: &mut Posting<'_>,
    ) -> Result<(), SendError> {
        let mut in_vain = 0;
        loop {
            match send() {
                Err(SendError::Busy { to }) => {
                    // It waits for the receiver, which may have been sent all that lazily.
                    posting.owes(to);
                    posting.settle(&*self.port);
                }
                sent => return sent,
            }
            in_vain = match self.poll(receivers, posting.out) {
                0 => in_vain + 1,
                _ => 0,
            };
            match in_vain {
                0..=YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(NO_ROOM),
            }
        }
    }

    /// Sends what begins or ends a run.
    pub(super) fn tell(&self, receivers: &Receivers<'_>, to: NodeId, kind: Kind, what: &[u8]) {
        let mut out = Outbox::default();
        let channel = lock(&self.channels[to.index()]);
        let header = self.header(kind, 0, what.len());
        // Whoever is lost is found out about where losses are told.
        let _ = self.push(receivers, to, &[&header, what], &mut Posting::of(&mut out));
        drop(channel);
        self.post_all(receivers, &mut out);
    }

    /// This node cannot do what the program asks of it: the run ends.
    pub(super) fn fail_here(
        &self,
        receivers: &Receivers<'_>,
        why: &str,
        out: &mut Outbox<Message>,
    ) {
        let reason = AbortReason::Failed(why.into());
        self.end_for_all(receivers, self.me, &reason, out);
    }

    /// Tells the node here, and all others, how the run ends.
    pub(super) fn end_for_all(
        &self,
        receivers: &Receivers<'_>,
        node: NodeId,
        reason: &AbortReason,
        out: &mut Outbox<Message>,
    ) {
        let abort = |to| Envelope {
            from: self.me,
            to,
            body: Message::Abort {
                node,
                reason: reason.clone(),
            },
            payload: Payload::NONE,
        };
        self.hand_over(receivers, abort(self.me), out);
        self.others().for_each(|to| out.push(abort(to)));
    }

    /// Ends a run that this process cannot begin, though the others have.
    pub(super) fn tell_all_to_end(&self, why: &str) {
        let mut out = Outbox::default();
        self.fail_here(&[], why, &mut out);
        self.post_all(&[], &mut out);
    }
}
