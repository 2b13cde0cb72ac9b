//! `POST /v1/auth/register`

use futures_util::future::join_all;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, statuses};

const REGISTER: &str = "/v1/auth/register";

#[tokio::test]
async fn an_account_is_made_and_described() {
    let auth = Auth::start().await;
    let body = json!({"email": " Ada@Example.COM ", "password": PASSWORD, "display_name": " Ada  Lovelace "});
    let reply = auth.app.anonymous().post_json(REGISTER, body).await;
    reply.assert_status(201);
    let user = reply.json();
    let id: Uuid = user["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.get_version_num(), 7);
    assert_eq!(
        user,
        json!({
            "id": id, "email": "ada@example.com", "display_name": "Ada  Lovelace",
            "created_at": auth.now().format(&Rfc3339).unwrap(),
        })
    );
    assert_eq!(reply.header("location"), Some(format!("/v1/actors/{id}").as_str()));
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn the_time_of_registration_is_told_as_it_is_stored() {
    let auth = Auth::start().await;
    auth.clock.advance(std::time::Duration::from_nanos(1_234_567_891));
    let told = auth.register("ada@example.com", PASSWORD).await.json()["created_at"].clone();
    let stored: OffsetDateTime = auth.admin.query_one("SELECT created_at FROM auth.users", &[]).await.unwrap().get(0);
    assert_eq!(told, json!(stored.format(&Rfc3339).unwrap()));
}

#[tokio::test]
async fn without_a_display_name_it_is_null() {
    let auth = Auth::start().await;
    assert_eq!(auth.register("ada@example.com", PASSWORD).await.json()["display_name"], Value::Null);
    let body = json!({"email": "bob@example.com", "password": PASSWORD, "display_name": null});
    let reply = auth.app.anonymous().post_json(REGISTER, body).await;
    assert_eq!(reply.assert_status(201).json()["display_name"], Value::Null);
}

#[tokio::test]
async fn no_reply_carries_the_password_or_its_hash() {
    let auth = Auth::start().await;
    let replies = [
        auth.register("ada@example.com", PASSWORD).await,
        auth.register("ada@example.com", PASSWORD).await,
        auth.register("not an address", PASSWORD).await,
        auth.login("ada@example.com", PASSWORD).await,
        auth.login("bob@example.com", PASSWORD).await,
    ];
    let hash = auth.stored_hash().await;
    for reply in replies {
        for secret in [PASSWORD, hash.as_str(), "$argon2", "password_hash", "scopes"] {
            assert!(!reply.text().contains(secret), "{secret} in {}", reply.text());
        }
        let headers = format!("{:?}", reply.headers);
        assert!(!headers.contains(PASSWORD) && !headers.contains("$argon2"), "{headers}");
    }
}

#[tokio::test]
async fn a_taken_email_is_refused_in_every_form_it_can_be_written_in() {
    let auth = Auth::start().await;
    for (first, others) in [
        (
            "alice@example.com",
            &["Alice@Example.com", "alice@example.com ", "\t\nALICE@EXAMPLE.COM\r\n", "ａlice@example.com"][..],
        ),
        ("a@münchen.de", &["a@xn--mnchen-3ya.de", "A@MÜNCHEN.DE", "a@mu\u{308}nchen.de"]),
        ("jörg@example.com", &["JÖRG@example.com", "jo\u{308}rg@example.com"]),
    ] {
        auth.register(first, PASSWORD).await.assert_status(201);
        for other in others {
            auth.register(other, OTHER_PASSWORD).await.assert_problem(409, "email_taken");
        }
    }
    assert_eq!(auth.count("SELECT count(*) FROM auth.users").await, 3);
}

#[tokio::test]
async fn an_account_is_reached_by_every_form_of_its_email() {
    let auth = Auth::start().await;
    let id = auth.register("Bob@X.io", PASSWORD).await.json()["id"].clone();
    for form in ["bob@x.io", "BOB@X.IO", " bob@x.io\t", "ｂob@x.io"] {
        let access = auth.session(form, PASSWORD).await.access;
        assert_eq!(crate::jwks::claims(&access)["sub"], id, "{form}");
    }
}

#[tokio::test]
async fn look_alikes_are_other_accounts() {
    let auth = Auth::start().await;
    auth.register("mike@x.io", PASSWORD).await.assert_status(201);
    for email in ["mıke@x.io", "mіke@x.io", "mike@х.io"] {
        auth.register(email, OTHER_PASSWORD).await.assert_status(201);
        auth.session(email, OTHER_PASSWORD).await;
        auth.login(email, PASSWORD).await.assert_problem(401, "invalid_credentials");
    }
    auth.session("mike@x.io", PASSWORD).await;
    auth.login("mike@x.io", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
}

#[tokio::test]
async fn of_parallel_registrations_on_two_tasks_one_succeeds_and_the_rest_are_told_so() {
    let one = Auth::start_with(&[("AUTH_HASH_QUEUE", "4")]).await;
    let two = one.another_task().await;
    let attempts = (0..100).map(|n| {
        let task = if n % 2 == 0 { &one } else { &two };
        async move { (n, task.register("ada@example.com", &format!("password number {n}")).await) }
    });
    let replies = join_all(attempts).await;
    let winner = replies.iter().find(|(_, reply)| reply.status == 201).expect("a winner").0;
    let replies: Vec<_> = replies.into_iter().map(|(_, reply)| reply).collect();
    assert_eq!(statuses(&replies), [(201, 1), (409, 99)].into());
    for reply in replies.iter().filter(|reply| reply.status == 409) {
        reply.assert_problem(409, "email_taken");
    }
    assert_eq!(one.count("SELECT count(*) FROM auth.users").await, 1);
    one.session("ada@example.com", &format!("password number {winner}")).await;
    let hashes = one.hasher.counters().started() + two.hasher.counters().started();
    // A task that comes to it late finds the account and hashes nothing.
    assert!((2..=3).contains(&hashes), "{hashes}: at most one hash a task, and the login");
}

#[tokio::test]
async fn fields_that_were_not_asked_for_are_refused() {
    let auth = Auth::start().await;
    let body = json!({
        "email": "ada@example.com", "password": PASSWORD, "role": "admin", "is_admin": true, "email_verified": true,
        "id": "00000000-0000-7000-8000-000000000001", "scopes": ["actors:read"],
    });
    auth.app.anonymous().post_json(REGISTER, body).await.assert_invalid(&[
        ("/role", "unknown_field"),
        ("/is_admin", "unknown_field"),
        ("/email_verified", "unknown_field"),
        ("/id", "unknown_field"),
        ("/scopes", "unknown_field"),
    ]);
    assert_eq!(auth.count("SELECT count(*) FROM auth.users").await, 0);
}

#[tokio::test]
async fn every_failing_field_is_named_at_once() {
    let auth = Auth::start().await;
    let caller = auth.app.anonymous();
    caller.post_json(REGISTER, json!({})).await.assert_invalid(&[("/email", "missing"), ("/password", "missing")]);
    let body = json!({"email": "nobody", "password": "short", "display_name": "\u{202E}ada"});
    caller.post_json(REGISTER, body).await.assert_invalid(&[
        ("/email", "invalid_email"),
        ("/password", "too_short"),
        ("/display_name", "bidi_character"),
    ]);
}

#[tokio::test]
async fn emails_that_are_none_are_refused() {
    let auth = Auth::start().await;
    for email in [
        "",
        " ",
        "ada",
        "ada@",
        "@example.com",
        "a@b@c.de",
        "ada@example",
        "a b@example.com",
        "a\u{0}b@example.com",
        "ada@exa\u{0}mple.com",
        "a\u{200B}da@example.com",
        "a\u{202E}da@example.com",
        "ada@\u{FEFF}example.com",
        &format!("{}@example.com", "a".repeat(65)),
        &format!("a@{}.com", "b".repeat(250)),
    ] {
        auth.register(email, PASSWORD).await.assert_invalid(&[("/email", "invalid_email")]);
    }
    assert_eq!(auth.hasher.counters().started(), 0, "nothing was hashed");
}

#[tokio::test]
async fn passwords_that_break_a_rule_are_refused_before_anything_is_hashed() {
    let auth = Auth::start().await;
    for (password, code) in [
        (json!(""), "too_short"),
        (json!("seven 7"), "too_short"),
        (json!(" ".repeat(12)), "only_white_space"),
        (json!("\t\n\t\n\t\n\t\n"), "control_character"),
        (json!("with a \u{0} in it"), "control_character"),
        (json!("x".repeat(129)), "too_long"),
        (json!("x".repeat(1_025)), "too_long"),
        (json!("x".repeat(10_000)), "too_long"),
        (json!("password1"), "too_common"),
        (json!("QWERTYUIOP"), "too_common"),
        (json!(123), "wrong_type"),
        (json!(null), "wrong_type"),
        (json!(["correct horse battery"]), "wrong_type"),
    ] {
        let body = json!({"email": "ada@example.com", "password": password});
        auth.app.anonymous().post_json(REGISTER, body).await.assert_invalid(&[("/password", code)]);
    }
    assert_eq!(auth.hasher.counters().started(), 0);
    assert_eq!(auth.count("SELECT count(*) FROM auth.users").await, 0);
}

#[tokio::test]
async fn long_passwords_of_any_script_work_and_count_whole() {
    let auth = Auth::start().await;
    // 64 code points of mixed script, spaces and emoji: 200 bytes.
    let mixed: String = "пароль 字字字 😀👍🏽 åßç ".chars().cycle().take(64).collect();
    auth.register("mixed@example.com", &mixed).await.assert_status(201);
    auth.session("mixed@example.com", &mixed).await;

    // Some algorithms look at the first 72 bytes only.
    let long = "0123456789".repeat(8);
    auth.register("long@example.com", &long).await.assert_status(201);
    auth.session("long@example.com", &long).await;
    for wrong in [format!("{}wrong", &long[..72]), long[..72].to_owned(), format!("{long}x")] {
        auth.login("long@example.com", &wrong).await.assert_problem(401, "invalid_credentials");
    }
}

#[tokio::test]
async fn spaces_around_a_password_are_part_of_it() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", "  pass word 12 ").await.assert_status(201);
    for wrong in ["pass word 12", " pass word 12 ", "  pass word 12"] {
        auth.login("ada@example.com", wrong).await.assert_problem(401, "invalid_credentials");
    }
    auth.session("ada@example.com", "  pass word 12 ").await;
}

#[tokio::test]
async fn compatible_spellings_of_a_password_are_one() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", "Ａngstro\u{308}m 2024").await.assert_status(201);
    auth.session("ada@example.com", "Angström 2024").await;
}

#[tokio::test]
async fn display_names_keep_the_rules_of_profiles() {
    let auth = Auth::start().await;
    let register = async |name: &str| {
        let body = json!({"email": "ada@example.com", "password": PASSWORD, "display_name": name});
        auth.app.anonymous().post_json(REGISTER, body).await
    };
    for (name, code) in [
        ("", "empty"),
        (" \t ", "empty"),
        ("a\0b", "control_character"),
        ("a\u{200B}b", "invisible_character"),
        ("a\u{2066}b", "bidi_character"),
        (&"x".repeat(101), "too_long"),
    ] {
        register(name).await.assert_invalid(&[("/display_name", code)]);
    }
    let reply = register(" Zoe\u{308} 👩\u{200D}💻 ").await;
    assert_eq!(reply.assert_status(201).json()["display_name"], "Zoë 👩\u{200D}💻");
}
