//! What is learned at one line of a program of one type: which references its misses follow, and
//! how much of what came along was read.

use dhole_protocol::{Follow, FollowedReferences, MOST_ALONG};

/// So many misses by the references of a slot make them followed, at first.
const TAUGHT: u8 = 2;

/// A slot whose objects were not read often enough is followed again after four times as many
/// misses as before, up to this.
const MOST_TAUGHT: u8 = 128;

/// After so many objects that came by a slot were read, or not, it is judged whether it pays.
const JUDGED: u8 = 32;

/// As many objects come along at first.
const FIRST: u16 = 64;

/// As many come along at least, where any do.
const LEAST: u16 = 4;

/// What a line gains by an object that was read ahead and then read.
const GAIN: i32 = 64;

/// What an object costs that a message brings ahead: a quarter of them is read, or it does not pay.
const BY_MESSAGE: i32 = GAIN / 4;

/// What an object costs that is read ahead in the memory of its last writer, where one that is
/// missed costs little more: three quarters of them are read, or it does not pay.
const SEEN: i32 = GAIN / 4 * 3;

/// What a line has at first, and at most: this many objects may come ahead of its misses without
/// any of them being read, once, and when it ceases to read them.
const FIRST_CREDIT: i32 = 128 * SEEN;
const MOST_CREDIT: i32 = 512 * SEEN;

/// A line that has so much reads nearly all that comes: 32 objects by message, since it began.
const SURE_CREDIT: i32 = FIRST_CREDIT + 32 * (GAIN - BY_MESSAGE);

/// By which references an object came along, or may be missed: those in a slot of a type, from
/// objects that came for a miss at a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Via {
    pub line: u16,
    pub ty: u8,
    pub slot: u8,
}

/// Why an object came that was not asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Came {
    /// By a reference.
    Along(Via),
    /// Because it is beside one that was missed at this line.
    Ahead(u16),
}

impl Came {
    /// The line for whose miss it came.
    pub fn line(self) -> u16 {
        match self {
            Came::Along(via) => via.line,
            Came::Ahead(line) => line,
        }
    }
}

/// How much of what comes ahead is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Pays {
    /// Enough, or that is not known yet.
    #[default]
    Enough,
    /// Nearly all.
    Well,
}

/// How an object comes ahead of a miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// A message brings it.
    Message,
    /// It is read in the memory of its last writer.
    Seen,
}

/// Objects that came along.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    read: u8,
    unread: u8,
}

impl Tally {
    fn count(&mut self, read: bool) {
        match read {
            true => self.read += 1,
            false => self.unread += 1,
        }
    }

    /// Whether a quarter was read, so that what came was worth it.
    fn pays(self) -> bool {
        self.read >= self.unread / 3
    }

    /// Both counts, once they are many; then it begins again.
    fn judged(&mut self) -> Option<Tally> {
        let all = self.read + self.unread;
        (all >= JUDGED).then(|| std::mem::take(self))
    }
}

/// The references in one slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Misses of what they lead to, while they are not followed.
    missed: u8,
    /// How many of these make them followed.
    taught: u8,
    followed: bool,
    came: Tally,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            missed: 0,
            taught: TAUGHT,
            followed: false,
            came: Tally::default(),
        }
    }
}

#[derive(Debug)]
struct OfType {
    shipped: u32,
    slots: Vec<Slot>,
}

/// The habits of a line.
#[derive(Debug)]
pub(super) struct Habits {
    types: Vec<OfType>,
    most: u16,
    came: Tally,
    follow: Follow,
    ahead: Ahead,
}

/// Whether objects are read ahead: as long as there is credit.
///
/// An object costs when it comes, and gains when it is read. That it is never read is known at its
/// invalidation, when thousands of others may have come; so nothing waits for that.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    credit: i32,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits {
            types: Vec::new(),
            most: FIRST,
            came: Tally::default(),
            follow: Follow::default(),
            ahead: Ahead {
                credit: FIRST_CREDIT,
            },
        }
    }
}

impl Habits {
    /// How well it pays to read ahead of a miss around which objects could be. `None` where too
    /// little of it was read: then each miss earns a little, until it is tried again.
    pub fn reads_ahead(&mut self) -> Option<Pays> {
        match self.ahead.credit {
            ..=0 => {
                self.ahead.credit += 1;
                None
            }
            1..SURE_CREDIT => Some(Pays::Enough),
            _ => Some(Pays::Well),
        }
    }

    /// An object comes ahead.
    pub fn comes_ahead(&mut self, way: Way) {
        self.ahead.credit -= match way {
            Way::Message => BY_MESSAGE,
            Way::Seen => SEEN,
        };
    }

    /// An object that came ahead is read.
    pub fn reads_what_came_ahead(&mut self) {
        self.ahead.credit = (self.ahead.credit + GAIN).min(MOST_CREDIT);
    }

    /// What should come along with an object that is missed here.
    pub fn follow(&self) -> &Follow {
        &self.follow
    }

    /// The place of a type and one of its slots, made where there is none; `None` where there is
    /// no room.
    pub fn place(&mut self, shipped: u32, slot: usize) -> Option<(u8, u8)> {
        if slot >= FollowedReferences::SLOTS {
            return None;
        }
        let known = self.types.iter().position(|it| it.shipped == shipped);
        let place = match known {
            Some(place) => place,
            None if self.types.len() == Follow::MOST_TYPES => return None,
            None => {
                let slots = Vec::new();
                self.types.push(OfType { shipped, slots });
                self.types.len() - 1
            }
        };
        let slots = &mut self.types[place].slots;
        if slots.len() <= slot {
            slots.resize(slot + 1, Slot::default());
        }
        Some((place as u8, slot as u8))
    }

    fn slot(&mut self, (ty, slot): (u8, u8)) -> &mut Slot {
        &mut self.types[usize::from(ty)].slots[usize::from(slot)]
    }

    /// An object was missed to which these references lead.
    pub fn missed(&mut self, at: (u8, u8)) {
        let slot = self.slot(at);
        if slot.followed {
            return;
        }
        slot.missed += 1;
        if slot.missed >= slot.taught {
            slot.followed = true;
            self.renew();
        }
    }

    /// An object that came along by these references was read, or was not as long as it was valid.
    pub fn came(&mut self, at: (u8, u8), read: bool) {
        let slot = self.slot(at);
        slot.came.count(read);
        let mut changes = false;
        if let Some(tally) = slot.came.judged()
            && slot.followed
            && !tally.pays()
        {
            let taught = slot.taught.saturating_mul(4).min(MOST_TAUGHT);
            *slot = Slot {
                taught,
                ..Slot::default()
            };
            changes = true;
        }
        self.came.count(read);
        if let Some(Tally { read, unread }) = self.came.judged() {
            let most = match () {
                () if read >= 3 * unread => (2 * self.most).min(MOST_ALONG as u16),
                () if read < unread => (self.most / 2).max(LEAST),
                () => self.most,
            };
            changes |= most != self.most;
            self.most = most;
        }
        if changes {
            self.renew();
        }
    }

    fn renew(&mut self) {
        let of_type = |it: &OfType| {
            let followed = it
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| slot.followed);
            FollowedReferences {
                shipped: it.shipped,
                slots: followed.fold(0, |slots, (slot, _)| slots | 1 << slot),
            }
        };
        let references = self.types.iter().map(of_type);
        self.follow = Follow {
            most: self.most,
            references: references.filter(|it| it.slots != 0).collect(),
        };
    }
}

#[cfg(test)]
mod tests;
