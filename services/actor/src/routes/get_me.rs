//! `GET /v1/actors/me`

use axum::response::Response;
use service_kit::entity_tag::IfNoneMatch;
use service_kit::problem::ProblemBody;

use crate::representation::{self, ActorBody};
use crate::sight::OwnActor;

/// Who am I?
///
/// The caller's own profile. It is there from the first request on: nobody has to create it.
#[utoipa::path(
    get,
    path = "/v1/actors/me",
    tag = "actors",
    security(("bearer" = [])),
    params(("If-None-Match" = Option<String>, Header, description = "The `ETag` of a copy at hand: 304 while it is right.")),
    responses(
        (status = 200, description = "The caller's profile.", body = ActorBody,
            headers(("ETag" = String, description = "Strong; another one after each change."))),
        (status = 304, description = "The copy at hand is right."),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn get_me(known: IfNoneMatch, OwnActor(actor): OwnActor) -> Response {
    representation::unless_known(actor, &known)
}
