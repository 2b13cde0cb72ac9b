//! `datum populate`: synthetic users in the database of a running system, or in a given one.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use loadgen::dataset::{Dataset, HashCost, PopulateOptions, Populated, Progress, populate};
use stack::identity::IdentityStatus;
use stack::state_dir;
use tokio_util::sync::CancellationToken;

use super::{failed, find, small_runtime};
use crate::cli::PopulateArgs;
use crate::cognito_users;
use crate::terminal::{can_redraw, say};

/// Where nothing can be redrawn, a line comes this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// As a process that SIGINT ended (128 + 2).
const EXIT_INTERRUPTED: u8 = 130;

pub(super) fn run(args: &PopulateArgs) -> ExitCode {
    let (database_url, provider) = match database(args) {
        Ok(found) => found,
        Err(error) => return failed(error),
    };
    if let Err(refusal) = cognito_users::check(&provider) {
        return failed(refusal);
    }
    let dataset = Dataset { users: args.users, seed: args.seed, distinct_hashes: args.hashes };
    let cost =
        HashCost { memory_kib: args.argon2_memory_kib, iterations: args.argon2_iterations, ..HashCost::default() };
    let options = PopulateOptions { database_url, dataset, cost };
    let runtime = match small_runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let began = Instant::now();
    let mut shown = Shown::new();
    let outcome = runtime.block_on(async {
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stopping.cancel();
            }
        });
        let mut populated =
            populate(&options, |progress| shown.show(progress), &stop).await.map_err(|error| error.to_string())?;
        let imported = cognito_users::import(&provider, &options.dataset, &stop).await;
        populated.interrupted |= !imported.map_err(|error| error.to_string())?;
        Ok::<_, String>(populated)
    });
    shown.bar.finish_and_clear();
    match outcome {
        Ok(populated) => {
            say(summary(args, &populated, began.elapsed()));
            if populated.interrupted { ExitCode::from(EXIT_INTERRUPTED) } else { ExitCode::SUCCESS }
        }
        Err(error) => failed(error),
    }
}

/// The database, and who keeps the accounts: of a database alone nothing is known but the auth service.
fn database(args: &PopulateArgs) -> Result<(String, IdentityStatus), String> {
    if let Some(url) = args.database_url.clone().filter(|_| !args.names_a_system()) {
        // The value may hold a password: it is not repeated.
        let refusal = "the database's URL is none of PostgreSQL, such as postgres://user:password@host:5432/database";
        return if migrator::is_postgres_url(&url) {
            Ok((url, IdentityStatus::Local))
        } else {
            Err(refusal.to_owned())
        };
    }
    let running = find::running(&args.which).map_err(|nothing| format!("{nothing}; or give --database-url"))?;
    let status = state_dir::read_status(&running.state_dir)
        .ok_or_else(|| format!("the system in {} is still starting", running.state_dir.display()))?;
    // "The only one that runs" may be somebody else's.
    say(format_args!("system        {}", running.state_dir.display()));
    let url = state_dir::database_url(&running.state_dir, &status)
        .map_err(|error| format!("the database's password in {}: {error}", running.state_dir.display()))?;
    let given = "the running system uses a database that was given to it: give it here, too, as --database-url";
    Ok((url.ok_or(given)?, status.identity))
}

fn summary(args: &PopulateArgs, populated: &Populated, elapsed: Duration) -> String {
    let per_second = per_second(populated.written, elapsed);
    let rate = if populated.written > 0 { format!(" ({} a second)", HumanCount(per_second)) } else { String::new() };
    format!(
        "{} of {} users of seed {} are there, {} of them written now in {:.1} s{rate}; {} distinct hashes{}",
        HumanCount(populated.there),
        HumanCount(args.users),
        args.seed,
        HumanCount(populated.written),
        elapsed.as_secs_f64(),
        args.hashes,
        if populated.interrupted { "; interrupted, the same command goes on" } else { "" }
    )
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rounded rate to be read"
)]
fn per_second(written: u64, elapsed: Duration) -> u64 {
    (written as f64 / elapsed.as_secs_f64().max(1e-3)).round() as u64
}

/// A bar on a terminal, lines elsewhere.
struct Shown {
    bar: ProgressBar,
    lines: bool,
    last_line: Option<Instant>,
    is_hashing: bool,
}

impl Shown {
    fn new() -> Self {
        let redraw = can_redraw();
        let target = if redraw { ProgressDrawTarget::stdout() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) =
            ProgressStyle::with_template("{msg:<9} {bar:40} {human_pos} of {human_len}  {per_sec}  {eta} left")
        {
            bar.set_style(style);
        }
        Self { bar, lines: !redraw, last_line: None, is_hashing: true }
    }

    fn show(&mut self, progress: Progress) {
        let (what, done, of) = match progress {
            Progress::Hashes { done, of } => ("hashes", done.into(), of.into()),
            Progress::Users { done, of, .. } => ("users", done, of),
        };
        if self.is_hashing && matches!(progress, Progress::Users { .. }) {
            // Another thing is counted from here on.
            self.bar.reset();
            self.is_hashing = false;
        }
        self.bar.set_message(what);
        self.bar.set_length(of);
        self.bar.set_position(done);
        if self.lines && self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            say(format_args!("{what}: {} of {}", HumanCount(done), HumanCount(of)));
        }
    }
}
