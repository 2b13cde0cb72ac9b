//! Uploads in parts.

use aws_sdk_s3::{
    Client,
    types::{ChecksumAlgorithm, ChecksumMode, CompletedMultipartUpload, CompletedPart},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};
use test_support::TestObjectStore;

use crate::object_store::{bytes, code, content, sha256};

const BUCKET: &str = "documents";
const PART: usize = 5 * 1024 * 1024;

async fn create(client: &Client, key: &str) -> String {
    let upload = client
        .create_multipart_upload()
        .bucket(BUCKET)
        .key(key)
        .content_type("application/pdf")
        .checksum_algorithm(ChecksumAlgorithm::Sha256)
        .send();
    upload.await.unwrap().upload_id.unwrap()
}

async fn upload_part(client: &Client, key: &str, upload: &str, number: i32, body: &[u8]) -> CompletedPart {
    let part = client
        .upload_part()
        .bucket(BUCKET)
        .key(key)
        .upload_id(upload)
        .part_number(number)
        .checksum_algorithm(ChecksumAlgorithm::Sha256)
        .body(body.to_vec().into())
        .send()
        .await
        .unwrap();
    CompletedPart::builder().part_number(number).set_e_tag(part.e_tag).set_checksum_sha256(part.checksum_sha256).build()
}

fn complete(
    client: &Client,
    key: &str,
    upload: &str,
    parts: &[CompletedPart],
) -> aws_sdk_s3::operation::complete_multipart_upload::builders::CompleteMultipartUploadFluentBuilder {
    let parts = CompletedMultipartUpload::builder().set_parts(Some(parts.to_vec())).build();
    client.complete_multipart_upload().bucket(BUCKET).key(key).upload_id(upload).multipart_upload(parts)
}

#[tokio::test]
async fn parts_become_one_object() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let body = bytes(PART + 1000);
    let upload = create(&client, "k").await;
    assert_eq!(store.unfinished_uploads().await, ["k"]);
    // Out of order, as a client with several connections sends them.
    let second = upload_part(&client, "k", &upload, 2, &body[PART..]).await;
    let first = upload_part(&client, "k", &upload, 1, &body[..PART]).await;
    let listed = client.list_parts().bucket(BUCKET).key("k").upload_id(&upload).send().await.unwrap();
    let listed: Vec<_> = listed.parts().iter().map(|part| (part.part_number(), part.size(), part.e_tag())).collect();
    assert_eq!(listed, [(Some(1), i64::try_from(PART).ok(), first.e_tag()), (Some(2), Some(1000), second.e_tag())]);
    assert!(store.keys().await.is_empty(), "there is no object before it is complete");

    let completed = complete(&client, "k", &upload, &[first, second]).send().await.unwrap();
    assert!(completed.e_tag().unwrap().ends_with("-2\""), "{completed:?}");
    assert!(store.unfinished_uploads().await.is_empty());
    assert!(content(&client, "k").await == body, "the bytes are those of the parts");
    let across = client.get_object().bucket(BUCKET).key("k").range(format!("bytes={}-{}", PART - 2, PART + 1));
    let across = across.send().await.unwrap();
    assert_eq!(across.content_type(), Some("application/pdf"));
    assert_eq!(across.body.collect().await.unwrap().to_vec(), body[PART - 2..PART + 2]);

    // The composite checksum: SHA-256 of the parts' SHA-256, and the number of parts.
    let head = client.head_object().bucket(BUCKET).key("k").checksum_mode(ChecksumMode::Enabled).send().await.unwrap();
    let of_parts = [Sha256::digest(&body[..PART]), Sha256::digest(&body[PART..])].concat();
    assert_eq!(head.checksum_sha256(), Some(format!("{}-2", sha256(&of_parts)).as_str()));

    client.delete_object().bucket(BUCKET).key("k").send().await.unwrap();
    assert_eq!(store.stored_bytes(), 0);
}

#[tokio::test]
async fn a_part_that_arrives_damaged_is_refused() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let upload = create(&client, "k").await;
    let part = client
        .upload_part()
        .bucket(BUCKET)
        .key("k")
        .upload_id(&upload)
        .part_number(1)
        .checksum_sha256(sha256(b"something else"))
        .body(b"part".to_vec().into());
    assert_eq!(code(&part.send().await.unwrap_err()), "BadDigest");
    let listed = client.list_parts().bucket(BUCKET).key("k").upload_id(&upload).send().await.unwrap();
    assert!(listed.parts().is_empty());
    assert_eq!(store.stored_bytes(), 0);
}

#[tokio::test]
async fn a_wrong_list_of_parts_is_refused_and_the_upload_goes_on() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let upload = create(&client, "k").await;
    let first = upload_part(&client, "k", &upload, 1, b"small").await;
    let second = upload_part(&client, "k", &upload, 2, b"last").await;
    let stranger = CompletedPart::builder().part_number(1).e_tag("\"0\"").build();
    let missing = CompletedPart::builder().part_number(3).set_e_tag(first.e_tag.clone()).build();
    for (parts, expected) in [
        (vec![stranger], "InvalidPart"),
        (vec![missing], "InvalidPart"),
        (vec![second.clone(), first.clone()], "InvalidPartOrder"),
        (vec![first.clone(), second], "EntityTooSmall"),
    ] {
        let error = complete(&client, "k", &upload, &parts).send().await.unwrap_err();
        assert_eq!(code(&error), expected, "{parts:?}");
    }
    assert!(store.keys().await.is_empty());
    // The part that is not named goes.
    complete(&client, "k", &upload, &[first]).send().await.unwrap();
    assert_eq!(content(&client, "k").await, b"small");
    assert_eq!(store.stored_bytes(), 5);
}

#[tokio::test]
async fn an_aborted_upload_leaves_nothing() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let upload = create(&client, "k").await;
    let part = upload_part(&client, "k", &upload, 1, &bytes(1000)).await;
    // A part sent again replaces the first.
    let again = upload_part(&client, "k", &upload, 1, &bytes(500)).await;
    assert_ne!(part.e_tag, again.e_tag);
    assert_eq!(store.stored_bytes(), 500);
    client.abort_multipart_upload().bucket(BUCKET).key("k").upload_id(&upload).send().await.unwrap();
    assert_eq!(store.stored_bytes(), 0);
    assert!(store.unfinished_uploads().await.is_empty());
    let error = complete(&client, "k", &upload, &[again]).send().await.unwrap_err();
    assert_eq!(code(&error), "NoSuchUpload");
    let error = client.abort_multipart_upload().bucket(BUCKET).key("k").upload_id(&upload).send().await.unwrap_err();
    assert_eq!(code(&error), "NoSuchUpload");
}

#[tokio::test]
async fn an_unfinished_upload_survives_a_restart() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let upload = create(&client, "k").await;
    let part = upload_part(&client, "k", &upload, 1, &bytes(1000)).await;
    store.stop().await;
    store.resume().await;
    complete(&client, "k", &upload, &[part]).send().await.unwrap();
    assert_eq!(content(&client, "k").await, bytes(1000));
}

#[tokio::test]
async fn unfinished_uploads_are_listed_in_pages() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    for key in ["a", "a", "b"] {
        create(&client, key).await;
    }
    let page = client.list_multipart_uploads().bucket(BUCKET).max_uploads(1).send().await.unwrap();
    assert_eq!((page.uploads()[0].key(), page.is_truncated()), (Some("a"), Some(true)));
    let rest = client
        .list_multipart_uploads()
        .bucket(BUCKET)
        .set_key_marker(page.next_key_marker)
        .set_upload_id_marker(page.next_upload_id_marker)
        .send()
        .await
        .unwrap();
    assert_eq!(rest.uploads().iter().filter_map(|upload| upload.key()).collect::<Vec<_>>(), ["a", "b"]);
    let by_prefix = client.list_multipart_uploads().bucket(BUCKET).prefix("b").send().await.unwrap();
    assert_eq!(by_prefix.uploads().len(), 1);
}

#[tokio::test]
async fn a_checksum_of_the_whole_object_is_compared_when_it_is_complete() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let upload = client
        .create_multipart_upload()
        .bucket(BUCKET)
        .key("k")
        .checksum_algorithm(ChecksumAlgorithm::Crc64Nvme)
        .send()
        .await
        .unwrap();
    let upload = upload.upload_id.unwrap();
    let body = client.upload_part().bucket(BUCKET).key("k").upload_id(&upload).part_number(1);
    let body = body.checksum_algorithm(ChecksumAlgorithm::Crc64Nvme).body(b"123456789".to_vec().into());
    let part = body.send().await.unwrap();
    let part = CompletedPart::builder().part_number(1).set_e_tag(part.e_tag).build();
    // The check value of CRC-64/NVME for "123456789" (catalogue of parametrised CRC algorithms).
    let check = STANDARD.encode(0xae8b_1486_0a79_9888_u64.to_be_bytes());
    let wrong =
        complete(&client, "k", &upload, std::slice::from_ref(&part)).checksum_crc64_nvme(STANDARD.encode([0; 8]));
    assert_eq!(code(&wrong.send().await.unwrap_err()), "BadDigest");
    let completed = complete(&client, "k", &upload, &[part]).checksum_crc64_nvme(&check).send().await.unwrap();
    assert_eq!(completed.checksum_crc64_nvme(), Some(check.as_str()));
}
