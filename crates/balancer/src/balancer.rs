//! The balancer as its owner sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use service_kit::server::{Outcome, Shutdown};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::{Config, ConfigError};
use crate::edge::{self, Edge};
use crate::targets::{self, Group, GroupSnapshot};

/// A load balancer. Clones are handles to the same one; with the last of them, health checks and look-ups end.
#[derive(Debug, Clone)]
pub struct Balancer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    groups: Vec<Arc<Group>>,
    _stop: DropGuard,
}

/// There is no target group of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no target group '{0}'")]
pub struct UnknownGroup(pub String);

impl Balancer {
    /// Sets up the groups and begins to check the targets that the configuration names. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let stopped = CancellationToken::new();
        let group = |group: &crate::GroupConfig| {
            let in_use = config.rules.iter().any(|rule| rule.group == group.name);
            Group::new(group.clone(), config.target_connections, in_use, stopped.clone())
        };
        let groups: Vec<_> = config.groups.iter().map(group).collect();
        for (group, group_config) in groups.iter().zip(&config.groups) {
            for source in &group_config.targets {
                targets::follow(group, source, config.dns_interval);
            }
        }
        Ok(Self { inner: Arc::new(Inner { config, groups, _stop: stopped.drop_guard() }) })
    }

    /// Registers a target. It gets requests after its first good health check, or at once where no target of the group is
    /// healthy. Registering a registered target changes nothing.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn register(&self, group: &str, address: SocketAddr) -> Result<(), UnknownGroup> {
        self.group(group)?.register(address);
        Ok(())
    }

    /// Deregisters a target: no new requests from now on, those in progress may finish within the deregistration delay.
    /// `false` where it was not registered.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn deregister(&self, group: &str, address: SocketAddr) -> Result<bool, UnknownGroup> {
        Ok(self.group(group)?.deregister(address))
    }

    /// Every group and its targets, draining ones included, at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Vec<GroupSnapshot> {
        self.inner.groups.iter().map(|group| group.snapshot()).collect()
    }

    /// Serves clients until `shutdown` is requested, and then stops as [`crate::Stop`] says: it goes on for the delay,
    /// stops listening, lets requests in progress finish with `connection: close`, and cuts what is left at the deadline
    /// or when `shutdown` is requested again.
    pub async fn serve(&self, listener: TcpListener, shutdown: Shutdown) -> Outcome {
        let port = listener.local_addr().map_or(0, |address| address.port());
        let group_of = |name: &str| self.inner.groups.iter().find(|group| group.name() == name).cloned();
        // The configuration was checked: every rule has its group.
        let rules = self.inner.config.rules.iter().filter_map(|rule| Some((rule.clone(), group_of(&rule.group)?)));
        let edge = Arc::new(Edge::new(&self.inner.config, rules.collect(), port));
        edge::serve(listener, edge, shutdown).await
    }

    fn group(&self, name: &str) -> Result<&Arc<Group>, UnknownGroup> {
        let found = self.inner.groups.iter().find(|group| group.name() == name);
        found.ok_or_else(|| UnknownGroup(name.to_owned()))
    }
}
