//! Sessions: families of refresh tokens, and the access tokens given with them.

use service_kit::clock::uuid_v7;
use zeroize::Zeroizing;

use super::LocalProvider;
use crate::hashing::PasswordHash;
use crate::identity::{IdentityError, IssuedTokens};
use crate::queries::sessions::{self, NewSession, Verdict};
use crate::queries::users::UserRow;
use crate::refresh_token::RefreshToken;
use crate::throttle::ThrottleKey;
use crate::tokens::Subject;

impl LocalProvider {
    /// Begins a session of a verified user; `None` if the account has changed since it was read.
    pub(super) async fn start_session(
        &self,
        user: &UserRow,
        upgrade: Option<&PasswordHash>,
        failures: Option<ThrottleKey>,
    ) -> Result<Option<IssuedTokens>, IdentityError> {
        let refresh_token = RefreshToken::generate().map_err(IdentityError::Defect)?;
        let now = self.clock.now();
        let session = NewSession {
            user_id: user.id,
            verified: &user.password_hash,
            upgrade,
            family_id: uuid_v7(&*self.clock),
            token_hash: refresh_token.hash(),
            now,
            expires_at: now + self.sessions.ttl,
            failures,
        };
        if !sessions::start(&mut self.pool.acquire().await?, &session).await? {
            return Ok(None);
        }
        let subject = Subject {
            id: user.id,
            email: &user.email,
            display_name: user.display_name.as_deref(),
            scopes: &user.scopes,
        };
        self.issue(subject, &refresh_token).map(Some)
    }

    pub(super) async fn refresh_session(&self, text: &str) -> Result<IssuedTokens, IdentityError> {
        let presented = RefreshToken::parse(text).ok_or(IdentityError::InvalidRefreshToken)?;
        let child = RefreshToken::generate().map_err(IdentityError::Defect)?;
        let (now, grace) = (self.clock.now(), self.sessions.grace);
        let mut connection = self.pool.acquire().await?;
        let rotation = sessions::rotate(&mut connection, &presented.hash(), &child.hash(), now, grace).await?;
        drop(connection);
        let rotation = rotation.ok_or(IdentityError::InvalidRefreshToken)?;
        if rotation.verdict == Verdict::Reused {
            let (user_id, family_id) = (rotation.user_id, rotation.family_id);
            tracing::warn!(%user_id, %family_id, "a used refresh token came back; its session was ended");
        }
        if !rotation.verdict.is_good() {
            return Err(IdentityError::InvalidRefreshToken);
        }
        let subject = Subject {
            id: rotation.user_id,
            email: &rotation.email,
            display_name: rotation.display_name.as_deref(),
            scopes: &rotation.scopes,
        };
        self.issue(subject, &child)
    }

    pub(super) async fn end_session(&self, text: &str) -> Result<(), IdentityError> {
        let token = RefreshToken::parse(text).ok_or(IdentityError::InvalidRefreshToken)?;
        let known = sessions::end_family(&mut self.pool.acquire().await?, &token.hash(), self.clock.now()).await?;
        if known { Ok(()) } else { Err(IdentityError::InvalidRefreshToken) }
    }

    fn issue(&self, subject: Subject<'_>, refresh_token: &RefreshToken) -> Result<IssuedTokens, IdentityError> {
        Ok(IssuedTokens {
            access_token: self.issuer.issue(subject).map_err(IdentityError::Defect)?,
            expires_in: self.issuer.ttl(),
            refresh_token: Some(Zeroizing::new(refresh_token.expose().to_owned())),
        })
    }
}
