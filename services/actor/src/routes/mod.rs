//! One endpoint a file: its request, its answer, its handler.

pub(crate) mod get_actor;
pub(crate) mod get_me;
pub(crate) mod update_me;
