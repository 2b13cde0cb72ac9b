//! Results become reports and comparisons; what is no result is refused by name.

use crate::harness::Home;

/// What `k6 run` prints at its end, as kept by somebody who had nothing else.
const END_OF_TEST: &str = "\
     checks.........................: 100.00% ✓ 79932      ✗ 0
     http_req_duration..............: avg=75.28ms min=1.91ms med=6.5ms max=7.4s p(90)=201.2ms p(95)=364ms
     http_req_failed................: 0.00%   ✓ 0          ✗ 39966
     http_reqs......................: 39966   222.04/s
     iterations.....................: 39966   222.04/s
     vus............................: 200     min=200      max=200
     vus_max........................: 200     min=200      max=200
";

#[test]
fn a_kept_text_becomes_both_reports_beside_it() {
    let home = Home::new();
    std::fs::write(home.work().join("a-200vu-load3m-raw.txt"), END_OF_TEST).unwrap();
    let done = home.run(&["report", "a-200vu-load3m-raw.txt", "--title", "By hand"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.stdout, "./report.md\n./report.html\n");
    let text = std::fs::read_to_string(home.work().join("report.md")).unwrap();
    for part in ["# By hand", "k6 end-of-test text", "222.04", "none of 39,966 requests failed", "not recorded"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(std::fs::read_to_string(home.work().join("report.html")).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn only_what_was_asked_for_is_written_where_it_was_asked_for() {
    let home = Home::new();
    std::fs::write(home.work().join("raw.txt"), END_OF_TEST).unwrap();
    let done = home.run(&["report", "raw.txt", "--format", "html", "--out", "made/for-this"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "made/for-this/report.html\n"), "{done:?}");
    assert!(!home.work().join("made/for-this/report.md").exists());
}

#[test]
fn what_is_no_result_is_refused_by_name_and_nothing_is_written() {
    let home = Home::new();
    std::fs::write(home.work().join("notes.txt"), "nothing of k6's\n").unwrap();
    std::fs::create_dir(home.work().join("folder")).unwrap();
    for name in ["notes.txt", "folder", "missing.json"] {
        for arguments in [vec!["report", name], vec!["compare", name, name]] {
            let done = home.run(&arguments);
            assert_eq!(done.code, Some(1), "{done:?}");
            assert!(done.stderr.starts_with("error: ") && done.stderr.contains(name), "{done:?}");
        }
    }
    assert!(!home.work().join("report.md").exists());
}

#[test]
fn single_runs_are_not_told_apart_without_a_noise_floor() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), END_OF_TEST).unwrap();
    std::fs::write(home.work().join("b.txt"), END_OF_TEST.replace("222.04", "190.49")).unwrap();
    let done = home.run(&["compare", "a.txt", "b.txt"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let throughput = done.stdout.lines().find(|line| line.starts_with("throughput")).unwrap();
    assert!(throughput.contains("-14 %") && throughput.ends_with("not decidable (1 run)"), "{throughput}");
    assert!(done.stdout.contains("--noise"), "{done:?}");
}

#[test]
fn different_experiments_and_one_result_on_both_sides_are_said() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), END_OF_TEST).unwrap();
    std::fs::write(
        home.work().join("b.txt"),
        END_OF_TEST.replace(": 200 ", ": 100 ").replace("=200 ", "=100 ").replace("=200\n", "=100\n"),
    )
    .unwrap();
    let done = home.run(&["compare", "a.txt", "b.txt"]);
    assert!(done.stdout.contains("compared      load: 200 virtual users against 100 virtual users"), "{done:?}");
    let done = home.run(&["compare", "a.txt", "./a.txt"]);
    assert!(done.stdout.contains("CAVEAT        a result stands on both sides"), "{done:?}");
    assert!(done.stdout.contains("compared      runs of equal conditions"), "{done:?}");
    assert!(done.stdout.contains("not decidable (1 run)"), "{done:?}");
}

#[test]
fn a_result_that_is_given_twice_is_one() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), END_OF_TEST).unwrap();
    let done = home.run(&["report", "a.txt", "./a.txt"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = std::fs::read_to_string(home.work().join("report.md")).unwrap();
    assert!(text.contains("This report is made from 1 run"), "{text}");
}
