//! `datum report`: the performance envelope of results, from their files alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use envelope::report::{self, Options, Reference};

use super::{failed, results};
use crate::cli::{ReportArgs, ReportFormat, ReportReference};
use crate::terminal::say;

pub(super) fn run(args: &ReportArgs) -> ExitCode {
    let runs = match results::read(&args.results) {
        Ok(runs) => runs,
        Err(error) => return failed(error),
    };
    let reference = match args.reference {
        Some(ReportReference::Phase4) => Some(report::reference::PHASE_4),
        Some(ReportReference::None) => None,
        None => Reference::of_runs(&runs),
    };
    let document = report::build(&runs, &Options { title: args.title.clone(), reference, ..Options::default() });
    let folder = args.out.clone().unwrap_or_else(|| beside(&args.results));
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return failed(format_args!("{}: {error}", folder.display()));
    }
    for (format, name, render) in [
        (ReportFormat::Md, "report.md", report::markdown as fn(&report::Document) -> String),
        (ReportFormat::Html, "report.html", report::html),
    ] {
        if args.format.contains(&format) {
            let path = folder.join(name);
            if let Err(error) = std::fs::write(&path, render(&document)) {
                return failed(format_args!("{}: {error}", path.display()));
            }
            say(path.display());
        }
    }
    ExitCode::SUCCESS
}

/// One folder has its report in it; a file, and the first of several results, beside it.
fn beside(results: &[PathBuf]) -> PathBuf {
    let Some(first) = results.first() else { return PathBuf::from(".") };
    if results.len() == 1 && first.is_dir() {
        return first.clone();
    }
    match first.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_where_one_looks_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = folder.path().join("one");
        std::fs::create_dir(&one).expect("made");
        assert_eq!(beside(std::slice::from_ref(&one)), one);
        assert_eq!(beside(&[one.clone(), folder.path().join("two")]), folder.path());
        assert_eq!(beside(&[one.join("raw.txt")]), one);
        assert_eq!(beside(&["raw.txt".into()]), Path::new("."));
    }
}
