//! Where a shared type keeps its bytes: data without the padding, references apart from data
//! (DOSA's key insight), and leaves whose bytes must be tested.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::RwLock;

use dhole_model::Oid;
use dhole_model::unpoisoned;
use dhole_registry::{Ship, Shipped};

use super::{MAX_ALIGN, Share};
use crate::geometry::per_block;
use crate::layout::{DataRange, Grain, ReferenceForm};
use crate::validity::{Leaf, LeafTest, number};

/// References of one form and target type at regular distances. Offsets are into packed bytes.
#[derive(Clone, Debug)]
pub struct ReferenceSlot {
    /// Where the first one starts.
    pub packed_offset: usize,
    /// From one to the next; 0 when there is one only.
    pub packed_stride: usize,
    /// How many there are.
    pub count: usize,
    /// How each is laid out.
    pub form: ReferenceForm,
    /// What each refers to.
    pub target: TypeRef,
    /// Whether each is an [`Own`](crate::Own), whose object travels with this one.
    pub owned: bool,
}

/// Some consecutive objects, as bytes name them.
pub(crate) struct Named {
    pub(crate) first: Oid,
    pub(crate) count: u64,
    pub(crate) len: u64,
    pub(crate) row: bool,
    /// An array of `len` elements, in `count` blocks.
    pub(crate) array: bool,
}

impl ReferenceSlot {
    /// The objects that the `i`-th reference of the slot names in `packed`; `Ok(None)` for none,
    /// `Err` where the bytes are no reference of this form.
    pub(crate) fn named(&self, packed: &[u8], i: usize) -> Result<Option<Named>, ()> {
        let at = self.packed_offset + i * self.packed_stride;
        let word = |n: usize| number(&packed[at + 8 * n..at + 8 * n + 8]) as u64;
        let first = word(0);
        if first == 0 {
            return if self.form == ReferenceForm::Maybe {
                Ok(None)
            } else {
                Err(())
            };
        }
        let (count, len, row) = match self.form {
            ReferenceForm::One | ReferenceForm::Maybe => (1, 1, false),
            ReferenceForm::Range => (word(1), 1, false),
            ReferenceForm::Row => (1, word(1), true),
            ReferenceForm::Rows => (word(1), word(2), true),
            ReferenceForm::Array => {
                let per_block = per_block(self.target.size).ok_or(())?;
                (word(1).div_ceil(per_block), word(1), false)
            }
        };
        if count == 0 {
            return Ok(None);
        }
        Ok(Some(Named {
            first: Oid(first),
            count,
            len,
            row,
            array: self.form == ReferenceForm::Array,
        }))
    }
}

/// Which type, in a few words, without building its [`TypeInfo`].
#[derive(Clone, Copy)]
pub struct TypeRef {
    id: TypeId,
    size: usize,
    info: fn() -> &'static TypeInfo,
}

impl TypeRef {
    /// The type `T`.
    #[inline]
    pub const fn of<T: Share>() -> TypeRef {
        TypeRef {
            id: TypeId::of::<T>(),
            size: size_of::<T>(),
            info: TypeInfo::of::<T>,
        }
    }

    /// The compiler's id of the type.
    #[inline]
    pub fn id(self) -> TypeId {
        self.id
    }

    /// The layout of the type.
    pub fn info(self) -> &'static TypeInfo {
        (self.info)()
    }
}

impl PartialEq for TypeRef {
    fn eq(&self, other: &TypeRef) -> bool {
        self.id == other.id
    }
}

impl Eq for TypeRef {}

impl fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// What stands for a shared type in the table of what has a name in every process.
struct Shared<T>(PhantomData<T>);

impl<T: Share> Ship for Shared<T> {
    type Is = TypeRef;
    const IS: &'static TypeRef = &TypeRef::of::<T>();
}

/// The layout of a shared type.
#[derive(Debug)]
pub struct TypeInfo {
    /// The type's name.
    pub name: &'static str,
    /// Bytes of a value, padding included.
    pub size: usize,
    /// Alignment of a value.
    pub align: usize,
    /// The compiler's id of the type.
    pub type_id: TypeId,
    /// Its name in other processes of the program; `None` where programs have no such names.
    pub shipped: Option<u32>,
    /// Bytes of a value without its padding: what travels.
    pub packed_size: usize,
    /// The data of a value, in ascending order, adjacent ranges joined.
    pub data: Box<[DataRange]>,
    /// The references in a value.
    pub references: Box<[ReferenceSlot]>,
    /// Whether any of them is an [`Own`](crate::Own).
    pub owns: bool,
    /// What must be tested before packed bytes become a value.
    pub leaves: Box<[Leaf]>,
    /// The smallest parts that a program can write, all of them: what a merge takes whole.
    pub grains: Box<[Grain]>,
}

static TYPES: RwLock<BTreeMap<TypeId, &'static TypeInfo>> = RwLock::new(BTreeMap::new());

/// Bytes of the longest leaf.
const LONGEST_LEAF: usize = 16;

impl TypeInfo {
    /// The layout of `T`, built once in a process.
    pub fn of<T: Share>() -> &'static TypeInfo {
        // Whoever allocates a `T` comes by here, in whichever process. So it is here that the
        // compiler refuses such types: no path of the program's leads anywhere else.
        const {
            assert!(
                !std::mem::needs_drop::<T>(),
                "a shared type has nothing to drop"
            );
            assert!(
                align_of::<T>() <= MAX_ALIGN,
                "a shared type is aligned to a page at most"
            );
        }
        dhole_registry::put::<Shared<T>>();
        TypeInfo::known(TypeRef::of::<T>().id).unwrap_or_else(|| {
            let mut map = TypeMap::default();
            T::describe(&mut map);
            TypeInfo::keep(map.finish(Described {
                name: std::any::type_name::<T>(),
                size: size_of::<T>(),
                align: align_of::<T>(),
                type_id: TypeId::of::<T>(),
                shipped: Shipped::of::<Shared<T>>(),
            }))
        })
    }

    /// What was [kept](TypeInfo::keep) of a type.
    fn known(id: TypeId) -> Option<&'static TypeInfo> {
        unpoisoned::read(&TYPES).get(&id).copied()
    }

    /// Keeps this, unless another thread has kept the same meanwhile.
    fn keep(info: TypeInfo) -> &'static TypeInfo {
        let mut known = unpoisoned::write(&TYPES);
        let kept = known.entry(info.type_id);
        kept.or_insert_with(|| Box::leak(Box::new(info)))
    }

    /// Whether every byte of a value is data.
    #[inline]
    pub fn is_dense(&self) -> bool {
        self.packed_size == self.size
    }

    /// What in a value is never zero, if anything is: then bytes that are all zero are no value.
    pub fn never_zero(&self) -> Option<&'static str> {
        let is_zero = |leaf: &&Leaf| leaf.test.accepts(&[0; LONGEST_LEAF][..leaf.test.bytes()]);
        let leaf = self.leaves.iter().find(|leaf| !is_zero(leaf));
        let is_none = |slot: &&ReferenceSlot| slot.form == ReferenceForm::Maybe;
        let reference = self.references.iter().find(|slot| !is_none(slot));
        let leaf = leaf.map(|leaf| leaf.test.name());
        leaf.or(reference.map(|_| "reference (`Option<Ref<_>>` has a zero, `Ref<_>` has none)"))
    }

    /// Tests every leaf of one packed value. References are tested for being references at all;
    /// what they refer to is the directory's business.
    ///
    /// # Errors
    /// [`Invalid`], the first leaf that fails.
    pub fn check(&self, packed: &[u8]) -> Result<(), Invalid> {
        for leaf in &self.leaves {
            for i in 0..leaf.count {
                let at = leaf.packed_offset + i * leaf.packed_stride;
                if !leaf.test.accepts(&packed[at..at + leaf.test.bytes()]) {
                    return Err(Invalid {
                        packed_offset: at,
                        leaf: leaf.test.name(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Bytes that are no value of their type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the bytes at {packed_offset} are not a valid {leaf}")]
pub struct Invalid {
    /// Where the leaf starts in the packed bytes.
    pub packed_offset: usize,
    /// What should be there.
    pub leaf: &'static str,
}

/// What the compiler says of a type.
struct Described {
    name: &'static str,
    size: usize,
    align: usize,
    type_id: TypeId,
    shipped: Option<Shipped>,
}

/// Collects the layout of a type from [`Share::describe`]. What is added lies at the offset of
/// the field that is being described.
#[derive(Default)]
pub struct TypeMap {
    base: usize,
    data: Vec<DataRange>,
    grains: Vec<Repeated<usize>>,
    leaves: Vec<Repeated<LeafTest>>,
    references: Vec<Repeated<(ReferenceForm, TypeRef, bool)>>,
}

/// Something found `count` times, `stride` bytes apart, from `offset` on.
#[derive(Clone)]
struct Repeated<W> {
    offset: usize,
    stride: usize,
    count: usize,
    what: W,
}

impl<W: Clone> Repeated<W> {
    /// Adds to `to` what an array has whose elements, `size` bytes each, have this.
    fn repeat(&self, base: usize, size: usize, count: usize, to: &mut Vec<Repeated<W>>) {
        let (offset, what) = (base + self.offset, self.what.clone());
        if self.count == 1 {
            to.push(Repeated {
                offset,
                stride: size,
                count,
                what,
            });
        } else if self.stride * self.count == size {
            to.push(Repeated {
                offset,
                stride: self.stride,
                count: self.count * count,
                what,
            });
        } else {
            to.extend((0..count).map(|i| Repeated {
                offset: offset + i * size,
                ..self.clone()
            }));
        }
    }
}

impl TypeMap {
    /// A field of type `T`, `offset` bytes into what is being described.
    pub(crate) fn field<T: Share>(&mut self, offset: usize) {
        let outer = self.base;
        self.base += offset;
        T::describe(self);
        self.base = outer;
    }

    /// A struct, whose fields `describe` adds as [parts](TypeMap::part) of what it is given: the
    /// address of a struct that is nowhere initialised.
    pub fn whole<T>(&mut self, describe: impl FnOnce(&mut TypeMap, *const T)) {
        let place = Box::<T>::new_uninit();
        describe(self, place.as_ptr());
    }

    /// A field of type `T` of a struct that is described as a [whole](TypeMap::whole).
    pub fn part<T: Share, S>(&mut self, whole: *const S, part: *const T) {
        self.field::<T>(part.addr() - whole.addr());
    }

    /// An enum without fields that takes these values.
    ///
    /// # Safety
    /// `T` is an enum without fields that has no `repr(align)`, so that all its bytes are
    /// initialised. No value of it is missing.
    pub unsafe fn fieldless_enum<T>(&mut self, values: &[T]) {
        let bytes = size_of::<T>();
        if bytes == 0 {
            return;
        }
        assert!(bytes <= LONGEST_LEAF, "a discriminant has at most 16 bytes");
        let read = |value: &T| {
            let mut read = [0; LONGEST_LEAF];
            // SAFETY: the value has as many bytes, all of them initialised as the caller promises,
            // and there is room for them by the assertion above.
            unsafe {
                let from = std::ptr::from_ref(value).cast::<u8>();
                read.as_mut_ptr().copy_from_nonoverlapping(from, bytes);
            }
            number(&read[..bytes])
        };
        let mut values: Vec<u128> = values.iter().map(read).collect();
        values.sort_unstable();
        self.leaf(LeafTest::OneOf {
            bytes,
            values: values.into(),
        });
    }

    /// `bytes` bytes of which every pattern is valid.
    pub(crate) fn data(&mut self, bytes: usize) {
        self.data.push(DataRange {
            offset: self.base,
            bytes,
        });
        self.grains.push(Repeated {
            offset: self.base,
            stride: 0,
            count: 1,
            what: bytes,
        });
    }

    pub(crate) fn leaf(&mut self, test: LeafTest) {
        self.data(test.bytes());
        self.leaves.push(Repeated {
            offset: self.base,
            stride: 0,
            count: 1,
            what: test,
        });
    }

    pub(crate) fn reference<T: Share>(&mut self, form: ReferenceForm) {
        self.add_reference::<T>(form, false);
    }

    /// A reference to an object that belongs to what is being described.
    pub(crate) fn owned<T: Share>(&mut self, form: ReferenceForm) {
        self.add_reference::<T>(form, true);
    }

    fn add_reference<T: Share>(&mut self, form: ReferenceForm, owned: bool) {
        self.data(form.bytes());
        let what = (form, TypeRef::of::<T>(), owned);
        self.references.push(Repeated {
            offset: self.base,
            stride: 0,
            count: 1,
            what,
        });
    }

    /// `count` values of `T` in a row. The element is described once, however many there are.
    pub(crate) fn array<T: Share>(&mut self, count: usize) {
        let size = size_of::<T>();
        if size == 0 || count == 0 {
            return;
        }
        let mut element = TypeMap::default();
        T::describe(&mut element);
        let data = joined(element.data);
        if let [DataRange { offset: 0, bytes }] = data[..]
            && bytes == size
        {
            self.data.push(DataRange {
                offset: self.base,
                bytes: size * count,
            });
        } else {
            self.data.extend((0..count).flat_map(|i| {
                let base = self.base + i * size;
                data.iter().map(move |r| DataRange {
                    offset: base + r.offset,
                    bytes: r.bytes,
                })
            }));
        }
        for grain in &element.grains {
            grain.repeat(self.base, size, count, &mut self.grains);
        }
        for leaf in &element.leaves {
            leaf.repeat(self.base, size, count, &mut self.leaves);
        }
        for slot in &element.references {
            slot.repeat(self.base, size, count, &mut self.references);
        }
    }

    fn finish(self, of: Described) -> TypeInfo {
        let data = joined(self.data);
        let end = data.last().map_or(0, |r| r.offset + r.bytes);
        assert!(end <= of.size, "a layout lies within its type");
        let starts: Vec<usize> = data
            .iter()
            .scan(0, |end, range| {
                *end += range.bytes;
                Some(*end - range.bytes)
            })
            .collect();
        // Where the data byte at `offset` of a value is in its packed bytes.
        let packed = |offset: usize| {
            let before = data.partition_point(|r| r.offset + r.bytes <= offset);
            starts[before] + offset - data[before].offset
        };
        let stride = |offset: usize, stride: usize, count: usize| {
            if count == 1 {
                0
            } else {
                packed(offset + stride) - packed(offset)
            }
        };
        let leaves = self.leaves.into_iter().map(|leaf| Leaf {
            packed_offset: packed(leaf.offset),
            packed_stride: stride(leaf.offset, leaf.stride, leaf.count),
            count: leaf.count,
            test: leaf.what,
        });
        let owns = self.references.iter().any(|slot| slot.what.2);
        let references = self.references.into_iter().map(|slot| ReferenceSlot {
            packed_offset: packed(slot.offset),
            packed_stride: stride(slot.offset, slot.stride, slot.count),
            count: slot.count,
            form: slot.what.0,
            target: slot.what.1,
            owned: slot.what.2,
        });
        let grains = self.grains.into_iter().map(|grain| Grain {
            packed_offset: packed(grain.offset),
            packed_stride: stride(grain.offset, grain.stride, grain.count),
            count: grain.count,
            bytes: grain.what,
        });
        TypeInfo {
            grains: grains.collect(),
            name: of.name,
            size: of.size,
            align: of.align,
            type_id: of.type_id,
            shipped: of.shipped.map(Shipped::place),
            packed_size: data.iter().map(|r| r.bytes).sum(),
            leaves: leaves.collect(),
            references: references.collect(),
            owns,
            data: data.into(),
        }
    }
}

/// The ranges in ascending order, with adjacent ones made one.
fn joined(mut ranges: Vec<DataRange>) -> Vec<DataRange> {
    ranges.retain(|r| r.bytes > 0);
    ranges.sort_unstable();
    let mut out: Vec<DataRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.offset + last.bytes == range.offset => last.bytes += range.bytes,
            Some(last) => {
                assert!(
                    last.offset + last.bytes < range.offset,
                    "two fields share bytes"
                );
                out.push(range);
            }
            None => out.push(range),
        }
    }
    out
}
