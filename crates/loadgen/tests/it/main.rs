//! The drivers against a target that does what a test wants.

mod stub;
