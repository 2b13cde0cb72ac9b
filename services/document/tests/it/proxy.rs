//! A wire between the service and its object store that can be watched and cut.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Forwards connections to the store. Dropping it ends them.
pub(crate) struct Proxy {
    address: SocketAddr,
    wire: Arc<Wire>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Wire {
    opened: AtomicUsize,
    open: AtomicUsize,
    from_store: AtomicU64,
    /// Connections that are still to be cut, and after how many bytes from the store.
    cuts: AtomicUsize,
    cut_after: AtomicU64,
}

impl Proxy {
    pub(crate) async fn to(store: &str) -> Self {
        let store: SocketAddr = store.trim_start_matches("http://").parse().expect("an address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let wire = Arc::new(Wire::default());
        let shared = wire.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let wire = shared.clone();
                wire.opened.fetch_add(1, Ordering::SeqCst);
                wire.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = forward(client, store, &wire).await;
                    wire.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, wire, accepting }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections that the service has opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.wire.opened.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.wire.open.load(Ordering::SeqCst)
    }

    /// Bytes that the store has sent.
    pub(crate) fn sent_by_store(&self) -> u64 {
        self.wire.from_store.load(Ordering::SeqCst)
    }

    /// From now on, the next `times` times that `after` bytes have come from the store on one connection, it is cut.
    pub(crate) fn cut(&self, times: usize, after: u64) {
        self.wire.cut_after.store(after, Ordering::SeqCst);
        self.wire.cuts.store(times, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(client: TcpStream, store: SocketAddr, wire: &Wire) -> std::io::Result<()> {
    let (mut from_store, mut to_store) = TcpStream::connect(store).await?.into_split();
    let (mut from_client, mut to_client) = client.into_split();
    let up = async {
        tokio::io::copy(&mut from_client, &mut to_store).await?;
        to_store.shutdown().await
    };
    let down = async {
        let mut buffer = vec![0; 16 * 1024];
        let mut seen = 0;
        loop {
            let count = from_store.read(&mut buffer).await?;
            if count == 0 {
                return to_client.shutdown().await;
            }
            wire.from_store.fetch_add(count as u64, Ordering::SeqCst);
            seen += count as u64;
            let cuts = wire.cuts.load(Ordering::SeqCst);
            if cuts > 0 && seen > wire.cut_after.load(Ordering::SeqCst) {
                wire.cuts.store(cuts - 1, Ordering::SeqCst);
                return Ok(());
            }
            to_client.write_all(&buffer[..count]).await?;
        }
    };
    // When either direction ends, so does the other: both halves are dropped.
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}
