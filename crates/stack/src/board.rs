//! The present state of every process, written by those who watch them and read by the table and the status file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::observer::{Event, Observer};
use crate::service::TaskId;
use crate::status::{Health, PostgresStatus, TaskStatus, resident_bytes};

/// What is kept about one task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) health: Health,
    pub(crate) port: Option<u16>,
    pub(crate) pid: Option<u32>,
    pub(crate) restarts: u32,
    pub(crate) started: Option<Instant>,
}

#[derive(Debug, Default)]
struct Rows {
    tasks: BTreeMap<TaskId, Row>,
    postgres: Option<PostgresStatus>,
}

/// Shared by everything that watches a process.
pub(crate) struct Board {
    rows: Mutex<Rows>,
    changed: Notify,
    observer: Arc<dyn Observer>,
}

impl Board {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { rows: Mutex::default(), changed: Notify::new(), observer }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a task's row, and tells if it is another one afterwards.
    pub(crate) fn update(&self, task: TaskId, change: impl FnOnce(&mut Row)) {
        {
            let mut rows = self.rows();
            let empty = Row { health: Health::Starting, port: None, pid: None, restarts: 0, started: None };
            let row = rows.tasks.entry(task).or_insert(empty);
            let before = row.clone();
            change(row);
            if *row == before {
                return;
            }
        }
        self.tell();
    }

    /// Sets PostgreSQL's row.
    pub(crate) fn set_postgres(&self, status: PostgresStatus) {
        self.rows().postgres = Some(status);
        self.tell();
    }

    fn tell(&self) {
        self.changed.notify_one();
        self.observer.observe(Event::Changed);
    }

    /// Tells an operator something.
    pub(crate) fn notice(&self, text: String) {
        self.observer.observe(Event::Notice(text));
    }

    /// Ends after the next change; one that happened since the last call counts. For one listener.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Every task, in order, with its memory and age as they are now.
    pub(crate) fn tasks(&self) -> Vec<TaskStatus> {
        let rows: Vec<(TaskId, Row)> = self.rows().tasks.iter().map(|(task, row)| (*task, row.clone())).collect();
        let status = |(task, row): (TaskId, Row)| TaskStatus {
            service: task.service,
            number: task.number,
            health: row.health,
            port: row.port,
            pid: row.pid,
            restarts: row.restarts,
            rss_bytes: row.pid.and_then(resident_bytes),
            uptime_seconds: row.pid.and(row.started).map(|started| started.elapsed().as_secs()),
        };
        rows.into_iter().map(status).collect()
    }

    /// PostgreSQL, where the stack runs its own.
    pub(crate) fn postgres(&self) -> Option<PostgresStatus> {
        self.rows().postgres.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::service::Service;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Observer for Counter {
        fn observe(&self, _event: Event) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_a_change_is_told() {
        let counter = Arc::new(Counter::default());
        let board = Board::new(counter.clone());
        let task = TaskId::new(Service::Auth, 1);
        board.update(task, |row| row.pid = Some(std::process::id()));
        board.update(task, |row| row.pid = Some(std::process::id()));
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        let statuses = board.tasks();
        assert_eq!((statuses.len(), statuses[0].number, statuses[0].health), (1, 1, Health::Starting));
    }
}
