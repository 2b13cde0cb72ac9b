//! `GET /v1/documents/{id}`

use uuid::Uuid;

use crate::served::{Documents, document_path, stored};

#[tokio::test]
async fn only_its_owner_sees_a_document() {
    let documents = Documents::start().await;
    let (ada, bob) = (documents.caller(), documents.app.as_user(&documents.user("bob@example.com")));
    let body = stored(&ada, "mine.txt", "text/plain", "x").await;
    assert_eq!(ada.get(&document_path(&body)).await.assert_status(200).json(), body);
    ada.head(&document_path(&body)).await.assert_status(200);

    bob.get(&document_path(&body)).await.assert_problem(404, "not_found");
    documents.app.anonymous().get(&document_path(&body)).await.assert_problem(401, "token_missing");
    documents.app.as_bearer("nonsense").get(&document_path(&body)).await.assert_problem(401, "token_invalid");
}

#[tokio::test]
async fn an_unknown_id_is_404_and_a_malformed_one_400() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    caller.get(&format!("/v1/documents/{}", Uuid::new_v4())).await.assert_problem(404, "not_found");
    for id in ["x", "1", "%00", "%ff", "00000000-0000-0000-0000-00000000000", "' OR 1=1 --"] {
        caller.get(&format!("/v1/documents/{id}")).await.assert_problem(400, "invalid_path");
        caller.get(&format!("/v1/documents/{id}/content")).await.assert_problem(400, "invalid_path");
        caller.delete(&format!("/v1/documents/{id}")).await.assert_problem(400, "invalid_path");
    }
}

#[tokio::test]
async fn a_document_that_is_not_stored_is_not_there() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "x").await;
    for state in ["pending", "deleting"] {
        let admin = documents.database.admin().await;
        admin.execute("UPDATE document.documents SET state = $1", &[&state]).await.unwrap();
        caller.get(&document_path(&body)).await.assert_problem(404, "not_found");
        caller.get(&crate::served::content_path(&body)).await.assert_problem(404, "not_found");
        caller.delete(&document_path(&body)).await.assert_problem(404, "not_found");
        assert_eq!(caller.get("/v1/documents").await.assert_status(200).json()["items"], serde_json::json!([]));
    }
}
