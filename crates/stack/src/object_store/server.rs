//! The HTTP side: connections, their idle timeout, injected faults, an orderly end.

use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::{Body, HttpError, service::S3Service};
use tokio::{net::TcpListener, net::TcpStream, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::faults::{Faults, Mischief};

/// A path that no bucket can have, for health checks: it needs no signature.
const LIVE: &str = "/-/live";

/// How long requests may go on after the end has been asked for.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Server {
    pub(super) s3: S3Service,
    pub(super) faults: Faults,
    pub(super) idle_timeout: Duration,
    pub(super) shutdown: CancellationToken,
}

impl Server {
    /// Accepts until the shutdown token is cancelled, then drains.
    pub(super) async fn serve(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.shutdown.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    connections.spawn(self.clone().connection(stream));
                }
                Err(error) => {
                    // Out of file descriptors, mostly: accepting again at once would only burn the CPU.
                    tracing::warn!(%error, "the object store could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
        drop(listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        // What is left is aborted with the set.
        let _ = tokio::time::timeout(DRAIN, drained).await;
    }

    async fn connection(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut http = http1::Builder::new();
        // hyper's header timeout also bounds the wait for the next request of an idle connection.
        http.timer(TokioTimer::new()).header_read_timeout(self.idle_timeout);
        let shutdown = self.shutdown.clone();
        let service = service_fn(move |request| self.clone().answer(request));
        let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to the object store ended early");
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, HttpError> {
        if request.uri().path() == LIVE {
            return Ok(Response::new(Body::empty()));
        }
        match self.faults.take(request.method()) {
            None => {}
            Some(Mischief::Status(status)) => return Ok(failure(status)),
            Some(Mischief::Disconnect) => return Err(HttpError::new("a disconnect on purpose".into())),
            Some(Mischief::Delay(delay)) => tokio::time::sleep(delay).await,
        }
        self.s3.call(request.map(Body::from)).await
    }
}

fn failure(status: StatusCode) -> Response<Body> {
    let code = if status == StatusCode::SERVICE_UNAVAILABLE { "SlowDown" } else { "InternalError" };
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>On purpose.</Message></Error>"
    );
    let mut response = Response::new(Body::from(xml));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/xml"));
    response
}
