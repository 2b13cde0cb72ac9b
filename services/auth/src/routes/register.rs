//! `POST /v1/auth/register`

use axum::Json as JsonBody;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use serde::Serialize;
use service_kit::Result;
use service_kit::display_name;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::ProblemBody;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::AuthState;
use crate::email::Email;
use crate::identity::{RegisteredUser, Registration};
use crate::password::Password;

/// What it takes to make an account.
#[derive(Debug, ToSchema)]
#[schema(as = Registration)]
pub(crate) struct RegisterRequest {
    /// Trimmed, NFKC-normalised and lower-cased; the domain is put into ASCII. At most 254 bytes.
    #[schema(value_type = String, format = Email, max_length = 254, example = "ada@example.com")]
    email: Email,
    /// 8 to 128 code points after NFKC, at most 1,024 bytes. Everything counts, spaces at the ends too; there are no rules about
    /// kinds of characters, but control characters and common passwords are refused.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128, example = "correct horse battery")]
    password: Password,
    /// 1 to 100 code points after trimming and NFC; no control, bidi or zero-width characters.
    #[schema(min_length = 1, max_length = 100, example = "Ada Lovelace")]
    display_name: Option<String>,
}

impl FromFields for RegisterRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        let email = fields.required("email", Email::parse);
        let password = fields.required("password", Password::new);
        let display_name = fields.optional("display_name", display_name::parse);
        Some(Self { email: email?, password: password?, display_name: display_name? })
    }
}

/// An account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(crate) struct UserBody {
    /// The `sub` of the user's access tokens, and their id in the other services.
    id: Uuid,
    /// In canonical form.
    #[schema(format = Email, example = "ada@example.com")]
    email: String,
    /// As normalised; null if none was given.
    #[schema(required, example = "Ada Lovelace")]
    display_name: Option<String>,
    /// When the account was made (RFC 3339, UTC).
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// There and true when the account must be confirmed first, with the code that was sent to its address.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    confirmation_required: bool,
}

/// Make an account
///
/// The local provider does not verify the address. Of several registrations of one address exactly one succeeds.
#[utoipa::path(
    post,
    path = "/v1/auth/register",
    tag = "auth",
    request_body = RegisterRequest,
    responses(
        (status = 201, description = "The account.", body = UserBody,
            headers(("Location" = String, description = "The user's profile."))),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "With Cognito. `registration_refused`, `identity_forbidden`: the provider takes no such registration.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`email_taken`: there is an account with this email.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "With Cognito. `identity_throttled`, `too_many_attempts`: come back after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn register(
    State(state): State<AuthState>,
    Json(request): Json<RegisterRequest>,
) -> Result<impl IntoResponse> {
    let RegisterRequest { email, password, display_name } = request;
    Ok(created(state.identity.register(Registration { email, password, display_name }).await?))
}

fn created(user: RegisteredUser) -> Response {
    let location = format!("/v1/actors/{}", user.id);
    let body = UserBody {
        id: user.id,
        email: user.email.as_str().to_owned(),
        display_name: user.display_name,
        created_at: user.created_at,
        confirmation_required: user.confirmation_required,
    };
    (StatusCode::CREATED, [(LOCATION, location)], JsonBody(body)).into_response()
}
