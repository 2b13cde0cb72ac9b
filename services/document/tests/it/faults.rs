//! The delay that tests of measuring switch on, in the stages that only an upload has.

use crate::served::{Documents, MIB, noise, post};

/// Long beside whatever else happens in an upload of these.
const DELAY_MS: f64 = 1_000.0;

#[tokio::test]
async fn an_upload_is_slow_in_the_stage_that_is_slowed_down_and_in_no_other() {
    for slow in ["admission", "s3"] {
        let fault = format!("{slow}:{DELAY_MS}ms");
        let documents = Documents::start_with(&[], &[("FAULT_STAGE_DELAY", &fault), ("DATUM_ALLOW_FAULTS", "1")]).await;
        // Small files wait for no room.
        let reply = post(&documents.caller(), "a.bin", "application/octet-stream", noise(MIB)).await;
        let stages = reply.assert_status(201).stages();
        for (name, ms) in &stages {
            let has_it = name == slow || name == "total";
            assert_eq!(*ms >= DELAY_MS, has_it, "{name} is {ms} ms with a delay in {slow}: {stages:?}");
        }
        assert!(stages.contains_key(slow), "{stages:?}");
    }
}
