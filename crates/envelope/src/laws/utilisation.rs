//! The utilisation law: U = X · D, with the service demand D = busy time / requests.

/// Busy seconds of a resource per request, for instance CPU seconds; `None` without requests.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub fn service_demand(busy_seconds: f64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| busy_seconds / requests as f64)
}

/// How busy a resource is that has `servers` equal parts (cores, connections), 0 to 1 of all of them.
#[must_use]
pub fn utilisation(throughput: f64, demand: f64, servers: f64) -> f64 {
    throughput * demand / servers
}

/// What a resource lets through at most: servers / demand, in requests a second; `None` without demand.
#[must_use]
pub fn most_throughput(demand: f64, servers: f64) -> Option<f64> {
    (demand > 0.0).then(|| servers / demand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_gives_utilisation_and_a_ceiling() {
        // 90 CPU seconds for 40,000 requests on half a core.
        let demand = service_demand(90.0, 40_000).unwrap();
        assert!((demand - 0.002_25).abs() < 1e-12);
        assert!((utilisation(200.0, demand, 0.5) - 0.9).abs() < 1e-12);
        assert!((most_throughput(demand, 0.5).unwrap() - 222.222).abs() < 0.001);
        assert_eq!(service_demand(1.0, 0), None);
        assert_eq!(most_throughput(0.0, 1.0), None);
    }
}
