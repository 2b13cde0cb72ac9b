//! A value a call: `InitiateAuth=…,*=…`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::cognito::operation::Operation;

/// What a value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// Every call that is not named: `*`.
    Every,
    /// One call.
    One(Operation),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" { Ok(Self::Every) } else { text.parse().map(Self::One) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::One(operation) => operation.fmt(f),
        }
    }
}

/// Values by call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PerOperation<T>(BTreeMap<Target, T>);

impl<T> Default for PerOperation<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PerOperation<T> {
    pub(super) fn of(&self, operation: Operation) -> Option<&T> {
        self.0.get(&Target::One(operation)).or_else(|| self.0.get(&Target::Every))
    }

    pub(super) fn set(&mut self, target: Target, value: T) {
        self.0.insert(target, value);
    }
}

impl<T: FromStr<Err = String>> FromStr for PerOperation<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for (target, value) in pairs(text)? {
            if values.insert(target.parse()?, value.parse()?).is_some() {
                return Err(format!("{target} is named twice"));
            }
        }
        Ok(Self(values))
    }
}

impl<T: fmt::Display> fmt::Display for PerOperation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(target, value)| format!("{target}={value}")).collect();
        f.write_str(&pairs.join(","))
    }
}

/// `a=b, c=d` → (a, b), (c, d).
pub(super) fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').ok_or_else(|| format!("`{part}`: write it as NAME=VALUE"))).collect()
}
