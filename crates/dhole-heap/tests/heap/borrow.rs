//! Several objects borrowed at once, through a worker that does not have what it should.

use std::convert::Infallible;
use std::panic::Location;

use dhole_heap::{
    Access, ArrayMiss, Borrow, BorrowError, Miss, Monitor, Read, Share, Token, Write,
};
use dhole_model::NodeId;

use super::cluster;

/// Shares the token, or owns it.
enum Held<'t, 'id> {
    Shared(&'t Token<'id>),
    Owned(Token<'id>),
}

impl<'id> Access<'id> for Held<'_, 'id> {
    type Error = Infallible;

    fn token(&self) -> &Token<'id> {
        match self {
            Held::Shared(token) => token,
            Held::Owned(token) => token,
        }
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        match self {
            Held::Shared(_) => panic!("the token is only shared"),
            Held::Owned(token) => token,
        }
    }

    fn read_miss(&self, _: &Miss) -> Result<(), Infallible> {
        Ok(())
    }

    fn write_miss(&mut self, _: &Miss) -> Result<(), Infallible> {
        Ok(())
    }

    fn read_elements(&self, _: &ArrayMiss) -> Result<(), Infallible> {
        Ok(())
    }

    fn write_elements(&mut self, _: &ArrayMiss) -> Result<(), Infallible> {
        Ok(())
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        _: &ArrayMiss,
        _: &[T],
    ) -> Result<(), Infallible> {
        Ok(())
    }

    fn fail(&self, error: Infallible) -> ! {
        match error {}
    }
}

#[test]
#[should_panic(expected = "the token is only shared")]
fn a_shared_token_gives_nothing_to_write() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let r = node.lock().split().0.alloc(1_u64).unwrap();
    node.lock().split().0.make_writable(r.oid(), false).unwrap();
    node.lend(|token| {
        let mut w = Held::Shared(&token);
        let _ = (Write(r),).borrow(&mut w, Location::caller());
    })
    .unwrap();
}

#[test]
fn several_objects_are_lent_and_an_overlap_is_an_error() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let (a, b) = {
        let mut guard = node.lock();
        let (mut heap, _) = guard.split();
        let pair = (heap.alloc(1_u64).unwrap(), heap.alloc(2_u64).unwrap());
        heap.make_writable(pair.1.oid(), false).unwrap();
        pair
    };
    node.lend(|token| {
        let mut w = Held::Owned(token);
        let (from, to) = (Read(a), Write(b))
            .borrow(&mut w, Location::caller())
            .unwrap();
        *to += *from;
        assert_eq!(*w.token().get(b).unwrap(), 3);
        let twice = (Read(b), Write(b)).borrow(&mut w, Location::caller());
        let Err(BorrowError::Overlap {
            oid,
            both,
            elements,
            ..
        }) = twice
        else {
            panic!("borrowed twice");
        };
        assert_eq!((oid, both, elements), (b.oid(), [0, 1], None));
    })
    .unwrap();
}
