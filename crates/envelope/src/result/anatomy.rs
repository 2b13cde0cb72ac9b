//! What requests of one length consist of.
//!
//! A histogram a stage says how long each stage takes, and not which stages meet in one slow request: the 99th percentile of a
//! sum is not the sum of 99th percentiles. So the parts of each request are added up by the request's own latency, in classes
//! that are narrow enough to stand for a percentile. Sums merge without loss, and memory does not grow with the requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::HIGHEST_MICROS;

/// Before the request was sent: from the intended to the actual start, in an open model.
pub const CLIENT_WAIT: &str = "client wait";
/// Outside the service: what the client saw beyond the server's total.
pub const UNATTRIBUTED: &str = "unattributed";
/// What the service counted into its total and into no stage.
pub const UNNAMED: &str = "unnamed";

/// Fewer requests say little about their kind: classes around a percentile are taken together until they have as many.
const FEWEST: u64 = 10;

/// Sums of the parts of requests, by the requests' latency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Record", into = "Record")]
pub struct Anatomy(BTreeMap<u16, Sums>);

/// Requests of one class, added up. Microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// How many.
    pub count: u64,
    /// Their latencies.
    pub latency: u64,
    /// Their parts by name: stages of the server, [`UNATTRIBUTED`], [`CLIENT_WAIT`], [`UNNAMED`].
    pub parts: BTreeMap<String, u64>,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.latency += other.latency;
        for (part, micros) in &other.parts {
            match self.parts.get_mut(part) {
                Some(sum) => *sum += micros,
                None => drop(self.parts.insert(part.clone(), *micros)),
            }
        }
    }
}

/// What the requests around a percentile consist of. Milliseconds, means over these requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// How many requests these are.
    pub count: u64,
    /// Their latency.
    pub mean_ms: f64,
    /// Their parts.
    pub parts_ms: BTreeMap<String, f64>,
}

impl Cut {
    /// A part's share of the latency, 0 where no request had it.
    #[must_use]
    pub fn share(&self, part: &str) -> f64 {
        let part = self.parts_ms.get(part).copied().unwrap_or(0.0);
        if self.mean_ms > 0.0 { part / self.mean_ms } else { 0.0 }
    }

    /// The largest part, with its share.
    #[must_use]
    pub fn largest(&self) -> Option<(&str, f64)> {
        let part = self.parts_ms.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((part.0, self.share(part.0)))
    }
}

impl Anatomy {
    /// The class of a latency: eight to a doubling, so that the latencies of one class differ by an eighth at most.
    #[must_use]
    pub fn class(micros: u64) -> u16 {
        let micros = micros.clamp(1, HIGHEST_MICROS);
        let doublings = micros.ilog2();
        // The three bits that follow the leading one.
        let eighths = ((u128::from(micros) << 3) >> doublings) & 7;
        u16::try_from(u128::from(doublings) * 8 + eighths).expect("ten minutes are less than 30 doublings")
    }

    /// Adds requests of one class.
    pub fn add(&mut self, class: u16, sums: &Sums) {
        self.0.entry(class).or_default().add(sums);
    }

    /// Adds all requests of another one.
    pub fn merge(&mut self, other: &Self) {
        for (class, sums) in &other.0 {
            self.add(*class, sums);
        }
    }

    /// Whether it knows of no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many requests it knows of.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().map(|sums| sums.count).sum()
    }

    /// The requests around the latency that `percent` (0 to 100) do not exceed: those of its class, and of as many classes
    /// beside it as it takes to have ten, the nearer ones first. `None` without requests.
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<Cut> {
        let classes: Vec<&Sums> = self.0.values().collect();
        let rank = crate::as_float(self.count()) * percent / 100.0;
        let mut passed = 0.0;
        let middle = classes.iter().position(|sums| {
            passed += crate::as_float(sums.count);
            passed >= rank
        })?;
        let (mut from, mut until) = (middle, middle + 1);
        let counted = |range: &[&Sums]| range.iter().map(|sums| sums.count).sum::<u64>();
        while counted(&classes[from..until]) < FEWEST && (from > 0 || until < classes.len()) {
            // Slower ones first: they are what a high percentile stands for.
            if until < classes.len() && (until - middle <= middle - from + 1 || from == 0) {
                until += 1;
            } else {
                from -= 1;
            }
        }
        let mut all = Sums::default();
        classes[from..until].iter().for_each(|sums| all.add(sums));
        let mean = |micros: u64| crate::as_float(micros) / crate::as_float(all.count.max(1)) / 1_000.0;
        Some(Cut {
            count: all.count,
            mean_ms: mean(all.latency),
            parts_ms: all.parts.iter().map(|(part, micros)| (part.clone(), mean(*micros))).collect(),
        })
    }
}

/// As written: the parts' names once, then a row a class: class, count, latency, and a sum for each part.
#[derive(Serialize, Deserialize)]
struct Record {
    parts: Vec<String>,
    classes: Vec<Vec<u64>>,
}

impl From<Anatomy> for Record {
    fn from(anatomy: Anatomy) -> Self {
        let mut parts: Vec<String> = anatomy.0.values().flat_map(|sums| sums.parts.keys().cloned()).collect();
        parts.sort_unstable();
        parts.dedup();
        let row = |(class, sums): (&u16, &Sums)| {
            let of = |part: &String| sums.parts.get(part).copied().unwrap_or(0);
            [u64::from(*class), sums.count, sums.latency].into_iter().chain(parts.iter().map(of)).collect()
        };
        let classes = anatomy.0.iter().map(row).collect();
        Self { parts, classes }
    }
}

/// A row that is none.
#[derive(Debug, thiserror::Error)]
#[error("no anatomy: a row of {0} numbers, and {1} parts")]
struct NoRow(usize, usize);

impl TryFrom<Record> for Anatomy {
    type Error = String;

    fn try_from(record: Record) -> Result<Self, String> {
        let mut anatomy = Self::default();
        for row in record.classes {
            let wrong = || NoRow(row.len(), record.parts.len()).to_string();
            let [class, count, latency, sums @ ..] = row.as_slice() else { return Err(wrong()) };
            let class = u16::try_from(*class).map_err(|_| wrong())?;
            if sums.len() != record.parts.len() {
                return Err(wrong());
            }
            let parts = record.parts.iter().cloned().zip(sums.iter().copied()).filter(|(_, sum)| *sum > 0).collect();
            anatomy.add(class, &Sums { count: *count, latency: *latency, parts });
        }
        Ok(anatomy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(count: u64, latency: u64, parts: &[(&str, u64)]) -> Sums {
        let parts = parts.iter().map(|(part, each)| ((*part).to_owned(), each * count)).collect();
        Sums { count, latency: latency * count, parts }
    }

    /// How many, of which latency, of which parts.
    type Kind<'a> = (u64, u64, &'a [(&'a str, u64)]);

    fn anatomy(requests: &[Kind<'_>]) -> Anatomy {
        let mut anatomy = Anatomy::default();
        for (count, latency, parts) in requests {
            anatomy.add(Anatomy::class(*latency), &sums(*count, *latency, parts));
        }
        anatomy
    }

    #[test]
    fn latencies_of_one_class_differ_by_an_eighth_at_most() {
        let mut first = 1;
        for micros in 1..200_000_u64 {
            if Anatomy::class(micros) != Anatomy::class(first) {
                assert!(Anatomy::class(micros) > Anatomy::class(first), "classes are in order at {micros}");
                first = micros;
            }
            assert!(micros - first <= first / 8, "{first} and {micros}");
        }
        assert_eq!(Anatomy::class(0), Anatomy::class(1));
        assert_eq!(Anatomy::class(u64::MAX), Anatomy::class(HIGHEST_MICROS));
    }

    #[test]
    fn the_slow_requests_are_not_the_others() {
        // Of 1,000 requests 20 waited 400 ms for a permit; no stage's own percentile says that these are the slow ones.
        let anatomy = anatomy(&[
            (980, 30_000, &[("hash", 25_000), (UNATTRIBUTED, 5_000)]),
            (20, 430_000, &[("admission", 400_000), ("hash", 25_000), (UNATTRIBUTED, 5_000)]),
        ]);
        let median = anatomy.at(50.0).unwrap();
        assert_eq!((median.count, median.largest().unwrap().0), (980, "hash"));
        assert!((median.mean_ms - 30.0).abs() < 1e-9);
        let slow = anatomy.at(99.0).unwrap();
        assert_eq!((slow.count, slow.largest().unwrap().0), (20, "admission"));
        assert!((slow.share("admission") - 400.0 / 430.0).abs() < 1e-9);
        assert!(slow.share("s3").abs() < 1e-9);
    }

    #[test]
    fn a_class_of_few_is_taken_with_its_neighbours() {
        let anatomy = anatomy(&[(100, 1_000, &[]), (4, 2_000, &[]), (3, 4_000, &[]), (4, 8_000, &[])]);
        let cut = anatomy.at(97.0).unwrap();
        assert_eq!(cut.count, 11, "2, 4 and 8 ms; the hundred of 1 ms are not needed");
        assert_eq!(anatomy.at(0.0).unwrap().count, 100);
        assert_eq!(Anatomy::default().at(50.0), None);
    }

    #[test]
    fn it_survives_being_written_and_read() {
        let anatomy = anatomy(&[(3, 1_000, &[("db", 10)]), (4, 64_000, &[("hash", 60_000), ("db", 11)])]);
        let text = serde_json::to_string(&anatomy).unwrap();
        assert_eq!(text, r#"{"parts":["db","hash"],"classes":[[79,3,3000,30,0],[127,4,256000,44,240000]]}"#);
        assert_eq!(serde_json::from_str::<Anatomy>(&text).unwrap(), anatomy);
        let short = r#"{"parts":["db"],"classes":[[79,3,3000]]}"#;
        assert!(serde_json::from_str::<Anatomy>(short).unwrap_err().to_string().contains("a row of 3 numbers"));
    }
}
