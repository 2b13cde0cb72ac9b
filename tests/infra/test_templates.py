"""The templates as they are keep every rule, and each rule notices the mistake that it is for."""

from __future__ import annotations

import re

import pytest

from mistakes import MISTAKES
from rules import RULES
from templates import FOLDER, Templates, environment, items


@pytest.mark.parametrize("name", RULES)
def test_the_templates_keep_the_rule(name: str) -> None:
    assert list(RULES[name](Templates.read())) == []


@pytest.mark.parametrize(("name", "template", "right", "wrong"), MISTAKES)
def test_a_mistake_is_noticed(name: str, template: str, right: str, wrong: str) -> None:
    text = (FOLDER / f"{template}.yaml").read_text()
    assert right in text, "the mistake is made of a line that is no longer there"
    broken = Templates.read({template: text.replace(right, wrong, 1)})
    assert list(RULES[name](broken)), f"{name} does not see that `{right}` became `{wrong}`"


def test_every_rule_has_a_mistake() -> None:
    assert {name for name, *_ in MISTAKES} == set(RULES)


def test_every_variable_is_one_that_the_services_read() -> None:
    """A service ignores what it does not know, so that a typing error would be silence."""
    root = FOLDER.parents[1]
    sources = "".join(path.read_text() for folder in ("services", "crates") for path in root.joinpath(folder).rglob("src/**/*.rs"))
    # Read by nobody: it makes a task definition a new one.
    unread = {"REVISION"}
    named = set()
    for _, template, _, container in Templates.read().containers():
        if template.name in ("service", "migrate"):
            named |= set(environment(container)) | {entry["Name"] for entry in items(container.get("Secrets"))}
    assert len(named) > 20
    # `DATABASE_URL` is also an option's `env = "…"`.
    assert {name for name in named if f'"{name}"' not in sources} == unread


def test_the_tools_images_are_those_that_deploy_pushes() -> None:
    script = (FOLDER.parent / "deploy").read_text()
    pushed = set(re.search(r"^tools=\((.*)\)$", script, re.MULTILINE)[1].replace("'", "").split())
    loadgen = Templates.read()["loadgen"]
    assert {one.split("=")[0] for one in pushed} == {loadgen.parameter(name)["Default"] for name in ("AwsCliTag", "K6Tag")}
    assert all(one.split("=")[0].split("-")[-1] == one.split(":")[-1] for one in pushed), "a tag that names another version"
