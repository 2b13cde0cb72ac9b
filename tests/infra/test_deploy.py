"""`infra/deploy` against the emulator: everything made, changed, asked and deleted, as a user would."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
STACKS = ["network", "data", "cluster", "migrate", "loadgen", "auth", "actor", "document"]
# Of CPU, all programs that `up` starts together: what a clock says depends on what else the machine does, and is printed.
UP_CPU_SECONDS = 60


class Emulator:
    """ministack on a port of 127.0.0.1, and the programs that speak to it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url, self.region = folder, f"http://127.0.0.1:{port}", "eu-central-1"
        # Nothing of the user's own: no profile, no account, no proxy.
        self.environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.log = (folder / "ministack.log").open("w")
        self.process = subprocess.Popen(
            [BIN / "ministack"],
            env=self.environment
            | {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "TMPDIR": str(folder),
               "DOCKER_HOST": f"unix://{folder}/no-docker.sock", "MINISTACK_REGION": self.region},
            cwd=folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
        )

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/_ministack/ready", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the emulator did not start:\n{(self.folder / 'ministack.log').read_text()}")
            time.sleep(0.1)

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()

    def deploy(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [ROOT / "infra" / "deploy", "--region", self.region, "--endpoint", self.url, *arguments]
        return subprocess.run(command, env=self.environment, cwd=self.folder, text=True, capture_output=True, timeout=300,
                              input=stdin or "", check=False)

    def done(self, *arguments: str) -> str:
        """A command that must succeed; its output."""
        result = self.deploy("--yes", "--image", "registry.example/datum:one", *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def aws(self, *arguments: str) -> dict:
        command = [BIN / "aws", "--region", self.region, "--endpoint-url", self.url, "--output", "json", *arguments]
        return json.loads(subprocess.run(command, env=self.environment, text=True, capture_output=True, check=True, timeout=60).stdout or "{}")

    def stacks(self) -> dict[str, dict]:
        return {stack["StackName"].removeprefix("datum-"): stack for stack in self.aws("cloudformation", "describe-stacks")["Stacks"]}

    def outputs(self, stack: str) -> dict[str, str]:
        return {one["OutputKey"]: one["OutputValue"] for one in self.stacks()[stack]["Outputs"]}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    for program in ("jq", "openssl", "bash"):
        assert shutil.which(program), f"{program} is not installed"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    emulator = Emulator(tmp_path_factory.mktemp("emulator"), port)
    try:
        emulator.wait()
        yield emulator
    finally:
        emulator.stop()


@pytest.fixture(scope="module")
def deployed(emulator: Emulator) -> Emulator:
    """The system, up. The first `up` is timed here, because everything else needs it."""
    began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    output = emulator.done("up")
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    print(f"up: {took:.1f} s, {cpu:.1f} s of CPU")
    assert cpu < UP_CPU_SECONDS
    assert "Datum is deployed" in output
    return emulator


def test_the_emulator_listens_on_the_loopback_address_only(emulator: Emulator) -> None:
    # /proc/net/tcp and tcp6: addresses in hexadecimal, 0A is LISTEN; a process's sockets are links of its descriptors.
    inodes = set()
    for descriptor in Path(f"/proc/{emulator.process.pid}/fd").iterdir():
        link = os.readlink(descriptor)
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    listening = [line.split()[1] for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
                 if line.split()[3] == "0A" and line.split()[9] in inodes]
    assert listening
    assert all(address.startswith("0100007F:") for address in listening), listening


def test_everything_is_made(deployed: Emulator) -> None:
    stacks = deployed.stacks()
    assert {name: stack["StackStatus"] for name, stack in stacks.items()} == dict.fromkeys(STACKS, "CREATE_COMPLETE")
    services = deployed.aws("ecs", "describe-services", "--cluster", "datum", "--services", "auth", "actor", "document")["services"]
    assert {service["serviceName"]: service["desiredCount"] for service in services} == {"auth": 1, "actor": 1, "document": 1}
    rules = deployed.aws("elbv2", "describe-rules", "--listener-arn", deployed.outputs("cluster")["ListenerArn"])["Rules"]
    paths = {path for rule in rules for condition in rule["Conditions"] for path in condition.get("Values", [])}
    assert paths >= {"/v1/auth", "/v1/auth/*", "/.well-known/jwks.json", "/v1/actors/*", "/v1/documents/*", "/live"}


def test_each_service_gets_its_own_configuration(deployed: Emulator) -> None:
    for service in ("auth", "actor", "document"):
        task = deployed.aws("ecs", "describe-task-definition", "--task-definition", f"datum-{service}")["taskDefinition"]
        container = task["containerDefinitions"][0]
        assert (container["name"], container["command"], container["image"]) == (service, ["task", service], "registry.example/datum:one")
        variables = {entry["name"]: entry["value"] for entry in container["environment"]}
        assert ("AUTH_JWKS_URL" in variables) == (service != "auth")
        assert ("S3_BUCKET" in variables) == (service == "document")
        assert variables["DATUM_ENVIRONMENT"] == "production"
        assert variables["TRUSTED_PROXY_HOPS"] == "1"


def test_every_user_of_the_database_has_a_url_of_its_own(deployed: Emulator) -> None:
    urls = {}
    for secret in deployed.aws("secretsmanager", "list-secrets")["SecretList"]:
        value = deployed.aws("secretsmanager", "get-secret-value", "--secret-id", secret["ARN"]).get("SecretString", "")
        if value.startswith("postgres://"):
            user, password = value.removeprefix("postgres://").split("@" + value.rsplit("@", 1)[1])[0].split(":", 1)
            urls[user] = password
            assert value.endswith("/datum?sslmode=verify-full&sslrootcert=/etc/datum/certs/rds-global-bundle.pem")
    assert set(urls) == {"datum_admin", "datum_auth", "datum_actor", "datum_document"}
    assert len(set(urls.values())) == 4
    assert all(len(password) == 40 for password in urls.values())


def test_a_second_up_changes_nothing(deployed: Emulator) -> None:
    secret = deployed.outputs("data")["SigningKeys"]
    key = deployed.aws("secretsmanager", "get-secret-value", "--secret-id", secret)["SecretString"]
    parsed = subprocess.run(["openssl", "pkey", "-noout", "-text"], input=key, text=True, capture_output=True, check=True).stdout
    assert key.startswith("-----BEGIN PRIVATE KEY-----")
    assert "prime256v1" in parsed
    before = {name: stack.get("LastUpdatedTime") for name, stack in deployed.stacks().items()}
    output = deployed.done("up")
    for stack in STACKS:
        assert f"datum-{stack}: as it was" in output
    assert {name: stack.get("LastUpdatedTime") for name, stack in deployed.stacks().items()} == before
    assert deployed.aws("secretsmanager", "get-secret-value", "--secret-id", secret)["SecretString"] == key


def test_so_many_tasks_run_as_are_asked_for_and_an_update_keeps_them(deployed: Emulator) -> None:
    def counts() -> dict[str, int]:
        services = deployed.aws("ecs", "describe-services", "--cluster", "datum", "--services", "auth", "actor", "document")["services"]
        return {service["serviceName"]: service["desiredCount"] for service in services}

    deployed.done("tasks", "2")
    assert counts() == {"auth": 2, "actor": 2, "document": 2}
    deployed.done("tasks", "3", "auth")
    assert counts() == {"auth": 3, "actor": 2, "document": 2}

    # A new image goes everywhere; a setting of one stack stays with it, and later runs keep it.
    result = deployed.deploy("--yes", "--image", "registry.example/datum:two", "--set", "TaskSize=512-2048", "--set", "auth:TaskSize=1024-2048", "up")
    assert result.returncode == 0, result.stdout + result.stderr
    assert counts() == {"auth": 3, "actor": 2, "document": 2}
    tasks = {family: deployed.aws("ecs", "describe-task-definition", "--task-definition", f"datum-{family}")["taskDefinition"]
             for family in ("auth", "actor", "document", "migrate", "loadgen-native")}
    assert {task["containerDefinitions"][0]["image"] for task in tasks.values()} == {"registry.example/datum:two"}
    sizes = {name: (tasks[name]["cpu"], tasks[name]["memory"]) for name in ("auth", "actor", "document")}
    assert sizes == {"auth": ("1024", "2048"), "actor": ("512", "2048"), "document": ("512", "2048")}
    output = deployed.done("check")
    assert "auth: 3 to 3 tasks of 1024-2048" in output
    assert "actor: 2 to 2 tasks of 512-2048" in output


def test_load_runs_inside_with_its_arguments(deployed: Emulator) -> None:
    deployed.done("load", "baseline-mix", "--vus", "200", "--label", "2tasks")
    deployed.done("load", "baseline-mix", "--driver", "k6", "VUS=200")
    tasks = deployed.aws("ecs", "list-tasks", "--cluster", "datum", "--desired-status", "STOPPED")["taskArns"]
    described = deployed.aws("ecs", "describe-tasks", "--cluster", "datum", "--tasks", *tasks)["tasks"]
    commands = {override["name"] + " " + " ".join(override["command"])
                for task in described for override in task["overrides"].get("containerOverrides", [])}
    target = deployed.outputs("cluster")["Target"]
    assert f"load bench baseline-mix --target {target} --out /results --vus 200 --label 2tasks" in commands
    assert (f"load run -e SCENARIO=baseline-mix -e TARGET={target} -e SUMMARY_FILE=/results/k6-summary.json -e VUS=200 "
            "--out json=/results/k6.json.gz /scripts/k6/main.js") in commands
    bucket = deployed.outputs("data")["ResultsBucket"]
    scripts = {one["Key"] for one in deployed.aws("s3api", "list-objects-v2", "--bucket", bucket, "--prefix", "load/")["Contents"]}
    assert scripts >= {"load/k6/main.js", "load/scenarios/baseline-mix.json", "load/fixtures/users.json"}


def test_results_come_home(deployed: Emulator, tmp_path: Path) -> None:
    bucket = deployed.outputs("data")["ResultsBucket"]
    (tmp_path / "capsule.json").write_text("{}")
    deployed.aws("s3api", "put-object", "--bucket", bucket, "--key", "runs/20261201-run/capsule.json", "--body", str(tmp_path / "capsule.json"))
    assert "1 runs" in deployed.done("fetch-results", str(tmp_path / "home"))
    assert (tmp_path / "home" / "20261201-run" / "capsule.json").read_text() == "{}"


def test_migrating_and_populating_are_tasks(deployed: Emulator) -> None:
    assert "task " in deployed.done("migrate")
    assert "task " in deployed.done("populate", "1000")


def test_status_shows_stacks_and_tasks(deployed: Emulator) -> None:
    output = deployed.done("status")
    assert "datum-auth               UPDATE_COMPLETE" in output
    assert "auth: 3 running" in output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--set", "TaskSise=256-512", "check"], 64, "no template has the parameter TaskSise"),
        (["--set", "auht:TaskSize=256-512", "check"], 64, "there is no stack auht"),
        (["--set", "TaskSize", "check"], 64, "is not [STACK:]KEY=VALUE"),
        (["--set", "Image=x:y", "check"], 64, "deploy sets it itself"),
        (["--name", "Datum", "check"], 64, "lower-case"),
        (["--set", "MaxTasks=5", "--set", "DatabaseClass=db.t4g.medium", "check"], 1, "too many connections"),
        (["--set", "MaxTasks=10", "check"], 1, "too many connections"),
        (["--set", "Target=http://elsewhere", "check"], 64, "deploy sets it itself"),
        (["--set", "Engine=aurora-postgresql", "--set", "DatabaseClass=db.r7g.large", "check"], 1, "Engine is postgres and cannot be changed"),
        (["--set", "CidrBlock=10.50.0.0/16", "check"], 1, "CidrBlock is 10.42.0.0/16 and cannot be changed"),
        (["--set", "Scheme=internet-facing", "--set", "CertificateArn=arn:aws:acm:eu-central-1:0:certificate/0", "check"], 1, "Scheme is internal and cannot"),
        (["--set", "auth:Architecture=ARM64", "check"], 1, "there is one image"),
        (["--name", "internal-datum", "check"], 64, "not with internal-"),
        (["--name", "datum-", "check"], 64, "not ending with a hyphen"),
        (["--set", "DatabaseClass=db.x9.huge", "check"], 64, "one of db.t4g.medium db.m7g.large"),
        (["--set", "Egress=endpoints", "--set", "IdentityProvider=cognito", "check"], 1, "needs Egress=nat"),
        (["--set", "actor:IdentityProvider=cognito", "check"], 1, "the same for all services"),
        (["--set", "Scheme=internet-facing", "check"], 1, "needs a CertificateArn"),
        (["--set", "MinTasks=4", "--set", "MaxTasks=2", "check"], 1, "MinTasks is above MaxTasks"),
        (["tasks", "many"], 64, "needs a number"),
        (["load", "../etc"], 64, "needs the name of a scenario"),
        (["load", "smoke", "--driver", "wrk"], 64, "neither native nor k6"),
        (["populate"], 64, "needs a number"),
        (["destroy"], 64, "unknown command"),
        (["--frce", "down"], 64, "unknown option"),
        ([], 64, "Usage"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(deployed: Emulator, arguments: list[str], code: int, message: str) -> None:
    result = deployed.deploy("--yes", *arguments)
    assert (result.returncode, message in result.stderr) == (code, True), result.stderr


def test_nobody_is_charged_or_deleted_without_a_yes(deployed: Emulator) -> None:
    for command in ("up", "down"):
        result = deployed.deploy(command, stdin="y\n")
        assert result.returncode == 1
        assert "pass --yes" in result.stderr
    assert set(deployed.stacks()) == set(STACKS)


def test_the_cost_is_shown_first(deployed: Emulator) -> None:
    output = deployed.done("--set", "MinTasks=2", "--set", "MaxTasks=2", "--set", "TaskSize=1024-2048", "check")
    prices = json.loads((ROOT / "infra" / "prices.json").read_text())
    hourly = {name: entry["price"] for name, entry in prices["hourly"].items()}
    task = hourly["fargate_vcpu_x86_64"] + 2 * hourly["fargate_gb_x86_64"]
    line = next(line for line in output.splitlines() if "actor: 2 to 2 tasks" in line)
    assert line.split()[-1] == f"{2 * task:.4f}"
    parts = [float(line.split()[-1]) for line in output.split("Estimate in USD")[1].splitlines()[1:] if line.startswith("  ") and line.split()[-1].count(".") == 1
             and line.split()[-1].replace(".", "").isdigit()]
    # All parts, their sum, and the load generator beside it.
    assert abs(sum(parts[:-2]) - parts[-2]) < 0.001
    assert f"as known on {prices['date']}" in output
    unconfirmed = sum(not entry["checked"] for kind in ("hourly", "monthly") for entry in prices[kind].values())
    assert f"{unconfirmed} of {len(prices['hourly']) + len(prices['monthly'])} are not confirmed" in output
    assert "HTTP, in the clear" in output
    # (800 - 20) / (3 services x 2 x 14), rounded down.
    assert "of 800 (db.m7g.large)" in output
    assert "up to 9 tasks of each" in output
    assert all({"price", "source", "checked"} <= set(entry) for kind in ("hourly", "monthly") for entry in prices[kind].values())


def test_the_other_shape_of_the_system_can_be_deployed(emulator: Emulator) -> None:
    """Aurora, Cognito, HTTPS from the internet, ARM."""
    other = ["--name", "other", "--set", "Engine=aurora-postgresql", "--set", "DatabaseClass=db.r7g.large", "--set", "MultiAz=true",
             "--set", "IdentityProvider=cognito", "--set", "Scheme=internet-facing", "--set", "Architecture=ARM64",
             "--set", "CertificateArn=arn:aws:acm:eu-central-1:000000000000:certificate/0"]
    assert "Datum is deployed: https://" in emulator.done(*other, "up")
    task = emulator.aws("ecs", "describe-task-definition", "--task-definition", "other-auth")["taskDefinition"]
    variables = {entry["name"]: entry["value"] for entry in task["containerDefinitions"][0]["environment"]}
    assert variables["AUTH_ISSUER"] == f"https://cognito-idp.eu-central-1.amazonaws.com/{variables['COGNITO_USER_POOL_ID']}"
    assert variables["COGNITO_CONFIRMATION"] == "admin"
    emulator.done("--name", "other", "down")
    assert not [stack for stack in emulator.aws("cloudformation", "describe-stacks")["Stacks"] if stack["StackName"].startswith("other-")]


def test_the_certificate_can_come_later_and_protection_keeps_everything(deployed: Emulator) -> None:
    certificate = ["--set", "CertificateArn=arn:aws:acm:eu-central-1:000000000000:certificate/0"]
    assert "without HostName" in deployed.done(*certificate, "check")
    output = deployed.done(*certificate, "--set", "HostName=load.example", "--set", "DeletionProtection=true", "up")
    assert "Datum is deployed: https://load.example (internal)" in output
    task = deployed.aws("ecs", "describe-task-definition", "--task-definition", "datum-loadgen-native")["taskDefinition"]
    assert "https://load.example" in task["containerDefinitions"][0]["command"]

    bucket = deployed.outputs("data")["DocumentsBucket"]
    (deployed.folder / "kept").write_text("x")
    deployed.aws("s3api", "put-object", "--bucket", bucket, "--key", "documents/kept", "--body", str(deployed.folder / "kept"))
    refused = deployed.deploy("--yes", "down")
    assert (refused.returncode, "is protected" in refused.stderr) == (1, True), refused.stderr
    assert set(deployed.stacks()) == set(STACKS)
    assert [one["Key"] for one in deployed.aws("s3api", "list-objects-v2", "--bucket", bucket)["Contents"]] == ["documents/kept"]
    deployed.done("--set", "DeletionProtection=false", "up")


def test_a_number_of_tasks_outside_of_the_limits_is_brought_into_them(deployed: Emulator) -> None:
    deployed.aws("ecs", "update-service", "--cluster", "datum", "--service", "actor", "--desired-count", "7")
    output = deployed.done("--set", "actor:MinTasks=2", "--set", "actor:MaxTasks=4", "up")
    assert "datum-actor: 4 tasks" in output
    assert "datum-auth:" not in output.split("== services")[1].replace("datum-auth: as it was", "")


def test_down_leaves_nothing(deployed: Emulator) -> None:
    # Something in each bucket, old versions too, and a second down for good measure.
    bucket = deployed.outputs("data")["DocumentsBucket"]
    (deployed.folder / "document").write_text("x")
    for _ in range(2):
        deployed.aws("s3api", "put-object", "--bucket", bucket, "--key", "documents/one", "--body", str(deployed.folder / "document"))
    # A load test that somebody has left running.
    network = deployed.outputs("network")
    running = deployed.aws("ecs", "run-task", "--cluster", "datum", "--task-definition", "datum-loadgen-native", "--launch-type", "FARGATE",
                           "--network-configuration", f"awsvpcConfiguration={{subnets=[{network['PrivateSubnets']}]}}")
    assert running["tasks"]
    output = deployed.done("down")
    assert "1 stopped" in output
    assert deployed.aws("cloudformation", "describe-stacks")["Stacks"] == []
    assert deployed.aws("s3api", "list-buckets")["Buckets"] == []
    assert deployed.aws("ecs", "list-clusters")["clusterArns"] == []
    assert deployed.aws("rds", "describe-db-instances")["DBInstances"] == []
    assert deployed.aws("logs", "describe-log-groups")["logGroups"] == []
    assert deployed.aws("ecr", "describe-repositories")["repositories"] == []
    assert "there is nothing of datum in eu-central-1 of account" in deployed.done("down")
