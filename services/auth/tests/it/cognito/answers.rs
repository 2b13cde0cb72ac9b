//! The table of `docs/cognito.md`, row by row: what Cognito says on the wire, and what the route then answers.

use serde_json::json;
use test_support::{CognitoAnswer, Reply};

use super::served::{EMAIL, OnCognito, signed_up};
use crate::served::OTHER_PASSWORD;

const DOCUMENT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cognito.md"));

/// Attempts that nothing answers end after this: the test waits for it, and nothing depends on how long it is.
const TIMEOUT: [(&str, &str); 3] =
    [("COGNITO_ATTEMPT_TIMEOUT_MS", "200"), ("COGNITO_CONNECT_TIMEOUT_MS", "200"), ("COGNITO_MAX_ATTEMPTS", "1")];

struct Row {
    request: &'static str,
    says: &'static str,
    words: &'static str,
    answer: &'static str,
}

fn rows() -> Vec<Row> {
    let table =
        DOCUMENT.split("<!-- answers -->\n").nth(1).expect("the table").split("<!-- /answers -->").next().unwrap();
    let row = |line: &'static str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [request, says, words, answer] = cells[..] else { panic!("not a row of four: {line}") };
        Row { request, says, words, answer }
    };
    table.lines().skip(2).map(row).collect()
}

impl Row {
    /// The operation whose answer the row is about.
    fn operation(&self) -> &'static str {
        match self.request {
            "register" => "SignUp",
            "register: as admin" => "AdminConfirmSignUp",
            "login" | "refresh" => "InitiateAuth",
            "logout" => "RevokeToken",
            "password" => "ChangePassword",
            "password: sessions" => "GlobalSignOut",
            "confirm" => "ConfirmSignUp",
            "resend" => "ResendConfirmationCode",
            other => panic!("no such request: {other}"),
        }
    }

    /// What the stub does. Without a connection there is nothing for it to do.
    fn answer(&self) -> Option<CognitoAnswer> {
        if let Some(code) = self.says.strip_prefix('`').and_then(|says| says.strip_suffix('`')) {
            let status = if code == "InternalErrorException" { 500 } else { 400 };
            return Some(CognitoAnswer::Error { status, code: code.to_owned(), message: self.words.to_owned() });
        }
        if let Some(name) = self.says.strip_prefix("challenge `") {
            let name = name.trim_end_matches('`');
            let session = "the-session-must-not-go-further".repeat(2);
            return Some(CognitoAnswer::Ok(
                json!({"ChallengeName": name, "Session": session, "ChallengeParameters": {}}),
            ));
        }
        if let Some(status) = self.says.strip_prefix("HTML, status ") {
            return Some(CognitoAnswer::Html(status.parse().unwrap()));
        }
        match self.says {
            "success" | "an answer without tokens" => Some(CognitoAnswer::Ok(json!({}))),
            "nothing, in time" => Some(CognitoAnswer::Silence),
            "no connection" => None,
            other => panic!("{other}: what is that on the wire?"),
        }
    }

    async fn ask(&self, task: &OnCognito) -> Reply {
        let anyone = task.app.anonymous();
        match self.request {
            "register" | "register: as admin" => task.register().await,
            "login" => task.login().await,
            "refresh" => task.refresh("dc_YWRh.cognitos.own.token").await,
            "logout" => task.logout("dc_YWRh.cognitos.own.token").await,
            "password" | "password: sessions" => task.change_password(&task.access_token(), OTHER_PASSWORD).await,
            "confirm" => anyone.post_json("/v1/auth/confirm", json!({"email": EMAIL, "code": "123456"})).await,
            "resend" => anyone.post_json("/v1/auth/resend", json!({"email": EMAIL})).await,
            other => panic!("no such request: {other}"),
        }
    }

    fn check(&self, reply: &Reply) {
        let Self { request, says, words, answer } = self;
        // Seen when it fails.
        println!("{request}: {says} ({words}) is to be {answer} and is {}", reply.status);
        let parts: Vec<_> = answer.split(' ').map(|part| part.trim_matches('`')).collect();
        let status = parts[0].parse().unwrap();
        match parts[1..] {
            [] => drop(reply.assert_status(status)),
            [code] => drop(reply.assert_problem(status, code)),
            [pointer, code] if status == 422 => reply.assert_invalid(&[(pointer, code)]),
            _ => panic!("no such answer: {answer}"),
        }
        if status >= 400 {
            for inside in ["upstream", "must-not-go-further", "Rate exceeded", "Exception"] {
                assert!(!reply.text().contains(inside), "{inside} of {says} in {}", reply.text());
            }
            // Nobody but us has said it.
            assert!(words.is_empty() || !reply.text().contains(words), "{}", reply.text());
        }
    }
}

#[tokio::test]
async fn every_row_of_the_documented_table_is_as_it_says() {
    let rows = rows();
    assert!(rows.len() > 100, "{}", rows.len());
    let task = OnCognito::start_with(&[("COGNITO_MAX_ATTEMPTS", "1")]).await;
    let admin = OnCognito::start_with(&[
        ("COGNITO_CONFIRMATION", "admin"),
        ("COGNITO_MAX_ATTEMPTS", "1"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
    ])
    .await;
    let impatient = OnCognito::start_with(&TIMEOUT).await;
    let alone = OnCognito::start_with(&[("COGNITO_ENDPOINT_URL", "http://127.0.0.1:1")]).await;
    task.stub.answer("ChangePassword", CognitoAnswer::Ok(json!({})));
    admin.stub.answer("SignUp", signed_up(false));
    for row in rows {
        let task = match (row.request, row.says) {
            ("register: as admin", _) => &admin,
            (_, "nothing, in time") => &impatient,
            (_, "no connection") => &alone,
            _ => &task,
        };
        // Beside the call that the row is about, all goes well.
        for operation in ["ChangePassword", "GlobalSignOut"] {
            task.stub.answer(operation, CognitoAnswer::Ok(json!({})));
        }
        if let Some(answer) = row.answer() {
            task.stub.answer(row.operation(), answer);
        }
        row.check(&row.ask(task).await);
    }
}
