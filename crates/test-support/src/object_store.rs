//! A real S3 server per test, which can be stopped, come back, and misbehave.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use aws_sdk_s3::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
};
use service_kit::config::Secret;
use stack::object_store::{Fault, Faults, Mischief, ObjectStore, Options};
use tokio::sync::Mutex;

use crate::folders;

const ACCESS_KEY: &str = "only-in-tests";
const SECRET_KEY: &str = "only-in-tests-secret";
const BUCKET: &str = "documents";

/// An object store of one test, with one empty bucket. Dropping it removes everything.
#[derive(Debug)]
pub struct TestObjectStore {
    options: Options,
    address: SocketAddr,
    folder: PathBuf,
    running: Mutex<Option<ObjectStore>>,
}

impl TestObjectStore {
    /// A store on a free port, in the runtime of the test.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// A store that closes idle connections after `timeout`, as S3 does after about 20 s.
    pub async fn start_with_idle_timeout(timeout: Duration) -> Self {
        Self::start_with(|options| options.idle_timeout = timeout).await
    }

    async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = folders::new("objects");
        let mut options = Options::new(&folder, ACCESS_KEY, Secret::new(SECRET_KEY.to_owned()), BUCKET);
        change(&mut options);
        let running = ObjectStore::start(options.clone()).await.expect("the object store starts");
        let address = running.address();
        // From now on always this port: services under test have been told.
        options.address = address;
        Self { options, address, folder, running: Mutex::new(Some(running)) }
    }

    /// Stops it: connections are refused until [`TestObjectStore::resume`].
    pub async fn stop(&self) {
        if let Some(running) = self.running.lock().await.take() {
            running.stop().await;
        }
    }

    /// Starts it again, on the same port with the same objects.
    pub async fn resume(&self) {
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = Some(ObjectStore::start(self.options.clone()).await.expect("the object store starts again"));
        }
    }

    /// The next `times` requests get a 500 and do nothing.
    pub fn fail_next(&self, times: usize) {
        self.inject(Fault { mischief: Mischief::Status(http::StatusCode::INTERNAL_SERVER_ERROR), method: None, times });
    }

    /// Trouble for requests to come.
    pub fn inject(&self, fault: Fault) {
        self.options.faults.add(fault);
    }

    /// The troubles to come, to clear or count them.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.options.faults
    }

    /// `http://127.0.0.1:port`
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// The access key id.
    #[must_use]
    pub fn access_key(&self) -> &'static str {
        ACCESS_KEY
    }

    /// The secret of the access key.
    #[must_use]
    pub fn secret_key(&self) -> &'static str {
        SECRET_KEY
    }

    /// A client with the SDK's defaults, for looking at what is stored.
    #[must_use]
    pub fn client(&self) -> Client {
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test"))
            .region(Region::from_static("us-east-1"))
            .endpoint_url(self.endpoint())
            .force_path_style(true)
            .build();
        Client::from_conf(config)
    }

    /// The keys of all objects, in order.
    pub async fn keys(&self) -> Vec<String> {
        let mut pages = self.client().list_objects_v2().bucket(BUCKET).into_paginator().send();
        let mut keys = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.expect("objects can be listed");
            keys.extend(page.contents().iter().filter_map(|object| object.key().map(str::to_owned)));
        }
        keys
    }

    /// The keys of all unfinished multipart uploads, in order.
    pub async fn unfinished_uploads(&self) -> Vec<String> {
        let uploads = self.client().list_multipart_uploads().bucket(BUCKET).send().await;
        let uploads = uploads.expect("uploads can be listed");
        uploads.uploads().iter().filter_map(|upload| upload.key().map(str::to_owned)).collect()
    }

    /// The bytes in the store's folder that belong to objects and uploads, for tests that look for leaks.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let blobs = self.folder.join(BUCKET).join("blobs");
        let entries = blobs.read_dir().into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

impl Drop for TestObjectStore {
    fn drop(&mut self) {
        // First the server, so that nothing is written any more.
        *self.running.get_mut() = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
