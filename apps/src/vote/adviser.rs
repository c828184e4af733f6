//! The adviser: the consistency maintenance of some pages, at a node of its own, the knowing site
//! (sections 3.1 and 4.2, figure 3). A page has several readers or one writer.

use std::collections::BTreeMap;

use dhole::{NodeId, Object, Result, Worker};
use serde::{Deserialize, Serialize};

use super::actor::{Actor, Grant, Right};

/// What a program expects to do with the pages that it reads.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// Read them.
    #[default]
    Read,
    /// Write them soon: a page that it reads is granted to be written at once.
    Write,
}

/// How the pages of a program are kept consistent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Protocol {
    /// Several readers or one writer. The adviser keeps a copy of what is read.
    #[default]
    Cached,
    /// The same without that copy: each reader asks the page's owner.
    Uncached,
}

/// The user half of an adviser's clients: it goes with each fault.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Wishes {
    mode: Mode,
    protocol: Protocol,
    /// The pages of the working set: from the first to before the second.
    low: u32,
    high: u32,
}

/// Why the adviser is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fault {
    /// A read of a page that may not be read.
    Read,
    /// A write of a page that may not be written.
    Write,
}

/// Where the copies of a page are.
#[derive(Clone, Default, Debug)]
struct Directory {
    /// The nodes that have a copy, each with the number of its last grant.
    holders: BTreeMap<NodeId, u64>,
    /// The node whose copy is good for sure; none before the first write.
    owner: Option<NodeId>,
    /// Whether the adviser's own actor has a copy.
    cached: bool,
    grants: u64,
}

/// What an adviser does wrong on purpose, so that a check can be seen to find it.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Break {
    /// Nothing.
    #[default]
    Nothing,
    /// It leaves one holder's copy as it is when a page is written.
    Invalidate,
}

/// The adviser of some pages.
#[derive(Debug)]
pub struct Adviser {
    /// The actors that it commands, one a node.
    actors: Vec<Object<Actor>>,
    /// That on its own node, where it keeps copies.
    cache: Object<Actor>,
    pages: Vec<Directory>,
    /// Numbers of a page: one, and its words.
    words: u32,
    breaks: Break,
}

#[dhole::object(resident, client = Wishes)]
impl Adviser {
    /// An adviser of pages that no node has. They are zero, and it has copies.
    #[new]
    pub fn open(
        actors: Vec<Object<Actor>>,
        cache: Object<Actor>,
        (pages, words): (u32, u32),
        breaks: Break,
    ) -> Self {
        let page = Directory {
            cached: true,
            ..Directory::default()
        };
        Adviser {
            actors,
            cache,
            pages: vec![page; pages as usize],
            words,
            breaks,
        }
    }

    /// Says which pages come along with one that is read: from `low` to before `high`. A method of
    /// the client, which costs no message.
    pub fn indicate_ws(wishes: &mut Wishes, low: u32, high: u32) {
        (wishes.low, wishes.high) = (low, high);
    }

    /// Says what the program will do. A method of the client.
    pub fn set_mode(wishes: &mut Wishes, mode: Mode) {
        wishes.mode = mode;
    }

    /// Says how pages are kept consistent. A method of the client.
    pub fn set_prot(wishes: &mut Wishes, protocol: Protocol) {
        wishes.protocol = protocol;
    }

    /// Handles a fault of a node: brings the page, takes it from those that must not have it, and
    /// grants the right.
    pub fn handle(
        &mut self,
        w: &mut Worker<'_>,
        wishes: &Wishes,
        (page, by, fault): (u32, NodeId, Fault),
    ) -> Result<Grant> {
        let writes = fault == Fault::Write || wishes.mode == Mode::Write;
        let known = self.pages.get(page as usize).cloned();
        let mut known = known.ok_or_else(|| no_page(page, self.pages.len()))?;
        if !known.holders.contains_key(&by) {
            let caches = !writes && wishes.protocol == Protocol::Cached;
            self.bring(w, (page, by), &mut known, caches)?;
        }
        if writes {
            self.invalidate(w, (page, by), &known)?;
            known.holders.clear();
            (known.owner, known.cached) = (Some(by), false);
        }
        known.grants += 1;
        known.holders.insert(by, known.grants);
        let grant = Grant {
            number: known.grants,
            right: match writes {
                true => Right::Write,
                false => Right::Read,
            },
        };
        self.pages[page as usize] = known;
        if !writes {
            self.bring_along(w, wishes, (page, by))?;
        }
        Ok(grant)
    }
}

impl Adviser {
    fn actor(&self, of: NodeId) -> Object<Actor> {
        self.actors[of.index()]
    }

    /// Brings a page to a node that has none: from here, or from its owner.
    fn bring(
        &self,
        w: &mut Worker<'_>,
        (page, by): (u32, NodeId),
        known: &mut Directory,
        caches: bool,
    ) -> Result<()> {
        let owner = known.owner.filter(|_| !known.cached);
        let Some(owner) = owner else {
            let data = self.cached(w, page)?;
            return Ok(self.actor(by).put_copy(w, page, &data)?);
        };
        let grant = known.holders.get(&owner).copied().unwrap_or_default();
        let (from, what) = (self.actor(owner), (page, grant, self.words));
        let cache = caches.then_some(self.cache);
        self.actor(by).copy_from(w, from, what, cache)?;
        known.cached |= caches;
        Ok(())
    }

    /// The copy that is here. A page that no node has written is zero.
    fn cached(&self, w: &mut Worker<'_>, page: u32) -> Result<Vec<u64>> {
        let mut data = vec![0; self.words as usize];
        self.cache.get_copy(w, page, 0, &mut data)?;
        Ok(data)
    }

    /// Takes a page from all that have it but one.
    fn invalidate(
        &self,
        w: &mut Worker<'_>,
        (page, by): (u32, NodeId),
        known: &Directory,
    ) -> Result<()> {
        let others = known.holders.iter().filter(|(holder, _)| **holder != by);
        let left_out = usize::from(self.breaks == Break::Invalidate);
        for (holder, grant) in others.skip(left_out) {
            self.actor(*holder).invalidate(w, page, *grant)?;
        }
        Ok(())
    }

    /// Brings the other pages of the working set too that are here, in one invocation.
    fn bring_along(
        &mut self,
        w: &mut Worker<'_>,
        wishes: &Wishes,
        (page, by): (u32, NodeId),
    ) -> Result<()> {
        let high = wishes.high.min(self.pages.len() as u32);
        let wanted = |number: &u32| {
            let known = &self.pages[*number as usize];
            *number != page && known.cached && !known.holders.contains_key(&by)
        };
        let numbers: Vec<u32> = (wishes.low..high).filter(wanted).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let (mut pages, mut data) = (Vec::new(), Vec::new());
        for number in numbers {
            data.extend(self.cached(w, number)?);
            pages.push(u64::from(number));
            // It is taken up as it comes: the program waits for no right.
            self.pages[number as usize].holders.insert(by, 0);
        }
        Ok(self.actor(by).put_along(w, &pages, &data)?)
    }
}

fn no_page(page: u32, pages: usize) -> dhole::Error {
    dhole::Error::program(format!("page {page} of an adviser that has {pages}"))
}
