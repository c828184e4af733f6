//! One-sided reads of elements, as in the engine: the blocks that an owner publishes, and a read of
//! several blocks, whose parts fall between any two steps of the owner.

use dhole_model::{Elements, NodeId, Version};
use dhole_protocol::{ArrayEvent, Command, Commands, Event, RegionCommand, UnreadElements, Wanted};

use crate::Bug;
use crate::model::elements::{PER_BLOCK, all, unread};
use crate::model::node::{Around, Failed};
use crate::model::regions::Modelled;
use crate::model::{Fault, Node, Part, Phase, Presence, Program, Wait, WriteId};

/// How often a block is read that changes meanwhile.
const ATTEMPTS: u8 = 2;

/// What a node publishes of a block of the array.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct PublishedBlock {
    /// Odd while the block is published.
    word: u8,
    version: Option<Version>,
    /// The nodes that read, as bits.
    readers: u8,
    /// A ghost: the values of the block when it was published.
    values: Vec<WriteId>,
}

/// A one-sided read of elements under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SeeingBlocks {
    missed: UnreadElements,
    /// What is read now.
    wanted: Wanted<Elements>,
    /// What is read after it.
    next: Vec<Wanted<Elements>>,
    left: u8,
    blocks: Vec<(Elements, BlockPart)>,
}

/// How far the read of a block is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum BlockPart {
    Look,
    Mark(Found),
    Copy(Found, Vec<WriteId>),
    LookAgain(Found, Vec<WriteId>),
    /// It was read whole.
    Whole(Version, Vec<WriteId>),
    /// It has changed meanwhile.
    Changed,
}

/// A first look at a block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Found {
    word: u8,
    version: Version,
    values: Vec<WriteId>,
}

impl SeeingBlocks {
    /// Whose memory is read.
    pub(crate) fn of(&self) -> usize {
        self.wanted.need.node.index()
    }

    /// Whether the bytes of a block were copied, and how the second look will find it: unchanged
    /// or not.
    pub(crate) fn finds(&self, owner: &Node) -> Option<bool> {
        let is_copied =
            |(_, part): &&(Elements, BlockPart)| matches!(part, BlockPart::LookAgain(..));
        let (elements, part) = self.blocks.iter().find(is_copied)?;
        match part {
            BlockPart::LookAgain(found, _) => {
                let published = &owner.published_blocks[block(*elements)];
                Some(published.word == found.word)
            }
            _ => None,
        }
    }
}

/// The number of the block that elements of one block lie in.
fn block(elements: Elements) -> usize {
    (elements.first / PER_BLOCK) as usize
}

/// The parts of elements that lie in one block each.
fn parts(elements: Elements) -> impl Iterator<Item = Elements> {
    let range = elements.range();
    let blocks = range.start / PER_BLOCK..range.end.div_ceil(PER_BLOCK);
    blocks.map(move |block| {
        let first = range.start.max(block * PER_BLOCK);
        let end = range.end.min((block + 1) * PER_BLOCK);
        Elements::new(elements.array, first..end)
    })
}

/// All elements of the blocks that these lie in.
fn whole_blocks(elements: Elements, program: &Program) -> Elements {
    let range = elements.range();
    let end = range.end.next_multiple_of(PER_BLOCK);
    let end = end.min(all(program).range().end);
    Elements::new(elements.array, range.start / PER_BLOCK * PER_BLOCK..end)
}

impl Node {
    /// Others may read the blocks of these elements, as far as none of their elements is written.
    pub(crate) fn publish_elements(&mut self, elements: Elements, around: &Around<'_>) {
        let program = around.program;
        if !program.sees {
            return;
        }
        for block in parts(whole_blocks(elements, program)) {
            self.publish_block(block, around);
        }
    }

    fn publish_block(&mut self, of: Elements, around: &Around<'_>) {
        let program = around.program;
        let held = self.protocol.held_elements(of);
        let is_exclusive = held.iter().any(|part| part.is_exclusive);
        let is_read = held
            .iter()
            .any(|part| part.is_own && part.is_served && !part.is_exclusive);
        if is_exclusive && is_read {
            if self.presence() == Presence::Computing {
                self.asked_blocks |= 1 << block(of);
                return;
            }
            let mut commands = Commands::new();
            self.protocol.keep_elements_clean(of, &mut commands);
            for command in commands {
                let Command::Array(RegionCommand::MakeClean(part)) = command else {
                    unreachable!("elements become clean");
                };
                let at = self.presence();
                let mut places = part.places(program);
                let clean = places.try_for_each(|place| self.heap.make_clean(place, at));
                clean.expect("what is exclusive is writable");
            }
            return self.publish_block(of, around);
        }
        let is_own = held.iter().any(|part| part.is_own);
        let is_open = held.iter().any(|part| part.is_open);
        let mut places = of.places(program);
        let is_writable = places.any(|place| self.heap.is_writable(place));
        if !is_own || is_open || is_writable {
            return;
        }
        let lamport = held.iter().map(|part| part.lamport).max().unwrap_or(0);
        let node = NodeId::at(self.me);
        let places = of.places(program);
        let values = places.map(|place| self.heap.stored(place)).collect();
        let published = &mut self.published_blocks[block(of)];
        let is_hidden = published.word.is_multiple_of(2);
        if is_hidden || around.bug == Some(Bug::WritePublished) {
            published.word += if is_hidden { 1 } else { 2 };
            published.version = Some(Version { lamport, node });
            published.values = values;
        }
    }

    /// Others read the blocks of these elements no more, whose bytes change next.
    pub(crate) fn unpublish_elements(&mut self, elements: Elements, around: &Around<'_>) {
        if !around.program.sees || around.bug == Some(Bug::WritePublished) {
            return;
        }
        for part in parts(elements) {
            let published = &mut self.published_blocks[block(part)];
            if published.word.is_multiple_of(2) {
                continue;
            }
            published.word += 1;
            if std::mem::take(&mut published.readers) != 0 {
                let block = whole_blocks(part, around.program);
                self.protocol.elements_were_read(block);
            }
        }
    }

    /// The worker is in a call: blocks that were asked for while it computed are clean from here
    /// on.
    pub(crate) fn publish_asked(&mut self, around: &Around<'_>) {
        let asked = std::mem::take(&mut self.asked_blocks);
        for number in (0..8).filter(|number| asked >> number & 1 == 1) {
            let first = number * PER_BLOCK;
            let element = Elements::new(all(around.program).array, first..first + 1);
            self.publish_elements(element, around);
        }
    }

    /// A miss of elements begins with a one-sided read, if some of them can be had so; whether it
    /// does.
    pub(crate) fn begins_to_see_part(
        &mut self,
        part: Part,
        presence: Presence,
        around: &Around<'_>,
    ) -> bool {
        let program = around.program;
        if !program.sees || self.keeps_blocks(program) {
            return false;
        }
        let missed = unread(part, program, presence == Presence::Shared);
        let whole = whole_blocks(missed.elements, program);
        let wanted = self.protocol.wants_elements_there(&missed, whole);
        let mut next: Vec<_> = wanted.into_iter().collect();
        next.reverse();
        let Some(wanted) = next.pop() else {
            return false;
        };
        self.seeing_blocks = Some(SeeingBlocks {
            missed,
            wanted,
            next,
            left: ATTEMPTS,
            blocks: parts(wanted.region)
                .map(|part| (part, BlockPart::Look))
                .collect(),
        });
        self.phase = Phase::Seeing(presence);
        true
    }

    /// The next part of a one-sided read of elements in the memory of `owner`.
    pub(crate) fn see_blocks(
        &mut self,
        owner: &mut Node,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        let mut seeing = self.seeing_blocks.take().expect("a read is under way");
        if self.steps_in_blocks(&mut seeing, owner, around)? {
            self.seeing_blocks = Some(seeing);
            return Ok(());
        }
        self.takes_blocks(&mut seeing, around)?;
        let changed = seeing.blocks.iter();
        let changed = changed.filter(|(_, part)| *part == BlockPart::Changed);
        let changed: Vec<_> = changed.map(|(of, _)| (*of, BlockPart::Look)).collect();
        seeing.left -= 1;
        if seeing.left > 0 && !changed.is_empty() {
            seeing.blocks = changed;
            self.seeing_blocks = Some(seeing);
            return Ok(());
        }
        if let Some(wanted) = seeing.next.pop() {
            seeing.wanted = wanted;
            seeing.left = ATTEMPTS;
            seeing.blocks = parts(wanted.region)
                .map(|part| (part, BlockPart::Look))
                .collect();
            self.seeing_blocks = Some(seeing);
            return Ok(());
        }
        self.asks_for_the_rest(&seeing.missed, around)
    }

    /// Does the next of the looks, marks, copies or second looks; whether there was one.
    fn steps_in_blocks(
        &mut self,
        seeing: &mut SeeingBlocks,
        owner: &mut Node,
        around: &mut Around<'_>,
    ) -> Result<bool, Failed> {
        let (need, program) = (seeing.wanted.need, around.program);
        // All are looked at before the first is copied, and so on.
        let stage = |part: &BlockPart| match part {
            BlockPart::Look | BlockPart::Mark(_) => Some(0),
            BlockPart::Copy(..) => Some(1),
            BlockPart::LookAgain(..) => Some(2),
            BlockPart::Whole(..) | BlockPart::Changed => None,
        };
        let stages = seeing.blocks.iter().enumerate();
        let stages = stages.filter_map(|(place, (_, part))| Some((stage(part)?, place)));
        let Some((_, place)) = stages.min() else {
            return Ok(false);
        };
        let (of, part) = seeing.blocks[place].clone();
        let published = &mut owner.published_blocks[block(of)];
        let next = match part {
            BlockPart::Look => {
                let version = published.version.filter(|_| published.word % 2 == 1);
                let wanted = Wanted { region: of, need };
                match version.filter(|version| self.protocol.is_wanted(wanted, *version)) {
                    Some(version) => BlockPart::Mark(Found {
                        word: published.word,
                        version,
                        values: published.values.clone(),
                    }),
                    None => {
                        seeing.blocks.remove(place);
                        return Ok(true);
                    }
                }
            }
            BlockPart::Mark(found) => {
                if around.bug != Some(Bug::SkipMark) {
                    published.readers |= 1 << self.me;
                }
                BlockPart::Copy(found, Vec::new())
            }
            BlockPart::Copy(found, mut copied) => {
                let place = of.places(program).start + copied.len();
                copied.push(owner.heap.stored(place));
                match copied.len() as u64 == of.count {
                    true => BlockPart::LookAgain(found, copied),
                    false => BlockPart::Copy(found, copied),
                }
            }
            BlockPart::LookAgain(found, copied) => {
                let is_whole = published.word == found.word;
                if is_whole || around.bug == Some(Bug::SkipSecondLook) {
                    let first = (of.first % PER_BLOCK) as usize;
                    if found.values[first..first + copied.len()] != copied[..] {
                        let words = format!("{copied:?} as {found:?} of {of}");
                        return Err((Fault::TornRead, words));
                    }
                    BlockPart::Whole(found.version, copied)
                } else {
                    BlockPart::Changed
                }
            }
            BlockPart::Whole(..) | BlockPart::Changed => unreachable!("it has no next stage"),
        };
        seeing.blocks[place] = (of, next);
        Ok(true)
    }

    /// What was read whole is here from here on.
    fn takes_blocks(
        &mut self,
        seeing: &mut SeeingBlocks,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        self.call(None, around)?;
        let (need, creator) = (seeing.wanted.need, seeing.missed.creator);
        for (region, part) in &seeing.blocks {
            let BlockPart::Whole(newest, values) = part else {
                continue;
            };
            let need = match around.bug {
                Some(Bug::HoldNewest) => *newest,
                _ => need,
            };
            let wanted = Wanted {
                region: *region,
                need: seeing.wanted.need,
            };
            if !self.protocol.still_wants_elements(wanted, creator) {
                continue;
            }
            region.unpublish(self, around);
            let presence = self.presence();
            for (place, value) in region.places(around.program).zip(values) {
                let installed = self.heap.install(place, *value, presence);
                installed.map_err(|fault| (fault, format!("{value:?} of {region}")))?;
            }
            let mut commands = Commands::new();
            let wanted = Wanted { need, ..wanted };
            self.protocol
                .read_elements_there(wanted, *newest, &mut commands);
            for command in commands {
                let done = self.carry_out(command, &mut std::iter::empty(), around);
                done.map_err(|fault| (fault, format!("{region} was read")))?;
            }
            self.publish_elements(*region, around);
        }
        Ok(())
    }

    /// What could not be read is asked for by message.
    fn asks_for_the_rest(
        &mut self,
        missed: &UnreadElements,
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        let presence = self.presence();
        let mut places = missed.elements.places(around.program);
        if places.all(|place| self.heap.readable(place).is_some()) {
            self.phase = Phase::Call(presence, None);
            return Ok(());
        }
        self.phase = Phase::Call(presence, Some(Wait::Object));
        let misses = [*missed].into_iter().collect();
        let event = Event::Array(ArrayEvent::Read(misses));
        self.call(Some(event), around)
    }
}
