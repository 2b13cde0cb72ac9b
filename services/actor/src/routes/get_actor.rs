//! `GET /v1/actors/{id}`

use axum::response::Response;
use service_kit::entity_tag::IfNoneMatch;
use service_kit::problem::ProblemBody;

use crate::representation::{self, ActorBody};
use crate::sight::VisibleActor;

/// Who is this?
///
/// The caller's own profile under its id; anybody's with the scope `actors:read`. Without it, another's id is 404, whether
/// or not there is such a person.
#[utoipa::path(
    get,
    path = "/v1/actors/{id}",
    tag = "actors",
    security(("bearer" = [])),
    params(
        ("id" = Uuid, Path, description = "The actor's id: the `sub` of their tokens."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of a copy at hand: 304 while it is right."),
    ),
    responses(
        (status = 200, description = "The profile.", body = ActorBody,
            headers(("ETag" = String, description = "Strong; another one after each change."))),
        (status = 304, description = "The copy at hand is right."),
        (status = 400, description = "The id is not a UUID.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "No such actor, or none that the caller may see.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn get_actor(known: IfNoneMatch, VisibleActor(actor): VisibleActor) -> Response {
    representation::unless_known(actor, &known)
}
