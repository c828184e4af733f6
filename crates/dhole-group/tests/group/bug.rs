//! Mistakes planted between the members and the world, which the invariants must find.

use dhole_group::{GroupMessage, Part};

use crate::world::Text;

/// A planted mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A member does not tell what it has delivered when the view changes.
    HideHistory,
    /// The sequencer tells others other numbers than it delivers by.
    SwapNumbers,
    /// The sequencer numbers one broadcast twice.
    NumberTwice,
    /// What is sent again under a new sequencer is lost.
    ForgetOwn,
    /// A member acknowledges one number more than it has delivered.
    AcknowledgeEarly,
    /// A question for what is missing is lost, always.
    NeverRepair,
    /// A member says that it has installed a view when it lacks some of the last one.
    InstallEarly,
    /// The view ends one number later than the messages that the coordinator has.
    EndLate,
    /// A member takes its own broadcasts for safe as soon as it has delivered them.
    SafeAtOnce,
    /// A member says that it has what it has not.
    HaveEarly,
    /// A member does not say what it has.
    HaveNothing,
    /// Whoever is cut off from most goes on.
    IgnoreMinority,
}

impl Bug {
    /// What becomes of a message: it may be changed, or lost. `last` is the last part that was
    /// sent with a number.
    pub fn tamper(
        self,
        message: &mut GroupMessage<Text>,
        last: &mut Option<(u64, Part, Text)>,
    ) -> bool {
        match (self, &mut *message) {
            (Bug::HideHistory, GroupMessage::State { state, .. }) => {
                state.held.clear();
                state.done = state.start;
            }
            (Bug::SwapNumbers, GroupMessage::Data { number, part, .. }) if part.parts == 1 => {
                match *number % 8 {
                    3 => *number += 1,
                    4 => *number -= 1,
                    _ => {}
                }
            }
            (
                Bug::NumberTwice,
                GroupMessage::Data {
                    number, part, body, ..
                },
            ) if part.parts == 1 => match last {
                Some((before, other, text)) if *before + 1 == *number && *number % 8 == 5 => {
                    (*part, *body) = (*other, text.clone());
                }
                _ => *last = Some((*number, *part, body.clone())),
            },
            (
                Bug::ForgetOwn,
                GroupMessage::Submit { view, .. }
                | GroupMessage::Ask { view, .. }
                | GroupMessage::Announce { view, .. },
            ) => return view.number == 1,
            (
                Bug::AcknowledgeEarly,
                GroupMessage::Submit { done, .. }
                | GroupMessage::Ask { done, .. }
                | GroupMessage::Fetch { done, .. },
            ) => *done += 1,
            (Bug::HaveEarly, GroupMessage::Have { done, .. }) => *done += 2,
            (Bug::HaveNothing, GroupMessage::Have { .. }) => return false,
            (Bug::NeverRepair, GroupMessage::Fetch { .. }) => return false,
            (Bug::InstallEarly, GroupMessage::Fetch { view, .. }) => {
                let view = *view;
                *message = GroupMessage::Installed { view };
            }
            (Bug::EndLate, GroupMessage::Install { end, .. }) => *end += 1,
            _ => {}
        }
        true
    }
}
