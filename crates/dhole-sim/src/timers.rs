/// One deadline for each node, and the earliest of them: a winner tree. Setting and clearing leave
/// nothing behind, so waits that are cut short cost no memory.
pub(crate) struct Timers {
    /// `tree[i]` is the smaller of `tree[2 * i]` and `tree[2 * i + 1]`; node `n` is the leaf at
    /// `tree.len() / 2 + n`.
    tree: Vec<u64>,
}

impl Timers {
    /// The time that stands for "never".
    pub(crate) const NEVER: u64 = u64::MAX;

    /// No deadline for any of `nodes` nodes.
    pub(crate) fn new(nodes: usize) -> Timers {
        Timers {
            tree: vec![Timers::NEVER; 2 * nodes.next_power_of_two()],
        }
    }

    /// Sets the deadline of the node at `index`, or clears it with [`NEVER`](Timers::NEVER).
    pub(crate) fn set(&mut self, index: usize, time: u64) {
        let mut at = self.tree.len() / 2 + index;
        self.tree[at] = time;
        while at > 1 {
            let winner = self.tree[at].min(self.tree[at ^ 1]);
            at /= 2;
            if self.tree[at] == winner {
                return;
            }
            self.tree[at] = winner;
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.tree[1]
    }

    /// A node that has the earliest deadline: the first one.
    pub(crate) fn first(&self) -> usize {
        let leaves = self.tree.len() / 2;
        let mut at = 1;
        while at < leaves {
            at *= 2;
            if self.tree[at] > self.tree[at + 1] {
                at += 1;
            }
        }
        at - leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn the_tree_agrees_with_a_search() {
        for nodes in [1, 2, 3, 32, 1000] {
            let (mut timers, mut plain) = (Timers::new(nodes), vec![Timers::NEVER; nodes]);
            let mut stream = Stream::new(3, nodes as u64);
            for _ in 0..2000 {
                let index = stream.draw() as usize % nodes;
                let time = if stream.draw().is_multiple_of(3) {
                    Timers::NEVER
                } else {
                    stream.draw() % 50
                };
                timers.set(index, time);
                plain[index] = time;
                let earliest = *plain.iter().min().unwrap();
                assert_eq!(timers.earliest(), earliest);
                if earliest != Timers::NEVER {
                    assert_eq!(
                        timers.first(),
                        plain.iter().position(|t| *t == earliest).unwrap()
                    );
                }
            }
        }
    }
}
