//! Generated descriptions are committed, and a test sees to it that they stay true.

use serde::Serialize;
use serde_json::{Map, Value};

/// Asserts that the file at `path` holds exactly `description`; with `UPDATE_OPENAPI=1` it is written instead.
///
/// # Panics
/// When it does not; the message says how to renew it.
#[track_caller]
pub fn assert_openapi_is_committed(description: &impl Serialize, path: &str) {
    let mut current = serde_json::to_string_pretty(description).expect("a description is JSON");
    current.push('\n');
    if std::env::var_os("UPDATE_OPENAPI").is_some_and(|value| value == "1") {
        std::fs::write(path, &current).expect("the description can be written");
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == current,
        "{path} is out of date: run the test again with UPDATE_OPENAPI=1 and commit the result"
    );
}

/// Asserts of an OpenAPI 3.1 description that each operation has an error, and that every error has the body of a problem.
#[track_caller]
pub fn assert_errors_are_described_as_problems(description: &impl Serialize) {
    let description = serde_json::to_value(description).expect("a description is JSON");
    assert_eq!(description["openapi"], "3.1.0");
    let paths = members(&description["paths"]);
    assert!(!paths.is_empty(), "nothing is described");
    for (path, item) in paths {
        for (method, operation) in members(item) {
            let mut errors =
                members(&operation["responses"]).iter().filter(|(status, _)| status.as_str() >= "400").peekable();
            // What reads nothing and asks nobody cannot fail.
            let can_fail = operation.get("security").is_some() || operation.get("requestBody").is_some();
            assert!(errors.peek().is_some() || !can_fail, "{method} {path} has no error");
            for (status, response) in errors {
                let body = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(body, "#/components/schemas/ProblemBody", "{method} {path} {status}");
            }
        }
    }
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("{value} is not an object"))
}
