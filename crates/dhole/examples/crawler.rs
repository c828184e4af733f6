//! A crawler: each node has one, whose operation *takes a worker*. So it waits for other objects,
//! calls the crawlers of other nodes, and serves readers meanwhile.

use std::collections::BTreeMap;

use dhole::{Config, NodeId, Object, Result, Worker, on};
use serde::{Deserialize, Serialize};

/// The pages that were seen already, on one node: a plain object, executed where it is.
#[derive(Serialize, Deserialize, Default)]
struct Seen(Vec<u32>);

#[dhole::object]
impl Seen {
    /// Whether the page is a new one.
    pub fn claim(&mut self, page: u32) -> bool {
        let new = !self.0.contains(&page);
        if new {
            self.0.push(page);
        }
        new
    }
}

/// A crawler, which keeps the pages of its own node.
#[derive(Serialize, Deserialize, Default)]
struct Crawler {
    pages: BTreeMap<u32, Vec<u32>>,
}

/// The pages that a page links to: page `n` to `2n + 1` and `2n + 2`, below 31.
fn links(page: u32) -> Vec<u32> {
    let both = [2 * page + 1, 2 * page + 2];
    both.into_iter().filter(|to| *to < 31).collect()
}

#[dhole::object]
impl Crawler {
    #[new]
    pub fn open() -> Self {
        Crawler::default()
    }

    /// Fetches a page. It takes a worker, so it may wait, and call other objects.
    pub fn fetch(&mut self, w: &mut Worker<'_>, seen: Object<Seen>, page: u32) -> Result<Vec<u32>> {
        if !seen.claim(w, page)? {
            return Ok(Vec::new());
        }
        w.pause()?; // others of this node go on meanwhile
        let to = links(page);
        self.pages.insert(page, to.clone());
        Ok(to)
    }

    /// Takes none, and is executed as the operations of any object.
    pub fn count(&self) -> usize {
        self.pages.len()
    }
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(3).run(|w| {
        let nodes = w.nodes() as u32;
        let (crawlers, seen) = w.once(|w| {
            let crawlers = [
                Crawler::open_in(w, on(NodeId(0)))?,
                Crawler::open_in(w, on(NodeId(1)))?,
                Crawler::open_in(w, on(NodeId(2)))?,
            ];
            Ok((crawlers, w.new_object(on(NodeId(0)), Seen::default())?))
        })?;
        let crawler = |page: u32| crawlers[(page % nodes) as usize];
        // All nodes walk the same pages; each page is fetched once.
        let mut queue = vec![0];
        while let Some(page) = queue.pop() {
            queue.extend(crawler(page).fetch(w, seen, page)?);
        }
        w.barrier()?; // all have come to their ends
        let mut all = 0;
        for crawler in crawlers {
            all += crawler.count(w)?;
        }
        Ok(all)
    })?;
    if run.report.is_first() {
        println!("{} pages", run.value);
    }
    assert_eq!(run.value, 31);
    Ok(())
}
