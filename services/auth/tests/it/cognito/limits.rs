//! Connections, permits, limits and retries.

use futures_util::future::join_all;
use serde_json::json;
use test_support::CognitoAnswer;

use super::served::{OnCognito, signed_up};
use crate::served::statuses;

#[tokio::test]
async fn a_thousand_logins_make_no_more_connections_than_they_may() {
    const CONNECTIONS: usize = 20;
    let task = OnCognito::start_with(&[("COGNITO_MAX_CONNECTIONS", "20")]).await;
    task.stub.answer("InitiateAuth", task.tokens());
    task.stub.hold();
    let logins = join_all((0..1_000).map(|_| task.login()));
    let meanwhile = async {
        task.stub.called(CONNECTIONS).await;
        assert_eq!(task.stub.connections(), CONNECTIONS, "all are in use");
        task.stub.release();
    };
    let (replies, ()) = tokio::join!(logins, meanwhile);
    assert_eq!(statuses(&replies).into_iter().collect::<Vec<_>>(), [(200, 1_000)]);
    assert_eq!(task.stub.calls().len(), 1_000);
    assert_eq!(task.stub.connections(), CONNECTIONS, "there is one client, and it keeps its connections");
}

#[tokio::test]
async fn when_no_connection_gets_free_in_time_the_request_is_told_and_cognito_not_asked() {
    let variables = [("COGNITO_MAX_CONNECTIONS", "1"), ("COGNITO_ADMISSION_TIMEOUT_MS", "1")];
    let task = OnCognito::start_with(&variables).await;
    task.stub.answer("InitiateAuth", task.tokens());
    task.stub.hold();
    let second = async {
        task.stub.called(1).await;
        let reply = task.login().await;
        task.stub.release();
        reply
    };
    let (first, second) = tokio::join!(task.login(), second);
    first.assert_status(200);
    second.assert_problem(503, "identity_busy");
    assert!(second.stages().contains_key("admission") && !second.stages().contains_key("idp"));
    assert_eq!(task.stub.calls().len(), 1);
    task.login().await.assert_status(200);
}

#[tokio::test]
async fn over_our_own_limit_cognito_is_not_asked() {
    for (variable, of_user) in [("COGNITO_LIMIT_USER_AUTHENTICATION", false), ("COGNITO_LIMIT_PER_USER", true)] {
        let task = OnCognito::start_with(&[(variable, "1"), ("COGNITO_ADMISSION_TIMEOUT_MS", "1")]).await;
        task.stub.answer("InitiateAuth", task.tokens());
        task.stub.answer("SignUp", signed_up(true));
        task.login().await.assert_status(200);
        // A second is far more than two requests take; and if it is not, the stub has seen the second one.
        let reply = task.login().await;
        if task.stub.calls().len() == 1 {
            reply.assert_problem(429, "identity_throttled");
            assert_eq!(reply.header("retry-after"), Some("1"));
            let registered = task.register().await;
            assert!(of_user || registered.status == 201, "another category");
        }
    }
}

#[tokio::test]
async fn a_session_counts_as_itself_whatever_name_it_is_given() {
    let task = OnCognito::start_with(&[("COGNITO_LIMIT_PER_USER", "1"), ("COGNITO_ADMISSION_TIMEOUT_MS", "1")]).await;
    task.stub.answer("InitiateAuth", task.tokens());
    task.stub.answer("RevokeToken", CognitoAnswer::Ok(json!({})));
    // Forgeries with Ada's name use up nothing of hers.
    for forged in 0..20 {
        task.refresh(&format!("dc_YWRh.forged{forged}")).await.assert_status(200);
        task.logout(&format!("dc_YWRh.forged-too{forged}")).await.assert_status(204);
    }
    task.refresh("dc_YWRh.hers").await.assert_status(200);
    // And one session gains nothing by other names. One a second may pass; twenty do not take twenty seconds.
    let mut refreshed = Vec::new();
    let mut ended = Vec::new();
    for name in ["YQ", "Yg", "Yw", "ZA", "ZQ"].iter().cycle().take(20) {
        refreshed.push(task.refresh(&format!("dc_{name}.one")).await);
        ended.push(task.logout(&format!("dc_{name}.two")).await);
    }
    for replies in [refreshed, ended] {
        let refused = replies.iter().find(|reply| reply.status == 429).expect("a limit of one a second");
        refused.assert_problem(429, "identity_throttled");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_for_ever_nor_asked_for_again() {
    let task = OnCognito::start().await;
    task.stub.answer("InitiateAuth", CognitoAnswer::Endless);
    task.login().await.assert_problem(503, "identity_unavailable");
    assert_eq!(task.stub.calls().len(), 1);
    let metrics = task.app.anonymous().get("/metrics").await;
    let counted = "idp_calls_total{operation=\"log_in\",result=\"too_large\"} 1";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}

#[tokio::test]
async fn only_what_may_be_repeated_is_and_throttled_calls_never_are() {
    let task = OnCognito::start_with(&[("COGNITO_MAX_ATTEMPTS", "3")]).await;
    let failing =
        || CognitoAnswer::Error { status: 500, code: "InternalErrorException".to_owned(), message: String::new() };
    task.stub.answer_in_turn("InitiateAuth", [failing(), CognitoAnswer::Html(502), task.tokens()]);
    task.login().await.assert_status(200);
    assert_eq!(task.stub.calls_of("InitiateAuth").len(), 3);

    task.stub.answer("InitiateAuth", CognitoAnswer::error("TooManyRequestsException", "Rate exceeded"));
    task.login().await.assert_problem(429, "identity_throttled");
    assert_eq!(task.stub.calls_of("InitiateAuth").len(), 4);

    for (operation, calls) in [("SignUp", 1), ("ChangePassword", 1)] {
        task.stub.answer(operation, failing());
        let reply = match operation {
            "SignUp" => task.register().await,
            _ => task.change_password(&task.access_token(), "an entirely different one").await,
        };
        reply.assert_problem(503, "identity_unavailable");
        assert_eq!(task.stub.calls_of(operation).len(), calls, "{operation}");
    }
}

#[tokio::test]
async fn a_provider_that_fails_gets_soon_one_attempt_a_call() {
    let variables = [("COGNITO_MAX_ATTEMPTS", "2"), ("COGNITO_RETRY_BUDGET", "3")];
    let task = OnCognito::start_with(&variables).await;
    task.stub.answer("InitiateAuth", CognitoAnswer::Html(500));
    for _ in 0..10 {
        task.login().await.assert_problem(503, "identity_unavailable");
    }
    assert_eq!(task.stub.calls().len(), 13);
}

#[tokio::test]
async fn what_happens_is_counted() {
    let task = OnCognito::start().await;
    task.stub.answer("InitiateAuth", CognitoAnswer::error("TooManyRequestsException", "Rate exceeded"));
    task.login().await.assert_problem(429, "identity_throttled");
    task.stub.answer("RevokeToken", CognitoAnswer::Ok(json!({})));
    task.logout("dc_YWRh.t").await.assert_status(204);
    let metrics = task.app.anonymous().get("/metrics").await;
    for series in [
        "idp_throttled_total{operation=\"log_in\",by=\"provider\"}",
        "idp_calls_total{operation=\"log_in\",result=\"throttled\"}",
        "idp_calls_total{operation=\"revoke_token\",result=\"ok\"}",
        "idp_attempts_total{operation=\"revoke_token\"}",
        "idp_connections_opened_total",
        "idp_connections ",
        "idp_calls_in_flight",
        "auth_logins_total{result=\"throttled\"}",
    ] {
        assert!(metrics.text().contains(series), "no {series} in:\n{}", metrics.text());
    }
}
