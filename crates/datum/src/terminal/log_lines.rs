//! Task logs on screen: JSON lines become lines for eyes, everything else stays as it is.

use std::fmt::Write;

use serde_json::{Map, Value};
use stack::TaskId;

/// Members that have a place of their own in the line, or that the prefix says already.
const PLACED: [&str; 6] = ["timestamp", "level", "message", "target", "service", "name"];

/// One line of a task's log, with the task before it.
pub(crate) fn render(task: TaskId, line: &str) -> String {
    let text = match serde_json::from_str::<Map<String, Value>>(line) {
        Ok(record) => readable(&record),
        Err(_) => printable(line),
    };
    format!("{task:<10} | {text}")
}

fn readable(record: &Map<String, Value>) -> String {
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    // `2026-01-01T12:00:00.123456Z`: the day is known to whoever watches.
    let time = text("timestamp").split_once('T').map_or("", |(_, time)| time.get(..12).unwrap_or(time));
    let mut line = format!("{time} {:<5} {}", text("level"), text("message"));
    append_fields(&mut line, record);
    printable(&line)
}

/// Fields that say something, those of the span (the request) after the event's own.
fn append_fields(line: &mut String, record: &Map<String, Value>) {
    for (name, value) in record.iter().filter(|(name, _)| !PLACED.contains(&name.as_str())) {
        match value {
            Value::Object(span) => append_fields(line, span),
            Value::String(text) if text.is_empty() => {}
            // Writing into a string cannot fail.
            Value::String(text) => drop(write!(line, " {name}={text}")),
            value => drop(write!(line, " {name}={value}")),
        }
    }
}

/// Logs hold what clients sent: nothing of it may drive the terminal.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() && c != '\t' { '\u{FFFD}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use stack::Service;

    use super::*;

    const TASK: TaskId = TaskId::new(Service::Auth, 1);

    #[test]
    fn json_becomes_time_level_message_and_fields() {
        let line = r#"{"timestamp":"2026-01-01T12:00:00.123456Z","level":"INFO","message":"listening","target":"x","service":"auth","port":1,"source":"","span":{"route":"/live","name":"request"}}"#;
        assert_eq!(render(TASK, line), "auth-1     | 12:00:00.123 INFO  listening port=1 route=/live");
    }

    #[test]
    fn other_lines_stay_and_none_drives_the_terminal() {
        assert_eq!(render(TASK, "thread 'main' panicked"), "auth-1     | thread 'main' panicked");
        assert!(!render(TASK, "\u{1b}[2Jx").contains('\u{1b}'));
        assert!(!render(TASK, r#"{"message":"\u001b[2J"}"#).contains('\u{1b}'));
    }
}
