//! Whether an answer is the right one. A fast wrong answer must never look like a good one.

use std::borrow::Cow;

use envelope::result::Failure;
use serde::Deserialize;

use super::requests::Payload;
use crate::client::{Answer, check_failed};

#[derive(Deserialize)]
struct Described<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    email: Option<Cow<'a, str>>,
}

/// The body describes the account that was registered; its id.
pub(super) fn registered(answer: &Answer, body: &[u8], email: &str) -> Result<String, Failure> {
    let user: Described<'_> = serde_json::from_slice(body).map_err(|_| check_failed(answer, "body"))?;
    if user.email.as_deref() != Some(email) {
        return Err(check_failed(answer, "email"));
    }
    if user.id.is_empty() {
        return Err(check_failed(answer, "id"));
    }
    Ok(user.id.into_owned())
}

/// The body describes who asked: by email, and by id where that is known. The id, where it was not.
pub(super) fn is_person(
    answer: &Answer,
    body: &[u8],
    email: &str,
    id: Option<&str>,
) -> Result<Option<String>, Failure> {
    let actor: Described<'_> = serde_json::from_slice(body).map_err(|_| check_failed(answer, "body"))?;
    // Cognito's access tokens state no email; then the actor has none.
    if actor.email.as_deref().is_some_and(|stated| stated != email) {
        return Err(check_failed(answer, "email"));
    }
    match id {
        Some(id) if id == actor.id => Ok(None),
        Some(_) => Err(check_failed(answer, "id")),
        None if actor.id.is_empty() => Err(check_failed(answer, "id")),
        None => Ok(Some(actor.id.into_owned())),
    }
}

/// The body describes the file that was sent.
pub(super) fn is_stored(answer: &Answer, body: &[u8], payload: &Payload) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Document<'a> {
        size_bytes: u64,
        #[serde(borrow)]
        sha256: Cow<'a, str>,
    }
    let document: Document<'_> = serde_json::from_slice(body).map_err(|_| check_failed(answer, "body"))?;
    if document.size_bytes != payload.bytes.len() as u64 {
        return Err(check_failed(answer, "size"));
    }
    if document.sha256 == payload.sha256 { Ok(()) } else { Err(check_failed(answer, "sha256")) }
}

#[cfg(test)]
mod tests {
    use envelope::result::Answerer;
    use http::StatusCode;

    use super::*;
    use crate::client::ServerTiming;
    use crate::user::Payloads;

    fn answer() -> Answer {
        Answer {
            status: StatusCode::OK,
            is_problem: false,
            answerer: Answerer::Task,
            timing: ServerTiming::default(),
            retry_after: None,
        }
    }

    #[test]
    fn somebody_elses_profile_is_a_failure() {
        let check =
            |body: &str, id| is_person(&answer(), body.as_bytes(), "ada@x.example", id).map_err(|failure| failure.code);
        let body = r#"{"id": "1", "email": "ada@x.example", "display_name": null}"#;
        assert_eq!(check(body, None), Ok(Some("1".into())));
        assert_eq!(check(body, Some("1")), Ok(None));
        assert_eq!(check(body, Some("2")), Err("check:id".into()));
        assert_eq!(check(&body.replace("ada", "eve"), Some("1")), Err("check:email".into()));
        assert_eq!(check(r#"{"id": "1", "email": null}"#, Some("1")), Ok(None));
        assert_eq!(check("{}", None), Err("check:body".into()));
        assert_eq!(check("", None), Err("check:body".into()));
    }

    #[test]
    fn a_file_that_arrived_otherwise_is_a_failure() {
        let payloads = Payloads::new(100, 1);
        let payload = payloads.get(0);
        let check = |size: u64, sha256: &str| {
            let body = format!(r#"{{"id":"1","size_bytes":{size},"sha256":"{sha256}"}}"#);
            is_stored(&answer(), body.as_bytes(), payload).map_err(|failure| failure.code)
        };
        assert_eq!(check(100, &payload.sha256), Ok(()));
        assert_eq!(check(99, &payload.sha256), Err("check:size".into()));
        assert_eq!(check(100, &payloads.get(1).sha256), Err("check:sha256".into()));
    }

    #[test]
    fn a_registration_answers_with_its_own_address() {
        let check = |body: &str| registered(&answer(), body.as_bytes(), "a@x.example").map_err(|it| it.code);
        assert_eq!(check(r#"{"id":"7","email":"a@x.example"}"#), Ok("7".into()));
        assert_eq!(check(r#"{"id":"7","email":"b@x.example"}"#), Err("check:email".into()));
        assert_eq!(check(r#"{"id":"7","email":null}"#), Err("check:email".into()));
    }
}
