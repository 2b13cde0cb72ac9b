//! Ports on the loopback address: free ones for tasks, and who holds one that is not free.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;

use tokio::net::TcpSocket;

use crate::error::StackError;

/// How many ports are tried before the system is asked for any.
const ATTEMPTS: usize = 64;

/// A port nobody listens on.
///
/// Taken from below the range of outgoing connections (`ip_local_port_range` of ip(7)): otherwise, while a task is dead,
/// a connection to another task could be given its port as source, and the task could not have it back.
///
/// # Errors
/// No port can be bound at all.
pub fn free_port(taken: &BTreeSet<u16>) -> io::Result<u16> {
    let range = below_outgoing();
    for _ in 0..ATTEMPTS {
        let port = rand::random_range(range.clone());
        if !taken.contains(&port) && is_free(port) {
            return Ok(port);
        }
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Whether a task could listen on this port now.
#[must_use]
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn below_outgoing() -> Range<u16> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    parse_range(&text)
}

fn parse_range(ip_local_port_range: &str) -> Range<u16> {
    let lowest: u16 = ip_local_port_range.split_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(32_768);
    // Where the outgoing range starts very low there is no room below it; nothing is lost but the guarantee above.
    if lowest > 12_000 { 10_000..lowest } else { 20_000..32_768 }
}

/// The balancer's port, held but not yet listened on: until the stack can answer, a client is refused and not kept waiting.
#[derive(Debug)]
pub struct Reserved {
    socket: TcpSocket,
    address: SocketAddr,
}

impl Reserved {
    /// Holds a port on 127.0.0.1; 0 holds any free one.
    ///
    /// # Errors
    /// [`StackError::PortTaken`] when somebody has it, [`StackError::Listen`] for any other reason.
    pub fn hold(port: u16) -> Result<Self, StackError> {
        let hold = || {
            let socket = TcpSocket::new_v4()?;
            // Connections of a stack that ended a moment ago may still be in TIME_WAIT on this port.
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        hold().map_err(|error| taken_or(port, error))
    }

    /// The port that is held.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// As [`Reserved::hold`].
    pub fn listen(self) -> Result<tokio::net::TcpListener, StackError> {
        let port = self.port();
        self.socket.listen(1024).map_err(|error| taken_or(port, error))
    }
}

fn taken_or(port: u16, source: io::Error) -> StackError {
    if source.kind() == io::ErrorKind::AddrInUse {
        StackError::PortTaken { port, holder: holder(port) }
    } else {
        StackError::Listen { port, source }
    }
}

/// The process that listens on a port, as `nginx (process 12)`; none where the system does not tell this user.
#[must_use]
pub fn holder(port: u16) -> Option<String> {
    let inodes: Vec<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    let sockets: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    for process in processes {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        let holds = files.flatten().any(|file| {
            fs::read_link(file.path())
                .is_ok_and(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
        });
        if holds {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid})", name.trim()));
        }
    }
    None
}

/// The inodes of sockets in state LISTEN (0A) on a port, from the table of proc(5) `net/tcp`.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let listens = columns.get(1)?.ends_with(&suffix) && *columns.get(3)? == "0A";
            listens.then(|| columns.get(9)?.parse().ok())?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_lie_below_the_outgoing_range() {
        assert_eq!(parse_range("32768\t60999\n"), 10_000..32_768);
        assert_eq!(parse_range("1024\t65000\n"), 20_000..32_768);
        assert_eq!(parse_range(""), 10_000..32_768);
        let port = free_port(&BTreeSet::new()).expect("a port");
        assert!(is_free(port));
    }

    #[tokio::test]
    async fn a_held_port_refuses_until_it_listens() {
        let reserved = Reserved::hold(0).expect("held");
        let address = (Ipv4Addr::LOCALHOST, reserved.port());
        let refused = tokio::net::TcpStream::connect(address).await.expect_err("nobody listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let _listener = reserved.listen().expect("listens");
        tokio::net::TcpStream::connect(address).await.expect("somebody listens");
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn who_holds_a_port_is_told() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        assert!(!is_free(port));
        let error = Reserved::hold(port).expect_err("taken");
        let StackError::PortTaken { holder: Some(holder), .. } = error else { panic!("{error:?}") };
        assert!(holder.ends_with(&format!("(process {})", std::process::id())), "{holder}");
    }

    #[test]
    fn only_listeners_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 x\n\
             1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 x\n\
             2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 x\n";
        assert_eq!(listening_inodes(table, 8080), [4711]);
    }
}
