//! What the program says about itself.

use crate::harness::Home;

const COMMANDS: [&str; 15] = [
    "up",
    "down",
    "status",
    "restart",
    "logs",
    "task",
    "migrate",
    "balancer",
    "cognito-double",
    "object-store",
    "healthcheck",
    "report",
    "compare",
    "keys",
    "openapi",
];

#[test]
fn help_names_every_command_and_every_command_has_help() {
    let home = Home::new();
    let help = home.run(&["--help"]);
    assert_eq!(help.code, Some(0), "{help:?}");
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command}")), "{command} is missing in:\n{}", help.stdout);
    }
    for command in ["up", "down", "status", "restart", "logs", "healthcheck", "report", "compare", "keys", "openapi"] {
        let help = home.run(&[command, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{command}");
        assert!(help.stdout.contains("Usage: datum"), "{command}: {}", help.stdout);
    }
}

#[test]
fn parts_that_the_environment_configures_list_their_variables() {
    let home = Home::new();
    for (arguments, variable) in [
        (vec!["task", "auth", "--help"], "AUTH_SIGNING_KEYS"),
        (vec!["task", "actor", "-h"], "DATABASE_URL"),
        (vec!["task", "document", "--help"], "S3_BUCKET"),
        (vec!["migrate", "--help"], "MIGRATOR_DATABASE_URL"),
        (vec!["balancer", "--help"], "AUTH_TARGETS"),
        (vec!["cognito-double", "--help"], "COGNITO_DOUBLE_LATENCY"),
        (vec!["object-store", "--help"], "OBJECT_STORE_SECRET_KEY"),
    ] {
        let help = home.run(&arguments);
        assert_eq!(help.code, Some(0), "{arguments:?}: {help:?}");
        assert!(help.stdout.contains(variable), "{arguments:?}: {}", help.stdout);
    }
}

#[test]
fn up_says_what_it_takes() {
    let help = Home::new().run(&["up", "--help"]).stdout;
    for option in [
        "--port",
        "--tasks",
        "--task-cpu",
        "--ephemeral",
        "--state-dir",
        "--identity",
        "--logs",
        "--database-url",
        "--throttle",
        "--set",
    ] {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
}

#[test]
fn what_is_not_understood_ends_with_ex_usage() {
    let home = Home::new();
    for arguments in [
        &[][..],
        &["fly"],
        &["up", "--tasks", "0"],
        &["up", "--task-cpu", "300"],
        &["up", "--ephemeral", "--state-dir", "x"],
        &["up", "--set", "NOVALUE"],
        &["task", "billing"],
        &["task", "auth", "--verbose"],
        &["balancer", "now"],
        &["down", "--port", "1", "--state-dir", "x"],
    ] {
        let done = home.run(arguments);
        assert_eq!(done.code, Some(64), "{arguments:?}: {done:?}");
        assert!(!done.stderr.is_empty() && done.stdout.is_empty(), "{arguments:?}: {done:?}");
    }
}
