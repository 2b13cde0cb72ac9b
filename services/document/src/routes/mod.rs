//! One endpoint a file: its request, its answer, its handler.

pub(crate) mod content;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod metadata;
pub(crate) mod upload;
