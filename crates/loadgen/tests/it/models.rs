//! What distinguishes open and closed models, and what both keep.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::Duration;

use envelope::result::{Completion, PhaseKind};
use loadgen::run::{Event, LoadError, Plan};
use serde_json::json;

use crate::driving::{Ran, closed, drive, drive_watched, get_user, open, plan, register, scenario, with_users};
use crate::stub::{Act, Stub};

fn second(event: &Event) -> Option<u32> {
    if let Event::Interval(interval) = event { Some(interval.second) } else { None }
}

#[tokio::test]
async fn a_known_latency_is_found_again_and_what_the_server_does_not_explain_as_well() {
    let stub = Stub::start_with(|_, path| match path {
        "/v1/actors/me" => Act::After(Duration::from_millis(50)),
        _ => Act::Answer,
    });
    let ran = drive(plan(closed(4, 0.0, 1, &get_user()), stub.url())).await;
    let seen = ran.endpoint("get-user");
    assert!(seen.latency.count() >= 4 && seen.failed_latency.is_empty());
    assert!(seen.latency.min_ms().unwrap() >= 49.9, "{:?}", seen.latency.min_ms());
    assert!(seen.unattributed.min_ms().unwrap() >= 47.4, "the stub claims 2.5 of the 50 ms");
    assert_eq!(seen.unattributed.count(), seen.latency.count());
    let stages: BTreeMap<_, _> =
        seen.stages.iter().map(|(name, times)| (name.as_str(), times.percentile_ms(50.0).unwrap().round())).collect();
    assert_eq!(stages, [("app", 1.0), ("db", 2.0), ("total", 3.0)].into(), "rounded");
}

/// While the target stands still, arrivals go on: each waits from the moment when it was due.
#[tokio::test]
async fn a_stall_costs_every_arrival_of_an_open_model_and_each_user_once_in_a_closed_one() {
    let stall = async |scenario| {
        let stub = Stub::start_with(|_, path| if path == "/v1/actors/me" { Act::WhenOpen } else { Act::Answer });
        let ran = drive_watched(plan(scenario, stub.url()), |event, _| match event {
            Event::Began { .. } => stub.gate(false),
            // Two seconds have passed.
            event if second(event) == Some(1) => stub.gate(true),
            _ => {}
        });
        ran.await.unwrap().endpoint("get-user").latency
    };
    let open = stall(open(50.0, 300, 3, &get_user())).await;
    // Arrivals every 20 ms; those of the first second wait for more than one. Some may slip through before the gate closes.
    assert!(open.count_above_ms(1_000.0) >= 40, "{}", open.count_above_ms(1_000.0));
    let closed = stall(closed(5, 0.0, 3, &get_user())).await;
    assert_eq!(closed.count_above_ms(1_000.0), 5);
}

#[tokio::test]
async fn an_arrival_that_finds_all_users_busy_is_dropped_and_counted() {
    let stub = Stub::start_with(|_, path| if path == "/v1/actors/me" { Act::WhenOpen } else { Act::Answer });
    stub.gate(false);
    let ran = drive_watched(plan(open(20.0, 3, 3, &get_user()), stub.url()), |event, _| {
        if second(event) == Some(2) {
            stub.gate(true);
        }
    });
    let ran = ran.await.unwrap();
    let work = ran.work();
    assert_eq!((work.offered, work.started, work.completed), (60, 3, 3));
    assert_eq!(work.dropped, 57);
    assert_eq!(ran.intervals[1].active_vus, 3);
    assert!(ran.outcome.warnings.iter().any(|it| it.contains("virtual users were busy")), "{:?}", ran.outcome);
}

#[tokio::test]
async fn arrivals_are_those_of_the_seed_on_however_many_threads() {
    let mix = json!([{"endpoint": "get-user", "weight": 2}, {"endpoint": "register", "weight": 1}]);
    let counts = async |threads, seed| {
        let stub = Stub::start();
        let plan = Plan { threads: NonZero::new(threads), seed, ..plan(open(100.0, 200, 2, &mix), stub.url()) };
        let ran = drive(plan).await;
        assert_eq!(ran.outcome.generator.threads, u32::try_from(threads).ok());
        assert_eq!(
            ran.work().offered,
            200,
            "{threads} {:?}",
            ran.intervals.iter().map(|it| it.work).collect::<Vec<_>>()
        );
        (ran.endpoint("get-user").latency.count(), ran.endpoint("register").latency.count())
    };
    let one = counts(1, 7).await;
    assert_eq!(one.0 + one.1, 200);
    assert!(one.0 > one.1 && one.1 > 0, "{one:?}");
    assert_eq!(counts(3, 7).await, one);
    assert_ne!(counts(1, 8).await, one);
}

#[tokio::test]
async fn every_virtual_user_is_somebody_else() {
    let stub = Stub::start();
    let ran = drive(plan(closed(7, 0.05, 1, &get_user()), stub.url())).await;
    assert_eq!(ran.outcome.identities, 7);
    let mut callers: Vec<String> =
        stub.requests().into_iter().filter(|(path, _)| path == "/v1/actors/me").map(|(_, caller)| caller).collect();
    callers.sort();
    callers.dedup();
    assert_eq!(callers.len(), 7, "{callers:?}");
    assert_eq!(stub.connections(), 7, "each has one connection, and keeps it");
    assert!(ran.intervals.iter().all(|interval| interval.active_vus <= 7));
    assert_eq!(ran.intervals[0].active_vus, 7);
}

#[tokio::test]
async fn populated_users_log_in_and_ask_as_themselves() {
    let stub = Stub::start();
    let model = json!({"kind": "open", "arrivals_per_second": 100, "max_vus": 10});
    let mix = json!([{"endpoint": "login", "weight": 1}, {"endpoint": "get-user", "weight": 1}]);
    let scenario = scenario(&model, 2, &mix, "populated");
    let ran = drive(with_users(plan(scenario.clone(), stub.url()), 1_000)).await;
    assert_eq!(ran.all_failures(), 0, "ids and emails are those that follow from the number");
    assert!(ran.outcome.identities > 30, "{}", ran.outcome.identities);
    let of_dataset = |caller: &str| caller.ends_with(".3@populated.datum.example");
    assert!(stub.requests().iter().all(|(_, caller)| of_dataset(caller)));

    let refused = drive_watched(plan(scenario.clone(), stub.url()), |_, _| {}).await.err().unwrap();
    assert!(matches!(refused, LoadError::Plan(_)), "{refused}");
    let too_few = drive_watched(with_users(plan(scenario, stub.url()), 9), |_, _| {}).await.err().unwrap();
    assert!(too_few.to_string().contains("there are 9"), "{too_few}");
}

#[tokio::test]
async fn one_identity_for_several_users_is_no_result() {
    let stub = Stub::start();
    // Ten users, of whom only the first gets an arrival.
    let ran = drive(plan(open(1.5, 10, 1, &get_user()), stub.url())).await;
    assert_eq!(ran.outcome.identities, 1);
    let void = &ran.outcome.void;
    assert!(void.iter().any(|it| it.contains("All 10 virtual users sent as one person")), "{void:?}");
}

#[tokio::test]
async fn new_accounts_are_made_from_the_number_of_the_iteration() {
    let stub = Stub::start();
    let ran = drive(plan(closed(3, 0.02, 1, &register()), stub.url())).await;
    let work = ran.work();
    let mut emails: Vec<String> = stub.requests().into_iter().map(|(_, email)| email).collect();
    emails.sort();
    emails.dedup();
    assert_eq!(emails.len() as u64, work.completed);
    assert!(emails.contains(&"new-0.test@load.datum.example".to_owned()));
    assert_eq!(ran.outcome.identities, work.completed);
}

#[tokio::test]
async fn stopping_early_gives_a_valid_result_of_the_seconds_until_then() {
    let stub = Stub::start();
    let ran = drive_watched(plan(closed(3, 0.01, 600, &get_user()), stub.url()), |event, stop| {
        if second(event) == Some(1) {
            stop.cancel();
        }
    });
    let ran = ran.await.unwrap();
    assert_eq!(ran.outcome.completion, Completion::Interrupted);
    let [phase] = ran.outcome.phases.as_slice() else { panic!("{:?}", ran.outcome.phases) };
    assert_eq!((phase.kind, phase.from_second), (PhaseKind::Measure, 0));
    assert!((2..600).contains(&phase.until_second), "{phase:?}");
    assert!(ran.intervals.len() >= usize::try_from(phase.until_second).unwrap());
    assert_eq!(ran.all_failures(), 0, "what was in flight had time to end");
}

#[tokio::test]
async fn stopping_before_the_load_begins_gives_a_result_in_which_nothing_was_measured() {
    let stub = Stub::start_with(|_, _| Act::WhenOpen);
    stub.gate(false);
    let stopped = drive_watched(plan(closed(1, 0.0, 5, &get_user()), stub.url()), |_, stop| stop.cancel()).await;
    let Ran { outcome, intervals } = stopped.unwrap();
    assert_eq!((outcome.completion, outcome.phases.len(), intervals.len()), (Completion::Interrupted, 0, 0));
    assert_eq!(outcome.started_at, outcome.ended_at);
    let [void] = outcome.void.as_slice() else { panic!("{:?}", outcome.void) };
    assert!(void.contains("before anything was measured"), "{void}");
}

#[tokio::test]
async fn stopping_in_the_ramp_measures_nothing_and_says_only_that() {
    let stub = Stub::start();
    let text = json!({
        "name": "ramp", "description": "d", "question": "q",
        "model": {"kind": "closed", "vus": 20, "think_time": {"distribution": "constant", "mean_seconds": 0.1}},
        "phases": [{"kind": "ramp", "seconds": 600}, {"kind": "measure", "seconds": 600}],
        "mix": [{"endpoint": "get-user", "weight": 1}], "identities": "per_vu", "tokens": "set_up",
    });
    let scenario = loadgen::scenario::Scenario::parse(&text.to_string(), "ramp").unwrap();
    let ran = drive_watched(plan(scenario, stub.url()), |event, stop| {
        if second(event) == Some(1) {
            stop.cancel();
        }
    });
    let outcome = ran.await.unwrap().outcome;
    // In two seconds of ten minutes' ramp the first of twenty users is the only one.
    assert_eq!((outcome.completion, outcome.identities), (Completion::Interrupted, 1));
    assert!(outcome.phases.iter().all(|phase| phase.kind == PhaseKind::Ramp), "{:?}", outcome.phases);
    let [void] = outcome.void.as_slice() else { panic!("{:?}", outcome.void) };
    assert!(void.contains("before anything was measured"), "{void}");
}

#[tokio::test]
async fn what_is_still_in_flight_at_the_end_is_interrupted() {
    let stub = Stub::start_with(|_, path| if path == "/v1/actors/me" { Act::WhenOpen } else { Act::Answer });
    stub.gate(false);
    let mut plan = plan(closed(2, 0.0, 1, &get_user()), stub.url());
    plan.timeouts.drain = Duration::from_millis(100);
    let ran = drive(plan).await;
    assert_eq!(ran.failures("get-user"), [("- interrupted Nobody".to_owned(), 2)].into());
    assert_eq!(ran.outcome.completion, Completion::Whole);
}

#[tokio::test]
async fn tokens_are_renewed_outside_the_mix() {
    let stub = Stub::start();
    stub.tokens_expire_in(1);
    let ran = drive(plan(closed(3, 0.05, 3, &get_user()), stub.url())).await;
    assert!(ran.endpoint("set-up").latency.count() >= 3);
    assert_eq!(ran.all_failures(), 0);
    assert_eq!(ran.work().completed, ran.endpoint("get-user").latency.count(), "renewals are no work of the scenario");
    assert!(stub.requests().iter().any(|(path, caller)| path == "/v1/auth/refresh" && caller.starts_with("vu-")));
}

#[tokio::test]
async fn users_of_a_ramp_come_one_after_the_other() {
    let stub = Stub::start();
    let text = json!({
        "name": "ramp", "description": "d", "question": "q",
        "model": {"kind": "closed", "vus": 8, "think_time": {"distribution": "exponential", "mean_seconds": 0.01}},
        "phases": [{"kind": "ramp", "seconds": 2}, {"kind": "measure", "seconds": 1}, {"kind": "ramp_down", "seconds": 2}],
        "mix": [{"endpoint": "get-user", "weight": 1}], "identities": "per_vu", "tokens": "set_up",
    });
    let scenario = loadgen::scenario::Scenario::parse(&text.to_string(), "ramp").unwrap();
    let ran = drive(plan(scenario, stub.url())).await;
    let active: Vec<u32> = ran.intervals.iter().map(|interval| interval.active_vus).collect();
    assert!(active[0] < 8 && active[0] >= 1, "{active:?}");
    assert!(active[2] == 8 && active[3] < 8, "{active:?}");
    assert_eq!(ran.outcome.phases.len(), 3);
}
