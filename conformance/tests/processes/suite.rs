//! The suite between processes: every message passes through sockets as bytes.

conformance::suite!(tcp, conformance::OverTcp);
conformance::suite!(
    tcp_update,
    conformance::Under(conformance::OverTcp, dhole::Coherence::Update)
);
conformance::suite!(
    tcp_home,
    conformance::Under(conformance::OverTcp, dhole::Coherence::Home)
);

#[path = "../announcing/mod.rs"]
mod announcing;

/// What processes of one machine have as a rule.
const SHM: conformance::OverPorts = conformance::OverPorts {
    name: "shm",
    make: conformance::ports::watched,
};
/// Datagrams, those to all among them.
const UDP: conformance::OverPorts = conformance::OverPorts {
    name: "udp",
    make: conformance::ports::udp,
};

conformance::suite!(shm, super::SHM);
conformance::suite!(seeing, conformance::SeeingProcesses);
conformance::suite!(
    seeing_update,
    conformance::Under(conformance::SeeingProcesses, dhole::Coherence::Update)
);
conformance::suite!(
    seeing_home,
    conformance::Under(conformance::SeeingProcesses, dhole::Coherence::Home)
);
conformance::suite!(reaching, conformance::ReachingProcesses);
conformance::suite!(
    reaching_update,
    conformance::Under(conformance::ReachingProcesses, dhole::Coherence::Update)
);
conformance::suite!(udp, super::UDP);

#[test]
fn random_programs_between_processes_are_as_if_sequential() {
    use conformance::oracle::{Size, execute, expected, generate};
    use conformance::{
        Detected, OverTcp, Platform, ReachingProcesses, SeeingProcesses, Under, seeds,
    };
    use dhole::{Coherence, Detector};

    let platforms: [&dyn Platform; 13] = [
        &SHM,
        &SeeingProcesses,
        &Detected(SeeingProcesses, Detector::Vm),
        &Under(SeeingProcesses, Coherence::Update),
        &Under(SeeingProcesses, Coherence::Home),
        &ReachingProcesses,
        &Detected(ReachingProcesses, Detector::Vm),
        &Under(ReachingProcesses, Coherence::Update),
        &Under(ReachingProcesses, Coherence::Home),
        &UDP,
        &OverTcp,
        &Under(OverTcp, Coherence::Update),
        &Under(OverTcp, Coherence::Home),
    ];
    for platform in platforms {
        for seed in seeds(0..100) {
            let program = generate(seed, Size::default());
            let wanted = expected(&program).expect("generated programs have no race");
            let got = execute(&program, platform, seed);
            let name = platform.name();
            assert_eq!(got, Ok(wanted), "{name}, DHOLE_SEED={seed}: {program:#?}");
        }
    }
}

#[test]
fn a_protocol_that_the_program_brings_runs_between_processes() {
    use announcing::{Announcing, NONE, keeps_its_promise};
    use conformance::{OverTcp, Platform, SeeingProcesses, Under};
    use dhole::protocol::CoherenceProtocol;

    let coherence = Announcing::<NONE>::coherence();
    let tcp = Under(OverTcp, coherence);
    let (shm, seeing) = (Under(SHM, coherence), Under(SeeingProcesses, coherence));
    let platforms: [&dyn Platform; 3] = [&tcp, &shm, &seeing];
    for platform in platforms {
        keeps_its_promise(platform, 20);
    }
}
