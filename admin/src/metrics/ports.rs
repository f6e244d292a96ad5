//! The samples of the metrics of ports and their certificates.

use cairn_net::{HandshakeOutcome, PortSnapshot, TimeoutPhase};
use cairn_observe::MetricValue::Whole;
use cairn_observe::{Plane, Sample};

use super::sources::CertificateSnapshot;

/// Returns a count with the label `plane` and one more label.
fn plane_sample(plane: Plane, label: &'static str, name: &str, count: u64) -> Sample {
    Sample { labels: vec![("plane", plane.name().to_owned()), (label, name.to_owned())], value: Whole(count) }
}

/// Returns the timeouts of clients, by port and phase.
pub(super) fn client_timeouts(ports: &[(Plane, PortSnapshot)]) -> Vec<Sample> {
    let of_port = |(plane, port): &(Plane, PortSnapshot)| {
        let plane = *plane;
        let phases = TimeoutPhase::ALL.into_iter().zip(port.timeouts);
        phases.map(move |(phase, count)| plane_sample(plane, "phase", phase.name(), count))
    };
    ports.iter().flat_map(of_port).collect()
}

/// Returns the TLS handshakes of the ports that have a certificate, by outcome.
pub(super) fn tls_handshakes(
    ports: &[(Plane, PortSnapshot)],
    certificates: &[CertificateSnapshot],
) -> Vec<Sample> {
    let of_port = |plane: Plane, port: &PortSnapshot| {
        let ends = HandshakeOutcome::ALL.into_iter().zip(port.handshakes);
        ends.map(move |(end, count)| plane_sample(plane, "outcome", end.name(), count))
    };
    let has_tls = |plane: &Plane| certificates.iter().any(|certificate| certificate.plane == *plane);
    let ports = ports.iter().filter(|(plane, _)| has_tls(plane));
    ports.flat_map(|(plane, port)| of_port(*plane, port)).collect()
}

/// Returns a value of each certificate that has one.
pub(super) fn by_certificate(
    certificates: &[CertificateSnapshot],
    value: fn(&CertificateSnapshot) -> Option<u64>,
) -> Vec<Sample> {
    let sample = |certificate: &CertificateSnapshot| {
        Some(Sample::labelled("plane", certificate.plane.name(), Whole(value(certificate)?)))
    };
    certificates.iter().filter_map(sample).collect()
}

/// Returns the reloads of certificates, by result.
pub(super) fn certificate_reloads(certificates: &[CertificateSnapshot]) -> Vec<Sample> {
    let of_certificate = |certificate: &CertificateSnapshot| {
        [("replaced", certificate.replaced), ("refused", certificate.refused)]
            .map(|(result, count)| plane_sample(certificate.plane, "result", result, count))
    };
    certificates.iter().flat_map(of_certificate).collect()
}
