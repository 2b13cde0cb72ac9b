//! The services and how their tasks are named.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of the three services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Register, login, refresh, logout, password, JWKS.
    Auth,
    /// Get-user: who the caller is.
    Actor,
    /// Upload, list, download, delete.
    Document,
}

impl Service {
    /// Every service, in the order they are shown.
    pub const ALL: [Self; 3] = [Self::Auth, Self::Actor, Self::Document];

    /// Its name: of the crate, the target group, the schema and `datum task NAME`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Actor => "actor",
            Self::Document => "document",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|service| service.name() == text)
            .ok_or_else(|| format!("`{text}` is not a service: auth, actor or document"))
    }
}

/// One task of a service: `auth-1` is the first. The number stays when the process behind it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// The service it runs.
    pub service: Service,
    /// Counted from 1.
    pub number: u16,
}

impl TaskId {
    /// The task `number` of `service`.
    #[must_use]
    pub const fn new(service: Service, number: u16) -> Self {
        Self { service, number }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.service.name(), self.number))
    }
}

impl FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('-').and_then(|(service, number)| {
            let number: u16 = number.parse().ok().filter(|number| *number > 0)?;
            Some(Self::new(service.parse().ok()?, number))
        });
        parsed.ok_or_else(|| format!("`{text}` is not a task: write it as auth-1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_written_and_read_as_service_and_number() {
        let task = TaskId::new(Service::Document, 12);
        assert_eq!(task.to_string(), "document-12");
        assert_eq!("document-12".parse(), Ok(task));
        assert_eq!(format!("[{task:<12}]"), "[document-12 ]");
    }

    #[test]
    fn what_is_not_a_task_is_refused() {
        for text in ["auth", "auth-", "auth-0", "auth-x", "billing-1", "", "-1", "auth-70000"] {
            assert!(text.parse::<TaskId>().is_err(), "{text} was accepted");
        }
    }
}
