//! A target group: its members, and the choice among them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use metrics::{counter, gauge};
use tokio_util::sync::CancellationToken;

use super::discovery::TargetSource;
use super::health::{self, HealthCheck};
use super::state::{GroupSnapshot, Reason, TargetState};
use super::target::{Lease, Status, Target};
use crate::config::TargetConnections;
use crate::names;

/// How the next target is chosen among the healthy ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the fewest requests in progress; among equals, one after the other.
    LeastOutstandingRequests,
}

/// A target group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// Its name, which rules refer to.
    pub name: String,
    /// How targets are chosen.
    pub algorithm: Algorithm,
    /// How targets are checked.
    pub health: HealthCheck,
    /// How long a deregistered target may take to finish the requests that it has.
    pub deregistration_delay: Duration,
    /// The targets to begin with; more can be registered at any time.
    pub targets: Vec<TargetSource>,
}

impl GroupConfig {
    /// A group without targets of the service that it is called after: round robin, `/ready`, 30 s to drain (an ALB: 300 s).
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            algorithm: Algorithm::default(),
            health: HealthCheck { service: Some(name.to_owned()), ..HealthCheck::default() },
            deregistration_delay: Duration::from_secs(30),
            targets: Vec::new(),
        }
    }
}

/// A target group at work.
#[derive(Debug)]
pub(crate) struct Group {
    config: GroupConfig,
    connections: TargetConnections,
    /// Whether a rule forwards to it.
    in_use: bool,
    /// Draining ones included.
    members: Mutex<Vec<Arc<Target>>>,
    /// What the members' states come to.
    routes: RwLock<Routes>,
    next: AtomicUsize,
    /// Ends everything that runs in the background.
    stopped: CancellationToken,
}

#[derive(Debug, Default)]
struct Routes {
    eligible: Vec<Arc<Target>>,
    fail_open: bool,
}

impl Group {
    pub(crate) fn new(
        config: GroupConfig,
        connections: TargetConnections,
        in_use: bool,
        stopped: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            config,
            connections,
            in_use,
            members: Mutex::default(),
            routes: RwLock::default(),
            next: AtomicUsize::new(0),
            stopped,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(super) fn config(&self) -> &GroupConfig {
        &self.config
    }

    pub(super) fn stopped(&self) -> &CancellationToken {
        &self.stopped
    }

    /// Adds a target, or does nothing where it is registered already. One that drains is added anew beside it.
    pub(crate) fn register(self: &Arc<Self>, address: SocketAddr) {
        let status = if self.in_use {
            (TargetState::Initial, Some(Reason::RegistrationInProgress))
        } else {
            (TargetState::Unused, Some(Reason::NotInUse))
        };
        let retired = self.stopped.child_token();
        let target = {
            let mut members = self.lock();
            if members.iter().any(|member| member.address() == address && !member.is_draining()) {
                return;
            }
            let target = Target::new(self.name(), address, status, self.connections, retired.clone());
            members.push(target.clone());
            target
        };
        self.refresh();
        tracing::info!(group = self.name(), port = address.port(), "target registered");
        if self.in_use {
            let group = self.clone();
            tokio::spawn(retired.run_until_cancelled_owned(health::watch(group, target)));
        }
    }

    /// Takes a target out: it gets no new requests, and is forgotten when it has finished what it has or the
    /// deregistration delay is over. `false` where it is not registered.
    pub(crate) fn deregister(self: &Arc<Self>, address: SocketAddr) -> bool {
        let target = {
            let members = self.lock();
            let found = members.iter().find(|member| member.address() == address && !member.is_draining());
            let Some(target) = found.cloned() else { return false };
            // Under the lock, so that of two callers one finds it.
            target.begin_draining();
            target
        };
        self.refresh();
        tracing::info!(
            group = self.name(),
            port = address.port(),
            outstanding = target.outstanding(),
            "target draining"
        );
        let group = self.clone();
        tokio::spawn(self.stopped.clone().run_until_cancelled_owned(async move { group.drain(&target).await }));
        true
    }

    async fn drain(&self, target: &Arc<Target>) {
        if tokio::time::timeout(self.config.deregistration_delay, target.drained()).await.is_err() {
            let (group, port, outstanding) = (self.name(), target.address().port(), target.outstanding());
            tracing::warn!(group, port, outstanding, "the deregistration delay is over: requests are cut");
            target.cut();
        }
        self.lock().retain(|member| !Arc::ptr_eq(member, target));
        self.refresh();
        tracing::info!(group = self.name(), port = target.address().port(), "target deregistered");
    }

    /// Takes a judgement of the health checks.
    pub(super) fn report(&self, target: &Target, status: Status) {
        {
            // Under the lock, so that no judgement outlives the deregistration that it came too late for.
            let _members = self.lock();
            if target.is_draining() {
                return;
            }
            let before = target.set_status(status);
            let stranger = |(_, reason): Status| reason == Some(Reason::AnotherService);
            if before.0 == status.0 && stranger(before) == stranger(status) {
                return;
            }
        }
        self.refresh();
        let (state, reason) = (status.0.word(), status.1.map(|reason| reason.to_string()));
        tracing::info!(group = self.name(), port = target.address().port(), state, reason, "target changed");
    }

    /// Works out anew who gets requests: the healthy ones, or all where none is (an ALB fails open as well: better a
    /// target that might answer than an error that is certain). Never one that is another service's: its answers would be taken
    /// for this one's.
    fn refresh(&self) {
        let members = self.lock();
        let in_state = |state| members.iter().filter(move |member| member.status().0 == state);
        let healthy: Vec<_> = in_state(TargetState::Healthy).cloned().collect();
        let is_own = |member: &&Arc<Target>| member.status().1 != Some(Reason::AnotherService);
        let possible = || members.iter().filter(|member| !member.is_draining()).filter(is_own);
        let fail_open = healthy.is_empty() && possible().next().is_some();
        let eligible = if fail_open { possible().cloned().collect() } else { healthy };
        for state in TargetState::ALL {
            #[allow(clippy::cast_precision_loss, reason = "no group has 2^52 targets")]
            let number = in_state(state).count() as f64;
            gauge!(names::TARGETS, "group" => self.config.name.clone(), "state" => state.word()).set(number);
        }
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Routes { eligible, fail_open };
    }

    /// The next target, and not one of those that were `tried`.
    pub(crate) fn choose(&self, tried: &[Arc<Target>]) -> Option<Lease> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let count = routes.eligible.len();
        let start = self.next.fetch_add(1, Ordering::Relaxed).checked_rem(count)?;
        let untried = (0..count)
            .map(|step| &routes.eligible[(start + step) % count])
            .filter(|target| !tried.iter().any(|tried| Arc::ptr_eq(tried, target)));
        let chosen = match self.config.algorithm {
            Algorithm::RoundRobin => { untried }.next(),
            // The first of the least, so that equals take turns.
            Algorithm::LeastOutstandingRequests => untried.min_by_key(|target| target.outstanding()),
        };
        // Counted before the lock is released: simultaneous choices see each other, but for a race that costs nothing.
        chosen.cloned().map(Lease::new)
    }

    /// The balancer answered a request of this group itself.
    pub(crate) fn count_refusal(&self, status: u16) {
        counter!(
            names::REQUESTS,
            "group" => self.config.name.clone(), "target" => "", "status" => status.to_string()
        )
        .increment(1);
    }

    pub(crate) fn snapshot(&self) -> GroupSnapshot {
        let fail_open = self.routes.read().unwrap_or_else(PoisonError::into_inner).fail_open;
        let targets = self.lock().iter().map(|target| target.snapshot()).collect();
        GroupSnapshot { name: self.config.name.clone(), fail_open, targets }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Target>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: Status = (TargetState::Healthy, None);
    const UNHEALTHY: Status = (TargetState::Unhealthy, Some(Reason::Timeout));

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// A group whose targets nobody checks; their ports are 1, 2, ….
    fn group(algorithm: Algorithm, statuses: &[Status]) -> Arc<Group> {
        let config = GroupConfig { algorithm, ..GroupConfig::new("auth") };
        let group = Group::new(config, TargetConnections::default(), true, CancellationToken::new());
        for (status, port) in statuses.iter().zip(1..) {
            let connections = TargetConnections::default();
            let target = Target::new("auth", address(port), *status, connections, CancellationToken::new());
            group.lock().push(target);
        }
        group.refresh();
        group
    }

    fn port(lease: &Lease) -> u16 {
        lease.target().address().port()
    }

    fn chosen(group: &Group, times: usize) -> Vec<u16> {
        (0..times).filter_map(|_| group.choose(&[])).map(|lease| port(&lease)).collect()
    }

    #[test]
    fn round_robin_takes_turns_whoever_is_busy() {
        let group = group(Algorithm::RoundRobin, &[HEALTHY; 3]);
        let busy: Vec<_> = (0..2).filter_map(|_| group.choose(&[])).collect();
        assert_eq!(busy.len(), 2);
        assert_eq!(chosen(&group, 6), [3, 1, 2, 3, 1, 2]);
    }

    #[test]
    fn least_outstanding_takes_turns_among_equals() {
        let group = group(Algorithm::LeastOutstandingRequests, &[HEALTHY; 3]);
        assert_eq!(chosen(&group, 6), [1, 2, 3, 1, 2, 3]);
        let held: Vec<_> = (0..6).filter_map(|_| group.choose(&[])).collect();
        let outstanding: Vec<_> = group.snapshot().targets.iter().map(|target| target.outstanding).collect();
        assert_eq!((held.len(), outstanding), (6, vec![2, 2, 2]));
    }

    #[test]
    fn a_busy_target_is_passed_over_until_it_is_free_again() {
        let group = group(Algorithm::LeastOutstandingRequests, &[HEALTHY; 2]);
        let busy = group.choose(&[]).expect("a target");
        let other = if port(&busy) == 1 { 2 } else { 1 };
        assert_eq!(chosen(&group, 4), [other; 4]);
        drop(busy);
        assert_eq!(chosen(&group, 4).iter().filter(|port| **port == other).count(), 2);
    }

    #[test]
    fn unhealthy_targets_get_nothing_unless_all_are() {
        let mixed = group(Algorithm::RoundRobin, &[UNHEALTHY, HEALTHY, UNHEALTHY]);
        assert_eq!(chosen(&mixed, 3), [2, 2, 2]);
        assert!(!mixed.snapshot().fail_open);
        let all = group(Algorithm::RoundRobin, &[UNHEALTHY, (TargetState::Initial, None)]);
        assert_eq!(chosen(&all, 4), [1, 2, 1, 2]);
        assert!(all.snapshot().fail_open);
    }

    #[test]
    fn another_services_task_gets_nothing_even_if_no_target_is_healthy() {
        let stranger = (TargetState::Unhealthy, Some(Reason::AnotherService));
        let alone = group(Algorithm::RoundRobin, &[stranger]);
        assert!(alone.choose(&[]).is_none() && !alone.snapshot().fail_open);
        let beside = group(Algorithm::RoundRobin, &[stranger, UNHEALTHY]);
        assert_eq!(chosen(&beside, 2), [2, 2]);
        // Judged anew, though it stays unhealthy.
        let target = beside.lock()[0].clone();
        beside.report(&target, UNHEALTHY);
        assert_eq!(chosen(&beside, 2), [1, 2]);
    }

    #[test]
    fn a_target_that_was_tried_is_not_chosen_again() {
        for algorithm in [Algorithm::RoundRobin, Algorithm::LeastOutstandingRequests] {
            let group = group(algorithm, &[HEALTHY; 2]);
            let first = group.choose(&[]).expect("a target");
            let second = group.choose(&[first.target().clone()]).expect("the other");
            assert_ne!(port(&first), port(&second));
            assert!(group.choose(&[first.target().clone(), second.target().clone()]).is_none());
        }
    }

    #[test]
    fn an_empty_group_has_nobody_to_choose() {
        let group = group(Algorithm::RoundRobin, &[]);
        assert!(group.choose(&[]).is_none());
        assert!(!group.snapshot().fail_open);
    }

    #[tokio::test]
    async fn a_deregistered_target_gets_nothing_even_if_it_was_the_last() {
        let group = group(Algorithm::RoundRobin, &[HEALTHY]);
        let lease = group.choose(&[]).expect("a target");
        assert!(group.deregister(address(1)));
        assert!(!group.deregister(address(1)), "it is draining already");
        assert!(group.choose(&[]).is_none());
        let late = group.snapshot().targets[0].clone();
        assert_eq!((late.state, late.outstanding), (TargetState::Draining, 1));
        group.report(lease.target(), HEALTHY);
        assert!(group.choose(&[]).is_none(), "a late judgement changes nothing");
    }

    #[test]
    fn a_group_that_no_rule_uses_is_not_checked() {
        let config = GroupConfig::new("spare");
        let group = Group::new(config, TargetConnections::default(), false, CancellationToken::new());
        // Outside a runtime: a check would panic.
        group.register(address(1));
        group.register(address(1));
        let targets = group.snapshot().targets;
        assert_eq!(targets.len(), 1, "registering twice is registering once");
        assert_eq!((targets[0].state, targets[0].reason), (TargetState::Unused, Some(Reason::NotInUse)));
    }
}
