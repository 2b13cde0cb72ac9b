//! The control socket: how `datum status` and `datum restart` speak to a running stack.
//!
//! One request a connection, one JSON object a line, in a Unix socket in the state folder that only its owner can open.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::registry;
use crate::service::Service;
use crate::status::StackStatus;

/// `sun_path` has 104 bytes on macOS and 108 on Linux, with the final NUL.
const MAX_PATH_BYTES: usize = 103;
const MAX_REQUEST_BYTES: u64 = 4_096;
const REQUEST_PATIENCE: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: usize = 16;

/// What a stack can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The present status.
    Status,
    /// Replace every task, or those of one service, one after the other and without losing a request.
    Restart {
        /// Only this service.
        service: Option<Service>,
        /// How long each new process may take to become ready; where nobody says, [`crate::READY_WITHIN`].
        #[serde(default)]
        timeout_seconds: Option<u64>,
    },
    /// Stop, as SIGTERM does.
    Stop,
}

/// What a stack answers: any number of `Progress`, then one of the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The status that was asked for.
    Status {
        /// All of it.
        status: Box<StackStatus>,
    },
    /// What is being done.
    Progress {
        /// In words.
        text: String,
    },
    /// It is done.
    Done,
    /// It cannot be done.
    Failed {
        /// Why.
        message: String,
    },
}

/// A request, and where its replies go.
pub(crate) type Call = (Request, mpsc::Sender<Reply>);

/// Where the socket of a state folder is: in it, or in the user's runtime folder when its path would be too long.
///
/// # Errors
/// The runtime folder is needed and cannot be made.
pub fn socket_path(state_dir: &Path) -> io::Result<PathBuf> {
    let inside = state_dir.join("control.sock");
    if inside.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok(inside);
    }
    let name = hex::encode(&digest(&SHA256, state_dir.as_os_str().as_bytes()).as_ref()[..8]);
    Ok(registry::runtime_folder()?.join(format!("{name}.sock")))
}

/// A listening control socket; the file goes when it is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

impl ControlSocket {
    /// Listens for the stack that holds `state_dir`, and hands each request to `calls`.
    pub(crate) fn listen(state_dir: &Path, calls: mpsc::Sender<Call>) -> io::Result<Self> {
        let path = socket_path(state_dir)?;
        // We hold the folder: a socket that is there is a dead stack's.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(Self { path, _serving: AbortOnDropHandle::new(tokio::spawn(serve(listener, calls))) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

async fn serve(listener: UnixListener, calls: mpsc::Sender<Call>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, for instance: give others time to close theirs.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let calls = calls.clone();
        tokio::spawn(async move {
            // A client that goes away in the middle concerns nobody.
            let _ = answer(stream, calls).await;
            drop(permit);
        });
    }
}

async fn answer(mut stream: UnixStream, calls: mpsc::Sender<Call>) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(MAX_REQUEST_BYTES));
    let read = tokio::time::timeout(REQUEST_PATIENCE, reader.read_line(&mut line)).await;
    let request = match read {
        Ok(Ok(_)) => serde_json::from_str(&line).map_err(|error| error.to_string()),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Ok(()),
    };
    let (sender, mut replies) = mpsc::channel(16);
    match request {
        Ok(request) => {
            if calls.send((request, sender)).await.is_err() {
                return write(&mut writer, &Reply::Failed { message: "the stack is stopping".into() }).await;
            }
        }
        Err(message) => return write(&mut writer, &Reply::Failed { message }).await,
    }
    while let Some(reply) = replies.recv().await {
        write(&mut writer, &reply).await?;
    }
    Ok(())
}

async fn write(writer: &mut (impl AsyncWriteExt + Unpin), reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    writer.write_all(&line).await
}

/// Asks the stack that holds `state_dir`; each reply goes to `on_reply`, the final one too.
///
/// # Errors
/// No stack answers there, or it went away before its final reply.
pub async fn ask(state_dir: &Path, request: Request, mut on_reply: impl FnMut(Reply)) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket_path(state_dir)?).await?;
    let (reader, mut writer) = stream.split();
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    writer.write_all(&line).await?;
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let reply: Reply = serde_json::from_str(&line)?;
        let last = !matches!(reply, Reply::Progress { .. });
        on_reply(reply);
        if last {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stack went away before it answered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack_that_restarts(folder: &Path) -> ControlSocket {
        let (sender, mut calls) = mpsc::channel::<Call>(1);
        tokio::spawn(async move {
            while let Some((request, replies)) = calls.recv().await {
                let text = format!("{request:?}");
                replies.send(Reply::Progress { text }).await.expect("taken");
                replies.send(Reply::Done).await.expect("taken");
            }
        });
        ControlSocket::listen(folder, sender).expect("listens")
    }

    #[tokio::test]
    async fn a_request_is_answered_step_by_step() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = stack_that_restarts(folder.path());
        let mode = fs::metadata(folder.path().join("control.sock")).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let mut replies = Vec::new();
        ask(folder.path(), Request::Restart { service: Some(Service::Auth), timeout_seconds: Some(7) }, |reply| {
            replies.push(reply);
        })
        .await
        .expect("answered");
        let text = "Restart { service: Some(Auth), timeout_seconds: Some(7) }".to_owned();
        assert_eq!(replies, [Reply::Progress { text }, Reply::Done]);

        drop(socket);
        let error = ask(folder.path(), Request::Status, |_| {}).await.expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn nonsense_is_refused_and_too_much_of_it_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let _socket = stack_that_restarts(folder.path());
        for nonsense in ["{}\n".to_owned(), "{\"command\":\"explode\"}\n".to_owned(), "x".repeat(10_000)] {
            let mut stream = UnixStream::connect(folder.path().join("control.sock")).await.expect("connected");
            // The socket may be closed before all of it was written.
            let _ = stream.write_all(nonsense.as_bytes()).await;
            let mut answer = String::new();
            let _ = BufReader::new(stream).read_line(&mut answer).await;
            assert!(answer.contains("\"failed\"") || answer.is_empty(), "{answer}");
        }
        ask(folder.path(), Request::Status, |_| {}).await.expect("still answers");
    }

    #[test]
    fn a_long_folder_has_its_socket_elsewhere() {
        let long = PathBuf::from("/").join("x".repeat(120));
        let path = socket_path(&long).expect("a path");
        assert!(path.as_os_str().len() <= MAX_PATH_BYTES && !path.starts_with(&long), "{}", path.display());
        assert_eq!(path, socket_path(&long).expect("the same path"));
        assert_ne!(path, socket_path(&long.join("y")).expect("another path"));
    }
}
