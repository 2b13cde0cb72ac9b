//! The stack's balancer, and one service's targets in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use balancer::{Balancer, Config, Shutdown, TargetState};
use tokio::task::JoinHandle;

use crate::error::StackError;
use crate::ports::Reserved;
use crate::service::Service;
use crate::status::Health;

/// Between two looks at a target that drains.
const DRAIN_PAUSE: Duration = Duration::from_millis(20);

/// The balancer of a stack, serving.
#[derive(Debug)]
pub(crate) struct LoadBalancer {
    balancer: Balancer,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl LoadBalancer {
    /// Begins to answer on the reserved port: with 503 until tasks are registered, as a load balancer that is there
    /// before its targets does.
    pub(crate) fn start(
        reserved: Reserved,
        pages: Option<Router>,
        forward_delay: Option<Duration>,
    ) -> Result<Self, StackError> {
        let balancer = Balancer::new(Config { pages, forward_delay, ..Config::default() })?;
        let listener = reserved.listen()?;
        let shutdown = Shutdown::default();
        let serving = {
            let (balancer, shutdown) = (balancer.clone(), shutdown.clone());
            tokio::spawn(async move {
                balancer.serve(listener, shutdown).await;
            })
        };
        Ok(Self { balancer, shutdown, serving })
    }

    /// The targets of a service.
    pub(crate) fn targets(&self, service: Service) -> Targets {
        Targets { balancer: self.balancer.clone(), service }
    }

    /// Accepts nothing more, and ends when every request in flight is answered, or the deadline is over.
    pub(crate) async fn stop(mut self) {
        self.shutdown.begin();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One service's targets. All listen on 127.0.0.1.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    balancer: Balancer,
    service: Service,
}

impl Targets {
    /// Adds a task; the balancer checks it before it gets requests.
    pub(crate) fn register(&self, port: u16) {
        // Every service has its group: there is a test.
        let _ = self.balancer.register(self.service.name(), address(port));
    }

    /// Takes out a task whose process is gone.
    pub(crate) fn remove(&self, port: u16) {
        let _ = self.balancer.deregister(self.service.name(), address(port));
    }

    /// Takes a task out; ends when it has finished its requests, or the deregistration delay is over.
    pub(crate) async fn deregister(&self, port: u16) {
        self.remove(port);
        while self.state(port) == Some(TargetState::Draining) {
            tokio::time::sleep(DRAIN_PAUSE).await;
        }
    }

    /// What the balancer thinks of a task.
    pub(crate) fn health(&self, port: u16) -> Health {
        match self.state(port) {
            Some(TargetState::Healthy) => Health::Healthy,
            Some(TargetState::Unhealthy) => Health::Unhealthy,
            Some(TargetState::Draining) => Health::Draining,
            Some(TargetState::Initial | TargetState::Unused) | None => Health::Starting,
        }
    }

    /// The state of the task's last registration.
    fn state(&self, port: u16) -> Option<TargetState> {
        let group = self.balancer.snapshot().into_iter().find(|group| group.name == self.service.name())?;
        group.targets.iter().rev().find(|target| target.address == address(port)).map(|target| target.state)
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_service_has_a_target_group_and_a_rule() {
        let balancer = LoadBalancer::start(Reserved::hold(0).expect("a port"), None, None).expect("serves");
        for service in Service::ALL {
            let targets = balancer.targets(service);
            assert_eq!(targets.state(1), None);
            targets.register(1);
            assert_eq!(targets.state(1), Some(TargetState::Initial), "{service} has no rule");
            targets.deregister(1).await;
            assert_eq!(targets.state(1), None);
            // Nobody there: no harm.
            targets.remove(1);
        }
        balancer.stop().await;
    }
}
