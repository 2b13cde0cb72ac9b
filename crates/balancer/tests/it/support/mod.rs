//! Stub tasks, a client on the wire, and a balancer between them.

mod stub;
mod time;
mod wire;

pub(crate) use stub::{Answer, RawStub, Stub, read_head};
pub(crate) use time::{StandingTime, quiet};
pub(crate) use wire::{Reply, Wire};

use std::net::SocketAddr;
use std::time::Duration;

use balancer::{Balancer, Config, Outcome, Shutdown, Stop, TargetSnapshot, TargetState};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything takes on the slowest machine: only a test that would hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// For how long a connection may be idle where a test does not say otherwise: an ALB's default.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// A balancer that serves on a port of its own.
pub(crate) struct Running {
    pub(crate) balancer: Balancer,
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: Shutdown,
    serving: JoinHandle<Outcome>,
}

/// Datum's configuration with the given change. Health checks come once at registration and then so seldom that no test
/// meets another one, unless it asks for them.
pub(crate) fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config { stop: Stop { delay: Duration::ZERO, deadline: PATIENCE }, ..Config::default() };
    for group in &mut config.groups {
        group.health.interval = Duration::from_hours(1);
        group.health.timeout = PATIENCE;
    }
    change(&mut config);
    config
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let balancer = Balancer::new(config(change)).expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let serving = {
            let (balancer, shutdown) = (balancer.clone(), shutdown.clone());
            tokio::spawn(async move { balancer.serve(listener, shutdown).await })
        };
        Self { balancer, address, shutdown, serving }
    }

    /// A balancer whose `auth` group is these stubs, all found healthy.
    pub(crate) async fn before(stubs: &[&Stub]) -> Self {
        let running = Self::start().await;
        for stub in stubs {
            running.register(stub.address).await;
        }
        running
    }

    /// Registers a target of `auth` and waits until it is healthy.
    pub(crate) async fn register(&self, address: SocketAddr) {
        self.balancer.register("auth", address).unwrap();
        self.until(address, |target| target.state == TargetState::Healthy).await;
    }

    /// Registers a target of `auth` that answers no health check. With no healthy one beside it, it gets requests.
    pub(crate) fn register_unchecked(&self, address: SocketAddr) {
        self.balancer.register("auth", address).unwrap();
    }

    pub(crate) fn target(&self, address: SocketAddr) -> Option<TargetSnapshot> {
        self.balancer.snapshot().into_iter().flat_map(|group| group.targets).find(|target| target.address == address)
    }

    /// Waits until the target's snapshot is as wanted.
    pub(crate) async fn until(&self, address: SocketAddr, wanted: impl Fn(&TargetSnapshot) -> bool) {
        eventually(|| self.target(address).is_some_and(|target| wanted(&target))).await;
    }

    pub(crate) async fn wire(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// One `GET` on a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.wire().await.get(path).await
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(self) -> Outcome {
        self.shutdown.begin();
        self.stopped().await
    }

    /// Waits until it has stopped.
    pub(crate) async fn stopped(self) -> Outcome {
        timeout(PATIENCE, self.serving).await.expect("it stops").unwrap()
    }
}

/// Waits for a condition that something else brings about. Without a timer: it holds as soon as it does, also where time
/// stands still.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "the condition never held");
        tokio::task::yield_now().await;
    }
}

/// The future's output, which must come.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it never came")
}
