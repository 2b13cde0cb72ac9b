//! The targets' side: who is registered, who is healthy, who gets the next request, and the connections to them.

mod discovery;
mod group;
mod health;
mod link;
mod meters;
mod pool;
mod state;
mod target;
mod upstream;

pub(crate) use discovery::follow;
pub use discovery::{SourceError, TargetSource};
pub use group::{Algorithm, GroupConfig};
pub use health::{HealthCheck, StatusMatcher};
pub use state::{GroupSnapshot, Reason, TargetSnapshot, TargetState};

pub(crate) use group::Group;
pub(crate) use target::{Lease, Target};
pub(crate) use upstream::{ConnectError, Upstream};
