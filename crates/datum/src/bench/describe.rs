//! Numbers in words, as lines on the terminal have them.

use envelope::result::Load;

/// The load model with its numbers.
pub(super) fn load(load: &Load) -> String {
    match load {
        Load::Closed { vus, think_time_mean_seconds: think } => {
            let users = if *vus == 1 { "user" } else { "users" };
            format!("closed model, {vus} virtual {users}, think time {think} s")
        }
        Load::Open { arrivals_per_second } => format!("open model, {arrivals_per_second} arrivals/s"),
    }
}

/// A share in per cent, with as many digits as a small one needs.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p == 0.0 || p >= 10.0 => format!("{percent:.1} %"),
        p if p >= 0.1 => format!("{percent:.2} %"),
        p if p >= 0.001 => format!("{percent:.4} %"),
        _ => format!("{percent:.1e} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_shares_in_words() {
        assert_eq!(
            load(&Load::Closed { vus: 1, think_time_mean_seconds: 0.5 }),
            "closed model, 1 virtual user, think time 0.5 s"
        );
        assert_eq!(load(&Load::Open { arrivals_per_second: 50.0 }), "open model, 50 arrivals/s");
        for (share, shown) in
            [(0.0, "0.0 %"), (0.25, "25.0 %"), (0.0123, "1.23 %"), (0.000_024, "0.0024 %"), (1e-7, "1.0e-5 %")]
        {
            assert_eq!(percent(share), shown);
        }
    }
}
