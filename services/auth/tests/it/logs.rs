//! What may not be in the logs, at any level.

use std::io;
use std::process::Command;
use std::sync::{Arc, Mutex};

use service_kit::telemetry::log_filter;
use tracing_subscriber::fmt::MakeWriter;

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, Tokens};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Captured {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

/// A subscriber sees every thread only if it is the process's own. One set for a thread would miss what the hashing
/// threads log, and call sites that another test reaches first stay silent: `tracing` remembers that nobody listened there.
#[test]
fn neither_emails_nor_passwords_nor_tokens_nor_hashes_nor_addresses_are_logged() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "logs::nothing_secret_is_logged_by_this_process", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let (told, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("1 passed"), "{}:\n{told}\n{complained}", output.status);
}

#[tokio::test]
#[ignore = "run by neither_emails_nor_passwords_nor_tokens_nor_hashes_nor_addresses_are_logged, in a process of its own"]
async fn nothing_secret_is_logged_by_this_process() {
    let captured = Captured::default();
    // The test's own HTTP client lives here too.
    let everything = log_filter("trace,hyper_util=off,reqwest=off,tokio_postgres::query=trace");
    tracing_subscriber::fmt().with_env_filter(everything).with_writer(captured.clone()).init();

    let auth = Auth::start_with(&[("AUTH_THROTTLE", "off")]).await;
    let first = auth.sign_up("ada@example.com").await;
    let second = Tokens::of(&auth.refresh(&first.refresh).await);
    auth.register("ada@example.com", PASSWORD).await.assert_status(409);
    auth.register("not an address", "short").await.assert_status(422);
    auth.login("ada@example.com", OTHER_PASSWORD).await.assert_status(401);
    auth.login("nobody@example.com", OTHER_PASSWORD).await.assert_status(401);
    let hash = auth.stored_hash().await;
    auth.advance_seconds(60);
    auth.refresh(&first.refresh).await.assert_status(401);
    auth.change_password(&second.access, PASSWORD, OTHER_PASSWORD).await.assert_status(204);
    auth.admin.execute("UPDATE auth.users SET password_hash = '$nonsense'", &[]).await.unwrap();
    auth.login("ada@example.com", OTHER_PASSWORD).await.assert_status(401);
    auth.logout(&second.refresh).await.assert_status(204);

    let logs = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    for expected in ["AUTH_THROTTLE is off", "a used refresh token came back", "a user cannot log in", "/v1/auth/login"]
    {
        assert!(logs.contains(expected), "`{expected}` is not logged:\n{logs}");
    }
    let secrets = [
        "ada@",
        "example.com",
        PASSWORD,
        OTHER_PASSWORD,
        "short",
        &hash,
        "$argon2",
        &first.refresh[3..],
        "dr_",
        &second.access,
        "eyJ",
        "only-in-tests",
        "127.0.0.1",
    ];
    for secret in secrets {
        let line = logs.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "`{secret}` is logged: {line:?}");
    }
}
