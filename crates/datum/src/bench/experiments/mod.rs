//! One file an experiment: which systems, which runs, and what is asked of their results.

pub(super) mod aa;
pub(super) mod auth_attribution;
pub(super) mod capacity;
pub(super) mod check_drivers;
pub(super) mod check_freeze;
pub(super) mod check_identity;
pub(super) mod list;
pub(super) mod phase4;
pub(super) mod scenario;
pub(super) mod selftest;
