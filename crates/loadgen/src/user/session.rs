//! What a login gives.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use envelope::result::Failure;
use http::HeaderValue;
use serde::Deserialize;

use crate::client::{Answer, check_failed};

pub(super) struct Session {
    authorization: HeaderValue,
    refresh_token: String,
    renew_at: Instant,
}

impl Session {
    /// Reads the answer to a login or a refresh.
    pub(super) fn read(answer: &Answer, body: &[u8], now: Instant) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Tokens<'a> {
            #[serde(borrow)]
            access_token: Cow<'a, str>,
            #[serde(borrow)]
            token_type: Cow<'a, str>,
            expires_in: u32,
            #[serde(borrow)]
            refresh_token: Cow<'a, str>,
        }
        let wrong = || check_failed(answer, "tokens");
        let tokens: Tokens<'_> = serde_json::from_slice(body).map_err(|_| wrong())?;
        let usable = tokens.token_type.eq_ignore_ascii_case("bearer") && !tokens.access_token.is_empty();
        if !usable || tokens.refresh_token.is_empty() || tokens.expires_in == 0 {
            return Err(wrong());
        }
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", tokens.access_token)).map_err(|_| wrong())?;
        authorization.set_sensitive(true);
        // A tenth of its life is left for the way and for requests that take long.
        let renew_at = now + Duration::from_secs(tokens.expires_in.into()).mul_f64(0.9);
        Ok(Self { authorization, refresh_token: tokens.refresh_token.into_owned(), renew_at })
    }

    pub(super) fn authorization(&self) -> &HeaderValue {
        &self.authorization
    }

    pub(super) fn refresh_token(&self) -> &str {
        &self.refresh_token
    }

    pub(super) fn should_renew(&self, now: Instant) -> bool {
        now >= self.renew_at
    }
}
