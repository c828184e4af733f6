//! A bounded buffer: one node makes numbers, the others use them up. A lock guards the buffer;
//! two condition variables say when there is room and when there is something to take.

use dhole::{Condvar, Config, Lock, Ref, Share};

const ROOM: u64 = 4;
const NUMBERS: u64 = 60;

#[derive(Share, Clone, Copy)]
struct Buffer {
    slots: [u64; ROOM as usize],
    put: u64,
    taken: u64,
    lock: Lock,
    not_full: Condvar,
    not_empty: Condvar,
}

fn put(w: &mut dhole::Worker<'_>, buffer: Ref<Buffer>, number: u64) -> dhole::Result<()> {
    let shared = buffer.read(w);
    let mut held = shared.lock.acquire(w)?;
    while buffer.get(w).put - buffer.get(w).taken == ROOM {
        held = shared.not_full.wait(w, held)?; // gives the lock back, and has it again on return
    }
    let b = buffer.get_mut(w);
    b.slots[(b.put % ROOM) as usize] = number;
    b.put += 1;
    shared.not_empty.notify_one(w)?;
    held.release(w)?;
    Ok(())
}

/// The next number, or none when all have been taken.
fn take(w: &mut dhole::Worker<'_>, buffer: Ref<Buffer>) -> dhole::Result<Option<u64>> {
    let shared = buffer.read(w);
    let mut held = shared.lock.acquire(w)?;
    while buffer.get(w).put == buffer.get(w).taken && buffer.get(w).taken < NUMBERS {
        held = shared.not_empty.wait(w, held)?;
    }
    let b = buffer.get_mut(w);
    let number = (b.taken < NUMBERS).then(|| b.slots[(b.taken % ROOM) as usize]);
    b.taken += u64::from(number.is_some());
    match number {
        Some(_) => shared.not_full.notify_one(w)?,
        None => shared.not_empty.notify_all(w)?, // so that the others see the end, too
    }
    held.release(w)?;
    Ok(number)
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(4).run(|w| {
        let (buffer, sums) = w.once(|w| {
            let lock = w.new_lock();
            let (not_full, not_empty) = (w.new_condvar(lock), w.new_condvar(lock));
            let (slots, put, taken) = ([0; ROOM as usize], 0, 0);
            let buffer = w.alloc(Buffer {
                slots,
                put,
                taken,
                lock,
                not_full,
                not_empty,
            });
            Ok((buffer, w.alloc_range(4, |_| 0_u64)))
        })?;
        if w.node().index() == 0 {
            for number in 1..=NUMBERS {
                put(w, buffer, number)?;
            }
        } else {
            let mut sum = 0;
            while let Some(number) = take(w, buffer)? {
                sum += number;
            }
            *sums.at(w.node().index()).get_mut(w) = sum;
        }
        w.barrier()?;
        Ok(sums.iter().map(|sum| sum.read(w)).sum::<u64>())
    })?;
    assert_eq!(run.value, NUMBERS * (NUMBERS + 1) / 2);
    if run.report.is_first() {
        println!("{} in all, every number taken once", run.value);
    }
    Ok(())
}
