//! Two people in one system.

use e2e::Person;
use http::Method;
use serde_json::{Value, json};

use crate::SYSTEM;

fn anonymous(mut problem: Value) -> Value {
    problem["request_id"] = Value::Null;
    problem
}

#[tokio::test]
async fn what_is_anothers_looks_like_what_is_not_there() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let (ada, eve) = (Person::new(&anyone, "owner").await, Person::new(&anyone, "stranger").await);
    let document = ada.upload("secret.txt", "the secret").await;
    let (id, nobodys) = (document["id"].as_str().unwrap(), "00000000-0000-7000-8000-000000000000");

    for (method, suffix) in [(Method::GET, ""), (Method::GET, "/content"), (Method::DELETE, "")] {
        let ask = async |id: &str| {
            let builder = eve.caller.build(method.clone(), &format!("/v1/documents/{id}{suffix}"));
            anonymous(eve.caller.request(builder).await.assert_problem(404, "not_found"))
        };
        assert_eq!(ask(id).await, ask(nobodys).await, "{method} {suffix}");
    }
    eve.caller.head(&format!("/v1/documents/{id}/content")).await.assert_status(404);
    assert!(eve.document_names().await.is_empty());

    let ask =
        async |id: &str| anonymous(eve.caller.get(&format!("/v1/actors/{id}")).await.assert_problem(404, "not_found"));
    assert_eq!(ask(&ada.id).await, ask(nobodys).await);

    let content = ada.caller.get(&format!("/v1/documents/{id}/content")).await;
    assert_eq!(content.assert_status(200).text(), "the secret", "the stranger has changed something");
}

#[tokio::test]
async fn changes_of_one_person_leave_the_other_alone() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let (ada, bob) = (Person::new(&anyone, "one").await, Person::new(&anyone, "other").await);
    let before = bob.caller.get("/v1/actors/me").await.json();
    ada.caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_status(200);
    assert_eq!(bob.caller.get("/v1/actors/me").await.json(), before);

    let logout = json!({"refresh_token": ada.refresh_token});
    anyone.post_json("/v1/auth/logout", logout).await.assert_status(204);
    anyone.post_json("/v1/auth/refresh", json!({"refresh_token": bob.refresh_token})).await.assert_status(200);
}

#[tokio::test]
async fn a_list_goes_on_for_nobody_but_its_owner() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let (ada, eve) = (Person::new(&anyone, "lister").await, Person::new(&anyone, "reader").await);
    for number in 0..2 {
        ada.upload(&format!("{number}"), "x").await;
    }
    let page = ada.caller.get("/v1/documents?limit=1").await.json();
    let path = format!("/v1/documents?limit=1&cursor={}", page["next_cursor"].as_str().unwrap());
    eve.caller.get(&path).await.assert_problem(400, "invalid_cursor");
    ada.caller.get(&path).await.assert_status(200);
}
