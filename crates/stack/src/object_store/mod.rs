//! An S3 server on this machine, for the document service to talk to as it talks to S3.
//!
//! The protocol (signatures, chunked uploads, XML) is the crate s3s; what happens to objects is [`store`], because the
//! crate's own file system store publishes an object before its checksum is verified, ignores the checksums and tags of parts,
//! keeps metadata of deleted objects and lists no multipart uploads. Objects survive a restart and a `kill -9`, not a
//! power failure: nothing is synced to the disk. Not for anything but this machine and its tests.

mod api;
mod body;
mod digests;
mod disk;
mod faults;
mod listing;
mod multipart;
mod server;
mod store;

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use service_kit::{
    clock::{SharedClock, SystemClock},
    config::{Secret, Settings},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use faults::{Fault, Faults, Mischief};
use store::Store;

/// How long S3 keeps an idle connection open (seen by clients as "connection closed before message completed";
/// awslabs/aws-sdk-rust#1417).
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// What to serve, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Holds the objects; made when missing. One server a folder.
    pub data_dir: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The one access key id that is accepted.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// Buckets to make when they are missing.
    pub buckets: Vec<String>,
    /// After this long without a request a connection is closed.
    pub idle_timeout: Duration,
    /// Tells the time of changes.
    pub clock: SharedClock,
    /// Trouble to make on purpose; none by default.
    pub faults: Faults,
}

impl Options {
    /// A server on a free port of 127.0.0.1 with one bucket.
    pub fn new(
        data_dir: impl Into<PathBuf>,
        access_key: impl Into<String>,
        secret_key: Secret,
        bucket: impl Into<String>,
    ) -> Self {
        Self {
            data_dir: data_dir.into(),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            access_key: access_key.into(),
            secret_key,
            buckets: vec![bucket.into()],
            idle_timeout: IDLE_TIMEOUT,
            clock: Arc::new(SystemClock),
            faults: Faults::default(),
        }
    }

    /// Reads the variables of a store that runs as its own process.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Object store");
        let address =
            settings.parsed("OBJECT_STORE_ADDRESS", "127.0.0.1:9000", "Address and port to listen on", |text| {
                text.parse::<SocketAddr>().map_err(|_| "must be ADDRESS:PORT".to_owned())
            });
        let data_dir = settings.text("OBJECT_STORE_DIR", ".datum/objects", "Folder of the objects, made when missing");
        let access_key = settings.text("OBJECT_STORE_ACCESS_KEY", "datum", "The access key id that is accepted");
        let secret_key = settings.required_secret("OBJECT_STORE_SECRET_KEY", "The secret of the access key");
        let bucket = settings.text("OBJECT_STORE_BUCKET", "datum-documents", "Bucket to make when it is missing");
        Self {
            address: address.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()),
            ..Self::new(data_dir, access_key, secret_key, bucket)
        }
    }
}

/// Why the object store did not start.
#[derive(Debug, thiserror::Error)]
pub enum ObjectStoreError {
    /// Something listens there already, or the address is not this machine's.
    #[error("cannot listen on {address}: {source}; stop what listens there, or choose another port")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// Another process serves the folder.
    #[error("the folder {} is in use by another object store", folder.display())]
    FolderInUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// A name that S3 would refuse.
    #[error("{name:?} is no bucket name (3 to 63 of a-z, 0-9, '.' and '-')")]
    BucketName {
        /// The name asked for.
        name: String,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged: {source}; remove it to go on without that object", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file operation failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

/// A running server. Dropping it ends it at once; [`ObjectStore::stop`] lets requests finish.
#[derive(Debug)]
pub struct ObjectStore {
    address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl ObjectStore {
    /// Opens the folder, makes the buckets, and serves in a task of the current runtime.
    ///
    /// # Errors
    ///
    /// [`ObjectStoreError`], each with what to do about it.
    pub async fn start(options: Options) -> Result<Self, ObjectStoreError> {
        let listener = TcpListener::bind(options.address)
            .await
            .map_err(|source| ObjectStoreError::Listen { address: options.address, source })?;
        let address =
            listener.local_addr().map_err(|source| ObjectStoreError::Listen { address: options.address, source })?;
        let store = {
            let (folder, clock, buckets) = (options.data_dir, options.clock, options.buckets);
            // Reads every object's record.
            tokio::task::spawn_blocking(move || Store::open(&folder, clock, &buckets))
        };
        let store = match store.await {
            Ok(store) => store?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let mut builder = S3ServiceBuilder::new(api::Api::new(store));
        builder.set_auth(SimpleAuth::from_single(options.access_key, options.secret_key.expose()));
        let shutdown = CancellationToken::new();
        let server = server::Server {
            s3: builder.build(),
            faults: options.faults,
            idle_timeout: options.idle_timeout,
            shutdown: shutdown.clone(),
        };
        let serving = tokio::spawn(server.serve(listener));
        Ok(Self { address, shutdown, serving })
    }

    /// `http://address:port`, for `AWS_ENDPOINT_URL_S3`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more, lets requests finish for 5 s, closes everything.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves until `shutdown` ends, for a store that is a process of its own.
///
/// # Errors
///
/// [`ObjectStoreError`] when it does not start.
pub async fn run(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), ObjectStoreError> {
    let store = ObjectStore::start(options).await?;
    tracing::info!(address = %store.address(), "object store is ready");
    shutdown.await;
    store.stop().await;
    Ok(())
}
