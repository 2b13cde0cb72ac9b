"""What the emulator cannot show, because it runs no containers: how the end of a one-off task is taken.

A stand-in for the AWS CLI answers from files, and writes down what it was asked.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AWS = """#!/usr/bin/env bash
while [[ ${1:-} == --* ]]; do shift 2; done
echo "$*" >>"$ANSWERS/asked"
cat "$ANSWERS/$1-$2.json" 2>/dev/null || { echo "no answer for $*" >&2; exit 254; }
"""


def stack(name: str, **outputs: str) -> dict:
    return {"StackName": f"datum-{name}", "StackStatus": "CREATE_COMPLETE",
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]}


def run(folder: Path, exit_codes: dict[str, int | None], *command: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    (folder / "aws").write_text(AWS)
    (folder / "aws").chmod(0o755)
    answers = {
        "cloudformation-describe-stacks": {"Stacks": [
            stack("network", PrivateSubnets="subnet-a,subnet-b", TaskSecurityGroup="sg-tasks"),
            stack("data", ResultsBucket="results"), stack("cluster", ClusterName="datum", Target="http://internal.test"),
            stack("migrate", TaskDefinition="datum-migrate:7"), stack("loadgen", Native="datum-loadgen-native:7", K6="datum-loadgen-k6:7")]},
        "ecs-run-task": {"tasks": [{"taskArn": "arn:aws:ecs:eu-central-1:0:task/datum/0123abcd"}], "failures": []},
        "ecs-describe-tasks": {"tasks": [{"lastStatus": "STOPPED", "stoppedReason": "Essential container in task exited",
                                          "containers": [{"name": name, "exitCode": code} for name, code in exit_codes.items()]}]},
        "logs-get-log-events": {"events": [{"message": "a line of the log"}]},
    }
    for name, answer in answers.items():
        (folder / f"{name}.json").write_text(json.dumps(answer))
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "ANSWERS": str(folder), "LANG": "C.UTF-8"}
    result = subprocess.run([ROOT / "infra" / "deploy", "--region", "eu-central-1", *command], env=environment, text=True, capture_output=True,
                            timeout=60, check=False, stdin=subprocess.DEVNULL)
    return result, (folder / "asked").read_text().splitlines()


def test_a_task_that_ends_well_is_a_success_and_its_log_is_shown(tmp_path: Path) -> None:
    result, asked = run(tmp_path, {"migrate": 0}, "migrate")
    assert result.returncode == 0, result.stderr
    assert "a line of the log" in result.stdout
    assert any(line.startswith("logs get-log-events --log-group-name /datum/migrate --log-stream-name task/migrate/0123abcd ") for line in asked)
    started = next(line for line in asked if line.startswith("ecs run-task"))
    assert '"assignPublicIp":"DISABLED"' in started
    assert '"subnets":["subnet-a","subnet-b"]' in started


@pytest.mark.parametrize("code", [1, None])
def test_a_migration_that_fails_or_never_began_is_a_failure(tmp_path: Path, code: int | None) -> None:
    result, _ = run(tmp_path, {"migrate": code}, "migrate")
    assert result.returncode == 1
    assert "the migration failed" in result.stderr


def test_a_load_that_failed_is_one_though_its_results_were_copied(tmp_path: Path) -> None:
    result, asked = run(tmp_path, {"load": 99, "copy": 0}, "load", "smoke")
    assert result.returncode == 1
    assert "fetch-results" in result.stderr
    assert {"task/load/0123abcd", "task/copy/0123abcd"} <= {word for line in asked for word in line.split()}
