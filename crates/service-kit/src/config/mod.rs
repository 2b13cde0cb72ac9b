//! Configuration: environment variables, read once into typed values with their units in the names.
//!
//! A `read` function asks a [`Settings`] for each variable; the same function therefore parses the environment, reports
//! *every* error at once, and writes `--help`. Empty means unset. A process that cannot be configured exits with
//! [`EXIT_USAGE`].

mod secret;
mod settings;

pub use secret::Secret;
pub use settings::{Number, Settings};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;

/// `EX_USAGE` of `sysexits.h`: the configuration, not the service, is wrong, and a restart cannot help.
pub const EXIT_USAGE: u8 = 64;

/// The variables to read from.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The process's own environment. Variables that are not UTF-8 are left out.
    #[must_use]
    pub fn from_process() -> Self {
        Self(std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect())
    }

    /// Given variables only.
    pub fn from_pairs<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// The value of a variable; an empty one counts as unset.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Everything that is wrong with a configuration, one line an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigErrors(pub Vec<String>);

/// Reads a configuration.
///
/// # Errors
/// All that is wrong with it, never only the first.
pub fn load<T>(env: &Environment, read: impl FnOnce(&mut Settings<'_>) -> T) -> Result<T, ConfigErrors> {
    let mut settings = Settings::new(env);
    let value = read(&mut settings);
    let errors = settings.into_errors();
    if errors.is_empty() { Ok(value) } else { Err(ConfigErrors(errors)) }
}

/// What `read` gives where nothing is set. Only for parts that require nothing.
pub fn defaults<T>(read: impl FnOnce(&mut Settings<'_>) -> T) -> T {
    read(&mut Settings::new(&Environment::default()))
}

/// What reading a configuration would find, for somebody who is about to start the process that reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// All that is wrong, one line an error.
    pub errors: Vec<String>,
    /// The names of all variables that are read, set or not.
    pub names: BTreeSet<&'static str>,
}

/// Reads a configuration only to see what comes of it.
pub fn inspect<T>(env: &Environment, read: impl Fn(&mut Settings<'_>) -> T) -> Inspection {
    let nothing = Environment::default();
    let mut unset = Settings::new(&nothing);
    read(&mut unset);
    let mut settings = Settings::new(env);
    read(&mut settings);
    // Some are only read where another one has a certain value.
    let names = settings.names().chain(unset.names()).collect();
    Inspection { errors: settings.into_errors(), names }
}

/// The table of every variable that `read` asks for: name, default, meaning.
pub fn help<T>(read: impl FnOnce(&mut Settings<'_>) -> T) -> String {
    let env = Environment::default();
    let mut settings = Settings::new(&env);
    read(&mut settings);
    settings.into_help()
}

/// Prints what a program is and the table of its variables on standard output. That nobody reads all of it (`| head`) is no
/// error.
pub fn print_help<T>(title: &str, read: impl FnOnce(&mut Settings<'_>) -> T) {
    let _ = write!(std::io::stdout().lock(), "{title}\n{}", help(read));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug)]
    struct Example {
        port: u16,
        timeout: Duration,
        password: Secret,
        throttle: bool,
    }

    fn read(settings: &mut Settings<'_>) -> Example {
        settings.section("Example");
        Example {
            port: settings.number("PORT", 8080, 1..=65_535, "Port to listen on"),
            timeout: settings.milliseconds("TIMEOUT_MS", 250, 1..=10_000, "Patience"),
            password: settings.required_secret("PASSWORD", "The password"),
            throttle: settings.switch("THROTTLE", true, "Whether to throttle"),
        }
    }

    #[test]
    fn defaults_apply_where_nothing_is_set_and_empty_is_unset() {
        let env = Environment::from_pairs([("PASSWORD", "x"), ("PORT", "")]);
        let example = load(&env, read).expect("valid");
        assert_eq!((example.port, example.timeout, example.throttle), (8080, Duration::from_millis(250), true));
    }

    #[test]
    fn every_error_is_reported_at_once() {
        let env = Environment::from_pairs([("PORT", "70000"), ("TIMEOUT_MS", "soon"), ("THROTTLE", "maybe")]);
        let errors = load(&env, read).expect_err("invalid").0;
        assert_eq!(errors.len(), 4, "{errors:?}");
        for name in ["PORT", "TIMEOUT_MS", "PASSWORD", "THROTTLE"] {
            assert!(errors.iter().any(|e| e.starts_with(name)), "{name} missing in {errors:?}");
        }
    }

    #[test]
    fn an_inspection_tells_errors_and_the_names_of_all_variables() {
        let inspection = inspect(&Environment::from_pairs([("PORT", "70000"), ("PASSWORD", "x")]), read);
        assert_eq!(inspection.errors, ["PORT must be a whole number from 1 to 65535, not '70000'"]);
        assert_eq!(inspection.names, BTreeSet::from(["PASSWORD", "PORT", "THROTTLE", "TIMEOUT_MS"]));
    }

    #[test]
    fn secrets_do_not_show() {
        let env = Environment::from_pairs([("PASSWORD", "hunter2hunter2")]);
        let example = load(&env, read).expect("valid");
        assert!(!format!("{example:?}").contains("hunter2"));
        assert_eq!(example.password.expose(), "hunter2hunter2");
    }

    #[test]
    fn help_lists_every_variable_with_its_default() {
        let help = help(read);
        for part in ["Example", "PORT", "8080", "TIMEOUT_MS", "250", "PASSWORD", "required", "THROTTLE", "on"] {
            assert!(help.contains(part), "{part} missing in:\n{help}");
        }
    }
}
