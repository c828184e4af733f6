//! The suite, on every platform whose nodes are in one process.

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
conformance::suite!(simulated_with_remote_memory, conformance::Remote::default());
conformance::suite!(simulated_in_order, conformance::Simulated { jitter: 0.0 });
conformance::suite!(
    simulated_update,
    conformance::Under(conformance::Simulated::default(), dhole::Coherence::Update)
);
conformance::suite!(
    simulated_home,
    conformance::Under(conformance::Simulated::default(), dhole::Coherence::Home)
);
conformance::suite!(
    threads_update,
    conformance::Under(conformance::OnThreads, dhole::Coherence::Update)
);
conformance::suite!(
    threads_home,
    conformance::Under(conformance::OnThreads, dhole::Coherence::Home)
);
conformance::suite!(
    simulated_placed,
    conformance::Placed(conformance::Simulated::default())
);
conformance::suite!(
    simulated_treadmarks,
    conformance::Under(
        conformance::Simulated::default(),
        dhole::Coherence::TreadMarks
    )
);
conformance::suite!(
    threads_treadmarks,
    conformance::Under(conformance::OnThreads, dhole::Coherence::TreadMarks)
);
conformance::suite!(
    threads_vm,
    conformance::Detected(conformance::OnThreads, dhole::Detector::Vm)
);
conformance::suite!(
    simulated_vm,
    conformance::Detected(conformance::Simulated::default(), dhole::Detector::Vm)
);
conformance::suite!(
    simulated_directory,
    conformance::Under(conformance::Simulated::default(), crate::suite::directory())
);
conformance::suite!(
    threads_directory,
    conformance::Under(conformance::OnThreads, crate::suite::directory())
);

fn directory() -> dhole::Coherence {
    use dhole_protocol::CoherenceProtocol;
    dhole_protocol::built_in::Directory::coherence()
}
