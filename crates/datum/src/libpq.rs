//! Variables that configure clients of PostgreSQL, kept away from a database that is our own.
//!
//! Somebody who has `PGSSLMODE=require` or `PGOPTIONS` in his shell means his own server. sqlx takes them as defaults for every
//! connection, whatever the URL says, and knows no way to leave them out; and a process cannot unset its own variables
//! without unsafe code, since another thread may be reading them. So the program starts itself anew without them, with the
//! same process id, before it has done anything.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What sqlx reads (`PgConnectOptions`), libpq's names.
const VARIABLES: [&str; 13] = [
    "PGAPPNAME",
    "PGDATABASE",
    "PGHOST",
    "PGHOSTADDR",
    "PGOPTIONS",
    "PGPASSFILE",
    "PGPASSWORD",
    "PGPORT",
    "PGSSLCERT",
    "PGSSLKEY",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGUSER",
];

/// Goes on without the variables: as it is where none is set, else from the beginning. Returns only in the first case, and
/// where the program cannot be executed again.
pub(crate) fn leave_behind() -> io::Result<()> {
    if VARIABLES.iter().all(|name| std::env::var_os(name).is_none()) {
        return Ok(());
    }
    let mut arguments = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(arguments.next().as_deref().unwrap_or(OsStr::new("datum"))).args(arguments);
    for name in VARIABLES {
        command.env_remove(name);
    }
    Err(command.exec())
}
