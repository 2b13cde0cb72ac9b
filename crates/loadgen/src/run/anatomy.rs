//! The parts of each answered request, added up by its latency, as cheaply as a request allows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use envelope::result::{Anatomy, CLIENT_WAIT, Sums, UNATTRIBUTED, UNNAMED};

use crate::client::{STAGES, ServerTiming};
use crate::user::Exchange;

/// The server's stages without the total, which is in the last place of [`STAGES`].
const NAMED: usize = STAGES.len() - 1;
/// Around the stages.
const AROUND: [&str; 3] = [UNNAMED, UNATTRIBUTED, CLIENT_WAIT];

/// By class of latency.
#[derive(Debug, Default)]
pub(super) struct Parts(BTreeMap<u16, Class>);

#[derive(Debug, Default)]
struct Class {
    count: u64,
    latency: u64,
    stages: [u64; NAMED],
    around: [u64; AROUND.len()],
}

impl Parts {
    /// Adds a request whose answer named its total; of others the parts are not known.
    pub(super) fn record(&mut self, exchange: &Exchange, timing: &ServerTiming, counted_from: Instant) {
        let Some(total) = timing.total() else { return };
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let wait = micros(exchange.started.saturating_duration_since(counted_from));
        let seen = micros(exchange.ended.saturating_duration_since(exchange.started));
        let latency = seen.saturating_add(wait);
        let class = self.0.entry(Anatomy::class(latency)).or_default();
        class.count += 1;
        class.latency = class.latency.saturating_add(latency);
        let mut named = 0;
        for (stage, micros) in timing.stages().filter(|(stage, _)| *stage < NAMED) {
            class.stages[stage] += micros;
            named += micros;
        }
        for (sum, micros) in
            class.around.iter_mut().zip([total.saturating_sub(named), seen.saturating_sub(total), wait])
        {
            *sum = sum.saturating_add(micros);
        }
    }

    pub(super) fn merge_into(self, anatomy: &mut Anatomy) {
        for (number, class) in self.0 {
            let names = STAGES.iter().take(NAMED).chain(&AROUND);
            let parts = names.zip(class.stages.into_iter().chain(class.around)).filter(|(_, micros)| *micros > 0);
            let parts = parts.map(|(name, micros)| ((*name).to_owned(), micros)).collect();
            anatomy.add(number, &Sums { count: class.count, latency: class.latency, parts });
        }
    }
}
