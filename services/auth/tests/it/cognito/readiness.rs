//! What a task without a database is ready for.

use http::StatusCode;
use test_support::JwksAnswer;

use super::served::OnCognito;

#[tokio::test]
async fn a_task_starts_without_cognito_and_says_what_it_waits_for() {
    let task = OnCognito::start().await;
    task.keys.answer(JwksAnswer::Status(StatusCode::BAD_GATEWAY));
    let anyone = task.app.anonymous();
    let reply = anyone.get("/ready").await;
    let body = reply.assert_problem(503, "not_ready");
    assert_eq!(body["detail"], "Not ready: token keys: not fetched yet.");
    anyone.get("/live").await.assert_status(200);
    task.change_password(&task.access_token(), "an entirely different one")
        .await
        .assert_problem(503, "keys_unavailable");
    let reply = anyone.get("/ready").await;
    assert_eq!(reply.json()["detail"], "Not ready: token keys: not fetched yet: status 502.");
}

#[tokio::test]
async fn with_the_keys_at_hand_it_is_ready_whatever_cognito_does() {
    let task = OnCognito::start_with(&[("COGNITO_ENDPOINT_URL", "http://127.0.0.1:1")]).await;
    // Whoever presents a token causes the fetch that background work does in production.
    task.change_password(&task.access_token(), "short").await.assert_status(422);
    task.keys.answer(JwksAnswer::Silence);
    let anyone = task.app.anonymous();
    anyone.get("/ready").await.assert_status(200);
    task.login().await.assert_problem(503, "identity_unavailable");
    anyone.get("/ready").await.assert_status(200);
}

#[tokio::test]
async fn the_pool_publishes_its_keys_itself() {
    let task = OnCognito::start().await;
    task.app.anonymous().get("/.well-known/jwks.json").await.assert_problem(404, "not_found");
}
