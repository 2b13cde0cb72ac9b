//! `sslmode` and root certificates, against a certificate for one name by a private authority.

use service_kit::config::{Environment, load};
use service_kit::database::DatabaseConfig;

use crate::server::{Database, HOST, eventually, pool, server};

/// Connects with these options; says whether the session is encrypted, or why there is none.
async fn session(database: &Database, host: &str, options: &str) -> Result<bool, String> {
    let pairs = database.pairs().replace(&format!("host={HOST} "), &format!("host={host} "));
    let pool = pool(&format!("{pairs} {options}"), &[]);
    let mut connection = pool.acquire().await.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    let row = connection.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await.unwrap();
    Ok(row.get(0))
}

#[tokio::test]
async fn every_sslmode_accepts_and_refuses_what_it_should() {
    const NAME: &str = "for another host name";
    const SIGNER: &str = "invalid peer certificate";
    let database = Database::create().await;
    let ours = format!("sslrootcert={}", server().authority);
    let other = format!("sslrootcert={}", server().other_authority);
    let accepted = [
        (HOST, "sslmode=disable".to_owned(), false),
        (HOST, String::new(), true),
        (HOST, "sslmode=prefer".to_owned(), true),
        ("localhost", "sslmode=require".to_owned(), true),
        ("localhost", format!("sslmode=require {ours}"), true),
        (HOST, format!("sslmode=verify-ca {ours}"), true),
        ("localhost", format!("sslmode=verify-ca {ours}"), true),
        (HOST, format!("sslmode=verify-full {ours}"), true),
        (HOST, ours.clone(), true),
        (HOST, format!("sslmode=verify-full channel_binding=require {ours}"), true),
    ];
    for (host, options, encrypted) in accepted {
        assert_eq!(session(&database, host, &options).await, Ok(encrypted), "{host} {options}");
    }
    let refused = [
        ("localhost", format!("sslmode=verify-full {ours}"), NAME),
        ("localhost", ours.clone(), NAME),
        ("127.0.0.1", format!("sslmode=verify-full {ours}"), NAME),
        (HOST, format!("sslmode=require {other}"), SIGNER),
        (HOST, format!("sslmode=verify-ca {other}"), SIGNER),
        (HOST, format!("sslmode=verify-full {other}"), SIGNER),
        (HOST, other.clone(), SIGNER),
    ];
    for (host, options, why) in refused {
        let error = session(&database, host, &options).await.expect_err(&options);
        assert!(error.contains(why), "{host} {options}: {error}");
        assert!(!error.contains("127.0.0.1") && !error.contains("password"), "{error}");
    }
}

/// Case of RDS: the authorities come as a file, by their own variable.
#[tokio::test]
async fn a_root_certificate_by_variable_makes_verify_full_the_default() {
    let database = Database::create().await;
    for (root, accepted) in [(&server().authority, true), (&server().other_authority, false)] {
        let pool = database.pool(&[("DB_SSL_ROOT_CERT", root)]);
        assert_eq!(pool.acquire().await.is_ok(), accepted, "{root}");
    }
}

#[tokio::test]
async fn a_root_certificate_that_is_not_there_is_an_error_of_the_configuration() {
    let environment =
        Environment::from_pairs([("DATABASE_URL", "postgres://h/d"), ("DB_SSL_ROOT_CERT", "/nowhere/ca.pem")]);
    let errors = load(&environment, DatabaseConfig::read).unwrap_err().0;
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("DB_SSL_ROOT_CERT /nowhere/ca.pem cannot be read"), "{errors:?}");
}

#[tokio::test]
async fn an_abandoned_statement_is_cancelled_over_tls_too() {
    let database = Database::create().await;
    let options = format!("sslmode=verify-full sslrootcert={}", server().authority);
    let pool = pool(&format!("{} {options}", database.pairs()), &[("DB_STATEMENT_TIMEOUT_MS", "600000")]);
    let request = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire().await.unwrap().query("SELECT 1 FROM pg_sleep(600)", &[]).await }
    });
    eventually("it runs", async || database.running("pg_sleep").await == 1).await;
    request.abort();
    eventually("it is cancelled", async || database.running("pg_sleep").await == 0).await;
}
