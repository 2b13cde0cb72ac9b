//! Every query function, and every constraint by its name.

use actor::queries::actors::{self, StatedEmail};
use service_kit::database::DatabaseError;
use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::served::Actors;

const NOW: OffsetDateTime = datetime!(2026-03-01 12:00:00.123456 UTC);
const ID: Uuid = Uuid::from_u128(1);

fn stated(email: &str, issued_at: OffsetDateTime) -> StatedEmail {
    StatedEmail { email: email.to_owned(), issued_at }
}

#[tokio::test]
async fn an_inserted_actor_is_found_as_it_was_inserted() {
    let actors = Actors::start().await;
    let mut connection = actors.pool.acquire().await.unwrap();
    assert_eq!(actors::find(&mut connection, ID).await.unwrap(), None);
    let email = stated("ada@example.com", NOW - Duration::MINUTE);
    let made = actors::insert_if_absent(&mut connection, ID, Some(&email), Some("Ada"), NOW).await.unwrap().unwrap();
    assert_eq!(made.id, ID);
    assert_eq!(made.email.as_deref(), Some("ada@example.com"));
    assert_eq!(made.email_issued_at, Some(NOW - Duration::MINUTE));
    assert_eq!(made.display_name.as_deref(), Some("Ada"));
    assert_eq!((made.created_at, made.updated_at, made.revision), (NOW, NOW, 1));
    assert_eq!(actors::find(&mut connection, ID).await.unwrap(), Some(made));
    assert_eq!(actors::find(&mut connection, Uuid::from_u128(2)).await.unwrap(), None);
}

#[tokio::test]
async fn a_second_insert_gives_nothing_and_changes_nothing() {
    let actors = Actors::start().await;
    let mut connection = actors.pool.acquire().await.unwrap();
    let made = actors::insert_if_absent(&mut connection, ID, None, None, NOW).await.unwrap();
    let email = stated("eve@example.com", NOW);
    let again = actors::insert_if_absent(&mut connection, ID, Some(&email), Some("Eve"), NOW + Duration::HOUR).await;
    assert_eq!(again.unwrap(), None);
    assert_eq!(actors::find(&mut connection, ID).await.unwrap(), made);
}

#[tokio::test]
async fn an_email_is_adopted_only_when_it_is_another_and_newer() {
    let actors = Actors::start().await;
    let mut connection = actors.pool.acquire().await.unwrap();
    actors::insert_if_absent(&mut connection, ID, None, Some("Ada"), NOW).await.unwrap();

    let first = stated("ada@example.com", NOW);
    let adopted = actors::adopt_email(&mut connection, ID, &first, NOW + Duration::HOUR).await.unwrap().unwrap();
    assert_eq!((adopted.email.as_deref(), adopted.email_issued_at), (Some("ada@example.com"), Some(NOW)));
    assert_eq!((adopted.updated_at, adopted.revision), (NOW + Duration::HOUR, 2));
    assert_eq!(adopted.display_name.as_deref(), Some("Ada"));

    for unchanged in [
        stated("ada@example.com", NOW + Duration::HOUR),
        stated("old@example.com", NOW - Duration::SECOND),
        stated("tie@example.com", NOW),
    ] {
        assert_eq!(actors::adopt_email(&mut connection, ID, &unchanged, NOW).await.unwrap(), None, "{unchanged:?}");
    }
    let nobody = actors::adopt_email(&mut connection, Uuid::from_u128(2), &first, NOW).await.unwrap();
    assert_eq!(nobody, None);

    let newer = stated("lovelace@example.com", NOW + Duration::SECOND);
    let adopted = actors::adopt_email(&mut connection, ID, &newer, NOW).await.unwrap().unwrap();
    assert_eq!(adopted.email.as_deref(), Some("lovelace@example.com"));
    assert_eq!(adopted.updated_at, NOW + Duration::HOUR, "a clock that is behind moves no time back");
    assert_eq!(adopted.revision, 3);
}

#[tokio::test]
async fn a_display_name_is_set_only_on_an_expected_revision() {
    let actors = Actors::start().await;
    let mut connection = actors.pool.acquire().await.unwrap();
    actors::insert_if_absent(&mut connection, ID, None, None, NOW).await.unwrap();
    let later = NOW + Duration::HOUR;

    let set = actors::set_display_name(&mut connection, ID, Some("Ada"), None, later).await.unwrap().unwrap();
    assert_eq!((set.display_name.as_deref(), set.updated_at, set.revision), (Some("Ada"), later, 2));
    for expected in [&[1_i64][..], &[1, 3], &[]] {
        let refused = actors::set_display_name(&mut connection, ID, Some("Eve"), Some(expected), later).await;
        assert_eq!(refused.unwrap(), None, "{expected:?}");
    }
    assert_eq!(actors::find(&mut connection, ID).await.unwrap(), Some(set));
    let cleared = actors::set_display_name(&mut connection, ID, None, Some(&[1, 2]), NOW).await.unwrap().unwrap();
    assert_eq!((cleared.display_name, cleared.updated_at, cleared.revision), (None, later, 3));

    let nobody = actors::set_display_name(&mut connection, Uuid::from_u128(2), None, None, NOW).await.unwrap();
    assert_eq!(nobody, None);
}

#[tokio::test]
async fn what_no_actor_can_be_is_refused_by_a_constraint_with_a_name() {
    let actors = Actors::start().await;
    let mut connection = actors.pool.acquire().await.unwrap();
    let insert =
        "INSERT INTO actor.actors (id, email, email_issued_at, display_name, created_at, updated_at, revision) VALUES ";
    for (values, constraint) in [
        ("(gen_random_uuid(), '', now(), NULL, now(), now(), 1)", "actors_email_length"),
        ("(gen_random_uuid(), repeat('é', 128), now(), NULL, now(), now(), 1)", "actors_email_length"),
        ("(gen_random_uuid(), 'a@b.c', NULL, NULL, now(), now(), 1)", "actors_email_has_issue_time"),
        ("(gen_random_uuid(), NULL, now(), NULL, now(), now(), 1)", "actors_email_has_issue_time"),
        ("(gen_random_uuid(), NULL, NULL, '', now(), now(), 1)", "actors_display_name_length"),
        ("(gen_random_uuid(), NULL, NULL, repeat('é', 101), now(), now(), 1)", "actors_display_name_length"),
        ("(gen_random_uuid(), NULL, NULL, NULL, now(), now() - interval '1 s', 1)", "actors_updated_after_created"),
        ("(gen_random_uuid(), NULL, NULL, NULL, now(), now(), 0)", "actors_revision_positive"),
    ] {
        let statement: &'static str = Box::leak(format!("{insert}{values}").into_boxed_str());
        let error = connection.execute(statement, &[]).await.unwrap_err();
        assert!(error.violates(constraint), "{values}: {error:?}");
    }
    let twice: &'static str = Box::leak(
        format!("{insert}('{ID}', NULL, NULL, NULL, now(), now(), 1), ('{ID}', NULL, NULL, NULL, now(), now(), 1)")
            .into_boxed_str(),
    );
    let error = connection.execute(twice, &[]).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::UniqueViolation { constraint } if constraint == "actors_pkey"),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_required_schema_is_the_newest_migration() {
    assert_eq!(actor::REQUIRED_SCHEMA_VERSION, migrator::newest_version("actor"));
}
