//! Arrays change protocol between phases, as [objects](crate::coherence::switch) do.

use dhole_model::{Coherence, Elements, NodeId, OidRange};

use crate::array_command::ArrayCommand;
use crate::coherence::arrays::{Arrays, initial};
use crate::coherence::region::Table;
use crate::command::{Command, Commands};

impl Arrays {
    /// Before the barrier at which an array gets a home: what nobody has written gets its zeros
    /// where the array was allocated.
    pub fn before_switch(&mut self, array: Elements, creator: NodeId, out: &mut Commands) {
        let known = self.table.coherence(array.array);
        let in_blocks = known.is_some_and(|coherence| coherence.member().is_some());
        if creator != self.me || in_blocks || self.table.is_freed(array) {
            return;
        }
        self.table.update(array, |part, state| {
            if state.held().is_none() && state.known(creator) == initial(creator) {
                state.hold(initial(creator));
                out.push(Command::Array(ArrayCommand::ZeroFill(part)));
            }
        });
    }

    /// After it: the array is kept consistent so from now on.
    pub(crate) fn switch(
        &mut self,
        array: Elements,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        let known = self.table.arrays.get_or_default(array.array);
        let before = known.coherence.replace(to).unwrap_or(allocated);
        known.had_home |= before == Coherence::Home;
        self.update.forget(array, out);
        self.home.switched(OidRange::one(array.array));
        let me = self.me;
        self.table.update(array, |part, state| {
            // A node that left the barrier before this one may have asked for the elements.
            state.serve();
            if std::mem::take(&mut state.exclusive) {
                out.push(Command::Array(ArrayCommand::MakeClean(part)));
            }
            if to == Coherence::Home && state.known(creator).node != me {
                if state.is_valid() {
                    out.push(Command::Array(ArrayCommand::Invalidate(part)));
                }
                state.drop_copy();
            }
        });
    }
}
