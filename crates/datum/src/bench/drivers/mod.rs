//! Who sends the requests: Datum's own driver in this process, or k6 beside it. Both tell the same events and leave the same
//! outcome.

mod k6;
mod native;

use std::path::Path;
use std::pin::Pin;

use envelope::result::FolderError;
use loadgen::run::{Event, Outcome, Plan};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(super) use k6::K6;

use super::args::{DriverArgs, DriverName};
use super::error::BenchError;

/// Who sends the requests.
#[derive(Debug, Clone)]
pub(super) enum Driver {
    /// Datum's own.
    Native,
    /// k6.
    K6(K6),
}

/// What a driver leaves.
pub(super) struct Driven {
    pub(super) outcome: Outcome,
    /// Why what it writes itself is not whole: it ended early because of that.
    pub(super) unwritten: Option<FolderError>,
}

/// A run that is under way; its end is what it leaves.
pub(super) type Driving<'a> = Pin<Box<dyn Future<Output = Result<Driven, BenchError>> + 'a>>;

impl Driver {
    /// Finds the driver that was asked for, for a target whose certificate is signed by an authority of this file.
    pub(super) async fn find(args: &DriverArgs, target_ca: Option<&Path>) -> Result<Self, BenchError> {
        match args.driver {
            DriverName::Native => Ok(Self::Native),
            DriverName::K6 => K6::find(&args.k6).await?.trusting(target_ca).map(Self::K6),
        }
    }

    /// What the capsule says of it.
    pub(super) fn facts(&self) -> envelope::result::Driver {
        match self {
            Self::Native => {
                envelope::result::Driver { name: "native".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
            }
            Self::K6(k6) => envelope::result::Driver { name: "k6".to_owned(), version: k6.version().to_owned() },
        }
    }

    /// Sends the load. When `stop` is cancelled it comes to an early end that is valid. `folder` takes what a driver writes
    /// itself.
    pub(super) fn drive<'a>(
        &'a self,
        plan: &'a Plan,
        folder: &'a Path,
        events: mpsc::Sender<Event>,
        stop: CancellationToken,
    ) -> Driving<'a> {
        match self {
            Self::Native => Box::pin(native::drive(plan, events, stop)),
            Self::K6(k6) => Box::pin(k6.drive(plan, folder, events, stop)),
        }
    }
}
