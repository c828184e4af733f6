//! The actor: what a node has of the pages of one adviser, and the interface by which the adviser
//! and other actors move them (section 4.1, figure 9).

use dhole::{Object, Result, Worker};
use serde::{Deserialize, Serialize};

/// What a program does with a word of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Access {
    /// It reads the word.
    Load(u32),
    /// It writes the word.
    Store(u32, u64),
}

impl Access {
    /// Whether the page must be writable.
    pub fn writes(self) -> bool {
        matches!(self, Access::Store(..))
    }
}

/// What a program may do with a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub enum Right {
    /// Nothing: each access is a fault.
    #[default]
    None,
    /// Read it.
    Read,
    /// Read and write it: no other node has a copy.
    Write,
}

/// A right that the adviser of a page has granted. The grants of a page have numbers, which rise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Its number.
    pub number: u64,
    /// What may be done.
    pub right: Right,
}

/// What an access saw: the place of the page's last write in the order of all its writes, which
/// may be this one, and the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Saw {
    /// How often the page had been written.
    pub writes: u64,
    /// The word.
    pub value: u64,
}

/// A page, as a node has it.
#[derive(Clone, Default, Debug)]
struct Page {
    /// The number of writes, and the words; none while it was never here.
    data: Vec<u64>,
    right: Right,
    /// The number of the last grant that the program of this node has taken up.
    taken: u64,
}

impl Page {
    fn access(&mut self, access: Access) -> Option<Saw> {
        let wanted = match access.writes() {
            true => Right::Write,
            false => Right::Read,
        };
        if self.right < wanted {
            return None;
        }
        let (writes, words) = self.data.split_first_mut()?;
        let word = match access {
            Access::Load(word) => words.get(word as usize)?,
            Access::Store(word, value) => {
                let word = words.get_mut(word as usize)?;
                *writes += 1;
                *word = value;
                word
            }
        };
        let (writes, value) = (*writes, *word);
        Some(Saw { writes, value })
    }
}

/// The pages of one adviser on one node. Other nodes call it, and its own program, whose memory it
/// is: so it stays, and none of it ever becomes bytes but the pages that are asked for.
#[derive(Debug)]
pub struct Actor {
    pages: Vec<Page>,
}

#[dhole::object(resident)]
impl Actor {
    /// An actor without a page.
    #[new]
    pub fn open(pages: u32) -> Self {
        let pages = vec![Page::default(); pages as usize];
        Actor { pages }
    }

    /// An access of the program of this node; none is a fault.
    pub fn access(&mut self, page: u32, access: Access) -> Option<Saw> {
        self.pages.get_mut(page as usize)?.access(access)
    }

    /// The program takes a grant up, and goes on with the access that was a fault.
    pub fn take_up(&mut self, page: u32, grant: Grant, access: Access) -> Option<Saw> {
        let page = self.pages.get_mut(page as usize)?;
        (page.right, page.taken) = (grant.right, grant.number);
        page.access(access)
    }

    /// Puts a copy of a page here. Its right comes with the reply of the adviser.
    pub fn put_copy(&mut self, page: u32, data: &[u64]) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            page.data = data.to_vec();
        }
    }

    /// Puts copies of pages here that the program has not asked for, each as long as the others. It
    /// may read them at once.
    pub fn put_along(&mut self, pages: &[u64], data: &[u64]) {
        let each = data.len() / pages.len().max(1);
        for (number, data) in pages.iter().zip(data.chunks(each.max(1))) {
            if let Some(page) = self.pages.get_mut(*number as usize) {
                (page.data, page.right) = (data.to_vec(), Right::Read);
            }
        }
    }

    /// Gives a copy of a page. From here on the program may only read it. It has taken up the grant
    /// of this number, the last that it got, and has done the access that it was for: *the page was
    /// locked until then* (footnote 4).
    #[when(self.has_taken_up(*page, *grant))]
    pub fn get_copy(&mut self, page: u32, grant: u64, #[out] data: &mut [u64]) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            page.right = page.right.min(Right::Read);
            let all = page.data.len().min(data.len());
            data[..all].copy_from_slice(&page.data[..all]);
        }
    }

    /// Takes a page from the program, which has taken up the grant of this number.
    #[when(self.has_taken_up(*page, *grant))]
    pub fn invalidate(&mut self, page: u32, grant: u64) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            page.right = Right::None;
            page.data.clear();
        }
    }

    /// Gets a copy of a page from the actor of its owner, and puts one to the adviser's own actor
    /// too, if it caches the page.
    pub fn copy_from(
        &mut self,
        w: &mut Worker<'_>,
        from: Object<Actor>,
        (page, grant, words): (u32, u64, u32),
        cache: Option<Object<Actor>>,
    ) -> Result<()> {
        let mut data = vec![0; words as usize];
        from.get_copy(w, page, grant, &mut data)?;
        if let Some(cache) = cache {
            cache.put_copy(w, page, &data)?;
        }
        self.put_copy(page, &data);
        Ok(())
    }

    fn has_taken_up(&self, page: u32, grant: u64) -> bool {
        let page = self.pages.get(page as usize);
        page.is_none_or(|page| page.taken >= grant)
    }
}
