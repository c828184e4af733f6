use std::sync::atomic::{AtomicU64, Ordering};

use dhole::{
    Array, Coherence, Error, Lock, NodeId, Object, Read, Ref, Refs, Result, Rows, Share, Worker,
    Write, on, replicated,
};
use serde::{Deserialize, Serialize};

use super::program::{
    ARRAY_LEN, ARRAYS, Action, End, Part, Program, ROW_LEN, SUMS, digest, written,
};
use crate::{Platform, run};

/// An item: data of several kinds beside a reference.
#[derive(Clone, Copy, Share)]
struct Item {
    odd: bool,
    value: u64,
    next: Option<Ref<Item>>,
    letter: char,
}

/// Where an item is, once it has been allocated.
#[derive(Clone, Copy, Share)]
struct Slot {
    item: Option<Ref<Item>>,
}

/// An element of the array of records: not every byte of it is data, and not every bit pattern
/// a value.
#[derive(Clone, Copy, Share)]
struct Record {
    parity: Parity,
    value: u64,
    letter: char,
}

#[derive(Clone, Copy, PartialEq, Eq, Share)]
enum Parity {
    Even = 4,
    Odd = 9,
}

impl Record {
    fn new(value: u64) -> Record {
        Record {
            parity: if value.is_multiple_of(2) {
                Parity::Even
            } else {
                Parity::Odd
            },
            value,
            letter: char::from(b'a' + (value % 26) as u8),
        }
    }

    fn value(&self) -> u64 {
        let whole = Record::new(self.value);
        assert!(
            self.parity == whole.parity && self.letter == whole.letter,
            "a torn record"
        );
        self.value
    }
}

/// An object with operations.
#[derive(Serialize, Deserialize)]
struct Sum(u64);

#[dhole::object(crate = "dhole")]
impl Sum {
    pub fn add(&mut self, value: u64) {
        self.0 += value;
    }

    pub fn get(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, Share)]
struct Roots {
    slots: Refs<Slot>,
    rows: Rows<u64>,
    records: Array<Record>,
    scalars: Array<u64>,
    sums: [Option<Object<Sum>>; SUMS],
}

impl Item {
    fn new(value: u64) -> Item {
        let mut item = Item {
            odd: false,
            value,
            next: None,
            letter: 'a',
        };
        item.set(value);
        item
    }

    /// Sets the value, and the fields that must agree with it.
    fn set(&mut self, value: u64) {
        self.value = value;
        self.odd = !value.is_multiple_of(2);
        self.letter = char::from(b'a' + (value % 26) as u8);
    }

    fn value(&self) -> u64 {
        let whole = Item::new(self.value);
        assert!(
            (self.odd, self.letter) == (whole.odd, whole.letter),
            "a torn item"
        );
        self.value
    }
}

/// Runs a program; each node's digest of everything that it read.
///
/// # Errors
/// The words of a run that fails.
pub fn execute(program: &Program, platform: &dyn Platform, seed: u64) -> Result<Vec<u64>, String> {
    let digests: Vec<AtomicU64> = (0..program.nodes).map(|_| AtomicU64::new(0)).collect();
    let ran = run(platform, program.nodes, seed, |w| {
        let mut roots = w.once(|w| {
            let slots = w.alloc_range(program.items, |_| Slot { item: None });
            let rows = w.alloc_rows(program.rows, ROW_LEN);
            let of = |array| program.coherence(array, platform.coherence());
            let record = |_| Record::new(0);
            let records = w.under(of(1)).alloc_array_with(ARRAY_LEN, record);
            let scalars = w.under(of(2)).alloc_array(ARRAY_LEN);
            let last = NodeId::at(program.nodes - 1);
            let mut sums = [None; SUMS];
            if program.sums {
                sums = [
                    Some(w.new_object(on(NodeId(0)), Sum(0))?),
                    Some(w.new_object(on(last), Sum(0))?),
                    Some(w.new_object(replicated(), Sum(0))?),
                ];
            }
            Ok(Roots {
                sums,
                slots,
                rows,
                records,
                scalars,
            })
        })?;
        let default = platform.coherence();
        let mut node = Node {
            default,
            w,
            roots,
            program,
            digest: 0,
        };
        for phase in &program.phases {
            for action in &phase.actions[node.w.node().index()] {
                node.act(*action)?;
            }
            match phase.end {
                End::Barrier => node.w.barrier()?,
                End::Once => roots = node.w.once(|_| Ok(roots))?,
                End::AllToAll => node.exchange()?,
                // Under TreadMarks objects have no protocol of their own.
                End::Switch(_) if default.properties().keeps_pages() => node.w.barrier()?,
                End::Switch(to) => node.switch(to)?,
            }
            node.roots = roots;
        }
        node.read_all()?;
        digests[node.w.node().index()].store(node.digest, Ordering::SeqCst);
        Ok(())
    });
    match ran {
        Ok(_) => Ok(digests
            .iter()
            .map(|digest| digest.load(Ordering::SeqCst))
            .collect()),
        Err(error) => Err(error.to_string()),
    }
}

struct Node<'a, 'id> {
    default: Coherence,
    w: &'a mut Worker<'id>,
    roots: Roots,
    program: &'a Program,
    digest: u64,
}

impl Node<'_, '_> {
    /// Gives each node a value that follows from both.
    fn exchange(&mut self) -> Result<()> {
        let (me, nodes) = (self.w.node().index() as u64, self.w.nodes() as u64);
        let given = (0..nodes).map(|to| digest(me, to)).collect();
        let came = self.w.all_to_all(given)?;
        let expected: Vec<u64> = (0..nodes).map(|from| digest(from, me)).collect();
        match came == expected {
            true => Ok(()),
            false => Err(Error::program(format!(
                "all to all: {came:?}, not {expected:?}"
            ))),
        }
    }

    fn item(&self, item: usize) -> Ref<Item> {
        let slot = self.roots.slots.at(item).get(self.w);
        slot.item
            .expect("the program allocates an item before it uses it")
    }

    /// The lock of an item, or of the row behind the last item.
    fn lock(&self, item: usize) -> Lock {
        Lock::numbered(item as u32)
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Alloc { first, count } => {
                let coherence = self.program.coherence(first, self.default);
                let mut w = self.w.under(coherence);
                let items = w.alloc_range(count, |i| Item::new((first + i) as u64));
                for (slot, item) in self
                    .roots
                    .slots
                    .slice(first..first + count)
                    .iter()
                    .zip(items.iter())
                {
                    slot.get_mut(self.w).item = Some(item);
                }
            }
            Action::Read(at) => {
                let item = self.item(at);
                self.read(item);
            }
            Action::Write(at, with) => {
                let item = self.item(at);
                self.read(item);
                item.update(self.w, |item| item.set(written(item.value(), with)));
            }
            Action::Put(at, value) => self.item(at).put(self.w, Item::new(value))?,
            Action::Link(at, to) => {
                let (item, to) = (self.item(at), self.item(to));
                item.get_mut(self.w).next = Some(to);
            }
            Action::Walk(at, steps) => {
                let mut at = Some(self.item(at));
                for _ in 0..=steps {
                    let Some(item) = at else { break };
                    self.read(item);
                    at = item.get(self.w).next;
                }
            }
            Action::Combine(at, with) => {
                let (at, with) = (self.item(at), self.item(with));
                let (item, with) = self.w.borrow((Write(at), Read(with)))?;
                item.set(written(item.value(), with.value()));
            }
            Action::Add(at, value) => {
                let (item, lock) = (self.item(at), self.lock(at));
                lock.with(self.w, |w| {
                    item.update(w, |item| item.set(item.value().wrapping_add(value)));
                    Ok(())
                })?;
            }
            Action::Move(from, to, value) => {
                let (less, more) = (self.item(from), self.item(to));
                let first = self.lock(from).acquire(self.w)?;
                let second = self.lock(to).acquire(self.w)?;
                less.update(self.w, |item| item.set(item.value().wrapping_sub(value)));
                more.update(self.w, |item| item.set(item.value().wrapping_add(value)));
                first.release(self.w)?;
                second.release(self.w)?;
            }
            Action::ReadRow(row) => self.read_row(row),
            Action::WriteRow(row, at, with) => {
                let scalar = &mut self.roots.rows.row(row).get_mut(self.w)[at];
                *scalar = written(*scalar, with);
            }
            Action::AddToRow(row, at, value) => {
                let (row, lock) = (
                    self.roots.rows.row(row),
                    self.lock(self.program.items + row),
                );
                lock.with(self.w, |w| {
                    row.update(w, |row| row[at] = row[at].wrapping_add(value));
                    Ok(())
                })?;
            }
            Action::ReadPart(part) => self.read_part(part),
            Action::Prefetch(Part { array, start, end }) => match array {
                0 => self.w.prefetch(self.roots.records.range(start..end))?,
                _ => self.w.prefetch(self.roots.scalars.range(start..end))?,
            },
            Action::WritePart(Part { array, start, end }, with) => match array {
                0 => {
                    let records = self.roots.records.slice_mut(self.w, start..end);
                    let change = |r: &mut Record| *r = Record::new(written(r.value(), with));
                    records.iter_mut().for_each(change);
                }
                _ => {
                    let scalars = self.roots.scalars.slice_mut(self.w, start..end);
                    scalars
                        .iter_mut()
                        .for_each(|value| *value = written(*value, with));
                }
            },
            // Half of them by indices, the last first.
            Action::Overwrite(Part { array, start, end }, with) if with % 2 == 1 => {
                let indices: Vec<usize> = (start..end).rev().collect();
                match array {
                    0 => {
                        let values = vec![Record::new(with); end - start];
                        self.roots.records.scatter(self.w, &indices, &values)?;
                    }
                    _ => {
                        let values = vec![with; end - start];
                        self.roots.scalars.scatter(self.w, &indices, &values)?;
                    }
                }
            }
            Action::Overwrite(Part { array, start, end }, with) => match array {
                0 => {
                    let values = vec![Record::new(with); end - start];
                    self.roots.records.write_all(self.w, start, &values);
                }
                _ => {
                    let values = vec![with; end - start];
                    self.roots.scalars.write_all(self.w, start, &values);
                }
            },
            Action::AddToPart(part, value) => self.add_to_part(part, value)?,
            Action::Update(part, value) => {
                let indices: Vec<usize> = part.updated().rev().collect();
                let values = vec![value; indices.len()];
                self.roots.scalars.add_all(self.w, &indices, &values)?;
            }
            Action::Start(sum, value, times) => {
                let sum = self.roots.sums[sum].into_iter();
                for sum in sum.flat_map(|sum| std::iter::repeat_n(sum, times as usize)) {
                    drop(sum.start_add(self.w, value)?);
                }
            }
            Action::ReadSum(sum) => self.read_sum(sum)?,
            Action::Work(units) => self.w.work(units),
            Action::Pause => self.w.pause()?,
        }
        Ok(())
    }

    /// Switches the slots, the rows and the arrays, and then all items.
    fn switch(&mut self, to: Coherence) -> Result<()> {
        self.w.switch(self.roots.slots, to)?;
        if self.program.rows > 0 {
            self.w.switch(self.roots.rows, to)?;
        }
        self.w.switch(self.roots.records, to)?;
        self.w.switch(self.roots.scalars, to)?;
        let slots = self.roots.slots.iter();
        let items: Vec<_> = slots.filter_map(|slot| slot.get(self.w).item).collect();
        // Nobody writes a slot before all have read it.
        self.w.barrier()?;
        for item in items {
            self.w.switch(item, to)?;
        }
        Ok(())
    }

    fn read(&mut self, item: Ref<Item>) {
        self.digest = digest(self.digest, item.get(self.w).value());
    }

    fn read_row(&mut self, row: usize) {
        let row = self.roots.rows.row(row).get(self.w);
        self.digest = row.iter().copied().fold(self.digest, digest);
    }

    fn read_sum(&mut self, sum: usize) -> Result<()> {
        if let Some(sum) = self.roots.sums[sum] {
            self.digest = digest(self.digest, sum.get(self.w)?);
        }
        Ok(())
    }

    fn read_part(&mut self, Part { array, start, end }: Part) {
        let so_far = self.digest;
        // Some by indices, the last first.
        let indices: Vec<usize> = (start..end).rev().filter(|_| start % 3 == 1).collect();
        self.digest = match array {
            0 if start % 3 == 1 => {
                let records = self.roots.records.gather(self.w, &indices);
                records.iter().rev().map(Record::value).fold(so_far, digest)
            }
            1 if start % 3 == 1 => {
                let scalars = self.roots.scalars.gather(self.w, &indices);
                scalars.into_iter().rev().fold(so_far, digest)
            }
            0 => {
                let records = self.roots.records.slice(self.w, start..end);
                records.iter().map(Record::value).fold(so_far, digest)
            }
            _ => {
                let scalars = self.roots.scalars.slice(self.w, start..end);
                scalars.iter().copied().fold(so_far, digest)
            }
        };
    }

    fn add_to_part(&mut self, Part { array, start, .. }: Part, value: u64) -> Result<()> {
        let Roots {
            records, scalars, ..
        } = self.roots;
        let lock = self.lock(self.program.items + self.program.rows + array);
        lock.with(self.w, |w| {
            match array {
                0 => {
                    let sum = records.get(w, start).value().wrapping_add(value);
                    *records.get_mut(w, start) = Record::new(sum);
                }
                _ if value % 2 == 1 => scalars.add_all(w, &[start], &[value])?,
                _ => {
                    let scalar = scalars.get_mut(w, start);
                    *scalar = scalar.wrapping_add(value);
                }
            }
            Ok(())
        })
    }

    fn read_all(&mut self) -> Result<()> {
        for slot in self.roots.slots.iter() {
            if let Some(item) = slot.get(self.w).item {
                self.read(item);
            }
        }
        (0..self.program.rows).for_each(|row| self.read_row(row));
        for sum in 0..SUMS {
            self.read_sum(sum)?;
        }
        for array in 0..ARRAYS {
            let (start, end) = (0, ARRAY_LEN);
            self.read_part(Part { array, start, end });
        }
        Ok(())
    }
}
