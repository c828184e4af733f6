//! When calls are withdrawn whose time is limited.

use dhole_model::ObjectId;

/// When the calls of a node that are limited are withdrawn.
#[derive(Default)]
pub(crate) struct Deadlines {
    all: Vec<Deadline>,
}

/// When a call is withdrawn.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    pub call: u64,
    pub object: ObjectId,
    pub at_ns: u64,
}

impl Deadlines {
    /// Whether a call that waits is limited: so its node does not wait for ever.
    pub fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// One more call is limited.
    pub fn add(&mut self, deadline: Deadline) {
        self.all.push(deadline);
    }

    /// The first moment at which a call is withdrawn.
    pub fn first_ns(&self) -> Option<u64> {
        self.all.iter().map(|it| it.at_ns).min()
    }

    /// Takes a call whose time is over, if there is one.
    pub fn take_overdue(&mut self, now_ns: u64) -> Option<Deadline> {
        let place = self.all.iter().position(|it| it.at_ns <= now_ns)?;
        Some(self.all.remove(place))
    }

    /// A call is limited no more.
    pub fn forget(&mut self, call: u64) {
        self.all.retain(|it| it.call != call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_overdue_once_and_not_before_its_time() {
        let mut all = Deadlines::default();
        for (call, at_ns) in [(1, 30), (2, 10), (3, 20)] {
            let object = ObjectId(call);
            all.add(Deadline {
                call,
                object,
                at_ns,
            });
        }
        assert_eq!(all.first_ns(), Some(10));
        assert!(all.take_overdue(9).is_none());
        assert_eq!(all.take_overdue(10).map(|it| it.call), Some(2));
        assert!(all.take_overdue(19).is_none());
        all.forget(3);
        assert_eq!(all.first_ns(), Some(30));
        assert_eq!(all.take_overdue(99).map(|it| it.call), Some(1));
        assert!(!all.any() && all.take_overdue(99).is_none());
    }
}
