//! What the handlers share.

use std::sync::Arc;

use axum::extract::FromRef;
use service_kit::auth::Verifier;
use service_kit::auth::jwk::Jwks;

use crate::identity::IdentityProvider;

/// Cheap to clone: handles only.
#[derive(Clone)]
pub struct AuthState {
    pub(crate) identity: Arc<dyn IdentityProvider>,
    pub(crate) verifier: Verifier,
    /// Of the issuer in this process, if it is here.
    pub(crate) jwks: Option<Arc<Jwks>>,
}

impl FromRef<AuthState> for Verifier {
    fn from_ref(state: &AuthState) -> Self {
        state.verifier.clone()
    }
}
