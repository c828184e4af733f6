//! Pools of objects that every step reuses.

use dhole::{Ref, Share, Worker};

/// Objects of one type that this node allocated and takes one after the other, from the first
/// again in each step.
#[derive(Debug)]
pub struct Pool<T> {
    objects: Vec<Ref<T>>,
    taken: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool {
            objects: Vec::new(),
            taken: 0,
        }
    }
}

impl<T: Share> Pool<T> {
    /// All objects may be taken again.
    pub fn reuse(&mut self) {
        self.taken = 0;
    }

    /// An object that holds `value`.
    pub fn take(&mut self, w: &mut Worker<'_>, value: T) -> Ref<T> {
        let object = match self.objects.get(self.taken) {
            Some(&object) => {
                *object.get_mut(w) = value;
                object
            }
            None => {
                let object = w.alloc(value);
                self.objects.push(object);
                object
            }
        };
        self.taken += 1;
        object
    }
}
