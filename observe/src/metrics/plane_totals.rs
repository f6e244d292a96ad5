//! Request totals of each plane by kind.

use cairn_model::{DURATION_BOUNDS, HistogramSnapshot};

use super::request_metrics::{self, Labels, Totals};
use crate::request_record::Plane;

/// The requests of one plane since the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaneTotals {
    /// Requests that read an object or a record.
    pub reads: u64,
    /// Requests that change something.
    pub writes: u64,
    /// Requests for a list.
    pub lists: u64,
    /// Preflights, and connections without a readable request.
    pub other: u64,
    /// Requests of all kinds that were answered with a status of class 4xx.
    pub client_errors: u64,
    /// Requests of all kinds that were answered with a status of class 5xx.
    pub server_errors: u64,
    /// Bytes of request bodies.
    pub bytes_in: u64,
    /// Bytes of response bodies.
    pub bytes_out: u64,
    /// The latency of all requests, in nanoseconds.
    pub latency: HistogramSnapshot,
}

impl Default for PlaneTotals {
    fn default() -> Self {
        Self {
            reads: 0,
            writes: 0,
            lists: 0,
            other: 0,
            client_errors: 0,
            server_errors: 0,
            bytes_in: 0,
            bytes_out: 0,
            latency: HistogramSnapshot::sum_of(&DURATION_BOUNDS, std::iter::empty()),
        }
    }
}

impl PlaneTotals {
    fn add(&mut self, [_, method, _, operation]: &Labels, totals: &Totals) {
        let count = totals.by_class.iter().sum::<u64>();
        let is_list = operation.starts_with("List") || operation.starts_with("list_");
        let kind = match *method {
            "GET" | "HEAD" if is_list => &mut self.lists,
            "GET" | "HEAD" => &mut self.reads,
            "PUT" | "POST" | "DELETE" | "PATCH" => &mut self.writes,
            _ => &mut self.other,
        };
        *kind += count;
        let [_, _, _, client_errors, server_errors, _] = totals.by_class;
        self.client_errors += client_errors;
        self.server_errors += server_errors;
        self.latency.add(&totals.latency);
    }
}

/// Returns the totals of all planes, in the order of [`Plane::ALL`]. Costs as much as a scrape of these metrics.
#[must_use]
pub fn plane_totals() -> [PlaneTotals; Plane::ALL.len()] {
    let (series, bytes) = request_metrics::all_totals();
    let mut planes: [PlaneTotals; Plane::ALL.len()] = Default::default();
    for (labels, totals) in &series {
        let plane = Plane::ALL.iter().position(|plane| plane.name() == labels[0]);
        planes[plane.expect("the first label is the name of a plane")].add(labels, totals);
    }
    for (plane, [bytes_in, bytes_out]) in planes.iter_mut().zip(bytes) {
        (plane.bytes_in, plane.bytes_out) = (bytes_in, bytes_out);
    }
    planes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_do() {
        let latency = HistogramSnapshot::sum_of(&DURATION_BOUNDS, std::iter::empty());
        let totals = Totals { by_class: [0, 5, 1, 2, 3, 0], latency };
        let mut plane = PlaneTotals::default();
        for (method, operation) in [
            ("GET", "GetObject"),
            ("HEAD", "HeadObject"),
            ("GET", "ListObjectsV2"),
            ("GET", "list_buckets"),
            ("POST", "DeleteObjects"),
            ("OPTIONS", "none"),
            ("none", "none"),
        ] {
            plane.add(&["data", method, "/{bucket}", operation], &totals);
        }
        assert_eq!([plane.reads, plane.writes, plane.lists, plane.other], [22, 11, 22, 22]);
        assert_eq!((plane.client_errors, plane.server_errors), (14, 21));
    }

    #[test]
    fn planes_are_in_their_order() {
        let [data, ..] = plane_totals();
        crate::log_request(&crate::RequestRecord {
            request_id: "",
            plane: Plane::Data,
            method: "PUT",
            addresses: None,
            route: "/{bucket}/{key}",
            principal: None,
            resource: None,
            operation: "PutObject",
            status: 200,
            latency: std::time::Duration::from_millis(1),
            bytes_in: 7,
            bytes_out: 0,
            outcome: crate::RequestOutcome::Complete,
            error_code: None,
        });
        let [after, ..] = plane_totals();
        // Other tests of the process count too.
        assert!(after.writes > data.writes && after.bytes_in >= data.bytes_in + 7);
        assert!(after.latency.count() > data.latency.count());
    }
}
