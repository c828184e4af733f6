//! What is said of a message that is longer than the limit.

use dhole_model::NodeId;
use dhole_protocol::objects::{ObjectsMessage, Ordered};
use dhole_protocol::{FetchReply, Flush, Message, RegionMessage};

/// The error of a node that would send `message` of `bytes` bytes to `to`, where at most `most` may
/// go: what it is, how long, and how the limit is raised.
pub(super) fn oversize(message: &Message, to: NodeId, bytes: usize, most: usize) -> String {
    let what = content(message);
    let mib = bytes.div_ceil(1 << 20);
    format!(
        "sending {what} to {to}: a message of {bytes} bytes, where the limit is {most}. Set \
         DHOLE_MESSAGE_MIB to {mib} or more for all nodes, or send less at a time"
    )
}

/// What a message carries, where it may carry much.
fn content(message: &Message) -> String {
    fn all<T>(what: &str, list: &[T], first: impl FnOnce(&T) -> String) -> String {
        let first = list.first().map(first).unwrap_or_default();
        match list.len() {
            0 | 1 => format!("{what} {first}"),
            many => format!("{what} {first} and {} more", many - 1),
        }
    }
    match message {
        Message::FetchReply(FetchReply { sent, .. }) => {
            all("the bytes of", sent, |it| it.region.to_string())
        }
        Message::Region(RegionMessage::Update { pushed }) => {
            all("the bytes of", pushed, |it| it.sent.region.to_string())
        }
        Message::Region(RegionMessage::Flush(Flush { flushed, .. })) => {
            all("changes of", flushed, |it| it.region.to_string())
        }
        Message::ElementsReply(FetchReply { sent, .. }) => {
            all("", sent, |it| it.region.to_string())
        }
        Message::Elements(RegionMessage::Update { pushed }) => {
            all("", pushed, |it| it.sent.region.to_string())
        }
        Message::Elements(RegionMessage::Flush(Flush { flushed, .. })) => {
            all("changes of", flushed, |it| it.region.to_string())
        }
        Message::DiffReply { page, .. } => format!("diffs of page {}", page.0),
        Message::Objects(message) => of_objects(message),
        Message::Gossiped { carrier, .. } | Message::After { carrier, .. } => content(carrier),
        message => format!("a message of the kind {}", message.kind().name()),
    }
    .trim_start()
    .to_owned()
}

fn of_objects(message: &ObjectsMessage) -> String {
    match message {
        ObjectsMessage::Request { call, .. } => arguments(&call.object),
        ObjectsMessage::Batch { .. } => "the arguments of a batch of operations".into(),
        ObjectsMessage::Spawn { start, .. } | ObjectsMessage::SpawnInChain { start, .. } => {
            format!("the arguments of the process started at {}", start.site)
        }
        ObjectsMessage::Reply { .. } => "the result of an operation or process".into(),
        ObjectsMessage::BatchReply { .. } => "the results of a batch of operations".into(),
        ObjectsMessage::Create { object, .. }
        | ObjectsMessage::CreateIn { object, .. }
        | ObjectsMessage::Migrate { object, .. } => format!("the state of {object}"),
        ObjectsMessage::Group(message) => match message.body().map(|body| &**body) {
            Some(Ordered::Operate { call, .. }) => arguments(&call.object),
            Some(Ordered::Create { object, .. } | Ordered::Install { object, .. }) => {
                format!("the state of {object}")
            }
            Some(Ordered::Meet { site, .. }) => format!("the value made at {site}"),
            _ => "what orders operations".into(),
        },
        message => format!("a message of the kind {}", message.kind().name()),
    }
}

fn arguments(object: &impl std::fmt::Display) -> String {
    format!("the arguments of an operation of {object}")
}
