"""What neither the emulator nor a good day shows: stacks that an earlier run has left in the middle, an image without its
authorities, an account that does not answer.

A stand-in for the AWS CLI, and for curl and Docker, answers from a script and writes down what it was asked.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STACKS = ["network", "data", "cluster", "migrate", "loadgen", "auth", "actor", "document"]
# Answers are files NAME.1, NAME.2, …, each given once and the last for ever; `!` as its first line makes it an error.
AWS = """#!/usr/bin/env bash
while [[ ${1:-} == --* ]]; do shift 2; done
echo "aws $*" >>"$ANSWERS/asked"
name=$1-$2
[[ $* != *--stack-name* ]] || name+=.$(sed 's/.*--stack-name \\([^ ]*\\).*/\\1/' <<<"$*")
[ -e "$ANSWERS/$name.1" ] || name=$1-$2
[ -e "$ANSWERS/$name.1" ] || { echo '{}'; exit 0; }
n=$(($(cat "$ANSWERS/$name.count" 2>/dev/null || echo 0) + 1))
while [ ! -e "$ANSWERS/$name.$n" ]; do n=$((n - 1)); done
echo "$n" >"$ANSWERS/$name.count"
if [ "$(head -n 1 "$ANSWERS/$name.$n")" = '!' ]; then tail -n +2 "$ANSWERS/$name.$n" >&2; exit 254; fi
cat "$ANSWERS/$name.$n"
"""
QUICK = "#!/usr/bin/env bash\n"


def described(name: str, status: str, **parameters: str) -> dict:
    outputs = {"network": {"PrivateSubnets": "a,b", "TaskSecurityGroup": "sg"},
               "data": {"ImageRepositoryUri": "1.dkr.example/datum", "ToolRepositoryUri": "1.dkr.example/datum-tools", "ResultsBucket": "results",
                        "DocumentsBucket": "documents", "SigningKeys": "arn:keys"},
               "cluster": {"ClusterName": "datum", "Target": "http://internal.test", "AccessLogsBucket": "logs"},
               "migrate": {"TaskDefinition": "datum-migrate:1"}, "loadgen": {"Native": "native:1", "K6": "k6:1"}}.get(name, {})
    return {"StackName": f"datum-{name}", "StackStatus": status,
            "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]}


class Bench:
    """A folder of stand-ins and their answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program("aws", AWS)
        # Waiting is what is tried here, not time.
        self.program("sleep", QUICK)
        self.answer("sts-get-caller-identity", {"Account": "123456789012"})
        self.answer("rds-describe-orderable-db-instance-options", {"OrderableDBInstanceOptions": [{}]})
        self.answer("ecs-run-task", {"tasks": [{"taskArn": "arn:task/datum/1"}]})
        self.answer("ecs-describe-tasks", {"tasks": [{"lastStatus": "STOPPED", "containers": [{"name": "migrate", "exitCode": 0}]}]})
        self.answer("ecs-list-tasks", {"taskArns": []})
        self.answer("s3api-list-object-versions", {})
        self.answer("secretsmanager-get-secret-value", {"SecretString": "-----BEGIN PRIVATE KEY-----"})

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def answer(self, name: str, *answers: dict | str) -> None:
        for number, answer in enumerate(answers, 1):
            (self.folder / f"{name}.{number}").write_text(answer if isinstance(answer, str) else json.dumps(answer))

    def system(self, **statuses: str) -> None:
        """Every stack is there and well, but those that are named."""
        self.answer("cloudformation-describe-stacks", {"Stacks": [described(one, statuses.get(one, "CREATE_COMPLETE")) for one in STACKS]})

    def stack(self, name: str, *statuses: str | None) -> None:
        """What is said of one stack from now on; `None`: it is gone."""
        gone = f"!\nStack with id datum-{name} does not exist"
        self.answer(f"cloudformation-describe-stacks.datum-{name}",
                    *[{"Stacks": [described(name, status)]} if status else gone for status in statuses])

    def deploy(self, *command: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "HOME": str(self.folder), "ANSWERS": str(self.folder), "LANG": "C.UTF-8"}
        result = subprocess.run([ROOT / "infra" / "deploy", "--region", "eu-central-1", *command], env=environment, text=True,
                                capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        asked = self.folder / "asked"
        return result, asked.read_text().splitlines() if asked.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


UP = ("--yes", "--image", "registry.example/datum:one", "up")


def index(asked: list[str], beginning: str) -> int:
    found = [number for number, line in enumerate(asked) if line.startswith(beginning)]
    assert found, f"{beginning} was not asked: {asked}"
    return found[0]


def test_a_stack_whose_creation_failed_is_made_anew(bench: Bench) -> None:
    bench.system(cluster="ROLLBACK_COMPLETE")
    bench.stack("cluster", "ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS", None)
    result, asked = bench.deploy(*UP)
    assert result.returncode == 0, result.stderr
    deleted, made = index(asked, "aws cloudformation delete-stack --stack-name datum-cluster"), index(asked, "aws cloudformation deploy --stack-name datum-cluster")
    assert deleted < made


def test_an_interrupted_run_is_waited_for(bench: Bench) -> None:
    bench.system(data="CREATE_IN_PROGRESS")
    bench.stack("data", "CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    result, asked = bench.deploy(*UP)
    assert result.returncode == 0, result.stderr
    assert "datum-data: waiting, CREATE_IN_PROGRESS" in result.stderr
    assert not [line for line in asked if "delete-stack" in line]
    assert (bench.folder / "cloudformation-describe-stacks.datum-data.count").read_text().strip() == "3"


def test_an_update_that_could_not_be_taken_back_is_taken_back_first(bench: Bench) -> None:
    bench.system(auth="UPDATE_ROLLBACK_FAILED")
    bench.stack("auth", "UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE")
    result, asked = bench.deploy(*UP)
    assert result.returncode == 0, result.stderr
    assert index(asked, "aws cloudformation continue-update-rollback --stack-name datum-auth") < index(asked, "aws cloudformation deploy --stack-name datum-auth")

    bench.stack("auth", *["UPDATE_ROLLBACK_FAILED"] * 3)
    result, _ = bench.deploy(*UP)
    assert result.returncode == 1
    assert "datum-auth is UPDATE_ROLLBACK_FAILED" in result.stderr


def test_what_is_half_deleted_is_not_deployed(bench: Bench) -> None:
    bench.system(data="DELETE_FAILED")
    bench.stack("data", "DELETE_FAILED")
    result, asked = bench.deploy(*UP)
    assert result.returncode == 1
    assert "infra/deploy down" in result.stderr
    assert not [line for line in asked if "deploy --stack-name datum-data" in line or "delete-stack" in line]


def test_down_tries_again_what_could_not_be_deleted(bench: Bench) -> None:
    bench.system()
    for name in STACKS:
        bench.stack(name, None)
    bench.stack("auth", "DELETE_FAILED", None)
    result, asked = bench.deploy("--yes", "down")
    assert result.returncode == 0, result.stderr
    assert len([line for line in asked if line == "aws cloudformation delete-stack --stack-name datum-auth"]) == 2

    bench.stack("auth", *["DELETE_FAILED"] * 3)
    (bench.folder / "cloudformation-describe-stacks.datum-auth.count").unlink()
    (bench.folder / "asked").unlink()
    result, asked = bench.deploy("--yes", "down")
    assert result.returncode == 1
    assert "datum-auth could not be deleted" in result.stderr
    # Its cluster, its database and its network stay: they are in use.
    assert not [line for line in asked if line.endswith(("datum-cluster", "datum-data", "datum-network")) and "delete-stack" in line]


def test_down_stops_what_still_runs_and_deletes_nothing_that_is_protected(bench: Bench) -> None:
    bench.system()
    for name in STACKS:
        bench.stack(name, None)
    bench.answer("ecs-list-tasks", {"taskArns": []}, {"taskArns": ["arn:task/datum/2"]}, {"taskArns": []})
    result, asked = bench.deploy("--yes", "down")
    assert result.returncode == 0, result.stderr
    stopped = index(asked, "aws ecs stop-task --cluster datum --task arn:task/datum/2")
    assert stopped < index(asked, "aws ecs wait tasks-stopped") < index(asked, "aws cloudformation delete-stack")

    (bench.folder / "asked").unlink()
    bench.answer("cloudformation-describe-stacks", {"Stacks": [described("data", "CREATE_COMPLETE", DeletionProtection="true")]})
    result, asked = bench.deploy("--yes", "down")
    assert (result.returncode, "is protected" in result.stderr) == (1, True)
    assert not [line for line in asked if "delete" in line]


def test_down_in_the_wrong_region_says_so(bench: Bench) -> None:
    bench.answer("cloudformation-describe-stacks", {"Stacks": []})
    result, asked = bench.deploy("--yes", "down")
    assert (result.returncode, result.stdout) == (0, "there is nothing of datum in eu-central-1 of account 123456789012\n")
    assert not [line for line in asked if "delete" in line]


def test_credentials_that_are_none_stop_everything(bench: Bench) -> None:
    bench.answer("cloudformation-describe-stacks", "!\nUnable to locate credentials")
    for command in ("check", "up", "status", "down"):
        result, asked = bench.deploy("--yes", command)
        assert result.returncode == 1
        assert "Unable to locate credentials" in result.stderr
        assert {line.split(" --")[0] for line in asked} == {"aws cloudformation describe-stacks"}


def test_a_database_that_the_region_does_not_offer_is_noticed_before_anything_is_made(bench: Bench) -> None:
    bench.answer("cloudformation-describe-stacks", {"Stacks": []})
    bench.answer("rds-describe-orderable-db-instance-options", {"OrderableDBInstanceOptions": []})
    result, asked = bench.deploy(*UP)
    assert result.returncode == 1
    assert "does not offer postgres 17.6 on db.m7g.large" in result.stderr
    assert not [line for line in asked if " deploy " in line]


def test_a_signing_key_that_cannot_be_seen_is_not_replaced(bench: Bench) -> None:
    bench.system()
    bench.answer("secretsmanager-get-secret-value", "!\nAn error occurred (ThrottlingException)")
    result, asked = bench.deploy(*UP)
    assert (result.returncode, "cannot be seen" in result.stderr) == (1, True)
    assert not [line for line in asked if "put-secret-value" in line]

    bench.answer("secretsmanager-get-secret-value", "!\nAn error occurred (ResourceNotFoundException)")
    result, asked = bench.deploy(*UP)
    assert result.returncode == 0, result.stderr
    assert [line for line in asked if "put-secret-value --secret-id arn:keys --secret-string file:///dev/stdin" in line]


def test_a_migration_that_fails_leaves_the_services_alone(bench: Bench) -> None:
    bench.system()
    bench.answer("ecs-describe-tasks", {"tasks": [{"lastStatus": "STOPPED", "containers": [{"name": "migrate", "exitCode": 1}]}]})
    result, asked = bench.deploy(*UP)
    assert (result.returncode, "the migration failed" in result.stderr) == (1, True)
    assert not [line for line in asked if any(f"deploy --stack-name datum-{one} " in line for one in ("auth", "actor", "document"))]


def test_a_task_is_not_waited_for_for_ever_when_nobody_answers(bench: Bench) -> None:
    bench.system()
    bench.answer("ecs-describe-tasks", "!\nExpiredToken")
    result, asked = bench.deploy("migrate")
    assert (result.returncode, "nothing has been heard of the task 1" in result.stderr) == (1, True)
    assert len([line for line in asked if "describe-tasks" in line]) == 60


def test_an_image_that_is_not_there_is_not_deployed(bench: Bench) -> None:
    bench.system()
    bench.answer("ecr-describe-images", "!\nImageNotFoundException")
    result, asked = bench.deploy("--yes", "--image", "1.dkr.example/datum:nothing", "up")
    assert (result.returncode, "there is no image 1.dkr.example/datum:nothing" in result.stderr) == (1, True)
    assert not [line for line in asked if "run-task" in line]


# ---- The image, from a copy of the repository's own script in a repository of its own -------------------------------------------

CURL = """#!/usr/bin/env bash
echo "curl $*" >>"$ANSWERS/asked"
while [ $# -gt 1 ]; do [ "$1" != -o ] || out=$2; shift; done
[ -e "$ANSWERS/bundle" ] || { echo 'curl: (6) Could not resolve host' >&2; exit 6; }
cp "$ANSWERS/bundle" "$out"
"""
DOCKER = """#!/usr/bin/env bash
echo "docker $*" >>"$ANSWERS/asked"
case $1 in
  image) cat "$ANSWERS/architecture" ;;
  create) echo container ;;
  cp) tar -cf - -C "$ANSWERS/image" "${2##*/}" ;;
  login) cat >/dev/null ;;
esac
"""


@pytest.fixture
def image(bench: Bench, tmp_path: Path) -> Bench:
    bench.system()
    bench.answer("ecr-describe-images", "!\nImageNotFoundException")
    bench.program("curl", CURL)
    bench.program("docker", DOCKER)
    (tmp_path / "image").mkdir()
    (tmp_path / "architecture").write_text("amd64")
    bundle = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=authority", "-days", "1"],
                            check=True, capture_output=True).stdout
    (tmp_path / "bundle").write_bytes(bundle)
    copy = tmp_path / "repository"
    (copy / "infra" / "certs").mkdir(parents=True)
    (copy / "infra" / "deploy").write_text((ROOT / "infra" / "deploy").read_text())
    (copy / "infra" / "deploy").chmod(0o755)
    (copy / "infra" / "templates").symlink_to(ROOT / "infra" / "templates")
    git = "git -c user.name=t -c user.email=t@example.com"
    subprocess.run(f"git init -q && {git} add infra/deploy && {git} commit -qm one", shell=True, cwd=copy, check=True)
    return bench


def build(bench: Bench, *options: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    script = bench.folder / "repository" / "infra" / "deploy"
    environment = {"PATH": f"{bench.folder}:{os.environ['PATH']}", "HOME": str(bench.folder), "ANSWERS": str(bench.folder), "LANG": "C.UTF-8"}
    result = subprocess.run(["bash", "-c", f"umask 077; {shlex.join([str(script), '--region', 'eu-central-1', *options, 'image'])}"],
                            env=environment, text=True, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    return result, (bench.folder / "asked").read_text().splitlines()


def test_the_authorities_are_fetched_and_are_in_the_image_that_is_pushed(image: Bench) -> None:
    (image.folder / "image" / "rds-global-bundle.pem").write_bytes((image.folder / "bundle").read_bytes())
    result, asked = build(image)
    assert result.returncode == 0, result.stderr
    assert "authorities   1 of RDS, sha256 " in result.stdout
    bundle = image.folder / "repository" / "infra" / "certs" / "rds-global-bundle.pem"
    assert bundle.stat().st_mode & 0o004, "the image's user cannot read it"
    revision = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=bundle.parent, capture_output=True, text=True, check=True).stdout.strip()
    assert index(asked, "docker build --platform linux/amd64 --build-arg REVISION=" + revision + " ") < index(asked, "docker cp container:/etc/datum/certs/rds-global-bundle.pem -")
    assert index(asked, "docker cp") < index(asked, f"docker push 1.dkr.example/datum:{revision}-amd64")
    pushed = {line.split()[-1] for line in asked if line.startswith("docker push")}
    assert pushed == {f"1.dkr.example/datum:{revision}-amd64", "1.dkr.example/datum-tools:aws-cli-2.31.0-X86_64", "1.dkr.example/datum-tools:k6-1.1.0-X86_64"}


def test_another_architecture_is_another_image(image: Bench) -> None:
    (image.folder / "image" / "rds-global-bundle.pem").write_bytes((image.folder / "bundle").read_bytes())
    (image.folder / "architecture").write_text("arm64")
    result, asked = build(image, "--set", "Architecture=ARM64")
    assert result.returncode == 0, result.stderr
    assert {line.split()[-1].rsplit("-", 1)[1] for line in asked if line.startswith("docker push")} == {"arm64", "ARM64"}


def test_no_image_is_built_without_the_authorities(image: Bench) -> None:
    (image.folder / "bundle").unlink()
    result, asked = build(image)
    assert result.returncode == 1
    assert "the authorities of RDS were not fetched" in result.stderr
    assert not [line for line in asked if line.startswith(("docker build", "docker push"))]
    assert list((image.folder / "repository" / "infra" / "certs").iterdir()) == []


@pytest.mark.parametrize("answer", ["<html>Access denied</html>", "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"])
def test_what_is_no_list_of_certificates_is_refused(image: Bench, answer: str) -> None:
    (image.folder / "bundle").write_text(answer)
    result, asked = build(image)
    assert (result.returncode, "is not a list of certificates" in result.stderr) == (1, True), result.stderr
    assert not [line for line in asked if line.startswith("docker build")]
    assert list((image.folder / "repository" / "infra" / "certs").iterdir()) == []


@pytest.mark.parametrize("content", [None, "another list"])
def test_an_image_without_the_authorities_is_not_pushed(image: Bench, content: str | None) -> None:
    if content is not None:
        (image.folder / "image" / "rds-global-bundle.pem").write_text(content)
    result, asked = build(image)
    assert result.returncode == 1
    assert "the image does not have the authorities of RDS as /etc/datum/certs/rds-global-bundle.pem" in result.stderr
    assert not [line for line in asked if line.startswith("docker push")]


def test_an_image_for_another_processor_is_not_pushed(image: Bench) -> None:
    (image.folder / "architecture").write_text("arm64")
    result, asked = build(image)
    assert (result.returncode, "the image is for arm64" in result.stderr) == (1, True)
    assert not [line for line in asked if line.startswith("docker push")]
