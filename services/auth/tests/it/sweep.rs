//! Removing what has expired.

use std::sync::Arc;

use auth::sweep::sweep;
use service_kit::clock::SharedClock;

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, Tokens};

async fn rows(auth: &Auth) -> [i64; 3] {
    [
        auth.count("SELECT count(*) FROM auth.refresh_families").await,
        auth.count("SELECT count(*) FROM auth.refresh_tokens").await,
        auth.count("SELECT count(*) FROM auth.login_failures").await,
    ]
}

#[tokio::test]
async fn what_has_expired_goes_and_what_lives_stays() {
    let auth = Auth::start().await;
    let clock: SharedClock = Arc::new(auth.clock.clone());
    let old = auth.sign_up("ada@example.com").await;
    Tokens::of(auth.refresh(&old.refresh).await.assert_status(200));
    auth.login("ada@example.com", OTHER_PASSWORD).await.assert_status(401);
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 0);
    assert_eq!(rows(&auth).await, [1, 2, 1]);

    auth.advance_seconds(15 * 60);
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 1, "the failure");
    auth.advance_seconds(30 * 24 * 3_600);
    let new = auth.session("ada@example.com", PASSWORD).await;
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 0, "expired sessions are kept for a day");
    auth.logout(&old.refresh).await.assert_status(204);

    auth.advance_seconds(24 * 3_600);
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 3, "a family and its two tokens");
    assert_eq!(rows(&auth).await, [1, 1, 0]);
    auth.refresh(&new.refresh).await.assert_status(200);
    auth.logout(&old.refresh).await.assert_problem(401, "invalid_refresh_token");
}

#[tokio::test]
async fn more_rows_than_one_statement_takes_all_go() {
    let auth = Auth::start().await;
    let clock: SharedClock = Arc::new(auth.clock.clone());
    let fill = "INSERT INTO auth.login_failures (key, failures, window_started_at)
                SELECT sha256(n::text::bytea), 1, $1 FROM generate_series(1, 1200) n";
    auth.admin.execute(fill, &[&(auth.now() - time::Duration::hours(1))]).await.unwrap();
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 1_200);
    assert_eq!(rows(&auth).await[2], 0);
}

#[tokio::test]
async fn rows_that_somebody_is_using_are_left_for_the_next_time() {
    let auth = Auth::start().await;
    let clock: SharedClock = Arc::new(auth.clock.clone());
    auth.sign_up("ada@example.com").await;
    auth.advance_seconds(40 * 24 * 3_600);
    let mut other = auth.another_admin().await;
    let using = other.transaction().await.unwrap();
    using.query("SELECT FROM auth.refresh_tokens FOR UPDATE", &[]).await.unwrap();
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 1, "the family; its token is in use");
    using.commit().await.unwrap();
    assert_eq!(sweep(&auth.pool, &clock).await.unwrap(), 1);
}
