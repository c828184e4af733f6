use std::sync::Arc;

use dhole_model::{NodeId, Variants, VectorTime, Version};
use dhole_protocol::group::GroupMessage;
use dhole_protocol::objects::{Bytes, ObjectsMessage, Ordered};
use dhole_protocol::{
    BarrierRound, Command, Fetch, FetchReply, Flush, Message, RegionCommand, RegionKind,
    RegionMessage, Reply, Sent, SentDiff, SyncObject, Unit, Way, WriteNotices,
};

/// The effect of a bug on a message.
#[derive(Default, Debug)]
pub struct Fate {
    /// It does not arrive.
    pub lost: bool,
    /// Its payload has the bytes with which the objects were allocated.
    pub stale: bool,
    /// Sender, receiver and body of a further message.
    pub more: Option<(NodeId, NodeId, Message)>,
}

/// A bug planted between the protocols and the world, which the checker must find.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Variants)]
pub enum Bug {
    /// A releaser leaves one interval out of its write notices.
    LoseInterval,
    /// As above, and the releaser does not claim to have seen it.
    HideInterval,
    /// An invalid copy stays readable.
    SkipInvalidate,
    /// An object stays writable when its interval ends.
    SkipMakeClean,
    /// A reply carries the bytes that the object was allocated with.
    StaleReply,
    /// A reply takes the current bytes instead of the pre-image.
    SkipPreImage,
    /// A request is answered while the worker writes the object.
    AnswerAtOnce,
    /// A request that waits for the worker is never answered.
    NeverServe,
    /// A node asks an object's creator and not its last writer.
    ForgetLastWriter,
    /// The manager passes a lock request on and grants the lock as well.
    GrantTwice,
    /// A lock request is lost between the manager and the last holder.
    LoseForward,
    /// No node hears of freed objects.
    HideFreed,
    /// A race is found and not reported.
    KeepRace,
    /// Intervals claim to have ended long before they did.
    BackdateIntervals,
    /// A node that is asked where it wrote does not answer.
    LoseWrittenAt,
    /// A reply is lost.
    LoseReply,
    /// A reply lacks one of the objects that were asked for.
    LackObject,
    /// A notice of some elements of an array names only the first.
    ForgetRange,
    /// A notice of elements makes more of the array invalid on the nodes that hear it. No write
    /// caused that, so these nodes find no writer to ask, as if an array had one version.
    WidenRange,
    /// A reply of elements carries one more than was asked for.
    WidenReply,
    /// A node installs an object that came with its owner, though it is stale.
    TakeStaleAlong,
    /// A reply has one more object, which no object in it owns.
    SendUnowned,
    /// A node sends an object along of which it has no valid copy.
    SendInvalidAlong,
    /// The barrier's manager lets each node depart when it arrives.
    DepartEarly,
    /// The waits of the first round of a probe count as those of the second one.
    SkipConfirmation,
    /// Probes are lost.
    LoseProbe,
    /// A node reports one interval more than it has seen, so that the floor is one too high.
    FloorTooHigh,
    /// A reader passes while a writer holds the lock.
    AdmitReader,
    /// A permit that is released once is counted twice.
    CountPermitTwice,
    /// A notification is lost.
    LoseNotify,
    /// A release of a read-write lock wakes no node.
    LoseWakes,
    /// A node that waits on the condition of a read-write lock gets the lock at once.
    WakeEarly,
    /// A node that waits on the condition of a read-write lock takes a place in its queue, and does
    /// not release it.
    WaitHolding,
    /// The manager does not ask a node whose release the writer has to see.
    SkipSource,
    /// A probe ignores messages in flight.
    ForgetTraffic,
    /// A push is lost. This is no bug and does no harm.
    LosePush,
    /// A push claims a newer version than its bytes have.
    AdvancePush,
    /// A comparison with a twin, or the notes of expected writes, overlook a write.
    OverlookWrite,
    /// A node announces objects that it was expected to write and did not.
    AnnounceExpected,
    /// An interval is sent as the difference from one that its receiver has forgotten.
    OldBase,
    /// An interval is sent as the difference from another base than its own.
    WrongBase,
    /// A request marks a missed object, or missed elements, as what only lies beside.
    MarkAllBeside,
    /// A flush is acknowledged before it is merged.
    AcknowledgeEarly,
    /// A flush carries whole objects instead of changed leaves.
    SkipTwin,
    /// A flush claims that its node had seen nothing of the others.
    HideSeen,
    /// A flush lacks the time of its writes.
    HideWhen,
    /// A node acknowledges outdated copies and keeps them.
    KeepOutdated,
    /// Every reply lets the node keep the copies, and no home knows of it.
    KeepUntold,
    /// A home does not compare which leaves it wrote itself.
    SkipCompare,
    /// A flush of elements names one more than was written.
    WidenFlush,
    /// A copy of elements at home elsewhere stays over an acquire.
    SkipElementsInvalidate,
    /// No node hears that an array is freed.
    HideFreedArray,
    /// A reply lacks the last of its diffs.
    LoseDiff,
    /// A node whose memory is full does not announce it at the barrier.
    HideFullMemory,
    /// Diffs are applied in the wrong order.
    ReorderDiffs,
    /// A twin is kept, and its page writable, after the diff was made.
    KeepTwin,
    /// A process gets no write notices from before its start.
    HideFromProcess,
    /// A node that waits for a process, or for an operation on another node, gets no write notices
    /// from there.
    HideFromCaller,
    /// A call to an object on another node carries no write notices.
    HideFromObject,
    /// Calls and their replies bring no write notices although there are some.
    BareDespiteNews,
    /// An operation brings its replicas no write notices.
    HideFromReplicas,
    /// Requests and replies do not carry how far their senders have followed the order.
    ForgetOrder,
    /// A synchronisation does not wait for what its node started before.
    SkipSettle,
    /// A node is not told that the guard of a call is false which it started.
    LoseBlocked,
    /// The user half of a client does not come back.
    KeepUserHalf,
    /// A client and its clone have one user half.
    ShareUserHalf,
    /// The user half of a client comes back from the call of another node.
    TakeAnothersUserHalf,
    /// The user half of a client changes though its call is refused.
    ChangeRefused,
    /// The last list of a result has one byte less, and says so.
    ShortenResult,
    /// A round of a barrier does not announce news.
    ForgetNews,
    /// A node sends the last round of a barrier without waiting for the one before.
    SkipRound,
    /// A round of a barrier also counts for the next barrier.
    TakeOldRound,
    /// A value of a collective carries no write notices.
    HideFromCollective,
    /// A node that sends its value up the tree, or across, is answered at once.
    AnswerCollective,
    /// A value of a collective is lost.
    LoseCollective,
    /// An invalid copy of an object that was read ahead stays readable.
    KeepAhead,
    /// An object stays published while it is written.
    WritePublished,
    /// A reader of another's memory does not look again after it has copied.
    SkipSecondLook,
    /// A reader of another's memory does not mark what it reads.
    SkipMark,
    /// A reader of another's memory takes elements for as new as the newest of their block.
    HoldNewest,
    /// An object stays published when it is freed, and its place is used again.
    FreePublished,
    /// An exclusive object is withdrawn from a worker that has written it.
    WithdrawWritten,
    /// An exclusive object is withdrawn, and stays exclusive.
    HideWithdrawn,
    /// A gate is opened, and what was marked stays behind it.
    KeepMarked,
    /// An exclusive object is sent, and stays behind its gate.
    KeepServed,
    /// A gate is shut for readers, and its worker goes on to write.
    ShutForReadersAlone,
    /// A reader behind a gate does not mark the gate.
    SkipGateMark,
    /// A reader behind a gate does not look at the gate again.
    SkipGateLook,
    /// A section runs at a home whose worker computes, and may use what it changes.
    RunBesideReader,
    /// A section runs while a node holds the lock.
    RunWhileHeld,
    /// A section changes an object before the nodes that keep copies know.
    TellKeepersLater,
    /// The caller of a section, which keeps a copy of what it changes, is not told.
    SkipCaller,
    /// A release does not try the sections that wait for the lock.
    ForgetBlocked,
    /// A section that wrote at the home does not wake one that waits at its caller.
    SleepOverSection,
    /// A section that goes on with another one, which waits, runs again from its beginning.
    BeginAgain,
    /// The reply to a section drops no cached copies.
    KeepOverSection,
    /// The caller's flush follows its section.
    SectionBeforeFlush,
}

impl Bug {
    /// The command, as the bug leaves it.
    pub fn command(self, command: Command) -> Option<Command> {
        match (self, command) {
            (Bug::SkipInvalidate, Command::Objects(RegionCommand::Invalidate(_))) => None,
            (Bug::TakeStaleAlong, Command::Objects(RegionCommand::Skip(sent))) => {
                Some(Command::InstallAlong(sent))
            }
            (
                Bug::SkipMakeClean,
                Command::Objects(RegionCommand::MakeClean(_)) | Command::EndYoung { .. },
            ) => None,
            (Bug::SkipElementsInvalidate, Command::Array(RegionCommand::Invalidate(_))) => None,
            (
                Bug::WidenFlush,
                Command::SendUnits {
                    to,
                    message: Message::Elements(RegionMessage::Flush(mut flush)),
                    mut units,
                    what,
                },
            ) => {
                if let (Some(last), Some(Unit::Block(unit))) =
                    (flush.flushed.last_mut(), units.last_mut())
                    && unit.range().end < 3
                {
                    unit.count += 1;
                    last.region = *unit;
                }
                let message = Message::Elements(RegionMessage::Flush(flush));
                Some(Command::SendUnits {
                    to,
                    message,
                    units,
                    what,
                })
            }
            (Bug::KeepRace, Command::Race(_)) => None,
            (Bug::SkipCompare, Command::Compare { .. }) => None,
            (Bug::SkipPreImage, Command::Objects(RegionCommand::Reply(reply))) => {
                Some(Command::Objects(RegionCommand::Reply(Reply {
                    pre_images: Default::default(),
                    ..reply
                })))
            }
            (_, command) => Some(command),
        }
    }

    /// Removes write notices from a message about objects.
    fn hide(self, message: &mut ObjectsMessage) {
        match (self, message) {
            (Bug::BareDespiteNews, message) => bare(message),
            (
                Bug::HideFromProcess,
                ObjectsMessage::Spawn { news, .. } | ObjectsMessage::SpawnInChain { news, .. },
            )
            | (
                Bug::HideFromCaller,
                ObjectsMessage::Reply { news, .. } | ObjectsMessage::BatchReply { news, .. },
            )
            | (
                Bug::HideFromObject,
                ObjectsMessage::Request { news, .. } | ObjectsMessage::Batch { news, .. },
            ) => *news = None,
            (
                Bug::ForgetOrder,
                ObjectsMessage::Request { delivered, .. }
                | ObjectsMessage::Batch { delivered, .. }
                | ObjectsMessage::Reply { delivered, .. }
                | ObjectsMessage::BatchReply { delivered, .. },
            ) => *delivered = 0,
            (
                Bug::HideFromReplicas,
                ObjectsMessage::Group(
                    GroupMessage::Submit { body, .. }
                    | GroupMessage::Announce { body, .. }
                    | GroupMessage::Data { body, .. },
                ),
            ) => {
                self.ordered(body);
            }
            _ => {}
        }
    }

    /// Changes a multicast.
    pub fn ordered(self, body: &mut Arc<Ordered>) {
        if let (Bug::HideFromReplicas, Ordered::Operate { news, .. }) = (self, Arc::make_mut(body))
        {
            *news = None;
        }
    }

    /// The effect on a message from `from`: the bug may change it, send it to another node, lose
    /// it, or add a message that no node sent.
    pub fn message(self, from: NodeId, to: &mut NodeId, message: &mut Message) -> Fate {
        let mut fate = Fate::default();
        match (self, message) {
            (
                Bug::LoseInterval | Bug::HideInterval,
                Message::LockGrant { news, .. } | Message::BarrierDepart { news, .. },
            ) => self.lose_interval(news),
            (
                Bug::HideFreed,
                Message::LockGrant { news, .. } | Message::BarrierDepart { news, .. },
            ) => {
                for interval in &mut news.intervals {
                    Arc::make_mut(interval).freed.clear();
                }
            }
            (
                Bug::OldBase | Bug::WrongBase,
                Message::LockGrant { news, .. } | Message::BarrierDepart { news, .. },
            ) => self.change_bases(news),
            (
                Bug::HideFreedArray,
                Message::LockGrant { news, .. } | Message::BarrierDepart { news, .. },
            ) => {
                for interval in &mut news.intervals {
                    let freed = &mut Arc::make_mut(interval).freed;
                    freed.retain(|range| !range.contains(crate::model::elements::ARRAY));
                }
            }
            (Bug::BackdateIntervals, Message::LockGrant { news, .. }) => {
                for interval in &mut news.intervals {
                    Arc::make_mut(interval).lamport = 1;
                }
            }
            (
                Bug::HideFromProcess
                | Bug::HideFromCaller
                | Bug::HideFromObject
                | Bug::BareDespiteNews
                | Bug::HideFromReplicas
                | Bug::ForgetOrder,
                Message::Objects(message),
            ) => self.hide(message),
            (Bug::LoseBlocked, Message::Objects(message)) => match &mut **message {
                ObjectsMessage::Blocked { .. } => fate.lost = true,
                ObjectsMessage::BatchReply { blocked, .. } => blocked.clear(),
                _ => {}
            },
            (Bug::ShortenResult, Message::Objects(message)) => {
                if let ObjectsMessage::Reply {
                    outcome: Ok(result),
                    ..
                } = &mut **message
                {
                    shorten(result);
                }
            }
            (Bug::StaleReply, Message::FetchReply(_)) => fate.stale = true,
            (
                Bug::ForgetRange | Bug::WidenRange,
                Message::LockGrant { news, .. }
                | Message::BarrierArrive { news, .. }
                | Message::BarrierDepart { news, .. },
            ) => self.change_ranges(news),
            (Bug::WidenReply, Message::ElementsReply(FetchReply { sent, .. })) => {
                sent.iter_mut().for_each(|sent| sent.region.count += 1);
            }
            (Bug::MarkAllBeside, Message::Fetch(Fetch { wanted, beside, .. })) => {
                *beside = wanted.len() as u16;
            }
            (Bug::MarkAllBeside, Message::FetchElements { wanted, beside, .. }) => {
                *beside = wanted.len() as u16;
            }
            (Bug::LackObject, Message::FetchReply(FetchReply { sent, .. })) => drop(sent.pop()),
            (Bug::SendUnowned, Message::FetchReply(FetchReply { sent, .. })) => {
                let stranger = sent.last().map(|last| Sent {
                    region: last.region.plus(1),
                    ..*last
                });
                sent.extend(stranger);
            }
            (Bug::ForgetLastWriter, Message::Fetch(Fetch { wanted, .. })) => {
                *to = NodeId(0);
                for wanted in wanted {
                    wanted.need = Version {
                        lamport: 0,
                        node: NodeId(0),
                    };
                }
            }
            (
                Bug::GrantTwice,
                Message::LockForward {
                    lock,
                    requester,
                    time,
                },
            ) => {
                let news = no_news(time.nodes());
                let grant = Message::LockGrant {
                    lock: *lock,
                    news,
                    waiting: Default::default(),
                };
                fate.more = Some((from, *requester, grant));
            }
            (
                Bug::AdmitReader,
                Message::SyncRequest {
                    sync_object: sync_object @ SyncObject::Read(_),
                    wait,
                    time,
                },
            ) => {
                let grant = sync_grant(*sync_object, *wait, time.nodes());
                fate.more = Some((*to, from, grant));
            }
            (
                Bug::SkipSource,
                Message::SyncForward {
                    sync_object,
                    requester,
                    wait,
                    time,
                    ..
                },
            ) => {
                let grant = sync_grant(*sync_object, *wait, time.nodes());
                fate.more = Some((from, *requester, grant));
                fate.lost = true;
            }
            (Bug::CountPermitTwice, message @ Message::SyncRelease { .. }) => {
                fate.more = Some((from, *to, message.clone()));
            }
            (Bug::LoseNotify, Message::Notify { .. }) => fate.lost = true,
            (Bug::LoseWakes, Message::SyncReleaseAndWake { wakes, .. }) => *wakes = 0,
            (
                Bug::WakeEarly,
                Message::SyncReleaseAndWake {
                    sync_object,
                    time,
                    waits: Some(wait),
                    ..
                },
            ) => {
                let grant = sync_grant(*sync_object, *wait, time.nodes());
                fate.more = Some((*to, from, grant));
            }
            (Bug::WaitHolding, message @ Message::SyncReleaseAndWake { waits: Some(_), .. }) => {
                wait_holding(message)
            }
            (Bug::ForgetTraffic, Message::Probe(probe)) => {
                let edges = &mut probe.edges;
                let rounds = [Some(&mut edges.round), edges.first.as_mut()];
                for round in rounds.into_iter().flatten() {
                    round.sent = round.received;
                }
            }
            (Bug::FloorTooHigh, Message::Gossiped { gossip, .. }) => {
                let gossip = Arc::make_mut(gossip);
                let minimum = &mut gossip.minimum;
                for node in (0..minimum.nodes()).map(NodeId::at) {
                    minimum.see(node, minimum.of(node) + 1);
                }
            }
            (Bug::DepartEarly, Message::BarrierArrive { barrier, news, .. }) => {
                let (barrier, news) = (*barrier, no_news(news.time.nodes()));
                fate.more = Some((
                    *to,
                    from,
                    Message::BarrierDepart {
                        barrier,
                        news,
                        collect: false,
                        rounds: 0,
                    },
                ));
            }
            (Bug::ForgetNews, Message::BarrierRound(said)) => said.news = false,
            // Of four nodes: one hears of all others only if those have heard of others first.
            (Bug::SkipRound, Message::BarrierRound(said)) => match said.round {
                0 => {
                    let to = NodeId((from.0 + 2) % 4);
                    fate.more = Some((from, to, Message::BarrierRound(round_1_of(said))));
                }
                _ => fate.lost = true,
            },
            (Bug::TakeOldRound, Message::BarrierRound(said)) => {
                let number = said.number + 1;
                let next = BarrierRound { number, ..*said };
                fate.more = Some((from, *to, Message::BarrierRound(next)));
            }
            (Bug::SkipConfirmation, Message::Probe(probe)) => {
                if let Some(first) = &probe.edges.first {
                    probe.edges.round.waits.clone_from(&first.waits);
                }
            }
            (Bug::LoseDiff, Message::DiffReply { diffs, .. }) => drop(diffs.pop()),
            (Bug::HideFullMemory, Message::BarrierArrive { full, .. }) => *full = false,
            (Bug::ReorderDiffs, Message::DiffReply { diffs, .. }) => {
                let by_node = |diff: &SentDiff| u64::MAX - u64::from(diff.id.node.0);
                let latest_first = |diff: &mut SentDiff| diff.lamport = by_node(diff);
                diffs.iter_mut().for_each(latest_first);
            }
            (_, Message::Region(message)) => self.about_regions((from, *to), message, &mut fate),
            (_, Message::Elements(message)) => self.about_regions((from, *to), message, &mut fate),
            (
                Bug::KeepUntold,
                Message::FetchReply(FetchReply { keep, .. })
                | Message::ElementsReply(FetchReply { keep, .. }),
            ) => *keep = true,
            (Bug::HideFromCollective, Message::Collective(message)) => {
                message.news = *no_news(message.news.time.nodes());
            }
            (Bug::AnswerCollective, Message::Collective(message)) if message.way != Way::Down => {
                let mut answer = message.clone();
                if answer.way == Way::Up {
                    answer.way = Way::Down;
                }
                answer.news = *no_news(message.news.time.nodes());
                fate.more = Some((*to, from, Message::Collective(answer)));
            }
            (Bug::LoseForward, Message::LockForward { .. })
            | (Bug::LoseCollective, Message::Collective(_))
            | (Bug::LoseReply, Message::FetchReply(_))
            | (Bug::LoseWrittenAt, Message::WrittenAt { .. })
            | (Bug::LoseProbe, Message::Probe(_)) => fate.lost = true,
            _ => {}
        }
        fate
    }

    /// As [`message`](Bug::message), of what is about regions.
    fn about_regions<R: RegionKind>(
        self,
        (from, to): (NodeId, NodeId),
        message: &mut RegionMessage<R>,
        fate: &mut Fate,
    ) {
        let mut answer = |it| fate.more = Some((to, from, R::message(it)));
        match (self, message) {
            (Bug::LosePush, RegionMessage::Update { .. }) => fate.lost = true,
            (Bug::AdvancePush, RegionMessage::Update { pushed }) => {
                let versions = pushed.iter_mut().map(|pushed| &mut pushed.sent.version);
                versions.for_each(|version| version.lamport += 1);
            }
            (Bug::AcknowledgeEarly, RegionMessage::Flush(Flush { number, .. })) => {
                answer(RegionMessage::FlushAck { number: *number });
            }
            (Bug::HideWhen, RegionMessage::Flush(Flush { at, .. })) => *at = None,
            (Bug::HideSeen, RegionMessage::Flush(Flush { at: Some(at), .. })) => {
                let mut time = VectorTime::zero(at.time.nodes());
                time.see(from, at.time.of(from));
                Arc::make_mut(at).time = time;
            }
            (Bug::KeepOutdated, RegionMessage::Outdated { number, .. }) => {
                answer(RegionMessage::OutdatedAck { number: *number });
                fate.lost = true;
            }
            _ => {}
        }
    }

    /// Changes the bases of intervals.
    fn change_bases(self, news: &mut WriteNotices) {
        for interval in &mut news.intervals {
            if let Some(base) = &mut Arc::make_mut(interval).base {
                base.index = match self {
                    Bug::OldBase => 0,
                    _ => base.index.saturating_sub(1).max(1),
                };
            }
        }
    }

    /// Changes which elements the intervals have written.
    fn change_ranges(self, news: &mut WriteNotices) {
        for interval in &mut news.intervals {
            let interval = Arc::make_mut(interval);
            for elements in &mut interval.elements {
                elements.count = match self {
                    Bug::ForgetRange => 1,
                    _ => elements.count + 1,
                };
            }
        }
    }

    fn lose_interval(self, news: &mut WriteNotices) {
        let Some(lost) = news.intervals.pop() else {
            return;
        };
        if self == Bug::HideInterval {
            let nodes = news.time.nodes();
            let mut time = VectorTime::zero(nodes);
            for node in (0..nodes).map(NodeId::at) {
                let seen = news.time.of(node);
                time.see(
                    node,
                    if node == lost.node {
                        lost.index - 1
                    } else {
                        seen
                    },
                );
            }
            news.time = time;
        }
    }
}

/// Makes a request of a release that waits.
fn wait_holding(message: &mut Message) {
    if let Message::SyncReleaseAndWake {
        sync_object,
        time,
        waits: Some(wait),
        ..
    } = message
    {
        *message = Message::SyncRequest {
            sync_object: *sync_object,
            wait: *wait,
            time: time.clone(),
        };
    }
}

fn sync_grant(sync_object: SyncObject, wait: u64, nodes: usize) -> Message {
    Message::SyncGrant {
        sync_object,
        wait,
        parts: 1,
        news: no_news(nodes),
    }
}

fn no_news(nodes: usize) -> Box<WriteNotices> {
    Box::new(WriteNotices {
        time: VectorTime::zero(nodes),
        lamport: 0,
        intervals: Vec::<Arc<_>>::new(),
    })
}

/// Takes the last byte from a result, and from the count before the bytes of which it is the last.
fn shorten(result: &mut Bytes) {
    let mut bytes = result.to_vec();
    let count = (0..bytes.len()).find(|at| usize::from(bytes[*at]) == bytes.len() - at - 1);
    if let Some(count) = count.filter(|at| bytes[*at] > 0) {
        bytes[count] -= 1;
        bytes.pop();
        *result = Bytes::from(&bytes[..]);
    }
}

/// The round 1 of a node that has waited for nothing.
fn round_1_of(said: &BarrierRound) -> BarrierRound {
    BarrierRound {
        round: 1,
        place: 0,
        site: None,
        ..*said
    }
}

/// Removes the write notices of a call, and what its caller has seen, or those of its reply.
fn bare(message: &mut ObjectsMessage) {
    match message {
        ObjectsMessage::Request { time, news, .. } | ObjectsMessage::Batch { time, news, .. } => {
            (*time, *news) = (None, None);
        }
        ObjectsMessage::Reply { news, .. } | ObjectsMessage::BatchReply { news, .. } => {
            *news = None;
        }
        _ => {}
    }
}
