//! What no HTTP client would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::caller::PATIENCE;

/// Writes `bytes` to a connection of its own and reads until the other side closes it. A well-formed request must carry
/// `Connection: close`. [`crate::Reply::from_bytes`] reads the answer.
///
/// # Panics
/// When the other side has not closed the connection after a minute.
pub async fn exchange_raw(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    // Who refuses early may close before everything is read; what was answered still counts.
    let _ = stream.write_all(bytes.as_ref()).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, async {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            answer.extend_from_slice(&chunk[..count]);
        }
    });
    let closed = read.await.is_ok();
    assert!(closed, "the connection stays open after {:?}", String::from_utf8_lossy(&answer));
    answer
}
