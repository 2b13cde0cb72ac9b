//! The reader that a `read` function asks for its variables.

use std::fmt::{Display, Write};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use super::{Environment, Secret};

/// A number that a variable may hold.
pub trait Number: FromStr + Display + PartialOrd + Copy {}
impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for usize {}

enum Entry {
    Section(&'static str),
    Variable { name: &'static str, default: String, help: &'static str },
}

/// Reads variables, collects all errors, and remembers what it was asked for.
pub struct Settings<'e> {
    env: &'e Environment,
    errors: Vec<String>,
    entries: Vec<Entry>,
}

impl<'e> Settings<'e> {
    pub(super) fn new(env: &'e Environment) -> Self {
        Self { env, errors: Vec::new(), entries: Vec::new() }
    }

    /// Starts a group of variables in `--help`.
    pub fn section(&mut self, title: &'static str) {
        self.entries.push(Entry::Section(title));
    }

    /// A text with a default.
    pub fn text(&mut self, name: &'static str, default: &'static str, help: &'static str) -> String {
        self.raw(name, default.to_owned(), help).unwrap_or(default).to_owned()
    }

    /// A text that may be unset.
    pub fn optional_text(&mut self, name: &'static str, help: &'static str) -> Option<String> {
        self.raw(name, "unset".to_owned(), help).map(str::to_owned)
    }

    /// A text without which nothing works; the empty string after an error.
    pub fn required_text(&mut self, name: &'static str, help: &'static str) -> String {
        let value = self.raw(name, "required".to_owned(), help).map(str::to_owned);
        value.unwrap_or_else(|| {
            self.error(name, "is required");
            String::new()
        })
    }

    /// A secret that may be unset.
    pub fn secret(&mut self, name: &'static str, help: &'static str) -> Option<Secret> {
        self.optional_text(name, help).map(Secret::new)
    }

    /// A secret without which nothing works.
    pub fn required_secret(&mut self, name: &'static str, help: &'static str) -> Secret {
        Secret::new(self.required_text(name, help))
    }

    /// A whole number in a range.
    pub fn number<T: Number>(
        &mut self,
        name: &'static str,
        default: T,
        range: RangeInclusive<T>,
        help: &'static str,
    ) -> T {
        let Some(text) = self.raw(name, default.to_string(), help) else { return default };
        match text.parse::<T>() {
            Ok(value) if range.contains(&value) => value,
            _ => {
                let message = format!("must be a whole number from {} to {}, not '{text}'", range.start(), range.end());
                self.error(name, message);
                default
            }
        }
    }

    /// A duration in milliseconds; the name ends in `_MS`.
    pub fn milliseconds(
        &mut self,
        name: &'static str,
        default_ms: u64,
        range: RangeInclusive<u64>,
        help: &'static str,
    ) -> Duration {
        debug_assert!(name.ends_with("_MS"), "{name} carries no unit");
        Duration::from_millis(self.number(name, default_ms, range, help))
    }

    /// A duration in seconds; the name ends in `_SECONDS`.
    pub fn seconds(
        &mut self,
        name: &'static str,
        default_s: u64,
        range: RangeInclusive<u64>,
        help: &'static str,
    ) -> Duration {
        debug_assert!(name.ends_with("_SECONDS"), "{name} carries no unit");
        Duration::from_secs(self.number(name, default_s, range, help))
    }

    /// `on` or `off` (`true`/`false` and `1`/`0` are understood).
    pub fn switch(&mut self, name: &'static str, default: bool, help: &'static str) -> bool {
        const CHOICES: &[(&str, bool)] =
            &[("on", true), ("off", false), ("true", true), ("false", false), ("1", true), ("0", false)];
        self.choice(name, if default { "on" } else { "off" }, CHOICES, help)
    }

    /// One of several words. `default` must be among them.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        default: &'static str,
        choices: &'static [(&'static str, T)],
        help: &'static str,
    ) -> T {
        let find = |word: &str| choices.iter().find(|(w, _)| w.eq_ignore_ascii_case(word)).map(|(_, value)| *value);
        let fallback = find(default).unwrap_or(choices[0].1);
        let Some(text) = self.raw(name, default.to_owned(), help) else { return fallback };
        find(text).unwrap_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("must be one of {}, not '{text}'", words.join(", "));
            self.error(name, message);
            fallback
        })
    }

    /// A URL that may be unset.
    pub fn url(&mut self, name: &'static str, default: Option<&'static str>, help: &'static str) -> Option<Url> {
        let text = self.raw(name, default.unwrap_or("unset").to_owned(), help).or(default)?;
        Url::parse(text)
            // The value may hold a password: it is not repeated.
            .map_err(|error| self.error(name, format!("is not a URL: {error}")))
            .ok()
    }

    /// A value of a syntax of its own. `None` after an error, and where unset without a default.
    pub fn parsed<T>(
        &mut self,
        name: &'static str,
        default: &'static str,
        help: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.raw(name, default.to_owned(), help).unwrap_or(default);
        if text.is_empty() {
            return None;
        }
        parse(text).map_err(|message| self.error(name, message)).ok()
    }

    /// Reports an error about a variable, for rules between several of them.
    pub fn error(&mut self, name: &'static str, message: impl Into<String>) {
        self.errors.push(format!("{name} {}", message.into()));
    }

    fn raw(&mut self, name: &'static str, default: String, help: &'static str) -> Option<&'e str> {
        self.entries.push(Entry::Variable { name, default, help });
        self.env.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Section(_) => None,
            Entry::Variable { name, .. } => Some(*name),
        })
    }

    pub(super) fn into_errors(self) -> Vec<String> {
        self.errors
    }

    pub(super) fn into_help(self) -> String {
        let mut help = String::new();
        for entry in self.entries {
            // Writing to a String cannot fail.
            let _ = match entry {
                Entry::Section(title) => writeln!(help, "\n{title}:"),
                Entry::Variable { name, default, help: meaning } => {
                    let default = if default.is_empty() { "unset" } else { &default };
                    writeln!(help, "  {name:<36} {meaning} [{default}]")
                }
            };
        }
        help
    }
}
