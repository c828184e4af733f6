//! The engine's work in the rounds of barriers without news, which it does in place of the events.

use dhole_protocol::{Command, Commands, Event, Message, Protocol};

/// The protocol and the commands after an event, if there is a path past the event: they must be
/// the same.
pub(crate) fn shortcut(protocol: &Protocol, event: &Event) -> Option<(Protocol, Commands)> {
    let mut commands = Commands::new();
    let mut protocol = protocol.clone();
    let mut say = |to, said| {
        let message = Message::BarrierRound(said);
        commands.push(Command::Send { to, message });
    };
    let goes_on = match *event {
        Event::Arrive { once: false, site } => protocol.arrive_in_place(site, &mut say)?,
        Event::Deliver {
            from,
            message: Message::BarrierRound(said),
        } => protocol.hear_in_place(from, &said, &mut say)?,
        _ => return None,
    };
    commands.extend(goes_on.then_some(Command::Done));
    Some((protocol, commands))
}
