//! A system that runs already.

use std::path::{Path, PathBuf};

use loadgen::Trust;
use url::Url;

use crate::bench::args::TargetArgs;
use crate::bench::error::BenchError;

/// Where it is, and who vouches for it.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Elsewhere {
    url: Url,
    trust: Trust,
    ca: Option<PathBuf>,
}

impl Elsewhere {
    /// The one that was named; none where the run starts its own.
    pub(in crate::bench) fn of(args: &TargetArgs) -> Result<Option<Self>, BenchError> {
        let Some(url) = args.target.clone() else { return Ok(None) };
        let trust = match &args.target_ca {
            Some(file) => Trust::of_file(file).map_err(|error| BenchError::Usage(format!("--target-ca: {error}")))?,
            None => Trust::default(),
        };
        Ok(Some(Self { url, trust, ca: args.target_ca.clone() }))
    }

    pub(in crate::bench) fn url(&self) -> &Url {
        &self.url
    }

    /// For drivers of Datum's own.
    pub(in crate::bench) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The file of it, for other programs.
    pub(in crate::bench) fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_no_authority_is_a_usage_error() {
        let target = Some(Url::parse("https://example.com").expect("a URL"));
        let args = TargetArgs { target, target_ca: Some("/dev/null".into()) };
        let error = Elsewhere::of(&args).expect_err("refused");
        assert_eq!(error.exit_code(), 64);
        assert!(error.to_string().contains("--target-ca: /dev/null"), "{error}");
        assert!(Elsewhere::of(&TargetArgs::default()).expect("nothing to refuse").is_none());
    }
}
