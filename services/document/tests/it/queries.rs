//! Every query function, against the real table.

use std::collections::HashSet;
use std::time::Duration;

use document::DocumentKey;
use document::queries::documents::{self, Document, Leftovers, NewDocument};
use service_kit::database::{Connection, DatabaseError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::served::Documents;

const OWNER: Uuid = Uuid::from_u128(0xA11);

fn key(id: u128) -> DocumentKey {
    DocumentKey { owner_id: OWNER, id: Uuid::from_u128(id) }
}

fn new(key: DocumentKey, now: OffsetDateTime) -> NewDocument<'static> {
    NewDocument { key, name: "a.txt", content_type: "text/plain", created_at: now }
}

fn expected(key: DocumentKey, size_bytes: u64, created_at: OffsetDateTime) -> Document {
    let (name, content_type) = ("a.txt".to_owned(), "text/plain".to_owned());
    Document { key, name, content_type, size_bytes, sha256: [9; 32], created_at }
}

async fn store(connection: &mut Connection, key: DocumentKey, now: OffsetDateTime) {
    documents::insert_pending(connection, &new(key, now)).await.unwrap();
    documents::mark_stored(connection, key, 3, &[9; 32], now).await.unwrap().unwrap();
}

struct Table {
    served: Documents,
    connection: Connection,
    now: OffsetDateTime,
}

async fn table() -> Table {
    let served = Documents::start().await;
    let connection = served.pool.acquire().await.unwrap();
    let now = served.now().truncate_to_millisecond();
    Table { served, connection, now }
}

#[tokio::test]
async fn a_document_becomes_visible_when_it_is_stored_and_only_once() {
    let Table { served: _served, mut connection, now } = table().await;
    let db = &mut connection;
    documents::insert_pending(db, &new(key(1), now)).await.unwrap();
    assert_eq!(documents::find(db, key(1)).await.unwrap(), None);
    let later = now + Duration::from_secs(5);
    let stored = documents::mark_stored(db, key(1), u64::from(u32::MAX) + 1, &[9; 32], later).await.unwrap();
    assert_eq!(stored, Some(expected(key(1), u64::from(u32::MAX) + 1, now)));
    assert_eq!(documents::find(db, key(1)).await.unwrap(), stored);
    assert_eq!(documents::mark_stored(db, key(1), 4, &[8; 32], later).await.unwrap(), None);
    assert_eq!(documents::find(db, key(1)).await.unwrap(), stored);
    assert_eq!(documents::mark_stored(db, key(2), 4, &[8; 32], later).await.unwrap(), None);

    let elsewhere = DocumentKey { owner_id: Uuid::from_u128(0xB0B), ..key(1) };
    assert_eq!(documents::find(db, elsewhere).await.unwrap(), None);
}

#[tokio::test]
async fn only_a_pending_upload_can_be_given_up() {
    let Table { served, mut connection, now } = table().await;
    let db = &mut connection;
    documents::insert_pending(db, &new(key(1), now)).await.unwrap();
    assert!(documents::discard_pending(db, key(1)).await.unwrap());
    assert!(!documents::discard_pending(db, key(1)).await.unwrap());
    store(db, key(2), now).await;
    assert!(!documents::discard_pending(db, key(2)).await.unwrap());
    assert_eq!(served.rows().await, [(key(2), "stored".to_owned())]);
}

#[tokio::test]
async fn a_deletion_hides_a_stored_document_and_then_forgets_it() {
    let Table { served, mut connection, now } = table().await;
    let db = &mut connection;
    documents::insert_pending(db, &new(key(1), now)).await.unwrap();
    assert!(!documents::begin_deletion(db, key(1), now).await.unwrap(), "a pending one is not visible");
    store(db, key(2), now).await;
    assert!(!documents::finish_deletion(db, key(2)).await.unwrap(), "a stored one is not forgotten");
    assert!(documents::begin_deletion(db, key(2), now).await.unwrap());
    assert!(!documents::begin_deletion(db, key(2), now).await.unwrap());
    assert_eq!(documents::find(db, key(2)).await.unwrap(), None);
    assert!(documents::finish_deletion(db, key(2)).await.unwrap());
    assert_eq!(served.rows().await, [(key(1), "pending".to_owned())]);
}

#[tokio::test]
async fn a_list_is_one_owners_stored_documents_from_the_newest_on() {
    let Table { served: _served, mut connection, now } = table().await;
    let db = &mut connection;
    for id in 1..=5 {
        store(db, key(id), now).await;
    }
    documents::insert_pending(db, &new(key(6), now)).await.unwrap();
    documents::begin_deletion(db, key(3), now).await.unwrap();
    store(db, DocumentKey { owner_id: Uuid::from_u128(0xB0B), id: Uuid::from_u128(9) }, now).await;
    let ids = |list: Vec<Document>| list.iter().map(|document| document.key.id.as_u128()).collect::<Vec<_>>();
    assert_eq!(ids(documents::list(db, OWNER, None, 10).await.unwrap()), [5, 4, 2, 1]);
    assert_eq!(ids(documents::list(db, OWNER, None, 2).await.unwrap()), [5, 4]);
    assert_eq!(ids(documents::list(db, OWNER, Some(Uuid::from_u128(4)), 10).await.unwrap()), [2, 1]);
    assert_eq!(ids(documents::list(db, OWNER, Some(Uuid::from_u128(1)), 10).await.unwrap()), [] as [u128; 0]);
    assert_eq!(ids(documents::list(db, Uuid::nil(), None, 10).await.unwrap()), [] as [u128; 0]);
}

#[tokio::test]
async fn leftovers_are_claimed_by_age_oldest_first_and_once() {
    let Table { served, mut connection, now } = table().await;
    let db = &mut connection;
    let ago = |seconds| now - Duration::from_secs(seconds);
    for (id, age) in [(1, 100), (2, 300), (3, 200)] {
        documents::insert_pending(db, &new(key(id), ago(age))).await.unwrap();
    }
    store(db, key(4), ago(1_000)).await;
    documents::begin_deletion(db, key(4), ago(20)).await.unwrap();
    store(db, key(5), ago(1_000)).await;

    let leftovers = Leftovers { pending_before: ago(150), deleting_before: ago(10) };
    assert_eq!(documents::claim_leftovers(db, leftovers, now, 1).await.unwrap(), [key(2)]);
    let mut rest = documents::claim_leftovers(db, leftovers, now, 10).await.unwrap();
    rest.sort_unstable();
    assert_eq!(rest, [key(3), key(4)]);
    assert_eq!(documents::claim_leftovers(db, leftovers, now, 10).await.unwrap(), []);
    let states = served.rows().await.into_iter().map(|(key, state)| (key.id.as_u128(), state)).collect::<Vec<_>>();
    let expected = [(1, "pending"), (2, "deleting"), (3, "deleting"), (4, "deleting"), (5, "stored")];
    assert_eq!(states, expected.map(|(id, state)| (id, state.to_owned())));
}

#[tokio::test]
async fn a_row_that_somebody_is_claiming_is_passed_over() {
    let Table { served, mut connection, now } = table().await;
    for id in 1..=2 {
        documents::insert_pending(&mut connection, &new(key(id), now - Duration::from_secs(100))).await.unwrap();
    }
    let mut admin = served.database.admin().await;
    let lock = admin.transaction().await.unwrap();
    lock.execute("SELECT FROM document.documents WHERE id = $1 FOR UPDATE", &[&key(1).id]).await.unwrap();
    let leftovers = Leftovers { pending_before: now, deleting_before: now };
    assert_eq!(documents::claim_leftovers(&mut connection, leftovers, now, 10).await.unwrap(), [key(2)]);
}

#[tokio::test]
async fn rows_are_found_whatever_their_state() {
    let Table { served: _served, mut connection, now } = table().await;
    let db = &mut connection;
    documents::insert_pending(db, &new(key(1), now)).await.unwrap();
    store(db, key(2), now).await;
    store(db, key(3), now).await;
    documents::begin_deletion(db, key(3), now).await.unwrap();
    let elsewhere = DocumentKey { owner_id: Uuid::from_u128(0xB0B), ..key(1) };
    let asked = [key(1), key(2), key(3), key(4), elsewhere];
    assert_eq!(documents::with_rows(db, &asked).await.unwrap(), HashSet::from([key(1), key(2), key(3)]));
    assert_eq!(documents::with_rows(db, &[]).await.unwrap(), HashSet::new());
}

#[tokio::test]
async fn the_table_refuses_what_no_document_is() {
    let Table { served, mut connection, now } = table().await;
    let db = &mut connection;
    let long = "x".repeat(256);
    for (name, content_type, constraint) in [
        ("", "text/plain", "documents_name_length"),
        (&*long, "text/plain", "documents_name_length"),
        ("x", "", "documents_content_type_length"),
        ("x", &*long, "documents_content_type_length"),
    ] {
        let new = NewDocument { key: key(1), name, content_type, created_at: now };
        let error = documents::insert_pending(db, &new).await.unwrap_err();
        assert!(error.violates(constraint), "{error:?}");
    }
    documents::insert_pending(db, &new(key(1), now)).await.unwrap();
    let again = documents::insert_pending(db, &new(key(1), now)).await.unwrap_err();
    assert!(
        matches!(&again, DatabaseError::UniqueViolation { constraint } if constraint == "documents_pkey"),
        "{again:?}"
    );

    let admin = served.database.admin().await;
    for (change, constraint) in [
        ("state = 'stored'", "documents_stored_is_measured"),
        ("state = 'lost'", "documents_state_known"),
        ("size_bytes = -1", "documents_size_not_negative"),
        ("sha256 = '\\x00'", "documents_sha256_length"),
    ] {
        let error = admin.batch_execute(&format!("UPDATE document.documents SET {change}")).await.unwrap_err();
        assert_eq!(error.as_db_error().and_then(|error| error.constraint()), Some(constraint), "{change}");
    }
}
