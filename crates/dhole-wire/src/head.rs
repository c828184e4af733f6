//! Heads of values: so many bytes, of any content.

/// What the head of a value may be.
pub trait Head: Copy {
    /// Its bytes.
    const LEN: usize;

    /// The head that these bytes are.
    ///
    /// # Panics
    /// Unless there are [`LEN`](Head::LEN) of them.
    fn of(bytes: &[u8]) -> Self;

    /// Writes its bytes.
    ///
    /// # Panics
    /// Unless there is room for [`LEN`](Head::LEN) of them, and no more.
    fn put(self, bytes: &mut [u8]);
}

/// Two heads, one behind the other.
#[derive(Clone, Copy)]
pub struct Pair<A, B>(pub A, pub B);

/// Appends a head.
#[inline]
pub fn write_head<H: Head>(head: &H, out: &mut Vec<u8>) {
    let before = out.len();
    out.resize(before + H::LEN, 0);
    head.put(&mut out[before..]);
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Head for $number {
            const LEN: usize = size_of::<$number>();

            #[inline]
            fn of(bytes: &[u8]) -> $number {
                <$number>::from_le_bytes(bytes.try_into().expect("as many bytes"))
            }

            #[inline]
            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

number!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Head for () {
    const LEN: usize = 0;

    #[inline]
    fn of(_: &[u8]) {}

    #[inline]
    fn put(self, _: &mut [u8]) {}
}

impl<A: Head, B: Head> Head for Pair<A, B> {
    const LEN: usize = A::LEN + B::LEN;

    #[inline]
    fn of(bytes: &[u8]) -> Pair<A, B> {
        let (a, b) = bytes.split_at(A::LEN);
        Pair(A::of(a), B::of(b))
    }

    #[inline]
    fn put(self, bytes: &mut [u8]) {
        let (a, b) = bytes.split_at_mut(A::LEN);
        self.0.put(a);
        self.1.put(b);
    }
}
