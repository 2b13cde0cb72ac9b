//! The committed description is the one that the code makes.

use test_support::{assert_errors_are_described_as_problems, assert_openapi_is_committed};

#[test]
fn the_committed_description_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    assert_openapi_is_committed(&auth::openapi(), path);
}

#[test]
fn every_error_is_described_as_a_problem() {
    assert_errors_are_described_as_problems(&auth::openapi());
}

#[test]
fn requests_are_described_as_they_are_read() {
    let description = serde_json::to_value(auth::openapi()).unwrap();
    let schemas = &description["components"]["schemas"];
    for (schema, required) in [
        ("Registration", &["email", "password"][..]),
        ("Credentials", &["email", "password"]),
        ("SessionToken", &["refresh_token"]),
        ("PasswordChange", &["current_password", "new_password"]),
        ("AccountConfirmation", &["email", "code"]),
        ("CodeRequest", &["email"]),
        ("Tokens", &["access_token", "token_type", "expires_in"]),
        ("User", &["id", "email", "display_name", "created_at"]),
    ] {
        assert_eq!(schemas[schema]["required"], serde_json::json!(required), "{schema}");
    }
    assert_eq!(description["paths"]["/v1/auth/password"]["post"]["security"], serde_json::json!([{"bearer": []}]));
}
