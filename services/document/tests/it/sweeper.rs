//! What is a leftover, what is not, and that nothing acknowledged ever becomes one.

use std::time::Duration;

use document::queries::documents::{self, NewDocument};
use document::{DocumentKey, Swept};
use futures_util::{StreamExt, stream};
use service_kit::clock::uuid_v7;
use uuid::Uuid;

use crate::served::{Documents, MIB, content_path, document_path, noise, sha256, stored};

/// `DOCUMENT_SWEEP_AGE_SECONDS`, and a little.
const AGE: Duration = Duration::from_mins(61);
const LESS: Duration = Duration::from_secs(3_500);

fn new_key(served: &Documents) -> DocumentKey {
    DocumentKey { owner_id: Uuid::new_v4(), id: uuid_v7(&served.clock) }
}

async fn put_object(served: &Documents, key: &str) {
    let put = served.store.client().put_object().bucket(served.store.bucket()).key(key);
    put.body(bytes::Bytes::from_static(b"x").into()).send().await.unwrap();
}

async fn begin_multipart(served: &Documents, key: DocumentKey) {
    let begin = served.store.client().create_multipart_upload().bucket(served.store.bucket()).key(key.to_string());
    let upload_id = begin.send().await.unwrap().upload_id.unwrap();
    let part = served.store.client().upload_part().bucket(served.store.bucket()).key(key.to_string());
    part.upload_id(upload_id).part_number(1).body(bytes::Bytes::from_static(b"x").into()).send().await.unwrap();
}

async fn insert_pending(served: &Documents, key: DocumentKey) {
    let mut connection = served.pool.acquire().await.unwrap();
    let new = NewDocument { key, name: "x", content_type: "text/plain", created_at: served.now() };
    documents::insert_pending(&mut connection, &new).await.unwrap();
}

#[tokio::test]
async fn what_a_crash_leaves_is_removed_once_it_is_old() {
    let served = Documents::start().await;
    // A row before its object, a row with its object, a row with an open multipart upload, and each of those without a row.
    let keys: Vec<_> = (0..5).map(|_| new_key(&served)).collect();
    for key in &keys[..3] {
        insert_pending(&served, *key).await;
    }
    put_object(&served, &keys[1].to_string()).await;
    begin_multipart(&served, keys[2]).await;
    put_object(&served, &keys[3].to_string()).await;
    begin_multipart(&served, keys[4]).await;

    assert_eq!(served.sweep_after(LESS).await, Swept::default(), "an upload may still be running");
    assert_eq!(served.rows().await.len(), 3);

    let swept = served.sweep_after(Duration::from_secs(160)).await;
    assert_eq!(swept, Swept { rows: 3, multiparts: 2, objects: 1, failures: 0 });
    served.assert_nothing_is_left().await;
    assert_eq!(served.sweep_after(AGE).await, Swept::default());
}

#[tokio::test]
async fn stored_documents_are_never_leftovers() {
    let served = Documents::start().await;
    let user = served.user("ada@example.com");
    let caller = served.app.as_user(&user);
    let small = stored(&caller, "small", "text/plain", "small").await;
    let empty = stored(&caller, "empty", "text/plain", "").await;
    let large_content = noise(11 * MIB);
    let large = stored(&caller, "large", "text/plain", large_content.clone()).await;

    assert_eq!(served.sweep_after(Duration::from_hours(24 * 365)).await, Swept::default());
    let caller = served.caller_again(&user);
    assert_eq!(caller.get(&content_path(&small)).await.assert_status(200).body, "small");
    assert_eq!(caller.get(&content_path(&empty)).await.assert_status(200).body, "");
    assert_eq!(sha256(&caller.get(&content_path(&large)).await.assert_status(200).body), sha256(&large_content));
    served.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn objects_that_are_not_named_as_ours_are_left_alone() {
    let served = Documents::start().await;
    let id = Uuid::new_v4();
    let mut foreign = vec![
        "backup.tar".to_owned(),
        "documents/README".to_owned(),
        format!("documents/{id}"),
        format!("documents/{id}/{id}/thumbnail"),
        format!("documents/{id}/{}", id.simple()),
        format!("elsewhere/{id}/{id}"),
    ];
    for key in &foreign {
        put_object(&served, key).await;
    }
    assert_eq!(served.sweep_after(AGE).await, Swept::default());
    foreign.sort();
    assert_eq!(served.store.keys().await, foreign);
}

#[tokio::test]
async fn an_upload_that_is_committed_while_it_is_swept_is_either_whole_or_gone() {
    let served = Documents::start().await;
    let keys: Vec<_> = (0..60).map(|_| new_key(&served)).collect();
    for key in &keys {
        insert_pending(&served, *key).await;
        put_object(&served, &key.to_string()).await;
    }
    served.clock.advance(AGE);

    let commits = stream::iter(keys.clone()).map(|key| {
        let (pool, now) = (served.pool.clone(), served.now());
        async move {
            let mut connection = pool.acquire().await.unwrap();
            let stored = documents::mark_stored(&mut connection, key, 1, &[7; 32], now).await.unwrap();
            (key, stored.is_some())
        }
    });
    let commits = commits.buffer_unordered(4).collect::<Vec<_>>();
    let sweeps = futures_util::future::join_all((0..3).map(|_| served.state.sweeper().sweep()));
    let (committed, swept) = tokio::join!(commits, sweeps);

    let objects = served.store.keys().await;
    let rows = served.rows().await;
    for (key, acknowledged) in committed {
        let row = rows.iter().find(|(other, _)| *other == key).map(|(_, state)| state.as_str());
        assert_eq!(row, acknowledged.then_some("stored"), "{key}");
        assert_eq!(objects.contains(&key.to_string()), acknowledged, "{key}");
    }
    assert!(swept.iter().all(|swept| swept.failures == 0), "{swept:?}");
}

#[tokio::test]
async fn many_sweeps_at_once_share_the_work() {
    let served = Documents::start().await;
    for _ in 0..40 {
        let key = new_key(&served);
        insert_pending(&served, key).await;
        put_object(&served, &key.to_string()).await;
    }
    served.clock.advance(AGE);
    let sweeps = futures_util::future::join_all((0..8).map(|_| served.state.sweeper().sweep())).await;
    assert_eq!(sweeps.iter().map(|swept| swept.rows).sum::<usize>(), 40, "each row is claimed once: {sweeps:?}");
    assert_eq!(sweeps.iter().map(|swept| swept.failures).sum::<usize>(), 0);
    served.assert_nothing_is_left().await;
}

#[tokio::test]
async fn what_the_store_does_not_let_go_is_tried_again_after_the_lease() {
    let served = Documents::start_with(&[("S3_MAX_ATTEMPTS", "1")], &[]).await;
    let key = new_key(&served);
    insert_pending(&served, key).await;
    put_object(&served, &key.to_string()).await;

    served.store.stop().await;
    let swept = served.sweep_after(AGE).await;
    assert_eq!((swept.rows, swept.multiparts, swept.objects), (0, 0, 0));
    assert_eq!(swept.failures, 3, "the row's object, the list of uploads, the list of objects");
    assert_eq!(served.rows().await, [(key, "deleting".to_owned())]);

    served.store.resume().await;
    assert_eq!(served.sweep_after(Duration::from_mins(1)).await.rows, 0, "another task may be working on it");
    assert_eq!(served.sweep_after(Duration::from_secs(61)).await, Swept { rows: 1, ..Swept::default() });
    served.assert_nothing_is_left().await;
}

#[tokio::test]
async fn without_a_database_nothing_is_removed() {
    let limits = [("DB_POOL_MAX", "1"), ("DB_POOL_MIN", "0"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "200")];
    let served = Documents::start_with(&limits, &[]).await;
    let caller = served.caller();
    drop(served.take_connections(1).await);
    let body = stored(&caller, "x", "text/plain", "x").await;
    let taken = served.take_connections(1).await;
    let swept = served.sweep_after(AGE).await;
    assert_eq!(swept, Swept { failures: 2, ..Swept::default() }, "rows and objects could not be looked up");
    drop(taken);
    assert_eq!(served.store.keys().await.len(), 1);
    let again = served.caller_again(&served.user("ada@example.com"));
    // Another person with the same email is somebody else.
    again.get(&document_path(&body)).await.assert_problem(404, "not_found");
}

#[tokio::test]
async fn a_bucket_of_several_pages_is_looked_through() {
    let served = Documents::start().await;
    let client = served.store.client();
    let keys: Vec<_> = (0..1_005).map(|_| new_key(&served)).collect();
    stream::iter(&keys)
        .for_each_concurrent(16, |key| {
            let put = client.put_object().bucket(served.store.bucket()).key(key.to_string());
            async move {
                put.body(bytes::Bytes::new().into()).send().await.unwrap();
            }
        })
        .await;
    assert_eq!(served.sweep_after(AGE).await, Swept { objects: 1_005, ..Swept::default() });
    served.assert_nothing_is_left().await;
}
