//! How a balancer is set up: in code by the local stack, from the environment by `datum balancer`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use service_kit::config::Settings;
use service_kit::faults;

use crate::rules::{self, Rule};
use crate::targets::{Algorithm, GroupConfig, HealthCheck, StatusMatcher, TargetSource};

/// Names the delay of [`Config::forward_delay`].
pub const FORWARD_DELAY_VARIABLE: &str = "FAULT_FORWARD_DELAY";

/// A balancer: its rules, its groups, and the limits of both sides.
#[derive(Debug, Clone)]
pub struct Config {
    /// Tried in order.
    pub rules: Vec<Rule>,
    /// Every group that a rule names, and perhaps others.
    pub groups: Vec<GroupConfig>,
    /// Answers `/docs`, `/docs/…` and `/openapi.json`; without it they are unknown paths.
    pub pages: Option<Router>,
    /// An ALB's idle timeout, on both sides: no request on a client's connection, no byte in either direction while there
    /// is one. Below the 75 s of the tasks.
    pub idle_timeout: Duration,
    /// How long a target is given to answer `Expect: 100-continue`, before the body is asked for anyway.
    pub continue_timeout: Duration,
    /// The connections to each target.
    pub target_connections: TargetConnections,
    /// Open client connections. Clients beyond it get 503.
    pub max_connections: usize,
    /// From one look-up of a `dns:` source to the next.
    pub dns_interval: Duration,
    /// How it stops.
    pub stop: Stop,
    /// Holds every request up before it is forwarded, to test measuring with.
    pub forward_delay: Option<Duration>,
}

/// The connections to each target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetConnections {
    /// For making one. An ALB: 10 s.
    pub connect_timeout: Duration,
    /// How long one is kept without a request; well below the 75 s after which tasks close it.
    pub idle_timeout: Duration,
    /// How many are kept without a request.
    pub max_idle: usize,
}

impl Default for TargetConnections {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), idle_timeout: Duration::from_secs(45), max_idle: 1_024 }
    }
}

/// How a balancer stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// From the request to stop to the end of listening.
    pub delay: Duration,
    /// From the end of listening to the end of everything.
    pub deadline: Duration,
}

impl Default for Stop {
    fn default() -> Self {
        Self { delay: Duration::ZERO, deadline: Duration::from_secs(25) }
    }
}

impl Default for Config {
    /// Datum's rules and its three groups, without targets.
    fn default() -> Self {
        Self {
            rules: rules::datum(),
            groups: ["auth", "actor", "document"].map(GroupConfig::new).to_vec(),
            pages: None,
            idle_timeout: Duration::from_mins(1),
            continue_timeout: Duration::from_secs(1),
            target_connections: TargetConnections::default(),
            max_connections: 8_192,
            dns_interval: Duration::from_secs(5),
            stop: Stop::default(),
            forward_delay: None,
        }
    }
}

/// What makes a configuration impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A rule forwards to nowhere.
    #[error("a rule forwards to the group '{0}', which does not exist")]
    UnknownGroup(String),
    /// Two groups of one name.
    #[error("there are two groups named '{0}'")]
    DuplicateGroup(String),
    /// Checks would overtake each other.
    #[error("the health check of the group '{0}' has a timeout that is not shorter than its interval")]
    HealthTimeout(String),
    /// A threshold of 0 means nothing.
    #[error("the health check of the group '{0}' has a threshold of 0")]
    HealthThreshold(String),
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        for group in &self.groups {
            let name = || group.name.clone();
            if !names.insert(group.name.as_str()) {
                return Err(ConfigError::DuplicateGroup(name()));
            }
            if group.health.timeout >= group.health.interval {
                return Err(ConfigError::HealthTimeout(name()));
            }
            if group.health.healthy_threshold == 0 || group.health.unhealthy_threshold == 0 {
                return Err(ConfigError::HealthThreshold(name()));
            }
        }
        match self.rules.iter().find(|rule| !names.contains(rule.group.as_str())) {
            Some(rule) => Err(ConfigError::UnknownGroup(rule.group.clone())),
            None => Ok(()),
        }
    }

    /// Reads the variables: Datum's rules over the three groups, each with the targets that its variable names.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Targets");
        let targets = [
            ("auth", read_targets(settings, "AUTH_TARGETS")),
            ("actor", read_targets(settings, "ACTOR_TARGETS")),
            ("document", read_targets(settings, "DOCUMENT_TARGETS")),
        ];
        let dns_interval = settings.milliseconds(
            "DNS_INTERVAL_MS",
            5_000,
            100..=3_600_000,
            "From one look-up of a dns: target to the next",
        );
        let algorithm = settings.choice(
            "BALANCER_ALGORITHM",
            "round_robin",
            &[
                ("round_robin", Algorithm::RoundRobin),
                ("least_outstanding_requests", Algorithm::LeastOutstandingRequests),
            ],
            "Who gets the next request: round_robin or least_outstanding_requests",
        );
        let deregistration_delay = settings.milliseconds(
            "DEREGISTRATION_DELAY_MS",
            30_000,
            0..=3_600_000,
            "How long a deregistered target may finish what it has",
        );
        let health = read_health_check(settings);
        let groups = targets.map(|(name, targets)| GroupConfig {
            algorithm,
            health: HealthCheck { service: Some(name.to_owned()), ..health.clone() },
            deregistration_delay,
            targets,
            ..GroupConfig::new(name)
        });
        settings.section("Connections");
        let defaults = Self::default();
        Self {
            groups: groups.to_vec(),
            dns_interval,
            idle_timeout: settings.milliseconds(
                "IDLE_TIMEOUT_MS",
                60_000,
                10..=3_600_000,
                "Longest silence of a connection, on both sides; below the tasks' HEADER_READ_TIMEOUT_MS",
            ),
            continue_timeout: settings.milliseconds(
                "CONTINUE_TIMEOUT_MS",
                1_000,
                1..=60_000,
                "How long a target may take to say 100 Continue",
            ),
            target_connections: read_target_connections(settings),
            max_connections: settings.number("MAX_CONNECTIONS", 8_192, 1..=1_000_000, "Open client connections"),
            stop: Stop {
                delay: settings.milliseconds("SHUTDOWN_DELAY_MS", 0, 0..=120_000, "Keep listening after a stop signal"),
                deadline: settings.milliseconds(
                    "SHUTDOWN_DEADLINE_MS",
                    25_000,
                    0..=120_000,
                    "Then let requests in progress finish for at most this long",
                ),
            },
            forward_delay: read_forward_delay(settings),
            ..defaults
        }
    }
}

/// Holds every request up before it is forwarded, so that time is lost where no task sees it. Refused where faults are not
/// allowed, as [`service_kit::faults`] says.
pub fn read_forward_delay(settings: &mut Settings<'_>) -> Option<Duration> {
    settings.section("Faults, to test measuring with");
    let help = "Holds every request up before it is forwarded, such as 50ms";
    let delay = settings.parsed(FORWARD_DELAY_VARIABLE, "", help, faults::parse_delay);
    faults::unless_refused(settings, FORWARD_DELAY_VARIABLE, delay)
}

fn read_targets(settings: &mut Settings<'_>, name: &'static str) -> Vec<TargetSource> {
    let help = "Its targets, separated by commas: 127.0.0.1:8081 or dns:NAME:PORT";
    let parse = |text: &str| {
        let sources = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        sources
            .map(|part| part.parse::<TargetSource>().map_err(|error| error.to_string()))
            .collect::<Result<Vec<_>, _>>()
    };
    settings.parsed(name, "", help, parse).unwrap_or_default()
}

fn read_health_check(settings: &mut Settings<'_>) -> HealthCheck {
    settings.section("Health checks");
    let defaults = HealthCheck::default();
    let path = settings.parsed("HEALTH_PATH", "/ready", "What is asked for", |text| {
        text.parse().map_err(|_| format!("is not a path: '{text}'"))
    });
    let success = settings.parsed(
        "HEALTH_SUCCESS",
        "200",
        "Statuses that are a success: 200,202 or 200-299",
        str::parse::<StatusMatcher>,
    );
    let check = HealthCheck {
        path: path.unwrap_or(defaults.path),
        interval: settings.milliseconds("HEALTH_INTERVAL_MS", 5_000, 50..=300_000, "From one check to the next"),
        timeout: settings.milliseconds("HEALTH_TIMEOUT_MS", 2_000, 10..=120_000, "For one check; below the interval"),
        healthy_threshold: settings.number(
            "HEALTH_HEALTHY_THRESHOLD",
            2,
            1..=10,
            "Successes in a row to be healthy again",
        ),
        unhealthy_threshold: settings.number(
            "HEALTH_UNHEALTHY_THRESHOLD",
            2,
            1..=10,
            "Failures in a row to be unhealthy",
        ),
        success: success.unwrap_or(defaults.success),
        service: None,
    };
    if check.timeout >= check.interval {
        settings.error("HEALTH_TIMEOUT_MS", "must be shorter than HEALTH_INTERVAL_MS");
    }
    check
}

fn read_target_connections(settings: &mut Settings<'_>) -> TargetConnections {
    TargetConnections {
        connect_timeout: settings.milliseconds(
            "CONNECT_TIMEOUT_MS",
            10_000,
            10..=120_000,
            "For connecting to a target",
        ),
        idle_timeout: settings.milliseconds(
            "TARGET_IDLE_TIMEOUT_MS",
            45_000,
            10..=3_600_000,
            "How long a connection to a target is kept unused; well below the tasks' HEADER_READ_TIMEOUT_MS",
        ),
        max_idle: settings.number("TARGET_MAX_IDLE", 1_024, 0..=100_000, "How many are kept unused, for each target"),
    }
}

/// Where `datum balancer` listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listen {
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
}

impl Listen {
    pub(crate) fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Listener");
        let host = settings.parsed("HOST", "0.0.0.0", "Address to listen on", |text| {
            text.parse().map_err(|_| "is not an IP address".to_owned())
        });
        Self {
            host: host.unwrap_or(IpAddr::from([0, 0, 0, 0])),
            port: settings.number("PORT", 8080, 0..=65_535, "Port to listen on; 0 takes any"),
        }
    }
}

/// Where `datum balancer` shows its metrics; nowhere unless a port is given.
pub(crate) fn read_metrics_port(settings: &mut Settings<'_>) -> Option<u16> {
    let port = settings.number("METRICS_PORT", 0, 0..=65_535, "Port of /metrics, apart from the clients'; 0 for none");
    (port > 0).then_some(port)
}

#[cfg(test)]
mod tests {
    use service_kit::config::{Environment, load};

    use super::*;

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        let read = load(&Environment::default(), Config::read).expect("a configuration");
        let defaults = Config::default();
        assert_eq!((read.rules, read.groups), (defaults.rules, defaults.groups));
        assert_eq!(read.target_connections, defaults.target_connections);
        assert_eq!((read.idle_timeout, read.continue_timeout), (defaults.idle_timeout, defaults.continue_timeout));
        assert_eq!((read.stop, read.max_connections), (defaults.stop, defaults.max_connections));
        assert_eq!(read.forward_delay, None);
    }

    #[test]
    fn targets_of_both_kinds_are_read() {
        let env = Environment::from_pairs([("ACTOR_TARGETS", "dns:actor:8082, 127.0.0.1:9002,")]);
        let config = load(&env, Config::read).expect("a configuration");
        let written: Vec<_> = config.groups[1].targets.iter().map(ToString::to_string).collect();
        assert_eq!(written, ["dns:actor:8082", "127.0.0.1:9002"]);
    }

    #[test]
    fn every_error_is_reported() {
        let env = Environment::from_pairs([
            ("AUTH_TARGETS", "auth:8081"),
            ("HEALTH_TIMEOUT_MS", "5000"),
            ("HEALTH_SUCCESS", "900"),
            ("BALANCER_ALGORITHM", "random"),
        ]);
        let errors = load(&env, Config::read).expect_err("errors").0;
        assert_eq!(errors.len(), 4, "{errors:?}");
    }

    #[test]
    fn a_forward_delay_is_refused_where_faults_are_not_allowed() {
        let delay = ("FAULT_FORWARD_DELAY", "20ms");
        let errors = load(&Environment::from_pairs([delay]), Config::read).expect_err("refused").0;
        assert!(errors.len() == 1 && errors[0].starts_with("FAULT_FORWARD_DELAY"), "{errors:?}");
        let allowed = Environment::from_pairs([delay, ("DATUM_ALLOW_FAULTS", "1")]);
        let config = load(&allowed, Config::read).expect("a configuration");
        assert_eq!(config.forward_delay, Some(Duration::from_millis(20)));
    }

    #[test]
    fn impossible_configurations_are_refused() {
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check()
        };
        assert_eq!(with(|_| {}), Ok(()));
        let no_actor = with(|config| config.groups.retain(|group| group.name != "actor"));
        assert_eq!(no_actor, Err(ConfigError::UnknownGroup("actor".into())));
        let twice = with(|config| config.groups.push(GroupConfig::new("auth")));
        assert_eq!(twice, Err(ConfigError::DuplicateGroup("auth".into())));
        let slow = with(|config| config.groups[0].health.timeout = config.groups[0].health.interval);
        assert_eq!(slow, Err(ConfigError::HealthTimeout("auth".into())));
        let zero = with(|config| config.groups[2].health.unhealthy_threshold = 0);
        assert_eq!(zero, Err(ConfigError::HealthThreshold("document".into())));
    }
}
