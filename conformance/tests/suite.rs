//! The suite, on every platform.

conformance::suite!(threads, conformance::OnThreads);
conformance::suite!(simulated, conformance::Simulated::default());
conformance::suite!(
    impatient_threads,
    conformance::Impatient(conformance::OnThreads)
);
conformance::suite!(
    impatient_simulated,
    conformance::Impatient(conformance::Simulated::default())
);
conformance::suite!(simulated_in_order, conformance::Simulated { jitter: 0.0 });
