//! Conditions, which threads wait on until another one wakes them.

use dhole_wire::Wire;

/// Threads that wait on conditions, the longest first. A thread waits on one condition at a time,
/// so that there are at most as many entries as threads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Conditions<C, W>(Vec<(C, W)>);

impl<C, W> Default for Conditions<C, W> {
    fn default() -> Conditions<C, W> {
        Conditions(Vec::new())
    }
}

impl<C: PartialEq, W> Conditions<C, W> {
    /// A thread waits on a condition.
    pub fn wait(&mut self, condition: C, waiter: W) {
        self.0.push((condition, waiter));
    }

    /// Wakes at most so many of the threads that wait on a condition: those that have waited
    /// longest.
    pub fn wake(&mut self, condition: C, most: usize) -> Vec<W> {
        let woken = self.0.extract_if(.., |(on, _)| *on == condition);
        woken.take(most).map(|(_, waiter)| waiter).collect()
    }

    /// The threads that wait, each with its condition.
    pub fn waiters(&self) -> &[(C, W)] {
        &self.0
    }
}

#[test]
fn threads_wake_in_the_order_in_which_they_waited_on_a_condition() {
    let mut conditions = Conditions::default();
    for waiter in 0..6 {
        conditions.wait(waiter % 2, waiter);
    }
    assert_eq!(conditions.wake(1, 1), [1]);
    assert_eq!(conditions.wake(0, usize::MAX), [0, 2, 4]);
    assert_eq!(conditions.wake(0, 1), []);
    assert_eq!(conditions.waiters(), [(1, 3), (1, 5)]);
}
