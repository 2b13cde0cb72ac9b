//! A server that a test may break.

use std::time::Duration;

use test_support::{TestPostgres, eventually};

#[tokio::test]
async fn a_stopped_server_refuses_and_comes_back_with_its_data_on_its_port() {
    let mut server = TestPostgres::start(&["application_name = 'private'"]).await;
    server.migrate().await;
    let (port, url) = (server.port(), server.url("auth"));
    let session = server.admin().await;
    let name = session.query_one("SHOW application_name", &[]).await.unwrap();
    assert_eq!(name.get::<_, String>(0), "private");
    server.stop().await;
    eventually("the session has ended", async || session.is_closed()).await;
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
    server.resume().await;
    assert_eq!(server.port(), port);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("SELECT FROM _sqlx_migrations").await.unwrap();
}

#[tokio::test]
async fn a_frozen_server_answers_nobody_until_it_is_thawed() {
    let mut server = TestPostgres::start(&[]).await;
    let session = server.admin().await;
    server.freeze().await;
    let query = session.query_one("SELECT 1", &[]);
    tokio::pin!(query);
    // Not a measurement: an answer within this time would be a failure, none is what a frozen server gives for ever.
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut query).await.is_err());
    server.thaw();
    query.await.unwrap();
}
