//! What a scenario must fulfil beyond its types.

use envelope::result::PhaseKind;

use super::{Endpoint, Identities, MixEntry, Model, PhaseSpec, Scenario, Tokens};

/// Longest phase: a day.
const MAX_PHASE_SECONDS: u32 = 86_400;
/// Most virtual users of one driver: each has a connection of its own.
pub const MAX_VUS: u32 = 50_000;
/// Most arrivals a second of one driver.
const MAX_ARRIVALS_PER_SECOND: f64 = 1_000_000.0;
/// Longest mean think time: an hour.
const MAX_THINK_SECONDS: f64 = 3_600.0;
/// Largest upload.
const MAX_UPLOAD_BYTES: u32 = 64 * 1024 * 1024;

/// A field and what is wrong with it.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) field: String,
    pub(super) reason: String,
}

fn wrong<T>(field: impl Into<String>, reason: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { field: field.into(), reason: reason.into() })
}

impl Scenario {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return wrong("name", "must be 1 to 64 lower-case letters, digits and hyphens: it becomes a folder's name");
        }
        for (field, text) in [("description", &self.description), ("question", &self.question)] {
            if text.trim().is_empty() {
                return wrong(field, "must not be empty");
            }
        }
        self.model.check()?;
        check_phases(&self.phases)?;
        check_mix(&self.mix)?;
        match self.tokens {
            Tokens::None if self.needs_tokens() => {
                wrong("tokens", "the mix has requests that present a token: it must be `set_up`")
            }
            Tokens::SetUp if !self.needs_tokens() => {
                wrong("tokens", "no request of the mix presents a token: it must be `none`")
            }
            _ if self.identities == Identities::Populated
                && self.mix.iter().all(|it| it.endpoint == Endpoint::Register) =>
            {
                wrong("identities", "registrations are of nobody who exists: it must be `per_vu`")
            }
            _ => Ok(()),
        }
    }
}

impl Model {
    fn check(&self) -> Result<(), Wrong> {
        match self {
            Self::Closed { vus, vus_choices, think_time } => {
                check_users("model.vus", *vus)?;
                for (index, choice) in vus_choices.iter().enumerate() {
                    check_users(&format!("model.vus_choices[{index}]"), *choice)?;
                }
                in_range("model.think_time.mean_seconds", think_time.mean_seconds, 0.0, MAX_THINK_SECONDS)
            }
            Self::Open { arrivals_per_second, max_vus, .. } => {
                check_users("model.max_vus", *max_vus)?;
                in_range("model.arrivals_per_second", *arrivals_per_second, 0.001, MAX_ARRIVALS_PER_SECOND)
            }
        }
    }
}

fn check_users(field: &str, vus: u32) -> Result<(), Wrong> {
    if (1..=MAX_VUS).contains(&vus) { Ok(()) } else { wrong(field, format!("must be from 1 to {MAX_VUS}")) }
}

fn in_range(field: &str, value: f64, least: f64, most: f64) -> Result<(), Wrong> {
    // NaN is in no range.
    if (least..=most).contains(&value) { Ok(()) } else { wrong(field, format!("must be from {least} to {most}")) }
}

fn check_phases(phases: &[PhaseSpec]) -> Result<(), Wrong> {
    for (index, phase) in phases.iter().enumerate() {
        if !(1..=MAX_PHASE_SECONDS).contains(&phase.seconds) {
            return wrong(format!("phases[{index}].seconds"), format!("must be from 1 to {MAX_PHASE_SECONDS}"));
        }
        if let Some(factor) = phase.factor {
            in_range(&format!("phases[{index}].factor"), factor, 0.0, 100.0)?;
        }
        if phase.kind == PhaseKind::Measure && phase.level() <= 0.0 {
            return wrong(format!("phases[{index}].factor"), "a measured phase needs load");
        }
        if phase.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return wrong(format!("phases[{index}].name"), "must not be empty; leave it out instead");
        }
    }
    if phases.iter().any(|phase| phase.kind == PhaseKind::Measure) {
        Ok(())
    } else {
        wrong("phases", "nothing is measured: one must be of kind `measure`")
    }
}

fn check_mix(mix: &[MixEntry]) -> Result<(), Wrong> {
    if mix.is_empty() {
        return wrong("mix", "must not be empty");
    }
    for (index, entry) in mix.iter().enumerate() {
        if entry.weight == 0 || entry.weight > 1_000_000 {
            return wrong(format!("mix[{index}].weight"), "must be from 1 to 1000000");
        }
        let bytes = format!("mix[{index}].bytes");
        match (entry.endpoint, entry.bytes) {
            (Endpoint::Upload, None) => return wrong(bytes, "an upload needs its size"),
            (Endpoint::Upload, Some(size)) if size > MAX_UPLOAD_BYTES => {
                return wrong(bytes, format!("must be at most {MAX_UPLOAD_BYTES}"));
            }
            (Endpoint::Upload, Some(_)) | (_, None) => {}
            (_, Some(_)) => return wrong(bytes, "only an upload has a size"),
        }
        if mix[..index].iter().any(|earlier| earlier.endpoint == entry.endpoint) {
            return wrong(format!("mix[{index}].endpoint"), format!("`{}` is there already", entry.endpoint.name()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::scenario::{Scenario, ScenarioError};

    fn valid() -> Value {
        json!({
            "name": "x", "description": "d", "question": "q",
            "model": {"kind": "closed", "vus": 2, "think_time": {"distribution": "exponential", "mean_seconds": 0.5}},
            "phases": [{"kind": "ramp", "seconds": 1}, {"kind": "measure", "seconds": 2}],
            "mix": [{"endpoint": "get-user", "weight": 3}, {"endpoint": "upload", "weight": 1, "bytes": 10}],
            "identities": "per_vu", "tokens": "set_up",
        })
    }

    fn refusal(pointer: &str, value: Value) -> (String, String) {
        let mut scenario = valid();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = scenario.pointer_mut(parent).unwrap();
        match parent {
            Value::Object(object) => drop(object.insert(key.to_owned(), value)),
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
            _ => panic!("{pointer}"),
        }
        match Scenario::parse(&scenario.to_string(), "test") {
            Err(ScenarioError::Malformed { field, reason, .. }) => (field, reason),
            other => panic!("{pointer}: {other:?}"),
        }
    }

    #[test]
    fn the_example_is_valid() {
        Scenario::parse(&valid().to_string(), "test").unwrap();
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (pointer, value, field) in [
            ("/name", json!("Not/a name"), "name"),
            ("/question", json!(" "), "question"),
            ("/model/vus", json!(0), "model.vus"),
            ("/model/think_time/mean_seconds", json!(-1.0), "model.think_time.mean_seconds"),
            ("/phases/0/seconds", json!(0), "phases[0].seconds"),
            ("/phases/1/factor", json!(0), "phases[1].factor"),
            ("/phases", json!([{"kind": "ramp", "seconds": 1}]), "phases"),
            ("/mix", json!([]), "mix"),
            ("/mix/0/weight", json!(0), "mix[0].weight"),
            ("/mix/0/bytes", json!(1), "mix[0].bytes"),
            ("/mix/1/endpoint", json!("get-user"), "mix[1].bytes"),
            ("/mix/1", json!({"endpoint": "get-user", "weight": 1}), "mix[1].endpoint"),
            ("/mix/1", json!({"endpoint": "upload", "weight": 1}), "mix[1].bytes"),
            ("/tokens", json!("none"), "tokens"),
            ("/model", json!({"kind": "open", "arrivals_per_second": 0, "max_vus": 1}), "model.arrivals_per_second"),
        ] {
            assert_eq!(refusal(pointer, value).0, field, "{pointer}");
        }
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_wherever_it_is() {
        for (pointer, value) in [
            ("/vus", json!(3)),
            ("/model/rate", json!(3)),
            ("/model/think_time/max_seconds", json!(3)),
            ("/phases/0/duration", json!(3)),
            ("/mix/0/share", json!(3)),
        ] {
            let (_, reason) = refusal(pointer, value);
            let name = pointer.rsplit('/').next().unwrap();
            assert!(reason.contains("unknown field") && reason.contains(name), "{pointer}: {reason}");
        }
    }

    #[test]
    fn wrong_types_are_named_with_their_place() {
        let (field, _) = refusal("/phases/1/seconds", json!("long"));
        assert_eq!(field, "phases[1].seconds");
        let (field, _) = refusal("/mix/0/weight", json!(-1));
        assert_eq!(field, "mix[0].weight");
    }

    #[test]
    fn text_after_the_end_is_refused() {
        assert!(Scenario::parse(&format!("{} x", valid()), "test").is_err());
    }
}
