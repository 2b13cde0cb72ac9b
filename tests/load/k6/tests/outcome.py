"""Reads what `k6 run --out json=FILE.gz` wrote and fails where it is not what it must be.

outcome.py right FILE SUMMARY   a short run against a good target
outcome.py wrong FILE           a run against wrong_server.py
"""

import collections
import gzip
import json
import sys

ENDPOINTS = {"get-user", "upload", "login", "register"}

# What each endpoint says of itself, whatever it does.
STAGES = {
    "get-user": {"verify", "pool", "db", "app", "total"},
    "upload": {"verify", "pool", "db", "s3", "app", "total"},
    "login": {"admission", "hash", "pool", "db", "app", "total"},
    "register": {"admission", "hash", "pool", "db", "app", "total"},
}

# Every way of wrong_server.py, as status, code and answerer.
WRONG = {
    ("get-user", "503", "overloaded", "task"),
    ("get-user", "502", "check:status", "balancer"),
    ("get-user", "200", "check:email", "task"),
    ("get-user", "200", "check:body", "task"),
    ("get-user", "200", "check:id", "task"),
    ("get-user", "0", "protocol", "nobody"),
    ("get-user", "0", "timeout", "nobody"),
    ("register", "409", "email_taken", "task"),
    ("register", "0", "reset", "nobody"),
}


def points(file):
    """Metric name to its points, as (value, tags)."""
    found = collections.defaultdict(list)
    with gzip.open(file, "rt") as lines:
        for line in map(json.loads, lines):
            if line["type"] == "Point":
                found[line["metric"]].append((line["data"]["value"], line["data"]["tags"]))
    return found


def must(holds, otherwise):
    if not holds:
        sys.exit(f"outcome: {otherwise}")


def of(found, metric, endpoint):
    return [value for value, tags in found[metric] if tags.get("endpoint") == endpoint]


def right(file, summary):
    found = points(file)
    must(not found["failures"], f"requests failed: {found['failures'][:3]}")
    identities = sum(value for value, _ in found["identities"])
    must(identities > 1, f"{identities} identity served all virtual users")
    must(len(found["load_began"]) == 1, "nobody says when the load began")
    phases = {tags["phase"] for _, tags in found["http_reqs"]}
    must(phases == {"set_up", "ramp", "warm_up", "measure"}, f"the phases are {phases}")
    for endpoint in ENDPOINTS:
        count = len(of(found, "latency", endpoint))
        must(count > 0, f"{endpoint} was never asked")
        must(len(of(found, "unattributed", endpoint)) == count, f"{endpoint} has answers without a remainder")
        said = {name.removeprefix("stage_") for name in found if name.startswith("stage_") and of(found, name, endpoint)}
        must(said == STAGES[endpoint], f"{endpoint} has the stages {said}")
        slower = [v for v in of(found, "unattributed", endpoint) if v < -1]
        must(not slower, f"{endpoint}: tasks say they took longer than their answers: {slower[:3]}")
    emails = len(of(found, "latency", "register"))
    must(identities >= emails, f"{identities} identities, but {emails} registrations")
    with open(summary) as text:
        metrics = json.load(text)["metrics"]
    for endpoint in ENDPOINTS:
        values = metrics[f"latency{{endpoint:{endpoint},phase:measure}}"]["values"]
        must({"count", "avg", "med", "p(95)", "p(99)", "p(99.9)"} <= values.keys(), f"{endpoint} has {values}")
    must(metrics["checks"]["values"]["rate"] == 1, "checks failed")


def wrong(file):
    found = points(file)
    causes = collections.Counter(
        (tags["endpoint"], tags["status"], tags["code"], tags["answerer"]) for _, tags in found["failures"]
    )
    must(causes.keys() == WRONG, f"missing {WRONG - causes.keys()}, unexpected {causes.keys() - WRONG}")
    for endpoint in ("get-user", "register"):
        failed = sum(count for cause, count in causes.items() if cause[0] == endpoint)
        answered, sent = len(of(found, "latency", endpoint)), len(of(found, "http_reqs", endpoint))
        must(len(of(found, "failed_latency", endpoint)) == failed, f"{endpoint}: failures without their latency")
        must(answered > 0, f"{endpoint} was never answered rightly")
        must(answered + failed == sent, f"{endpoint}: {answered} right and {failed} wrong of {sent}")
        must(sum(of(found, "errors", endpoint)) == failed, f"{endpoint}: errors are not the failures")


match sys.argv[1:]:
    case ["right", file, summary]:
        right(file, summary)
    case ["wrong", file]:
        wrong(file)
    case _:
        sys.exit(__doc__)
