//! `DELETE /v1/documents/{id}`

use test_support::eventually;

use crate::served::{Documents, MIB, content_path, document_path, noise, stored};

#[tokio::test]
async fn a_deleted_document_is_gone_with_its_bytes() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let (small, large) = (
        stored(&caller, "small", "text/plain", "x").await,
        stored(&caller, "large", "text/plain", noise(6 * MIB)).await,
    );
    for body in [small, large] {
        let reply = caller.delete(&document_path(&body)).await;
        assert!(reply.assert_status(204).body.is_empty());
        caller.get(&document_path(&body)).await.assert_problem(404, "not_found");
        caller.get(&content_path(&body)).await.assert_problem(404, "not_found");
        caller.delete(&document_path(&body)).await.assert_problem(404, "not_found");
    }
    // 204 means that it is done, not that it will be.
    assert_eq!(documents.store.stored_bytes(), 0);
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn only_its_owner_deletes_a_document() {
    let documents = Documents::start().await;
    let (ada, bob) = (documents.caller(), documents.app.as_user(&documents.user("bob@example.com")));
    let body = stored(&ada, "mine.txt", "text/plain", "x").await;
    bob.delete(&document_path(&body)).await.assert_problem(404, "not_found");
    documents.app.anonymous().delete(&document_path(&body)).await.assert_problem(401, "token_missing");
    assert_eq!(ada.get(&content_path(&body)).await.assert_status(200).body, "x");
}

#[tokio::test]
async fn of_many_deletions_at_once_one_succeeds() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "x").await;
    let path = document_path(&body);
    let replies = futures_util::future::join_all((0..20).map(|_| caller.delete(&path))).await;
    let deleted = replies.iter().filter(|reply| reply.status == 204).count();
    let gone = replies.iter().filter(|reply| reply.status == 404).count();
    assert_eq!((deleted, gone), (1, 19));
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn while_the_store_is_down_a_deletion_hides_the_document_and_the_sweeper_finishes_it() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "x").await;
    documents.store.stop().await;
    caller.delete(&document_path(&body)).await.assert_status(204);
    caller.get(&document_path(&body)).await.assert_problem(404, "not_found");
    caller.get(&content_path(&body)).await.assert_problem(404, "not_found");
    documents.state.settled().await;
    assert_eq!(documents.rows().await.len(), 1, "the row is what remembers the object");

    documents.store.resume().await;
    eventually("the sweeper has removed it", async || {
        documents.sweep_after(std::time::Duration::from_secs(121)).await;
        documents.rows().await.is_empty()
    })
    .await;
    documents.assert_nothing_is_left().await;
}
