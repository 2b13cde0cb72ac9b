//! The table of tasks.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use stack::status::{PostgresStatus, StackStatus, TaskStatus};

const COLUMNS: [&str; 8] = ["SERVICE", "TASK", "PORT", "PID", "HEALTH", "RESTARTS", "MEMORY", "UPTIME"];

/// Every process of a stack, one a row.
pub(crate) fn render(status: &StackStatus) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(COLUMNS);
    for task in &status.tasks {
        table.add_row(task_row(task));
    }
    if let Some(postgres) = &status.postgres {
        table.add_row(postgres_row(postgres));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for index in [1, 2, 3, 5, 6, 7] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn task_row(task: &TaskStatus) -> [String; 8] {
    [
        task.service.to_string(),
        task.number.to_string(),
        or_dash(task.port),
        or_dash(task.pid),
        task.health.to_string(),
        task.restarts.to_string(),
        task.rss_bytes.map_or_else(dash, mebibytes),
        task.uptime_seconds.map_or_else(dash, duration),
    ]
}

fn postgres_row(postgres: &PostgresStatus) -> [String; 8] {
    [
        "postgres".to_owned(),
        dash(),
        postgres.port.to_string(),
        or_dash(postgres.pid),
        postgres.health.to_string(),
        postgres.restarts.to_string(),
        dash(),
        dash(),
    ]
}

/// What a change must touch for a plain output to print the table again: not memory and uptime, which always change.
pub(crate) fn essence(status: &StackStatus) -> String {
    let mut status = status.clone();
    for task in &mut status.tasks {
        (task.rss_bytes, task.uptime_seconds) = (None, None);
    }
    render(&status)
}

fn dash() -> String {
    "-".to_owned()
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(dash, |value| value.to_string())
}

/// Rounded to the nearest MiB.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", (bytes + (1 << 19)) >> 20)
}

/// The two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m {:02}s", seconds % 60),
        3_600..86_400 => format!("{hours}h {minutes:02}m"),
        _ => format!("{days}d {hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use stack::{Health, Service};

    use super::*;

    fn status() -> StackStatus {
        let task = TaskStatus {
            service: Service::Auth,
            number: 1,
            health: Health::Healthy,
            port: Some(21_000),
            pid: Some(4_711),
            restarts: 2,
            rss_bytes: Some(22 << 20),
            uptime_seconds: Some(75),
        };
        StackStatus {
            pid: 1,
            base_url: "http://127.0.0.1:8080".into(),
            port: 8_080,
            started_at: time::OffsetDateTime::UNIX_EPOCH,
            ready: true,
            throttle_off: false,
            task_cpu_units: None,
            identity: stack::identity::IdentityStatus::Local,
            faults: Vec::new(),
            tasks: vec![task.clone(), TaskStatus { number: 2, health: Health::Restarting, pid: None, ..task }],
            postgres: Some(PostgresStatus { health: Health::Healthy, port: 5_432, pid: Some(7), restarts: 0 }),
        }
    }

    #[test]
    fn a_row_a_process_with_everything_about_it() {
        let table = render(&status());
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], COLUMNS);
        assert_eq!(lines[1], ["auth", "1", "21000", "4711", "healthy", "2", "22", "MiB", "1m", "15s"]);
        assert_eq!(lines[2][..5], ["auth", "2", "21000", "-", "restarting"]);
        assert_eq!(lines[3][..6], ["postgres", "-", "5432", "7", "healthy", "0"]);
    }

    #[test]
    fn memory_and_age_alone_are_no_change() {
        let before = status();
        let mut after = status();
        after.tasks[0].rss_bytes = Some(99 << 20);
        after.tasks[0].uptime_seconds = Some(76);
        assert_eq!(essence(&before), essence(&after));
        after.tasks[0].restarts += 1;
        assert_ne!(essence(&before), essence(&after));
    }

    #[test]
    fn durations_show_their_two_largest_units() {
        for (seconds, shown) in [(0, "0s"), (59, "59s"), (60, "1m 00s"), (3_661, "1h 01m"), (90_000, "1d 01h")] {
            assert_eq!(duration(seconds), shown);
        }
        assert_eq!(mebibytes(1_600_000), "2 MiB");
    }
}
