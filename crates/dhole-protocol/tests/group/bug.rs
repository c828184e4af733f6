//! Mistakes planted between the members and the world, which the invariants must find.

use dhole_protocol::group::GroupMessage;

use crate::world::Text;

/// A planted mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A member does not tell what it has when the view changes.
    HideHistory,
    /// The sequencer gives two members one number for different messages.
    SwapNumbers,
    /// What is sent again after a change is lost, always.
    ForgetOwn,
    /// A broadcast is sent again as a new one.
    SendAnew,
    /// A token is passed on before what it acknowledges is delivered.
    AcknowledgeEarly,
    /// Nobody answers when something is missing.
    NeverRepair,
    /// A member says that it has installed a view when it has only heard of it.
    InstallEarly,
    /// A cut-off minority goes on.
    IgnoreMinority,
}

impl Bug {
    /// What becomes of a message: it may be changed, or lost.
    pub fn tamper(self, message: &mut GroupMessage<Text>) -> bool {
        match (self, message) {
            (Bug::HideHistory, GroupMessage::State { state, .. }) => {
                state.held.clear();
                state.done = state.start;
                true
            }
            (Bug::SwapNumbers, GroupMessage::Data { number, part, .. }) => {
                // Two broadcasts change places for whoever is told so.
                if part.parts == 1 && *number % 8 == 3 {
                    *number += 1;
                } else if part.parts == 1 && *number % 8 == 4 {
                    *number -= 1;
                }
                true
            }
            (
                Bug::ForgetOwn,
                GroupMessage::Submit { view, .. }
                | GroupMessage::Ask { view, .. }
                | GroupMessage::Announce { view, .. },
            ) => view.number == 1,
            (Bug::SendAnew, GroupMessage::Submit { view, part, .. }) if view.number > 1 => {
                part.serial += 1;
                true
            }
            (Bug::NeverRepair, GroupMessage::Fetch { .. }) => false,
            _ => true,
        }
    }
}
