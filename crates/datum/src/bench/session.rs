//! A system for as long as some work needs it: started before, stopped after, whatever becomes of the work.

use tokio::time::Instant;

use super::error::BenchError;
use super::operator::Operator;
use super::system::{OwnStack, StackSettings};
use crate::terminal::say;
use crate::terminal::screen::seconds;

/// Starts a system of this machine, does `work` with it, and stops it. Where the work is dropped half-done, the system loses
/// its lifeline and stops by itself.
pub(super) async fn with_stack<T>(
    settings: &StackSettings,
    operator: &Operator,
    work: impl AsyncFnOnce(&mut OwnStack) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let began = Instant::now();
    let mut stack = OwnStack::start(settings, operator.stop()).await?;
    say(format_args!("system        {}: {}  ({})", stack.base_url(), settings.describe(), seconds(began.elapsed())));
    if let Some(identity) = settings.describe_identity(stack.facts()) {
        say(format_args!("identity      {identity}"));
    }
    let outcome = work(&mut stack).await;
    let began = Instant::now();
    stack.stop().await;
    say(format_args!("stopped       ({})", seconds(began.elapsed())));
    outcome
}
