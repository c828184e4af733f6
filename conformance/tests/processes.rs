//! The suite between processes: everything that nodes tell each other goes through sockets as bytes.

conformance::suite!(tcp, conformance::OverTcp);
conformance::suite!(
    tcp_update,
    conformance::Under(conformance::OverTcp, dhole::Coherence::Update)
);
conformance::suite!(
    tcp_home,
    conformance::Under(conformance::OverTcp, dhole::Coherence::Home)
);
