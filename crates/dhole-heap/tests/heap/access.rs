//! References followed through an engine of three lines.

use std::collections::VecDeque;
use std::panic::Location;

use dhole_heap::{
    Access, ArrayMiss, BindError, Borrow, ElementsRefused, HeapMut, InstallError, Miss, Monitor,
    Ref, Row, Share, Token, Write,
};
use dhole_model::{NodeId, Oid, OidRange};

use super::cluster;

/// An engine whose objects are all on node 0, and never change there.
pub(super) struct Worker<'a, 'id> {
    pub(super) token: Token<'id>,
    pub(super) node: &'a Monitor<()>,
    pub(super) home: &'a Monitor<()>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("nobody has it")]
    Nobody,
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Elements(#[from] ElementsRefused),
}

impl<'id> Access<'id> for Worker<'_, 'id> {
    type Error = Lost;

    fn token(&self) -> &Token<'id> {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        &mut self.token
    }

    fn read_miss(&self, miss: &Miss) -> Result<(), Lost> {
        let mut bytes = Vec::new();
        let found = self.home.lock().split().0.gather(miss.oid, &mut bytes);
        self.node.shared_call(&self.token, |call| {
            let (mut heap, _) = call.split();
            match found {
                Ok(_) => heap.install(miss.oid, &bytes)?,
                Err(_) if miss.row => heap.zero_fill(miss.oid)?,
                Err(_) => return Err(Lost::Nobody),
            }
            Ok(())
        })
    }

    fn write_miss(&mut self, miss: &Miss) -> Result<(), Lost> {
        if !self.node.lock().split().0.is_present(miss.oid) {
            self.read_miss(miss)?;
        }
        self.node.exclusive_call(&mut self.token, |call| {
            call.split()
                .0
                .make_writable(miss.oid, false)
                .expect("it is present");
        });
        Ok(())
    }

    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), Lost> {
        let mut bytes = Vec::new();
        let mut home = self.home.lock();
        let found = home.split().0.gather_elements(miss.elements, &mut bytes);
        self.node.shared_call(&self.token, |call| {
            let (mut heap, _) = call.split();
            match found {
                Ok(()) => heap.install_elements(miss.elements, &bytes)?,
                Err(_) if heap.bind_array(miss).is_ok_and(|bound| bound.zeros) => {
                    heap.zero_fill_elements(miss.elements)?;
                }
                Err(_) => return Err(Lost::Nobody),
            }
            Ok(())
        })
    }

    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), Lost> {
        if !self.node.lock().split().0.has_elements(miss.elements) {
            self.read_elements(miss)?;
        }
        self.node.exclusive_call(&mut self.token, |call| {
            Ok(call.split().0.make_elements_writable(miss.elements)?)
        })
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        values: &[T],
    ) -> Result<(), Lost> {
        self.node.exclusive_call(&mut self.token, |call| {
            call.split().0.overwrite_elements(miss.elements, values)?;
            Ok(call.split().0.make_elements_writable(miss.elements)?)
        })
    }

    fn fail(&self, error: Lost) -> ! {
        std::panic::resume_unwind(Box::new(error))
    }
}

/// Runs `f` on node 1 with an object of 5 and a row of zeros that node 0 has made.
fn run(f: impl for<'a, 'id> FnOnce(Worker<'a, 'id>, Ref<u64>, Row<f32>)) {
    let cluster = cluster(2);
    let home = Monitor::new(&cluster, NodeId(0), ());
    let node = Monitor::new(&cluster, NodeId(1), ());
    let number = home.lock().split().0.alloc(5_u64).unwrap();
    let row = home.lock().split().0.alloc_rows(1, 4).unwrap().row(0);
    node.lend(|token| {
        f(
            Worker {
                token,
                node: &node,
                home: &home,
            },
            number,
            row,
        )
    })
    .unwrap();
}

#[test]
fn an_object_is_fetched_once_and_then_read_and_written() {
    run(|mut w, number, row| {
        assert_eq!(*number.get(&w), 5);
        *number.get_mut(&mut w) += 1;
        assert_eq!(number.update(&mut w, |n| std::mem::replace(n, 9)), 6);
        assert_eq!(number.read(&w), 9);
        assert_eq!(*number.try_get(&w).unwrap(), 9);
        *number.try_get_mut(&mut w).unwrap() = 1;
        row.get_mut(&mut w)[2] = 1.5;
        row.update(&mut w, |r| r[0] = 0.5);
        assert_eq!(row.get(&w), [0.5, 0.0, 1.5, 0.0]);
        assert_eq!(row.try_get(&w).unwrap().len(), 4);
        row.try_get_mut(&mut w).unwrap()[1] = 2.0;
    });
}

/// An engine that answers others before its calls are over: what they ask for is clean then. In
/// each of its calls the next object here is asked for, or the elements that became writable in it.
struct Asked<'a, 'id> {
    worker: Worker<'a, 'id>,
    asks: VecDeque<Option<Oid>>,
}

impl Asked<'_, '_> {
    fn answer(&mut self, clean: impl FnOnce(&mut HeapMut<'_>, Oid) -> bool) {
        if let Some(asked) = self.asks.pop_front().flatten() {
            let Worker { token, node, .. } = &mut self.worker;
            let cleaned = node.exclusive_call(token, |call| clean(&mut call.split().0, asked));
            assert!(cleaned, "the worker is in a call");
        }
    }
}

impl<'id> Access<'id> for Asked<'_, 'id> {
    type Error = Lost;

    fn token(&self) -> &Token<'id> {
        self.worker.token()
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        self.worker.token_mut()
    }

    fn read_miss(&self, miss: &Miss) -> Result<(), Lost> {
        self.worker.read_miss(miss)
    }

    fn write_miss(&mut self, miss: &Miss) -> Result<(), Lost> {
        self.worker.write_miss(miss)?;
        self.answer(|heap, asked| heap.make_clean(asked).is_ok());
        Ok(())
    }

    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), Lost> {
        self.worker.read_elements(miss)
    }

    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), Lost> {
        self.worker.write_elements(miss)?;
        self.answer(|heap, _| heap.make_elements_clean(miss.elements).is_ok());
        Ok(())
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        values: &[T],
    ) -> Result<(), Lost> {
        self.worker.overwrite_elements(miss, values)
    }

    fn fail(&self, error: Lost) -> ! {
        self.worker.fail(error)
    }
}

#[test]
fn what_another_was_given_while_it_became_writable_is_made_writable_again() {
    let cluster = cluster(2);
    let home = Monitor::new(&cluster, NodeId(0), ());
    let node = Monitor::new(&cluster, NodeId(1), ());
    let numbers = home.lock().split().0.alloc_range(8, |at| at).unwrap();
    let array = home.lock().split().0.alloc_array::<u64>(4).unwrap();
    let [a, b, c, d, e, f, g, h] = std::array::from_fn(|at| numbers.at(at));
    let tried = node.lend(|token| {
        let (node, home) = (&node, &home);
        let worker = Worker { token, node, home };
        let asks = VecDeque::from([Some(a.oid())]);
        let mut w = Asked { worker, asks };
        *a.get_mut(&mut w) = 7;
        w.asks.push_back(Some(b.oid()));
        *b.try_get_mut(&mut w).unwrap() = 8;
        w.asks.push_back(Some(a.oid()));
        array.slice_mut(&mut w, 1..3).fill(9);
        assert_eq!((*a.get(&w), *b.get(&w), w.asks.len()), (7, 8, 0));
        assert_eq!(array.slice(&w, 1..3), [9, 9]);
        // Of those that are borrowed together the one before is asked for whenever one is there.
        w.asks.resize(5, None);
        w.asks
            .extend([h, g, f, e, d, c].map(|number| Some(number.oid())));
        let numbers = (Write(c), Write(d), Write(e), Write(f), Write(g), Write(h));
        let borrowed = numbers.borrow(&mut w, Location::caller());
        *borrowed.unwrap().0 = 10;
    });
    tried.unwrap();
}

#[test]
fn an_access_that_fails_unwinds_with_the_engines_error() {
    let other = cluster(1);
    let foreign = Monitor::new(&other, NodeId(0), ())
        .lock()
        .split()
        .0
        .alloc(1_u64)
        .unwrap();
    run(|mut w, number, _| {
        assert!(matches!(foreign.try_get(&w), Err(Lost::Nobody)));
        assert!(matches!(foreign.try_get_mut(&mut w), Err(Lost::Nobody)));
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            foreign.read(&w);
        }));
        assert!(matches!(
            unwound.unwrap_err().downcast_ref(),
            Some(Lost::Nobody)
        ));
        assert_eq!(number.read(&w), 5);
    });
}

#[derive(Share)]
#[share(crate = "dhole_heap")]
struct Item {
    value: u64,
    next: Option<Ref<Item>>,
    first: Option<Ref<u64>>,
}

#[test]
fn a_cursor_walks_fetching_as_it_goes_and_its_objects_outlive_it() {
    let cluster = cluster(2);
    let home = Monitor::new(&cluster, NodeId(0), ());
    let node = Monitor::new(&cluster, NodeId(1), ());
    let number = home.lock().split().0.alloc(7_u64).unwrap();
    let list = (0..5).fold(None, |next, value| {
        let first = Some(number);
        let item = Item { value, next, first };
        Some(home.lock().split().0.alloc(item).unwrap())
    });
    let walked = node.lend(|token| {
        let (node, home) = (&node, &home);
        let w = Worker { token, node, home };
        let first = list.unwrap().at(&w);
        let items = std::iter::successors(Some(first), |at| at.follow(|item| item.next));
        let items: Vec<&Item> = items.map(|at| at.get()).collect();
        assert_eq!(first.reference(), list.unwrap());
        assert_eq!(*first.to(|item| item.first.unwrap()), 7);
        assert_eq!(first.next.unwrap().try_at(&w).unwrap().value, 3);
        items.iter().map(|item| item.value).collect::<Vec<_>>()
    });
    assert_eq!(walked, Ok(vec![4, 3, 2, 1, 0]));
}

#[test]
fn objects_that_were_not_allocated_together_are_not_bound_together() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let numbers = heap.alloc_range(64, |i| i).unwrap();
    let rows = heap.alloc_rows::<u8>(2, 5).unwrap();
    assert_eq!(
        rows.row(0).oid(),
        numbers.at(0).oid().plus(64),
        "their ids follow"
    );
    let miss = Miss::of(numbers.at(0), std::panic::Location::caller());
    let mut bind = |count| {
        let first = numbers.at(0).oid();
        heap.bind_all(&miss, OidRange { first, count })
    };
    assert_eq!(bind(64), Ok(()));
    assert!(matches!(bind(65), Err(BindError::TypeClash { .. })));
}
