//! The commands that the documents tell people to type are commands that can be typed.

use std::collections::BTreeMap;

use clap::Parser;

use crate::cli::Cli;

const PLAN: &str = include_str!("../../../docs/perf-test-plan.md");
const LOAD: &str = include_str!("../../../tests/load/README.md");
const K6_SETTINGS: &str = include_str!("../../../tests/load/k6/lib/settings.js");

/// What the documents leave to the reader, and loops to the shell.
const VALUES: [(&str, &str); 8] = [
    ("$TARGET", "https://datum.example"),
    ("$OUT", "results"),
    ("$ADMIN_DATABASE_URL", "postgres://admin@db.example/datum"),
    ("${vus}", "300"),
    ("$vus", "300"),
    ("$max", "14"),
    ("CAPACITY", "100"),
    ("--noise …", "--noise c"),
];

/// The lines of a document's shell blocks that run `program`, as words.
fn commands(document: &str, program: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in document.lines() {
        if line.starts_with("```") {
            in_block = line == "```sh";
        } else if in_block {
            let line = VALUES.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
            let words = words(&line);
            if words.first().is_some_and(|first| first == program) {
                found.push(words);
            }
        }
    }
    found
}

/// As a shell splits a line without expansions: quotes are taken off, a comment ends it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_of_the_documents_can_be_typed() {
    let all: Vec<_> = [PLAN, LOAD].iter().flat_map(|document| commands(document, "datum")).collect();
    assert!(all.len() > 25, "only {} commands were found", all.len());
    let refused = |command: &Vec<String>| {
        Cli::try_parse_from(command).err().map(|error| format!("{}\n{error}", command.join(" ")))
    };
    let refused: Vec<_> = all.iter().filter_map(refused).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn every_scenario_and_variable_that_the_documents_give_to_k6_exists() {
    let all: Vec<_> = [PLAN, LOAD].iter().flat_map(|document| commands(document, "k6")).collect();
    assert!(all.len() > 9, "only {} commands were found", all.len());
    for command in all {
        assert_eq!(command.iter().filter(|word| *word == "tests/load/k6/main.js").count(), 1, "{command:?}");
        let given = command.windows(2).filter(|pair| pair[0] == "-e").filter_map(|pair| pair[1].split_once('='));
        let given: BTreeMap<_, _> = given.collect();
        for name in given.keys() {
            let read = [format!("environment.{name}"), format!("environment, '{name}'")];
            assert!(read.iter().any(|it| K6_SETTINGS.contains(it)), "{name} of {command:?} is read by no script");
        }
        let scenario = given.get("SCENARIO").unwrap_or_else(|| panic!("{command:?} names no scenario"));
        assert!(loadgen::scenario::names().any(|name| name == *scenario), "{scenario} is no scenario");
    }
}

#[test]
fn words_are_a_shells() {
    assert_eq!(words("datum bench 'p95<250ms' \"a b\"c  # why"), ["datum", "bench", "p95<250ms", "a bc"]);
    assert_eq!(words("  x=''"), ["x="]);
    assert!(words("# nothing").is_empty());
}
