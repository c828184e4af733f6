//! The command line of `vote`.

use clap::{ArgAction, Parser};

use super::{Break, Case, Mode, Pattern, Problem, Protocol};
use crate::options::{BadInput, Common, listed, size};

/// The command line of `vote`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "vote",
    version,
    about = "Virtual shared memory made of objects: VOTE's catcher, adviser and actors",
    after_help = "One fault (--case), or accesses at random by all nodes. A case needs the node of \
                  the adviser, the node of the fault, and one for each holder."
)]
pub struct Options {
    /// One fault of this kind, with its messages, instead of accesses at random
    #[arg(long, value_enum)]
    pub case: Option<Case>,

    /// Nodes that have a copy of the page when the fault of a case happens
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = size())]
    pub holders: u32,

    /// Accesses of each node, of the pattern without --case
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = size())]
    pub accesses: u32,

    /// Pages
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = size())]
    pub pages: u32,

    /// Bytes of a page: a multiple of 8
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = size())]
    pub page_bytes: u32,

    /// Advisers, on nodes 0, 1 and so on; the pages are divided among them in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = size())]
    pub advisers: u32,

    /// Whether an adviser keeps copies of pages that are read: on or off
    #[arg(long, value_name = "WHAT", default_value = "on", value_parser = listed::<bool>(),
        action = ArgAction::Set)]
    pub cache: bool,

    /// Pages that come along with one that is read, at random: those before the next multiple
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = size())]
    pub working_set: u32,

    /// What the programs say that they do with what they read at random
    #[arg(long, value_enum, default_value_t = Mode::Read)]
    pub mode: Mode,

    /// A mistake that the adviser makes on purpose, which --verify finds
    #[arg(long = "break", value_enum, value_name = "WHAT")]
    pub breaks: Option<Break>,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

impl Options {
    /// What the options describe, on so many nodes.
    ///
    /// # Errors
    /// When there are too few nodes, or a page has no whole number of words.
    pub fn problem(&self, nodes: u16) -> Result<Problem, BadInput> {
        if !self.page_bytes.is_multiple_of(8) {
            return Err(BadInput::PageBytes(self.page_bytes));
        }
        if self.advisers > u32::from(nodes) {
            return Err(BadInput::TooFewNodes {
                nodes,
                needed: self.advisers,
                what: "advisers".into(),
            });
        }
        let pattern = match self.case {
            None => Pattern::Random {
                accesses: self.accesses,
                seed: self.common.seed,
                working_set: self.working_set,
                mode: self.mode,
            },
            Some(case) => {
                let needed = self.holders.saturating_add(2);
                if u32::from(nodes) < needed {
                    let holders = self.holders;
                    return Err(BadInput::TooFewNodes {
                        nodes,
                        needed,
                        what: format!("a case with {holders} holders"),
                    });
                }
                let holders = self.holders as u16;
                Pattern::Case { case, holders }
            }
        };
        Ok(Problem {
            pattern,
            pages: self.pages,
            words: self.page_bytes / 8,
            advisers: self.advisers,
            protocol: match self.cache {
                true => Protocol::Cached,
                false => Protocol::Uncached,
            },
            breaks: self.breaks.unwrap_or_default(),
        })
    }
}
