//! One user of the pool.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::lockout::Lockout;
use super::password::Hashed;

/// How long a confirmation code can be used ("SignUp": 24 hours).
pub(crate) const CODE_HOURS: i64 = 24;

/// Where an account is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Status {
    /// It has signed up.
    Unconfirmed,
    /// It can log in.
    Confirmed,
    /// It can log in with a temporary password, and must then choose another.
    ForceChangePassword,
}

impl Status {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unconfirmed => "UNCONFIRMED",
            Self::Confirmed => "CONFIRMED",
            Self::ForceChangePassword => "FORCE_CHANGE_PASSWORD",
        }
    }
}

/// A confirmation code that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) digits: String,
    pub(crate) expires_at: OffsetDateTime,
}

/// What never changes, and behind a lock what does.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) sub: Uuid,
    pub(crate) email: String,
    pub(crate) name: Option<String>,
    pub(crate) created_at: OffsetDateTime,
    state: Mutex<UserState>,
    /// When the user's quota of reads would be full again.
    pub(crate) reads: AtomicU64,
    /// The same of writes.
    pub(crate) writes: AtomicU64,
}

#[derive(Debug, Clone)]
pub(crate) struct UserState {
    pub(crate) password: Hashed,
    pub(crate) status: Status,
    pub(crate) email_verified: bool,
    pub(crate) code: Option<Code>,
    pub(crate) logins: Lockout,
    /// Guesses at the current password, when it is to be changed.
    pub(crate) changes: Lockout,
    /// Sessions up to this number were ended by a global sign-out.
    pub(crate) signed_out: u64,
}

/// As it is kept in the journal; the last record of a user counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) sub: Uuid,
    pub(crate) email: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    pub(crate) password: String,
    pub(crate) status: Status,
    pub(crate) email_verified: bool,
    #[serde(default)]
    pub(crate) signed_out: u64,
}

impl User {
    pub(crate) fn new(
        sub: Uuid,
        email: String,
        name: Option<String>,
        created_at: OffsetDateTime,
        password: Hashed,
        status: Status,
    ) -> Self {
        let state = UserState {
            password,
            status,
            email_verified: status == Status::Confirmed,
            code: None,
            logins: Lockout::default(),
            changes: Lockout::default(),
            signed_out: 0,
        };
        Self {
            sub,
            email,
            name,
            created_at,
            state: Mutex::new(state),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        }
    }

    pub(crate) fn from_record(record: Record) -> Option<Self> {
        let password: Hashed = hex::decode(record.password).ok()?.try_into().ok()?;
        let user = Self::new(record.sub, record.email, record.name, record.created_at, password, record.status);
        let mut state = user.state();
        state.email_verified = record.email_verified;
        state.signed_out = record.signed_out;
        drop(state);
        Some(user)
    }

    pub(crate) fn record(&self) -> Record {
        let state = self.state();
        Record {
            sub: self.sub,
            email: self.email.clone(),
            name: self.name.clone(),
            created_at: self.created_at,
            password: hex::encode(state.password),
            status: state.status,
            email_verified: state.email_verified,
            signed_out: state.signed_out,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, UserState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `UserAttributes`, in the order in which Cognito lists them.
    pub(crate) fn attributes(&self) -> Value {
        let mut attributes = vec![("email", self.email.clone())];
        attributes.push(("email_verified", self.state().email_verified.to_string()));
        attributes.extend(self.name.clone().map(|name| ("name", name)));
        attributes.push(("sub", self.sub.to_string()));
        attributes.into_iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect()
    }
}
