//! The user pool: who there is, which sessions were ended, and what the one app client may do.
//!
//! The pool's users log in with their email (`UsernameAttributes: [email]`), in whatever case; their user name is made by the pool and
//! is their `sub`.

mod journal;
mod lockout;
pub(crate) mod password;
pub(crate) mod user;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use service_kit::clock::SharedClock;
use service_kit::config::Secret;
use time::OffsetDateTime;
use uuid::Uuid;

use self::journal::{Entry, Journal};
use self::password::Hasher;
pub use self::password::PasswordPolicy;
use self::user::User;
use super::tokens::keys::Keys;
use super::tokens::refresh::{Grant, Seal};
use super::tokens::{AccessClaims, Subject, Unacceptable, read_access_token};
use super::wire::{CognitoError, INTERNAL_ERROR, Outcome};

/// What is set at a pool and its app client.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// The AWS region of the issuer's name.
    pub region: String,
    /// `region_NAME`.
    pub pool_id: String,
    /// The app client.
    pub client_id: String,
    /// Its secret; with one, calls must carry a `SECRET_HASH`.
    pub client_secret: Option<Secret>,
    /// Whether accounts are confirmed when they sign up, as by a pre sign-up trigger.
    pub auto_confirm: bool,
    /// Which passwords are accepted.
    pub password_policy: PasswordPolicy,
    /// `PreventUserExistenceErrors`: whether unknown users are answered like wrong passwords.
    pub hides_users: bool,
    /// How long access and ID tokens are valid.
    pub access_token_ttl: Duration,
    /// How long refresh tokens are valid.
    pub refresh_token_ttl: Duration,
    /// Where users and keys are kept; none keeps them in memory.
    pub data_dir: Option<PathBuf>,
}

impl PoolOptions {
    /// The `iss` of the pool's tokens, as AWS has it.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("https://cognito-idp.{}.amazonaws.com/{}", self.region, self.pool_id)
    }
}

#[derive(Debug, Default)]
struct Users {
    by_email: HashMap<String, Arc<User>>,
    by_sub: HashMap<Uuid, Arc<User>>,
}

/// A challenge that waits for its answer.
struct Challenge {
    sub: Uuid,
    expires_at: OffsetDateTime,
}

/// How long a challenge can be answered (`AuthSessionValidity`, 3 minutes by default).
const CHALLENGE_MINUTES: i64 = 3;

/// The pool at work.
pub(crate) struct Pool {
    pub(crate) options: PoolOptions,
    pub(crate) issuer: String,
    pub(crate) clock: SharedClock,
    pub(crate) keys: Keys,
    pub(crate) hasher: Hasher,
    seal: Seal,
    users: RwLock<Users>,
    revoked: RwLock<HashSet<Uuid>>,
    challenges: Mutex<HashMap<String, Challenge>>,
    last_session: AtomicU64,
    journal: Journal,
}

impl Pool {
    /// Reads what is kept, or begins with nobody. Takes the time that making two RSA keys takes, once.
    pub(crate) fn open(options: PoolOptions, clock: SharedClock) -> anyhow::Result<Self> {
        let keys = match &options.data_dir {
            Some(folder) => journal::keys(folder, Keys::read, Keys::generate)?,
            None => Keys::generate()?.0,
        };
        let (mut users, mut revoked) = (Users::default(), HashSet::new());
        let journal = match &options.data_dir {
            None => Journal::none(),
            Some(folder) => Journal::open(folder, |entry| match entry {
                Entry::User(record) => {
                    if let Some(user) = User::from_record(record) {
                        users.insert(Arc::new(user));
                    }
                }
                Entry::Revoked(session) => drop(revoked.insert(session)),
            })?,
        };
        Ok(Self {
            issuer: options.issuer(),
            hasher: Hasher::new(&keys.passwords),
            seal: Seal::new(&keys.sealing)?,
            keys,
            options,
            clock,
            users: RwLock::new(users),
            revoked: RwLock::new(revoked),
            challenges: Mutex::default(),
            last_session: AtomicU64::new(0),
            journal,
        })
    }

    /// Refuses another client than the pool's.
    pub(crate) fn check_client(&self, client_id: &str) -> Result<(), CognitoError> {
        if client_id == self.options.client_id {
            return Ok(());
        }
        Err(CognitoError::new("ResourceNotFoundException", format!("User pool client {client_id} does not exist.")))
    }

    /// `SECRET_HASH` is Base64(HMAC-SHA256(client secret, user name + client id)) ("Computing secret hash values").
    pub(crate) fn is_secret_hash(&self, username: &str, given: Option<&str>) -> bool {
        let Some(secret) = &self.options.client_secret else { return given.is_none() };
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let message = format!("{username}{}", self.options.client_id);
        let given = given.and_then(|given| STANDARD.decode(given).ok());
        given.is_some_and(|given| hmac::verify(&key, message.as_bytes(), &given).is_ok())
    }

    pub(crate) fn check_secret_hash(&self, username: &str, given: Option<&str>) -> Result<(), CognitoError> {
        let client = &self.options.client_id;
        if self.is_secret_hash(username, given) {
            Ok(())
        } else if given.is_none() {
            Err(CognitoError::not_authorized(format!(
                "Client {client} is configured with secret but SECRET_HASH was not received"
            )))
        } else {
            Err(CognitoError::not_authorized(format!("Unable to verify secret hash for client {client}")))
        }
    }

    /// By email, or by user name, which is the `sub`.
    pub(crate) fn find(&self, username: &str) -> Option<Arc<User>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        match username.parse::<Uuid>() {
            Ok(sub) => users.by_sub.get(&sub).cloned(),
            Err(_) => users.by_email.get(&folded(username)).cloned(),
        }
    }

    pub(crate) fn find_by_sub(&self, sub: Uuid) -> Option<Arc<User>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).by_sub.get(&sub).cloned()
    }

    /// Adds a user, unless somebody has the email.
    pub(crate) fn add(&self, user: User) -> Result<Arc<User>, CognitoError> {
        let user = Arc::new(user);
        {
            let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
            if users.by_email.contains_key(&folded(&user.email)) {
                return Err(CognitoError::new(
                    "UsernameExistsException",
                    "An account with the given email already exists.",
                ));
            }
            users.insert(Arc::clone(&user));
        }
        self.journal.append([Entry::User(user.record())]);
        Ok(user)
    }

    /// Adds users, or puts them in the place of those who have their emails; how many there are now.
    pub(crate) fn import(&self, imported: Vec<User>) -> usize {
        let imported: Vec<Arc<User>> = imported.into_iter().map(Arc::new).collect();
        let count = {
            let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
            for user in &imported {
                users.insert(Arc::clone(user));
            }
            users.by_sub.len()
        };
        self.journal.append(imported.iter().map(|user| Entry::User(user.record())));
        count
    }

    /// Writes down what has changed of a user.
    pub(crate) fn changed(&self, user: &User) {
        self.journal.append([Entry::User(user.record())]);
    }

    pub(crate) fn user_count(&self) -> usize {
        self.users.read().unwrap_or_else(PoisonError::into_inner).by_sub.len()
    }

    /// Begins a challenge: its `Session`, which is good for one answer.
    pub(crate) fn challenge(&self, user: &User) -> String {
        let session = hex::encode(rand::random::<[u8; 48]>());
        let now = self.clock.now();
        let challenge = Challenge { sub: user.sub, expires_at: now + time::Duration::minutes(CHALLENGE_MINUTES) };
        let mut challenges = self.challenges.lock().unwrap_or_else(PoisonError::into_inner);
        challenges.retain(|_, waiting| waiting.expires_at > now);
        challenges.insert(session.clone(), challenge);
        session
    }

    /// Whose challenge is answered; it cannot be answered again.
    pub(crate) fn take_challenge(&self, session: &str) -> Option<Arc<User>> {
        let taken = self.challenges.lock().unwrap_or_else(PoisonError::into_inner).remove(session)?;
        if taken.expires_at <= self.clock.now() { None } else { self.find_by_sub(taken.sub) }
    }

    /// A new session of a user: all three tokens.
    pub(crate) fn begin_session(&self, user: &User) -> Outcome {
        let now = self.clock.now().unix_timestamp();
        let ttl = i64::try_from(self.options.refresh_token_ttl.as_secs()).unwrap_or(i64::MAX);
        let grant = Grant {
            sub: user.sub,
            origin_jti: self.next_session(),
            client_id: self.options.client_id.clone(),
            auth_time: now,
            exp: now.saturating_add(ttl),
        };
        let refresh_token = self.seal.seal(&grant).map_err(|error| internal(&error))?;
        self.tokens(user, &grant, Some(refresh_token))
    }

    /// Further tokens of a session; there is no new refresh token, as in a pool without rotation.
    pub(crate) fn renew_session(&self, user: &User, grant: &Grant) -> Outcome {
        self.tokens(user, grant, None)
    }

    fn tokens(&self, user: &User, grant: &Grant, refresh_token: Option<String>) -> Outcome {
        let issued_at = self.clock.now().unix_timestamp();
        let expires_in = i64::try_from(self.options.access_token_ttl.as_secs()).unwrap_or(i64::MAX);
        let email_verified = user.state().email_verified;
        let subject = Subject {
            issuer: &self.issuer,
            client_id: &self.options.client_id,
            sub: user.sub,
            email: &user.email,
            email_verified,
            name: user.name.as_deref(),
            origin_jti: grant.origin_jti,
            event_id: Uuid::new_v4(),
            auth_time: grant.auth_time,
            issued_at,
            expires_at: issued_at.saturating_add(expires_in),
        };
        let mut result = serde_json::json!({
            "AccessToken": subject.access_token(&self.keys.access).map_err(|error| internal(&error))?,
            "ExpiresIn": expires_in,
            "IdToken": subject.id_token(&self.keys.id).map_err(|error| internal(&error))?,
            "TokenType": "Bearer",
        });
        if let Some(token) = refresh_token {
            result["RefreshToken"] = token.into();
        }
        Ok(serde_json::json!({"AuthenticationResult": result, "ChallengeParameters": {}}))
    }

    /// What a refresh token says, whatever its state.
    pub(crate) fn grant(&self, refresh_token: &str) -> Option<Grant> {
        self.seal.open(refresh_token)
    }

    pub(crate) fn is_revoked(&self, user: &User, origin_jti: Uuid) -> bool {
        session_number(origin_jti) <= user.state().signed_out
            || self.revoked.read().unwrap_or_else(PoisonError::into_inner).contains(&origin_jti)
    }

    pub(crate) fn revoke(&self, origin_jti: Uuid) {
        if self.revoked.write().unwrap_or_else(PoisonError::into_inner).insert(origin_jti) {
            self.journal.append([Entry::Revoked(origin_jti)]);
        }
    }

    /// Ends every session that has begun so far.
    pub(crate) fn sign_out(&self, user: &User) {
        user.state().signed_out = self.last_session.load(Ordering::Relaxed).max(self.now_micros());
        self.changed(user);
    }

    /// Who an access token stands for.
    pub(crate) fn caller(&self, access_token: &str) -> Result<Arc<User>, CognitoError> {
        let claims: AccessClaims = read_access_token(access_token, &self.keys.access, &self.issuer, self.clock.now())
            .map_err(|unacceptable| match unacceptable {
            Unacceptable::Invalid => CognitoError::not_authorized("Invalid Access Token"),
            Unacceptable::Expired => CognitoError::not_authorized("Access Token has expired"),
        })?;
        let user = self.find_by_sub(claims.sub).ok_or_else(unknown_user)?;
        if self.is_revoked(&user, claims.origin_jti) {
            return Err(CognitoError::not_authorized("Access Token has been revoked"));
        }
        Ok(user)
    }

    /// A name of a session: a version 4 UUID whose first 60 free bits are a number that grows, so that one number says of all sessions of
    /// a user which were ended.
    fn next_session(&self) -> Uuid {
        let now = self.now_micros();
        let last = self.last_session.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
        let number = now.max(last.unwrap_or_default() + 1);
        let mut bytes = rand::random::<[u8; 16]>();
        bytes[..6].copy_from_slice(&(number >> 12).to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(number & 0xfff).to_be_bytes()[6..]);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.clock.now().unix_timestamp_nanos() / 1_000).unwrap_or(0)
    }
}

fn session_number(origin_jti: Uuid) -> u64 {
    let (high, _) = origin_jti.as_u64_pair();
    ((high >> 16) << 12) | (high & 0xfff)
}

impl Users {
    fn insert(&mut self, user: Arc<User>) {
        if let Some(former) = self.by_email.insert(folded(&user.email), Arc::clone(&user)) {
            self.by_sub.remove(&former.sub);
        }
        self.by_sub.insert(user.sub, user);
    }
}

/// User names are not case-sensitive by default ("User pool case sensitivity").
fn folded(email: &str) -> String {
    email.to_lowercase()
}

pub(crate) fn unknown_user() -> CognitoError {
    CognitoError::new("UserNotFoundException", "User does not exist.")
}

fn internal(error: &anyhow::Error) -> CognitoError {
    tracing::error!(error = format!("{error:#}"), "the Cognito double failed");
    CognitoError::new(INTERNAL_ERROR, "An internal error occurred.")
}
