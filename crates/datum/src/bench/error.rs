//! Why there is no result, and with which code the command then ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use envelope::result::FolderError;
use loadgen::run::LoadError;
use loadgen::scenario::ScenarioError;
use service_kit::config::EXIT_USAGE;

use super::system::StackFailure;
use crate::terminal::complain;

/// `EX_UNAVAILABLE` of sysexits.h: the target does not answer as it must, so that no load was sent.
pub(super) const EXIT_BROKEN_TARGET: u8 = 69;
/// `EX_DATAERR` of sysexits.h: there is a result, and it says nothing about the target.
pub(super) const EXIT_VOID: u8 = 65;
/// `EX_CANTCREAT` of sysexits.h: nothing can be written where the results should go.
pub(super) const EXIT_NO_OUT: u8 = 73;
/// `EX_IOERR` of sysexits.h: the record of a run, or its report, could not be written to its end.
pub(super) const EXIT_UNWRITTEN: u8 = 74;
/// What a shell reports for a program that Ctrl-C ended: 128 + SIGINT.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchError {
    /// What was typed cannot be done.
    #[error("{0}")]
    Usage(String),
    /// There is no such scenario, or it cannot be changed like that.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A system of this machine does not run.
    #[error(transparent)]
    Stack(#[from] StackFailure),
    /// The target does not answer as it must.
    #[error("{url} does not answer as it must, and is not put under load:\n{}", list(.wrong))]
    BrokenTarget {
        /// Where.
        url: String,
        /// Check and what was wrong.
        wrong: Vec<(String, String)>,
    },
    /// The load could not be sent.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// k6 or wrk did not do what it is for.
    #[error("{0}")]
    Program(String),
    /// The users could not be put into the database.
    #[error("populating the database: {0}")]
    Populate(String),
    /// The result cannot be written or read back.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Nothing can be written where the results should go.
    #[error("no result can be written into {} (--out): {source}", path.display())]
    Out {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The record of a run could not be written to its end. What there is of it was shown.
    #[error("the run has no whole result: {cause}. {}", where_kept(.kept.as_deref()))]
    Unwritten {
        /// File and reason.
        cause: String,
        /// The folder with what was recorded, marked as failed.
        kept: Option<PathBuf>,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The result cannot be analysed.
    #[error("{0}")]
    Analysis(String),
    /// The operator ended it before there was a result.
    #[error("ended before there was a result")]
    Interrupted,
}

fn list(wrong: &[(String, String)]) -> String {
    wrong.iter().map(|(check, what)| format!("  {check}: {what}")).collect::<Vec<_>>().join("\n")
}

fn where_kept(kept: Option<&Path>) -> String {
    match kept {
        Some(folder) => format!("What was recorded until then is in {}, marked as failed", folder.display()),
        None => "No capsule could be written, neither there nor into the temporary folder".to_owned(),
    }
}

impl BenchError {
    /// Makes an error of a file.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Says it, and gives the command's exit code.
    pub(super) fn report(&self) -> ExitCode {
        complain(self, self.advice());
        ExitCode::from(self.exit_code())
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Scenario(_) | Self::Load(LoadError::Plan(_)) => EXIT_USAGE,
            Self::BrokenTarget { .. } => EXIT_BROKEN_TARGET,
            Self::Out { .. } => EXIT_NO_OUT,
            Self::Unwritten { .. } | Self::Io { .. } | Self::Folder(FolderError::Io { .. }) => EXIT_UNWRITTEN,
            Self::Interrupted | Self::Stack(StackFailure::Interrupted) => EXIT_INTERRUPTED,
            // What `datum up` refused (a quota, a setting) keeps its code.
            Self::Stack(StackFailure::NotReady { code: Some(code), .. }) if *code != 0 => *code,
            _ => 1,
        }
    }

    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Scenario(ScenarioError::Unknown { .. }) => Some("datum bench --list"),
            Self::Out { .. } => Some("another folder: --out FOLDER"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_code() {
        let broken = BenchError::BrokenTarget {
            url: "http://x".into(),
            wrong: vec![("login".into(), "500 instead of 200".into())],
        };
        assert_eq!(broken.exit_code(), 69);
        assert!(broken.to_string().ends_with("\n  login: 500 instead of 200"), "{broken}");
        assert_eq!(BenchError::Usage("x".into()).exit_code(), 64);
        assert_eq!(BenchError::Interrupted.exit_code(), 130);
        let unwritten = |kept| BenchError::Unwritten { cause: "results/x/intervals.jsonl: disk full".into(), kept };
        assert_eq!(unwritten(None).exit_code(), 74);
        let told = unwritten(Some("results/x".into())).to_string();
        assert!(told.contains("intervals.jsonl: disk full. What was recorded until then is in results/x"), "{told}");
        let refused =
            |code| BenchError::Stack(StackFailure::NotReady { reason: String::new(), last_words: String::new(), code });
        assert_eq!(refused(Some(64)).exit_code(), 64);
        // One that ended well, or by a signal, still did not become ready.
        assert_eq!((refused(Some(0)).exit_code(), refused(None).exit_code()), (1, 1));
    }
}
