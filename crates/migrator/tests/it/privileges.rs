//! What the services' roles may do, and what not.

use migrator::Migrator;
use test_support::{TestDatabase, TestPostgres, test_passwords};
use tokio_postgres::{Client, error::SqlState};
use url::Url;

use crate::{migrator, quietly};

async fn refused(client: &Client, statement: &str) {
    let error = client.batch_execute(statement).await.expect_err(statement);
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error:?}");
}

const TABLE: &[(i64, &str)] = &[(1, "CREATE TABLE things (id bigint GENERATED ALWAYS AS IDENTITY, n int)")];

#[tokio::test]
async fn a_role_works_in_its_own_schema_and_sees_no_other() {
    let database = TestDatabase::empty().await;
    migrator(TABLE).run(&database.admin_url(), &mut quietly).await.unwrap();
    let actor = database.connect("actor").await;
    // Without the schema's name: the role's search path is its schema.
    actor
        .batch_execute(
            "INSERT INTO things (n) VALUES (1); UPDATE things SET n = 2; SELECT * FROM things; DELETE FROM things",
        )
        .await
        .unwrap();
    for statement in [
        "CREATE TABLE mine ()",
        "ALTER TABLE things ADD COLUMN m int",
        "TRUNCATE things",
        "DROP TABLE things",
        "CREATE TABLE public.mine ()",
        "CREATE TEMPORARY TABLE mine ()",
        "CREATE SCHEMA mine",
    ] {
        refused(&actor, statement).await;
    }
    let auth = database.connect("auth").await;
    refused(&auth, "SELECT * FROM actor.things").await;
    refused(&auth, "SELECT * FROM actor._sqlx_migrations").await;
}

#[tokio::test]
async fn a_role_reads_its_history_and_cannot_write_it() {
    let database = TestDatabase::create().await;
    for service in ["auth", "actor", "document"] {
        let client = database.connect(service).await;
        let newest: i64 =
            client.query_one("SELECT max(version) FROM _sqlx_migrations WHERE success", &[]).await.unwrap().get(0);
        assert_eq!(newest, migrator::newest_version(service));
        refused(&client, "DELETE FROM _sqlx_migrations").await;
        refused(&client, "UPDATE _sqlx_migrations SET version = 1").await;
        refused(&client, "INSERT INTO _sqlx_migrations SELECT * FROM _sqlx_migrations").await;
    }
}

#[tokio::test]
async fn a_clone_is_as_closed_as_the_database_it_was_made_from() {
    let database = TestDatabase::create().await;
    let actor = database.connect("actor").await;
    refused(&actor, "CREATE TEMPORARY TABLE mine ()").await;
    refused(&actor, "CREATE TABLE public.mine ()").await;
    refused(&actor, "CREATE SCHEMA mine").await;
}

/// As on RDS, where nobody is superuser.
#[tokio::test]
async fn an_administrator_without_superuser_rights_is_enough_and_passwords_can_change() {
    let server = TestPostgres::start(&[]).await;
    let superuser = server.admin().await;
    superuser
        .batch_execute(
            "CREATE ROLE master LOGIN CREATEROLE CREATEDB PASSWORD 'master'; ALTER DATABASE datum OWNER TO master",
        )
        .await
        .unwrap();
    let mut url = Url::parse(&server.admin_url()).unwrap();
    url.set_username("master").unwrap();
    url.set_password(Some("master")).unwrap();

    let mut old = test_passwords();
    old.actor = service_kit::config::Secret::new("an old password: ' \\ ü".to_owned());
    Migrator::new(old).run(url.as_str(), &mut quietly).await.unwrap();
    let refused = tokio_postgres::connect(&server.url("actor"), tokio_postgres::NoTls).await.err().unwrap();
    assert_eq!(refused.code(), Some(&SqlState::INVALID_PASSWORD));

    Migrator::new(test_passwords()).run(url.as_str(), &mut quietly).await.unwrap();
    let (actor, connection) = tokio_postgres::connect(&server.url("actor"), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    actor.batch_execute("SELECT FROM _sqlx_migrations").await.unwrap();
    let owned: i64 = superuser
        .query_one(
            "SELECT count(*) FROM pg_class WHERE relowner IN (SELECT oid FROM pg_roles WHERE rolname LIKE 'datum_%')",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(owned, 0, "a service's role owns nothing");
}

#[tokio::test]
async fn passwords_do_not_reach_the_servers_log() {
    let server = TestPostgres::start(&["log_statement = 'all'"]).await;
    server.migrate().await;
    let log = server.log();
    assert!(log.contains("CREATE ROLE datum_actor"), "statements are logged");
    assert!(!log.contains(test_passwords().actor.expose()));
}
