//! Refusals that come before or during a body must reach the client.

use crate::harness::Harness;

#[tokio::test]
async fn what_hyper_refuses_itself_is_a_problem_too() {
    let harness = Harness::start(&[]).await;
    harness.exchange("NONSENSE\r\n\r\n").await.assert_problem(400, "malformed_request");
    harness.exchange("GET /live HTTP/1.1\r\nbad header: x\r\n\r\n").await.assert_problem(400, "malformed_request");
    let two_lengths = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab";
    harness.exchange(two_lengths).await.assert_problem(400, "malformed_request");
    let large = format!("GET /live HTTP/1.1\r\nhost: x\r\nx-large: {}\r\n\r\n", "a".repeat(100_000));
    harness.exchange(large).await.assert_problem(431, "headers_too_large");
    let many = format!("GET /live HTTP/1.1\r\nhost: x\r\n{}\r\n", "x-many: a\r\n".repeat(150));
    harness.exchange(many).await.assert_problem(431, "headers_too_large");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_readably_with_and_without_a_length() {
    let harness = Harness::start(&[]).await;
    let body = vec![b'x'; 10_000_000];
    let announced = format!(
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = harness.connect().await;
    connection.send(announced).await;
    connection.try_send(&body).await;
    let answer = connection.read_to_end().await;
    answer.assert_problem(413, "body_too_large");
    assert_eq!(answer.header("connection").as_deref(), Some("close"));

    let mut connection = harness.connect().await;
    let head = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    connection.send(head).await;
    connection.try_send(format!("{:x}\r\n", body.len()).as_bytes()).await;
    connection.try_send(&body).await;
    connection.read_to_end().await.assert_problem(413, "body_too_large");
}

#[tokio::test]
async fn a_handler_that_does_not_read_the_body_answers_before_it_arrives() {
    let harness = Harness::start(&[]).await;
    let mut connection = harness.connect().await;
    connection
        .send("POST /ignore-body HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100000000\r\n\r\n")
        .await;
    let answer = connection.read_to_end().await;
    answer.assert_problem(401, "token_missing");
    assert_eq!(answer.header("connection").as_deref(), Some("close"));
    assert_eq!(answer.header("www-authenticate").as_deref(), Some(r#"bearer realm="datum""#));
}

#[tokio::test]
async fn a_small_unread_body_does_not_cost_the_connection() {
    let harness = Harness::start(&[]).await;
    let mut connection = harness.connect().await;
    connection.send("POST /ignore-body HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello").await;
    connection.read_answer().await.assert_problem(401, "token_missing");
    connection.send("GET /live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert_eq!(connection.read_to_end().await.status(), 200);
}

#[tokio::test]
async fn a_body_with_broken_framing_is_400() {
    let harness = Harness::start(&[]).await;
    let broken =
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
    harness.exchange(broken).await.assert_problem(400, "body_incomplete");
}
