//! A system on a PostgreSQL server that is not its own, and what the user's environment says about servers.

use std::net::TcpListener;

use stack::postgres::{Options, Postgres};

use crate::harness::{Done, Home, names_in};

/// A server for the systems of one test.
struct Server {
    postgres: Option<Postgres>,
    runtime: tokio::runtime::Runtime,
    _folder: Home,
}

impl Server {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = Home::new();
        let options =
            Options { ephemeral: true, max_connections: 200, ..Options::new(folder.temporary().join("server")) };
        let postgres = runtime.block_on(Postgres::start(options)).unwrap();
        Self { postgres: Some(postgres), runtime, _folder: folder }
    }

    /// The URL of a database that is made where it is not there.
    fn database(&self, name: &str) -> String {
        let postgres = self.postgres.as_ref().unwrap();
        self.runtime.block_on(postgres.ensure_database(name)).unwrap();
        postgres.url(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(postgres) = self.postgres.take() {
            self.runtime.block_on(postgres.stop());
        }
    }
}

fn refused(home: &Home, url: &str, options: &[&str]) -> Done {
    let done = home.run(&[&["up", "--port", "0", "--database-url", url], options].concat());
    assert_eq!(done.code, Some(1), "{done:?}");
    done
}

#[test]
fn the_roles_of_a_server_are_the_running_systems_until_it_ends_or_they_are_taken_over() {
    let server = Server::start();
    let (one, other) = (server.database("one"), server.database("other"));
    let (first, second) = (Home::new(), Home::new());
    let up = first.up(&["--database-url", &one]);

    // Another database of the same server: the roles are the same ones.
    let done = refused(&second, &other, &[]);
    let place = first.state().canonicalize().unwrap();
    for part in ["datum_auth", place.to_str().unwrap(), "--take-over-roles"] {
        assert!(done.stderr.contains(part), "`{part}` is missing in:\n{}", done.stderr);
    }
    // New connections of the first system are what would fail with another password.
    let restart = first.run(&["restart", "actor"]);
    assert_eq!(restart.code, Some(0), "{restart:?}");

    let deliberate = second.up(&["--database-url", &other, "--take-over-roles"]);
    let restart = first.run(&["restart", "actor", "--timeout", "5"]);
    assert_eq!(restart.code, Some(1), "{restart:?}");
    drop(up);
    assert_eq!(second.run(&["down"]).code, Some(0));
    deliberate.end();

    // What a system has given back is anybody's.
    let again = first.up(&["--database-url", &one]);
    assert_eq!(first.run(&["down"]).code, Some(0));
    again.end();
}

#[test]
fn an_ephemeral_system_on_a_given_database_says_what_stays_and_gives_the_roles_back() {
    let server = Server::start();
    let url = server.database("datum");
    for _ in 0..2 {
        let home = Home::new();
        let up = home.up(&["--ephemeral", "--database-url", &url]);
        assert!(up.output().contains("rows stay in the database that was given"), "{}", up.output());
        assert_eq!(home.run(&["down"]).code, Some(0));
        up.end();
    }
}

#[test]
fn a_url_of_another_database_is_refused_before_anything_is_asked_or_made() {
    // Whoever were to connect would be seen here.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let home = Home::new();
    let url = format!("mysql://admin:hunter2@{}/datum", listener.local_addr().unwrap());
    let done = home.run(&["up", "--port", "0", "--database-url", &url]);
    assert_eq!(done.code, Some(64), "{done:?}");
    assert!(done.stderr.contains("no URL of PostgreSQL") && !done.stderr.contains("hunter2"), "{done:?}");
    let populate = home.run(&["populate", "--users", "1", "--database-url", &url]);
    assert_eq!(populate.code, Some(1), "{populate:?}");
    assert!(populate.stderr.contains("none of PostgreSQL") && !populate.stderr.contains("hunter2"), "{populate:?}");
    assert!(names_in(&home.work()).is_empty(), "it has made a folder");
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it connected");
}

#[test]
fn variables_that_mean_another_server_do_not_touch_the_own_one() {
    let home = Home::new();
    let mut command = home.command(&["up", "--port", "0", "--ephemeral"]);
    for (name, value) in [
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", "/nowhere/root.crt"),
        ("PGOPTIONS", "-c no_such_parameter=1"),
        ("PGHOST", "db.invalid"),
        ("PGPORT", "1"),
        ("PGUSER", "nobody"),
        ("PGPASSWORD", "wrong"),
        ("PGDATABASE", "none"),
    ] {
        command.env(name, value);
    }
    let up = Home::up_command(command);
    // The program has started itself anew: the process is the same.
    assert_eq!(home.status()["pid"].as_i64(), Some(up.pid().into()));
    let mut populate = home.command(&["populate", "--users", "1", "--hashes", "1", "--argon2-memory-kib", "8"]);
    let done = crate::harness::finish(populate.env("PGOPTIONS", "-c no_such_parameter=1"));
    assert_eq!(done.code, Some(0), "{done:?}");
}
