//! What the handlers share.

use axum::extract::FromRef;
use service_kit::auth::Verifier;
use service_kit::clock::SharedClock;
use service_kit::database::Pool;

/// Cheap to clone: handles only.
#[derive(Clone)]
pub struct ActorState {
    pub(crate) pool: Pool,
    pub(crate) verifier: Verifier,
    pub(crate) clock: SharedClock,
}

impl FromRef<ActorState> for Verifier {
    fn from_ref(state: &ActorState) -> Self {
        state.verifier.clone()
    }
}
