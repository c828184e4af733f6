//! Chains of calls: what an operation that takes a worker holds while it calls another, and what
//! its callers hold. A chain goes with each call that an operation makes, and with each process
//! that it starts. So a call that waits for its own caller is refused at once, with the names of
//! all links (VOTE, section 3.3).

use std::fmt;
use std::sync::Arc;

use dhole_model::{CallSite, ObjectId};
use dhole_wire::{Wire, WireError};

use super::bytes::Bytes;

/// So many links go with a call, and no more: those of the calls that began last. A longer circle
/// of calls is found as other deadlocks are.
pub const MOST_LINKS: usize = 16;

/// A call of an operation that is in progress while it makes another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct ChainLink {
    /// The object that it holds.
    pub object: ObjectId,
    /// The operation, with its type.
    pub operation: Arc<str>,
    /// Where in the program it makes the next call; nothing of the last link.
    pub calls_at: Option<CallSite>,
}

/// Calls in progress, each made by the one before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Chain {
    links: Vec<ChainLink>,
}

impl Chain {
    /// The chain of these bytes; that of no bytes is empty.
    ///
    /// # Errors
    /// [`WireError`] when they are no chain, or one of more than [`MOST_LINKS`].
    pub fn of(bytes: &[u8]) -> Result<Chain, WireError> {
        if bytes.is_empty() {
            return Ok(Chain::default());
        }
        let links: Vec<ChainLink> = Wire::parse(bytes)?;
        match links.len() <= MOST_LINKS {
            true => Ok(Chain { links }),
            false => Err(WireError::Value("a longer chain of calls than there is")),
        }
    }

    /// Whether no operation is in progress.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The links, the first caller's first.
    pub fn links(&self) -> &[ChainLink] {
        &self.links
    }

    /// The chain of a call of this chain, once it is in progress.
    pub fn then(mut self, object: ObjectId, operation: Arc<str>) -> Chain {
        self.links.push(ChainLink {
            object,
            operation,
            calls_at: None,
        });
        if self.links.len() > MOST_LINKS {
            self.links.remove(0);
        }
        self
    }

    /// Its bytes, for a call that is made here.
    pub fn calling_at(&self, site: CallSite) -> Bytes {
        let mut links = self.links.clone();
        let Some(last) = links.last_mut() else {
            return Bytes::default();
        };
        last.calls_at = Some(site);
        Bytes::from(&links.to_bytes()[..])
    }

    /// The chain from the first link that is so, with the call that it does not let begin.
    pub(super) fn circle(
        &self,
        is_first: impl Fn(&ChainLink) -> bool,
        (object, operation): (ObjectId, Arc<str>),
    ) -> Arc<[ChainLink]> {
        let links = self.links.iter().skip_while(|link| !is_first(link));
        let last = ChainLink {
            object,
            operation,
            calls_at: None,
        };
        links.cloned().chain([last]).collect()
    }
}

/// The words of a chain.
pub(super) struct InWords<'a>(pub &'a [ChainLink]);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, link) in self.0.iter().enumerate() {
            let which = if place == 0 { "" } else { " " };
            write!(f, "{which}{} of {}", link.operation, link.object)?;
            if let Some(site) = link.calls_at {
                let who = if place == 0 {
                    " calls"
                } else {
                    ", which calls"
                };
                write!(f, "{who}, at {site},")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u64, line: u32) -> ChainLink {
        ChainLink {
            object: ObjectId(number),
            operation: format!("Bank::pay{number}").into(),
            calls_at: Some(CallSite {
                file: "bank.rs",
                line,
                column: 1,
            }),
        }
    }

    fn of(numbers: std::ops::Range<u64>) -> Chain {
        numbers.fold(Chain::default(), |chain, number| {
            chain.then(ObjectId(number), format!("Bank::pay{number}").into())
        })
    }

    #[test]
    fn a_chain_comes_back_with_the_line_of_its_call_and_the_last_links() {
        let site = link(0, 7).calls_at.unwrap();
        let bytes = of(0..20).calling_at(site);
        let chain = Chain::of(&bytes).unwrap();
        assert_eq!(chain.links().len(), MOST_LINKS);
        assert_eq!(chain.links().last(), Some(&link(19, 7)));
        assert_eq!(chain.links()[0].object, ObjectId(4));
        assert!(Chain::of(&[]).unwrap().is_empty());
        assert!(of(0..0).calling_at(site).is_empty());
    }

    #[test]
    fn bytes_that_are_no_chain_are_refused() {
        let site = link(0, 7).calls_at.unwrap();
        let bytes = of(0..3).calling_at(site);
        for end in 1..bytes.len() {
            assert!(Chain::of(&bytes[..end]).is_err(), "{end} bytes");
        }
        let many = vec![link(0, 1); MOST_LINKS + 1];
        assert!(Chain::of(&many.to_bytes()).is_err());
    }

    #[test]
    fn a_circle_names_each_operation_object_and_line() {
        let site = link(0, 7).calls_at.unwrap();
        let chain = Chain::of(&of(1..4).calling_at(site)).unwrap();
        let again = (ObjectId(2), Arc::from("Bank::pay2"));
        let circle = chain.circle(|it| it.object == ObjectId(2), again);
        assert_eq!(circle.len(), 3);
        let words = InWords(&circle).to_string();
        let last = "Bank::pay3 of object 3, which calls, at bank.rs:7:1, Bank::pay2 of object 2";
        assert!(words.ends_with(last), "{words}");
    }
}
