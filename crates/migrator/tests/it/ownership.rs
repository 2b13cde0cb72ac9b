//! The roles belong to the server: who has them, and who may change their passwords.

use migrator::{MigrateError, Migrator, Owner, RolePasswords, release_roles};
use service_kit::config::Secret;
use test_support::{TestPostgres, test_passwords};
use tokio_postgres::NoTls;
use url::Url;

use crate::quietly;

fn owner(id: &str) -> Owner {
    Owner { id: id.to_owned(), place: format!("/somewhere/{id}'s folder") }
}

fn passwords(of: &str) -> RolePasswords {
    let password = |service: &str| Secret::new(format!("{service} of {of}"));
    RolePasswords { auth: password("auth"), actor: password("actor"), document: password("document") }
}

/// The URL of another database of the same server.
async fn another_database(server: &TestPostgres) -> String {
    server.admin().await.batch_execute("CREATE DATABASE another").await.unwrap();
    let mut url = Url::parse(&server.admin_url()).unwrap();
    url.set_path("/another");
    url.into()
}

async fn can_log_in(server: &TestPostgres, passwords: &RolePasswords) -> bool {
    let mut url = Url::parse(&server.url("actor")).unwrap();
    url.set_password(Some(passwords.actor.expose())).unwrap();
    tokio_postgres::connect(url.as_str(), NoTls).await.is_ok()
}

#[tokio::test]
async fn a_second_system_is_refused_and_the_first_ones_passwords_stay() {
    let server = TestPostgres::start(&[]).await;
    let (first, second) = (passwords("first"), passwords("second"));
    let migrator = |passwords: &RolePasswords, id| Migrator::new(passwords.clone()).owned_by(owner(id), false);
    migrator(&first, "first").run(&server.admin_url(), &mut quietly).await.unwrap();
    assert!(can_log_in(&server, &first).await);

    let another = another_database(&server).await;
    let error = migrator(&second, "second").run(&another, &mut quietly).await.unwrap_err();
    assert!(matches!(&error, MigrateError::RoleInUse { .. }), "{error}");
    assert!(error.to_string().contains("the system in /somewhere/first's folder"), "{error}");
    assert!(can_log_in(&server, &first).await && !can_log_in(&server, &second).await);
    let (client, connection) = tokio_postgres::connect(&another, NoTls).await.unwrap();
    tokio::spawn(connection);
    let schemas = client.query_one("SELECT to_regnamespace('auth') IS NULL", &[]).await.unwrap();
    assert!(schemas.get::<_, bool>(0), "something was made in the second database");

    // The first again, wherever it was moved to.
    let moved = Owner { place: "/elsewhere".to_owned(), ..owner("first") };
    Migrator::new(first.clone()).owned_by(moved, false).run(&server.admin_url(), &mut quietly).await.unwrap();

    // The second, where somebody wants it so; the first is then the one that is refused.
    let deliberately = Migrator::new(second.clone()).owned_by(owner("second"), true);
    deliberately.run(&another, &mut quietly).await.unwrap();
    assert!(!can_log_in(&server, &first).await && can_log_in(&server, &second).await);
    migrator(&first, "first").run(&server.admin_url(), &mut quietly).await.unwrap_err();
}

#[tokio::test]
async fn released_roles_are_the_next_ones_and_only_their_owner_releases_them() {
    let server = TestPostgres::start(&[]).await;
    let admin_url = Secret::new(server.admin_url());
    let migrator = |id| Migrator::new(test_passwords()).owned_by(owner(id), false);
    migrator("first").run(admin_url.expose(), &mut quietly).await.unwrap();
    release_roles(&admin_url, &owner("second")).await.unwrap();
    migrator("second").run(admin_url.expose(), &mut quietly).await.unwrap_err();
    release_roles(&admin_url, &owner("first")).await.unwrap();
    migrator("second").run(admin_url.expose(), &mut quietly).await.unwrap();
}

#[tokio::test]
async fn a_deployments_migrator_asks_nobody_and_what_it_has_set_is_protected() {
    let server = TestPostgres::start(&[]).await;
    let (system, deployment) = (passwords("system"), passwords("deployment"));
    let owned = Migrator::new(system.clone()).owned_by(owner("system"), false);
    owned.run(&server.admin_url(), &mut quietly).await.unwrap();
    migrator::run(&server.admin_url(), &deployment).await.unwrap();
    assert!(can_log_in(&server, &deployment).await);
    let error = owned.run(&server.admin_url(), &mut quietly).await.unwrap_err();
    assert!(matches!(error, MigrateError::RoleOfUnknown { .. }), "{error}");
    assert!(can_log_in(&server, &deployment).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_that_come_at_once_one_gets_the_roles() {
    let server = TestPostgres::start(&[]).await;
    let first = server.admin_url();
    let second = another_database(&server).await;
    let systems = [(&first, "a"), (&second, "b"), (&first, "c"), (&second, "d")].map(|(url, id)| {
        let (url, migrator) = (url.clone(), Migrator::new(passwords(id)).owned_by(owner(id), false));
        tokio::spawn(async move { (id, migrator.run(&url, &mut quietly).await) })
    });
    let mut winner = None;
    for system in systems {
        match system.await.unwrap() {
            (id, Ok(_)) => assert_eq!(winner.replace(id), None, "two have the roles"),
            (_, Err(MigrateError::RoleInUse { .. })) => {}
            (id, Err(error)) => panic!("{id}: {error}"),
        }
    }
    assert!(can_log_in(&server, &passwords(winner.expect("one has the roles"))).await);
}
