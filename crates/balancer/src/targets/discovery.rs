//! Where targets come from when nobody registers them: fixed addresses, and names that are looked up again and again.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dns_lookup::{AddrInfoHints, LookupErrorKind, SockType};
use tokio::time::{MissedTickBehavior, interval};

use super::group::Group;

/// Where targets come from. Written as `127.0.0.1:8081` or `dns:actor:8082`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSource {
    /// One address.
    Address(SocketAddr),
    /// Every address of a name, as Compose gives one a container of a scaled service.
    Dns {
        /// The name.
        host: String,
        /// The port of every target.
        port: u16,
    },
}

/// Why a text names no targets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither an address with a port (127.0.0.1:8081) nor dns:NAME:PORT")]
pub struct SourceError(String);

impl FromStr for TargetSource {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let dns = || {
            let (host, port) = text.strip_prefix("dns:")?.rsplit_once(':')?;
            let is_name = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
            let port = port.parse().ok().filter(|port| *port > 0)?;
            is_name.then(|| Self::Dns { host: host.to_owned(), port })
        };
        let address = || text.parse().ok().filter(|address: &SocketAddr| address.port() > 0).map(Self::Address);
        dns().or_else(address).ok_or_else(|| SourceError(text.to_owned()))
    }
}

impl fmt::Display for TargetSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Dns { host, port } => write!(f, "dns:{host}:{port}"),
        }
    }
}

/// Registers what the source names, and keeps looking where that can change.
pub(crate) fn follow(group: &Arc<Group>, source: &TargetSource, every: Duration) {
    match source {
        TargetSource::Address(address) => group.register(*address),
        TargetSource::Dns { host, port } => {
            let stopped = group.stopped().clone();
            let watch = watch_name(group.clone(), host.clone(), *port, every);
            tokio::spawn(stopped.run_until_cancelled_owned(watch));
        }
    }
}

async fn watch_name(group: Arc<Group>, host: String, port: u16, every: Duration) {
    let mut known = BTreeSet::new();
    let mut outage = None;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let asked = host.clone();
        let found = tokio::task::spawn_blocking(move || look_up(&asked, port)).await;
        let found = found.unwrap_or_else(|_panic| Err("the look-up was cut off".to_owned()));
        report(group.name(), trouble(&found), &mut outage);
        known = apply(&group, known, found.ok());
    }
}

/// What a name stands for now. That there is no such name is an answer: nobody is there. The standard library tells that from
/// a name server that is away by words only.
fn look_up(host: &str, port: u16) -> Result<BTreeSet<SocketAddr>, String> {
    let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
    match dns_lookup::getaddrinfo(Some(host), Some(&port.to_string()), Some(hints)) {
        Ok(found) => {
            let addresses = found.map(|address| address.map(|address| address.sockaddr));
            addresses.collect::<io::Result<_>>().map_err(|error| error.to_string())
        }
        Err(error) if matches!(error.kind(), LookupErrorKind::NoName | LookupErrorKind::NoData) => Ok(BTreeSet::new()),
        Err(error) => Err(io::Error::from(error).to_string()),
    }
}

/// Why a look-up gave nobody.
fn trouble(found: &Result<BTreeSet<SocketAddr>, String>) -> Option<&str> {
    match found {
        Ok(found) if found.is_empty() => Some("there is no such name"),
        Ok(_) => None,
        Err(reason) => Some(reason),
    }
}

/// Tells when look-ups begin to give nobody, for another reason, or somebody again: not each of them, since there is one a second.
fn report(group: &str, reason: Option<&str>, outage: &mut Option<String>) {
    match reason {
        Some(reason) if outage.as_deref() != Some(reason) => tracing::warn!(group, reason, "looking up targets fails"),
        None if outage.is_some() => tracing::info!(group, "looking up targets succeeds again"),
        _ => {}
    }
    *outage = reason.map(str::to_owned);
}

/// Makes the group follow what a name stands for. A look-up that fails changes nothing: a name server that is away must
/// not take the targets with it, which have their health checks.
fn apply(group: &Arc<Group>, known: BTreeSet<SocketAddr>, found: Option<BTreeSet<SocketAddr>>) -> BTreeSet<SocketAddr> {
    let Some(found) = found else { return known };
    for gone in known.difference(&found) {
        group.deregister(*gone);
    }
    for new in found.difference(&known) {
        group.register(*new);
    }
    found
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::config::TargetConnections;
    use crate::targets::{GroupConfig, TargetState};

    #[test]
    fn addresses_and_names_are_read_and_written() {
        for text in ["127.0.0.1:8081", "[::1]:8081", "dns:actor:8082", "dns:task_1.actor-svc.local:1"] {
            let source: TargetSource = text.parse().expect("a source");
            assert_eq!(source.to_string(), text);
        }
        for text in
            ["", "actor:8082", "127.0.0.1", "127.0.0.1:0", "dns:actor", "dns::80", "dns:a b:80", "dns:a:0", "dns:a:x"]
        {
            assert!(text.parse::<TargetSource>().is_err(), "{text}");
        }
    }

    fn addresses(ports: &[u16]) -> BTreeSet<SocketAddr> {
        ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect()
    }

    fn registered(group: &Group) -> Vec<u16> {
        let targets = group.snapshot().targets.into_iter();
        targets.filter(|target| target.state != TargetState::Draining).map(|target| target.address.port()).collect()
    }

    #[tokio::test]
    async fn a_group_follows_its_name_and_survives_a_failing_look_up() {
        let group =
            Group::new(GroupConfig::new("actor"), TargetConnections::default(), false, CancellationToken::new());
        let known = apply(&group, BTreeSet::new(), Some(addresses(&[1, 2])));
        assert_eq!(registered(&group), [1, 2]);
        let known = apply(&group, known, None);
        assert_eq!(registered(&group), [1, 2]);
        let known = apply(&group, known, Some(addresses(&[2, 3])));
        assert_eq!(registered(&group), [2, 3]);
        assert_eq!(known, addresses(&[2, 3]));
        // A name that stands for nobody any more is no failure: whoever has the address next is somebody else.
        assert_eq!(apply(&group, known, Some(BTreeSet::new())), BTreeSet::new());
        assert_eq!(registered(&group), [0_u16; 0]);
    }

    #[test]
    fn why_nobody_was_found_is_told_when_it_changes() {
        let found = |ports: &[u16]| Ok(addresses(ports));
        assert_eq!(trouble(&found(&[])), Some("there is no such name"));
        assert_eq!(trouble(&found(&[1])), None);
        assert_eq!(trouble(&Err("no name server".to_owned())), Some("no name server"));
        let mut outage = None;
        for (reason, kept) in [(Some("a"), Some("a")), (Some("b"), Some("b")), (None, None), (None, None)] {
            report("actor", reason, &mut outage);
            assert_eq!(outage.as_deref(), kept);
        }
    }

    #[test]
    fn names_and_addresses_are_looked_up_with_their_port() {
        assert_eq!(look_up("127.0.0.1", 8080), Ok(BTreeSet::from([SocketAddr::from(([127, 0, 0, 1], 8080))])));
        let local = look_up("localhost", 8080).expect("every machine has it");
        assert!(!local.is_empty() && local.iter().all(|address| address.ip().is_loopback() && address.port() == 8080));
    }
}
