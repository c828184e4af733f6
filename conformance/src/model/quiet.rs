//! What the engine does at barriers of two nodes that have nothing to tell, in place of the events.

use dhole_protocol::{Command, Commands, Event, Message, Protocol};

/// What becomes of a protocol and is to be done, where there is a way past the event: the same.
pub(crate) fn shortcut(protocol: &Protocol, event: &Event) -> Option<(Protocol, Commands)> {
    let mut commands = Commands::new();
    let protocol = match *event {
        Event::ArriveQuietly { site } => {
            let mut protocol = protocol.clone();
            let (here, over) = protocol.arrive_quietly(site)?;
            let (to, message) = (protocol.other(), Message::BarrierHere(here));
            protocol.count_objects(to, true);
            commands.push(Command::Send { to, message });
            commands.extend(over.then_some(Command::Done));
            protocol
        }
        Event::Deliver {
            from,
            message: Message::BarrierHere(here),
        } => {
            let mut protocol = protocol.clone();
            let goes_on = protocol.hears_here(from, here)?;
            commands.extend(goes_on.then_some(Command::Done));
            protocol
        }
        _ => return None,
    };
    Some((protocol, commands))
}
