//! `PATCH /v1/actors/me`

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use service_kit::Result;
use service_kit::display_name;
use service_kit::entity_tag::IfMatch;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::{Problem, ProblemBody};
use utoipa::ToSchema;

use crate::ActorState;
use crate::queries::actors;
use crate::representation::{self, ActorBody};
use crate::sight::OwnActor;

/// What a person can change about their profile.
#[derive(Debug, ToSchema)]
#[schema(as = ActorChanges)]
pub(crate) struct Changes {
    /// 1 to 100 code points after trimming and NFC; no control, bidi or zero-width characters. Null clears it.
    #[schema(required, min_length = 1, max_length = 100, example = "Ada Lovelace")]
    display_name: Option<String>,
}

impl FromFields for Changes {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        Some(Self { display_name: fields.required_or_null("display_name", display_name::parse)? })
    }
}

/// Change my profile
///
/// With `If-Match`, only if nobody has changed it since it was read; without, the last write wins.
#[utoipa::path(
    patch,
    path = "/v1/actors/me",
    tag = "actors",
    security(("bearer" = [])),
    params(("If-Match" = Option<String>, Header, description = "The `ETag` that the change is based on, or `*`.")),
    request_body = Changes,
    responses(
        (status = 200, description = "The changed profile.", body = ActorBody,
            headers(("ETag" = String, description = "Strong; another one after each change."))),
        (status = 400, description = "Broken JSON, or a malformed `If-Match`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 412, description = "The profile has changed since; read it again.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn update_me(
    State(state): State<ActorState>,
    OwnActor(actor): OwnActor,
    IfMatch(condition): IfMatch,
    Json(changes): Json<Changes>,
) -> Result<Response> {
    let expected = condition.as_ref().and_then(|tags| representation::expected_revisions(tags, actor.id));
    let mut connection = state.pool.acquire().await?;
    // The statement compares, not this handler: between a read and a write somebody else may have written.
    let update = actors::set_display_name(
        &mut connection,
        actor.id,
        changes.display_name.as_deref(),
        expected.as_deref(),
        state.clock.now(),
    );
    match update.await? {
        Some(actor) => Ok(representation::full(actor)),
        None => Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "precondition_failed",
            "The profile has changed since it was read.",
        )),
    }
}
