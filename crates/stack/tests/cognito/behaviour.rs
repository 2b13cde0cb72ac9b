//! What can be set: latency, quotas, faults; and that it is counted.

use std::time::{Duration, Instant};

use serde_json::json;
use stack::cognito::{Behaviour, BehaviourText, CognitoDouble, ControlClient, Options};

struct Set {
    double: CognitoDouble,
    control: ControlClient,
    http: reqwest::Client,
}

impl Set {
    async fn new(latency: &str, quotas: &str, faults: &str) -> Self {
        let behaviour = Behaviour {
            latency: latency.parse().unwrap(),
            quotas: quotas.parse().unwrap(),
            faults: faults.parse().unwrap(),
            seed: 1,
        };
        let double = CognitoDouble::start(Options { behaviour, ..Options::default() }).await.unwrap();
        let control = ControlClient::new(double.endpoint());
        Self { double, control, http: reqwest::Client::new() }
    }

    async fn call(&self, operation: &str, input: &serde_json::Value) -> Result<reqwest::Response, reqwest::Error> {
        let target = format!("AWSCognitoIdentityProviderService.{operation}");
        self.http.post(self.double.endpoint()).header("x-amz-target", target).body(input.to_string()).send().await
    }

    /// The status and kind of a login of nobody.
    async fn log_in(&self) -> (u16, String) {
        let parameters = json!({"USERNAME": "nobody@example.com", "PASSWORD": "a password"});
        let client_id = self.double.access().client_id;
        let input = json!({"ClientId": client_id, "AuthFlow": "USER_PASSWORD_AUTH", "AuthParameters": parameters});
        let response = self.call("InitiateAuth", &input).await.unwrap();
        let status = response.status().as_u16();
        let body: serde_json::Value = response.json().await.unwrap_or_default();
        (status, body["__type"].as_str().unwrap_or_default().to_owned())
    }
}

const REFUSED: (u16, &str) = (400, "NotAuthorizedException");

fn seen(answer: &(u16, String)) -> (u16, &str) {
    (answer.0, &answer.1)
}

#[tokio::test]
async fn a_latency_is_the_least_that_its_call_takes_and_can_be_changed_while_it_runs() {
    let set = Set::new("InitiateAuth=300ms", "", "").await;
    let began = Instant::now();
    assert_eq!(seen(&set.log_in().await), REFUSED);
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());

    let other = BehaviourText { latency: "GetUser=1s".into(), seed: 2, ..BehaviourText::default() };
    set.control.set_behaviour(&other).await.unwrap();
    assert_eq!(set.control.behaviour().await.unwrap(), BehaviourText { latency: "GetUser=1000ms".into(), ..other });
    assert_eq!(seen(&set.log_in().await), REFUSED);
    let wrong = BehaviourText { quotas: "Nothing=1".into(), ..BehaviourText::default() };
    let error = set.control.set_behaviour(&wrong).await.unwrap_err();
    assert!(error.to_string().contains("quotas: `Nothing`"), "{error}");
}

#[tokio::test]
async fn over_its_quota_a_call_is_throttled_and_others_are_not() {
    let set = Set::new("", "UserAuthentication=0.001", "").await;
    assert_eq!(seen(&set.log_in().await), REFUSED);
    for _ in 0..3 {
        assert_eq!(seen(&set.log_in().await), (400, "TooManyRequestsException"));
    }
    let response = set.call("GetUser", &json!({"AccessToken": "x"})).await.unwrap();
    assert_eq!(response.headers()["x-amzn-errortype"], "NotAuthorizedException:");

    let stats = set.control.stats().await.unwrap();
    let logins = &stats.calls["InitiateAuth"];
    assert_eq!((logins.requests, logins.succeeded, logins.throttled), (4, 0, 3));
    assert_eq!(logins.errors["NotAuthorizedException"], 1);
    assert_eq!(logins.errors["TooManyRequestsException"], 3);
}

#[tokio::test]
async fn a_users_own_quota_does_not_touch_another_user() {
    let set = Set::new("", "user=0.001", "").await;
    let client_id = set.double.access().client_id;
    let log_in = async |email: &str| {
        let parameters = json!({"USERNAME": email, "PASSWORD": "a password"});
        let input = json!({"ClientId": client_id, "AuthFlow": "USER_PASSWORD_AUTH", "AuthParameters": parameters});
        set.call("InitiateAuth", &input).await.unwrap().headers().get("x-amzn-errortype").cloned()
    };
    for email in ["a@example.com", "b@example.com"] {
        let input = json!({"ClientId": client_id, "Username": email, "Password": "a password"});
        assert_eq!(set.call("SignUp", &input).await.unwrap().status(), 200);
    }
    let of_one = [log_in("a@example.com").await, log_in("a@example.com").await];
    let of_other = log_in("b@example.com").await;
    assert_eq!(of_one, [None, Some("TooManyRequestsException:".parse().unwrap())]);
    assert_eq!(of_other, None);
}

#[tokio::test]
async fn faults_come_as_often_as_was_asked_for() {
    let faults = "InitiateAuth=InternalErrorException:1x,InitiateAuth=html:1x,InitiateAuth=LimitExceededException:1x";
    let set = Set::new("", "", faults).await;
    assert_eq!(seen(&set.log_in().await), (500, "InternalErrorException"));
    assert_eq!(seen(&set.log_in().await), (502, ""));
    assert_eq!(seen(&set.log_in().await), (400, "LimitExceededException"));
    assert_eq!(seen(&set.log_in().await), REFUSED);
    assert_eq!(set.double.stats().calls["InitiateAuth"].faults, 3);
}

#[tokio::test]
async fn a_disconnect_has_no_answer() {
    let set = Set::new("", "", "GetUser=disconnect:1").await;
    let error = set.call("GetUser", &json!({"AccessToken": "x"})).await.unwrap_err();
    assert!(error.is_request(), "{error:?}");
    assert_eq!(seen(&set.log_in().await), REFUSED);
}

#[tokio::test]
async fn connections_and_key_sets_are_counted() {
    let set = Set::new("", "", "").await;
    for _ in 0..5 {
        set.log_in().await;
    }
    set.http.get(set.double.access().jwks_url).send().await.unwrap();
    let stats = set.double.stats();
    assert_eq!((stats.connections, stats.key_sets), (1, 1));
}

#[tokio::test]
async fn what_is_no_call_is_refused_as_aws_does() {
    let set = Set::new("", "", "").await;
    let kind = async |operation: &str, input: serde_json::Value| {
        let response = set.call(operation, &input).await.unwrap();
        (response.status().as_u16(), response.json::<serde_json::Value>().await.unwrap()["__type"].clone())
    };
    assert_eq!(kind("DeleteUser", json!({})).await, (400, "UnknownOperationException".into()));
    assert_eq!(kind("SignUp", json!([])).await, (400, "InvalidParameterException".into()));
    assert_eq!(kind("SignUp", json!({})).await, (400, "InvalidParameterException".into()));
    let unsigned = kind("AdminConfirmSignUp", json!({"UserPoolId": "x", "Username": "y"})).await;
    assert_eq!(unsigned, (400, "MissingAuthenticationTokenException".into()));
}
