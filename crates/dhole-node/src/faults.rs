//! Accesses that memory protection would find: what is counted of them, and what a machine charges.

use dhole_heap::PAGE_BYTES;
use dhole_model::Oid;
use dhole_protocol::{Command, RegionCommand, Unit};

use crate::node::State;
use crate::optimisations::WriteDetection;
use crate::step::Step;

impl State {
    /// The worker's access asks another node.
    pub fn read_faulted(&mut self, paged: bool, step: &mut Step<'_, '_>) {
        self.counting.all.fetch_rounds += 1;
        let work = step.out.work();
        if paged {
            self.counting.all.misses += 1;
            work.faults += 1;
        } else {
            work.object_faults += 1;
        }
        self.faulted = true;
    }

    /// The worker has begun to access something: what it asked other nodes for under protocols that
    /// the program brings is counted. Whether it asked for anything.
    pub fn counts_members(&mut self, step: &Step<'_, '_>) -> bool {
        let before = self.counting.all.misses;
        for unit in self.protocol.awaited_of_members() {
            self.counting.all.misses += 1;
            let info = match unit {
                Unit::Object(oid) => step.heap.type_of(oid),
                Unit::Block(block) => step.heap.type_of_array(block.array),
            };
            if let Some(info) = info {
                self.counting.of_type(info.name).misses += 1;
            }
        }
        self.counting.all.misses > before
    }

    /// The worker writes an object for the first time in an interval, which leads to these
    /// commands. A twin is made of the page that the object lies on, or of the object alone.
    pub fn write_faulted(&mut self, oid: Oid, commands: &[Command], step: &mut Step<'_, '_>) {
        use RegionCommand::MakeWritable;
        let makes = |command: &&Command| {
            matches!(
                command,
                Command::Objects(MakeWritable { .. }) | Command::ExpectWrite { .. }
            )
        };
        let made = commands.iter().filter(makes).count() as u64;
        if made == 0 {
            return;
        }
        self.counting.all.write_faults += 1;
        self.counting.all.writable_beside += made - 1;
        let bytes = step.heap.see_bytes_of(oid).unwrap_or(0) as u64;
        let twin_bytes = match self.optimisations.write_detection {
            WriteDetection::Marks => 0,
            WriteDetection::Twins => bytes.next_multiple_of(PAGE_BYTES),
            WriteDetection::Objects => bytes,
        };
        self.twin_bytes += twin_bytes;
        let work = step.out.work();
        work.twin_bytes += twin_bytes;
        work.object_faults += u64::from(!std::mem::take(&mut self.faulted));
    }
}
