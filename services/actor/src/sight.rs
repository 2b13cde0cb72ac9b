//! Who may see whom, as handler parameters: a route that shows an actor takes [`OwnActor`] or [`VisibleActor`] and cannot
//! be written without the check.
//!
//! First sight happens here. A token's `sub` may be somebody whom only the identity provider knows so far; their row is
//! made from the verified claims. What tokens lack (Cognito's access tokens state no email) the identity provider is asked
//! for; while it cannot say, it stays null, and the request succeeds.

use axum::extract::FromRequestParts;
use cognito::UserAttributes;
use http::HeaderMap;
use http::request::Parts;
use service_kit::Result;
use service_kit::auth::{Authenticated, Claims, PresentedToken};
use service_kit::database::{Connection, DatabaseError};
use service_kit::display_name;
use service_kit::extract::Path;
use service_kit::problem::Problem;
use uuid::Uuid;

use crate::ActorState;
use crate::queries::actors::{self, Actor, StatedEmail};

/// Lets its holder see every actor.
const READ_SCOPE: &str = "actors:read";

/// An address longer than this does not exist (RFC 5321 §4.5.3.1.3, less the brackets).
const EMAIL_MAX_BYTES: usize = 254;

/// The caller's own actor; exists from the moment that somebody asks.
#[derive(Debug)]
pub struct OwnActor(pub Actor);

/// The actor whom the path's `{id}` names, if the caller may see them: the caller's own, or anybody's for who holds
/// `actors:read`. Everything else is 404, whether or not there is such an actor.
#[derive(Debug)]
pub struct VisibleActor(pub Actor);

impl FromRequestParts<ActorState> for OwnActor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ActorState) -> Result<Self> {
        let Authenticated(claims) = Authenticated::from_request_parts(parts, state).await?;
        Ok(Self(ensure(state, &claims, &parts.headers).await?))
    }
}

impl FromRequestParts<ActorState> for VisibleActor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ActorState) -> Result<Self> {
        let Authenticated(claims) = Authenticated::from_request_parts(parts, state).await?;
        let Path(id) = Path::<Uuid>::from_request_parts(parts, state).await?;
        if id == claims.subject {
            return Ok(Self(ensure(state, &claims, &parts.headers).await?));
        }
        if !claims.scopes.contains(READ_SCOPE) {
            return Err(Problem::not_found());
        }
        let mut connection = state.pool.acquire().await?;
        let actor = actors::find(&mut connection, id).await?;
        actor.map(Self).ok_or_else(Problem::not_found)
    }
}

/// The actor of these claims, made now if nobody has seen them before. Costs one statement when there is nothing to do.
async fn ensure(state: &ActorState, claims: &Claims, headers: &HeaderMap) -> Result<Actor> {
    let mut told = Told::by_token(claims);
    let mut connection = state.pool.acquire().await?;
    let mut known = actors::find(&mut connection, claims.subject).await?;
    if let Some(directory) = &state.directory
        && told.email.is_none()
        && known.as_ref().is_none_or(|actor| actor.email.is_none())
        && directory.may_be_asked(claims.subject)
    {
        // No connection is held meanwhile.
        drop(connection);
        let turn = directory.turn(claims.subject).await;
        // Whoever has waited for another's question finds the answer in the row.
        known = actors::find(&mut state.pool.acquire().await?, claims.subject).await?;
        if known.as_ref().is_none_or(|actor| actor.email.is_none()) && directory.may_be_asked(claims.subject) {
            if let Some(attributes) = directory.ask(claims.subject, &PresentedToken::of(headers)?).await {
                told.add(attributes, claims);
            }
            if told.email.is_none() {
                directory.pause(claims.subject);
            }
        }
        connection = state.pool.acquire().await?;
        let actor = keep(state, &mut connection, claims, &told, known).await?;
        drop(turn);
        return Ok(actor);
    }
    Ok(keep(state, &mut connection, claims, &told, known).await?)
}

/// What is known about a person beside their row.
struct Told {
    email: Option<StatedEmail>,
    name: Option<String>,
}

impl Told {
    fn by_token(claims: &Claims) -> Self {
        Self { email: stated_email(claims.email.as_deref(), claims), name: claims.name.clone() }
    }

    /// Adds what the provider says now; it is as new as the token with which it was asked.
    fn add(&mut self, attributes: UserAttributes, claims: &Claims) {
        self.email = stated_email(attributes.email.as_deref(), claims);
        self.name = self.name.take().or(attributes.name);
    }
}

/// The row with what was told; `known` is the row as just read.
async fn keep(
    state: &ActorState,
    connection: &mut Connection,
    claims: &Claims,
    told: &Told,
    mut known: Option<Actor>,
) -> Result<Actor, DatabaseError> {
    loop {
        if let Some(actor) = known {
            let newer = told.email.as_ref().filter(|stated| is_newer(stated, &actor));
            let Some(newer) = newer else { return Ok(actor) };
            let adopted = actors::adopt_email(connection, actor.id, newer, state.clock.now()).await?;
            // None: another request has just done it, with this token's email or a newer one.
            return Ok(adopted.unwrap_or(actor));
        }
        let name = told.name.clone().and_then(|name| display_name::parse(name).ok());
        let (email, now) = (told.email.as_ref(), state.clock.now());
        let made = actors::insert_if_absent(connection, claims.subject, email, name.as_deref(), now);
        if let Some(actor) = made.await? {
            return Ok(actor);
        }
        // Another first sight was quicker: its row is there now. Only a row that is deleted in between brings us here again.
        known = actors::find(connection, claims.subject).await?;
    }
}

/// Whether the token knows better: it states another email than the row has, and was issued after the token that stated
/// that one. Tokens of before and after a change of address are valid side by side; the older must not undo the newer.
fn is_newer(stated: &StatedEmail, actor: &Actor) -> bool {
    actor.email.as_ref() != Some(&stated.email)
        && actor.email_issued_at.is_none_or(|issued_at| issued_at < stated.issued_at)
}

/// An email that was stated, unless it is something that cannot be one: a provider's odd value is no reason to fail.
fn stated_email(email: Option<&str>, claims: &Claims) -> Option<StatedEmail> {
    let email = email?;
    let storable = !email.is_empty() && email.len() <= EMAIL_MAX_BYTES && !email.chars().any(char::is_control);
    storable.then(|| StatedEmail { email: email.to_owned(), issued_at: claims.issued_at })
}
