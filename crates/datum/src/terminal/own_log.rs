//! What the process of `datum up` itself logs (the balancer, the object store, its care for tasks): `datum.log`, beside
//! the tasks' files. What concerns the person in front of it goes on screen as well.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::screen::Screen;

/// The module whose messages explain why a start takes long: a download, for instance.
const EXPLAINS: &str = "stack::postgres";

/// The open file; lines before it is known where it belongs are few and of no interest.
static FILE: OnceLock<File> = OnceLock::new();

/// Begins to log. Call it once.
pub(crate) fn install(screen: Arc<Screen>) {
    let file = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(OwnFile);
    // Another subscriber can only be one that a test installed.
    let _ = tracing_subscriber::registry().with(LevelFilter::INFO).with(file).with(OnScreen(screen)).try_init();
}

/// Says where the logs lie.
pub(crate) fn open(folder: &Path) {
    if let Ok(file) = stack::logs::open(&folder.join("datum.log")) {
        let _ = FILE.set(file);
    }
}

struct OwnFile;

impl<'a> MakeWriter<'a> for OwnFile {
    type Writer = Box<dyn Write>;

    fn make_writer(&'a self) -> Self::Writer {
        match FILE.get() {
            Some(file) => Box::new(file),
            None => Box::new(io::sink()),
        }
    }
}

struct OnScreen(Arc<Screen>);

impl<S: Subscriber> Layer<S> for OnScreen {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target().starts_with(EXPLAINS) {
            let mut message = Message::default();
            event.record(&mut message);
            self.0.line(&format!("  {}", message.0));
        }
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
