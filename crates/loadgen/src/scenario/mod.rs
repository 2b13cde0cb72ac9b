//! What load is sent: the model, its phases, and the mix of requests. Defined once in data, in `tests/load/scenarios/*.json`,
//! which both drivers read.
//!
//! The format is strict: a field that is not known, a weight of zero or a phase without length is an error that names the
//! field, never a silently different load.

mod catalog;
mod overrides;
mod schedule;
mod validate;

use serde::{Deserialize, Serialize};

pub use catalog::{names, open};
pub use overrides::Overrides;
pub use schedule::{Schedule, Segment};
pub use validate::MAX_VUS;

/// A scenario, as its file defines it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is called; also the file's name.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// What it answers, in a sentence.
    pub question: String,
    /// Who decides when the next request is sent.
    pub model: Model,
    /// What happens when, in order.
    pub phases: Vec<PhaseSpec>,
    /// Which requests, in which proportion.
    pub mix: Vec<MixEntry>,
    /// As whom.
    pub identities: Identities,
    /// Where access tokens come from.
    pub tokens: Tokens,
}

/// Who decides when the next request is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Model {
    /// Each virtual user asks, waits for the answer, thinks, and asks again: a slow answer delays the next request.
    Closed {
        /// Virtual users at factor 1.
        vus: u32,
        /// Numbers of virtual users that the scenario is meant to be run with.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        vus_choices: Vec<u32>,
        /// The pause between an answer and the next request.
        think_time: ThinkTime,
    },
    /// Requests arrive whether or not earlier ones were answered; latency counts from the intended arrival.
    Open {
        /// Arrivals a second at factor 1.
        arrivals_per_second: f64,
        /// Most requests in flight. An arrival that finds them all busy is dropped and counted, never delayed.
        max_vus: u32,
        /// How arrivals are spaced.
        #[serde(default)]
        arrivals: Arrivals,
    },
}

/// The pause between an answer and the next request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkTime {
    /// Its distribution.
    pub distribution: Distribution,
    /// Its mean in seconds; 0 for none.
    pub mean_seconds: f64,
}

/// The distribution of think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Memoryless: users do not fall into step.
    Exponential,
    /// Always the mean.
    Constant,
}

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential gaps: what many independent users make.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

/// A phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// What happens in it.
    pub kind: envelope::result::PhaseKind,
    /// How long, in whole seconds.
    pub seconds: u32,
    /// A name where there are several of a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The multiple of the model's rate or virtual users that holds in the phase; a ramp reaches it linearly at its end.
    /// Left out: 0 for a ramp down, else 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

/// A part of the mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixEntry {
    /// Which request.
    pub endpoint: Endpoint,
    /// Its share, relative to the sum of all weights.
    pub weight: u32,
    /// The size of an upload's file; uploads must have it, others must not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
}

/// A request that scenarios can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// `GET /v1/actors/me`
    GetUser,
    /// `POST /v1/documents`, a raw body.
    Upload,
    /// `POST /v1/auth/login`
    Login,
    /// `POST /v1/auth/register` of an account that did not exist.
    Register,
}

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::GetUser, Self::Upload, Self::Login, Self::Register];

    /// The name in scenarios and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetUser => "get-user",
            Self::Upload => "upload",
            Self::Login => "login",
            Self::Register => "register",
        }
    }

    /// Whether it presents an access token.
    #[must_use]
    pub const fn needs_token(self) -> bool {
        matches!(self, Self::GetUser | Self::Upload)
    }
}

/// As whom requests are sent. In either case no two virtual users begin as the same person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identities {
    /// Each virtual user has an account of its own, registered before the load.
    PerVu,
    /// Users of the populated dataset. A login is of one drawn uniformly from all; what follows on the same virtual user is
    /// sent as that person.
    Populated,
}

/// Where access tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// Each virtual user logs in before the load, outside the mix. A login in the mix replaces the token.
    SetUp,
    /// No request of the mix needs one.
    None,
}

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// There is none of this name, and no such file.
    #[error("there is no scenario `{name}`; there are {}", names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no scenario.
    #[error("{origin}: {field}: {reason}")]
    Malformed {
        /// The scenario's name or file.
        origin: String,
        /// The field that is wrong, as `mix[1].weight`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Scenario {
    /// Reads and checks a scenario. `origin` is what errors call it.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let malformed =
            |field: String, reason: String| ScenarioError::Malformed { origin: origin.to_owned(), field, reason };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let scenario: Self = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| malformed(error.path().to_string(), error.inner().to_string()))?;
        deserializer.end().map_err(|error| malformed("(end of file)".to_owned(), error.to_string()))?;
        scenario.check().map_err(|wrong| malformed(wrong.field, wrong.reason))?;
        Ok(scenario)
    }

    /// When which load holds.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        Schedule::of(&self.phases)
    }

    /// Virtual users that are set up: those of a closed model at its highest factor, or the most of an open one.
    #[must_use]
    pub fn virtual_users(&self) -> u32 {
        match &self.model {
            Model::Closed { vus, .. } => self.schedule().highest_users(*vus),
            Model::Open { max_vus, .. } => *max_vus,
        }
    }

    /// The load model as results state it, at factor 1.
    #[must_use]
    pub fn load(&self) -> envelope::result::Load {
        match &self.model {
            Model::Closed { vus, think_time, .. } => {
                envelope::result::Load::Closed { vus: *vus, think_time_mean_seconds: think_time.mean_seconds }
            }
            Model::Open { arrivals_per_second, .. } => {
                envelope::result::Load::Open { arrivals_per_second: *arrivals_per_second }
            }
        }
    }

    /// Whether a request of the mix presents a token.
    #[must_use]
    pub fn needs_tokens(&self) -> bool {
        self.mix.iter().any(|entry| entry.endpoint.needs_token())
    }
}
