//! What the handlers share.

use std::sync::Arc;

use axum::extract::FromRef;
use service_kit::auth::Verifier;
use service_kit::clock::SharedClock;
use service_kit::database::Pool;

use crate::directory::Directory;

/// Cheap to clone: handles only.
#[derive(Clone)]
pub struct ActorState {
    pub(crate) pool: Pool,
    pub(crate) verifier: Verifier,
    pub(crate) clock: SharedClock,
    /// Whom to ask for what tokens do not state; nobody where they state everything.
    pub(crate) directory: Option<Arc<Directory>>,
}

impl FromRef<ActorState> for Verifier {
    fn from_ref(state: &ActorState) -> Self {
        state.verifier.clone()
    }
}
