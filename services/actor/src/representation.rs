//! An actor as clients see it: the JSON object and its entity tag.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CACHE_CONTROL, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use service_kit::entity_tag::{EntityTags, IfNoneMatch};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::queries::actors::Actor;

/// A person as the services know them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Actor)]
pub(crate) struct ActorBody {
    /// The access token's `sub`.
    id: Uuid,
    /// Canonical email; null while no token has stated one.
    #[schema(required)]
    email: Option<String>,
    /// 1 to 100 code points; null when the person has none.
    #[schema(required)]
    display_name: Option<String>,
    /// First sight.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Last change of email or display name.
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// 200 with the actor, its entity tag and who may keep it.
pub(crate) fn full(actor: Actor) -> Response {
    let headers = headers(&actor);
    let Actor { id, email, display_name, created_at, updated_at, .. } = actor;
    (headers, Json(ActorBody { id, email, display_name, created_at, updated_at })).into_response()
}

/// 304 when the client's copy is still right, else [`full`].
pub(crate) fn unless_known(actor: Actor, IfNoneMatch(known): &IfNoneMatch) -> Response {
    if known.as_ref().is_some_and(|tags| tags.match_weakly(&opaque_tag(&actor))) {
        return (StatusCode::NOT_MODIFIED, headers(&actor)).into_response();
    }
    full(actor)
}

/// The revisions of this actor that a condition allows: none when it allows all.
pub(crate) fn expected_revisions(condition: &EntityTags, id: Uuid) -> Option<Vec<i64>> {
    match condition {
        EntityTags::Any => None,
        EntityTags::List(tags) => {
            let strong = tags.iter().filter(|tag| !tag.weak);
            Some(strong.filter_map(|tag| revision_in(&tag.opaque, id)).collect())
        }
    }
}

/// The id is part of the tag because `/v1/actors/me` is one URL for everybody: after a change of user a browser's cache
/// must not take the new user's third revision for the old one's.
fn opaque_tag(actor: &Actor) -> String {
    format!("{}.{}", actor.id.simple(), actor.revision)
}

fn revision_in(opaque: &[u8], id: Uuid) -> Option<i64> {
    let (owner, revision) = std::str::from_utf8(opaque).ok()?.split_once('.')?;
    // Compared as text: a tag has one spelling.
    let own = owner == id.simple().to_string() && !revision.starts_with(['0', '+']);
    if own { revision.parse().ok() } else { None }
}

/// `no-cache`: a copy may be kept by the client itself and must be checked before each use.
fn headers(actor: &Actor) -> HeaderMap {
    let tag = HeaderValue::try_from(format!("\"{}\"", opaque_tag(actor))).expect("hex, a dot and digits");
    HeaderMap::from_iter([
        (ETAG, tag),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (VARY, HeaderValue::from(AUTHORIZATION)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(id: Uuid, revision: i64) -> Actor {
        let at = OffsetDateTime::UNIX_EPOCH;
        let (created_at, updated_at) = (at, at);
        Actor { id, email: None, email_issued_at: None, display_name: None, created_at, updated_at, revision }
    }

    #[test]
    fn a_tag_names_the_revision_of_its_own_actor_only() {
        let (ada, bob) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let tag = opaque_tag(&actor(ada, 7));
        assert_eq!(revision_in(tag.as_bytes(), ada), Some(7));
        assert_eq!(revision_in(tag.as_bytes(), bob), None);
    }

    #[test]
    fn other_spellings_of_a_tag_are_other_tags() {
        let id = Uuid::from_u128(0xabc);
        let spelling = |owner: String, revision: &str| revision_in(format!("{owner}.{revision}").as_bytes(), id);
        assert_eq!(spelling(id.simple().to_string(), "3"), Some(3));
        assert_eq!(spelling(id.simple().to_string().to_uppercase(), "3"), None);
        assert_eq!(spelling(id.hyphenated().to_string(), "3"), None);
        for revision in ["03", "+3", "", "three", "9223372036854775808"] {
            assert_eq!(spelling(id.simple().to_string(), revision), None, "{revision}");
        }
        assert_eq!(revision_in(b"\xff.3", id), None);
    }
}
