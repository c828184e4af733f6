//! Functions that have no state, and so need not be sent: their type says all.

/// A function that captures nothing, which its type alone names. Whoever has one has a proof of
/// that for the type.
#[derive(Clone, Copy, Debug)]
pub struct Stateless<F>(F);

impl<F: Copy + Send + Sync + 'static> Stateless<F> {
    /// The function, which is as good as any other of its type.
    ///
    /// A size of zero does not show that a function captures nothing: a closure may capture a value
    /// that has no size. But it coerces to a function pointer only if it captures nothing. The
    /// macro `dhole::op!` coerces the function that it passes, and nothing else calls this.
    ///
    /// Without that promise a function could be made from nothing that captures a proof:
    ///
    /// ```compile_fail,E0133
    /// let proof = ();
    /// let function = move || proof;
    /// let forged = dhole_registry::Stateless::new(function, ());
    /// ```
    ///
    /// # Safety
    /// `_coerced` is `function`, coerced to a function pointer.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new<P: Copy>(function: F, _coerced: P) -> Stateless<F> {
        const {
            assert!(
                size_of::<F>() == 0,
                "a function that is to travel has no state"
            );
        }
        Stateless(function)
    }
}
