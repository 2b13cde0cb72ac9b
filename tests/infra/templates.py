"""The templates of infra/, parsed, and questions that several rules ask of them.

CloudFormation's short forms (`!Ref x`) become the long ones (`{"Ref": "x"}`), so that a rule sees one shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Iterator

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "infra" / "templates"
NAMES = ("network", "data", "cluster", "service", "migrate", "loadgen")
NO_VALUE = {"Ref": "AWS::NoValue"}


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML with CloudFormation's tags; parsed in C where the library has it."""


def _short_form(loader: Loader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


Loader.add_multi_constructor("!", _short_form)
# `2012-10-17` stays a text.
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass
class Template:
    """One parsed template."""

    name: str
    body: dict[str, Any]

    def resources(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The resources of one type, as (`template.LogicalId`, properties)."""
        for logical, resource in self.body["Resources"].items():
            if resource["Type"] == kind:
                yield f"{self.name}.{logical}", resource.get("Properties", {})

    def resource(self, logical: str) -> dict[str, Any]:
        """The properties of one resource; empty when it is not there."""
        return self.body["Resources"].get(logical, {}).get("Properties", {})

    def parameter(self, name: str) -> dict[str, Any]:
        return self.body["Parameters"][name]

    def number(self, value: Any) -> int | None:
        """A number as it is deployed by default; `None` where only a deployment knows it."""
        if isinstance(value, dict) and "Ref" in value:
            value = self.body["Parameters"].get(value["Ref"], {}).get("Default")
        return int(value) if isinstance(value, (int, str)) and str(value).isdigit() else None


    def tools(self) -> Iterator[tuple[str, "Template", dict[str, Any], dict[str, Any]]]:
        """The containers of images that are not ours, as `Templates.containers` gives them."""
        for where, task in self.resources("AWS::ECS::TaskDefinition"):
            for container in task["ContainerDefinitions"]:
                if any("ToolRepositoryUri" in name for name in imports(container["Image"])):
                    yield f"{where}.{display(container['Name'])}", self, task, container


@cache
def _parsed(text: str) -> dict[str, Any]:
    """Rules only look: what nobody changes can be shared."""
    return yaml.load(text, Loader)


@dataclass
class Templates:
    """All of them."""

    all: dict[str, Template] = field(default_factory=dict)

    @classmethod
    def read(cls, replaced: dict[str, str] | None = None) -> "Templates":
        """Parses them; `replaced` gives another text for some, to try a mistake."""
        texts = {name: (FOLDER / f"{name}.yaml").read_text() for name in NAMES} | (replaced or {})
        return cls({name: Template(name, _parsed(text)) for name, text in texts.items()})

    def __getitem__(self, name: str) -> Template:
        return self.all[name]

    def resources(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for template in self.all.values():
            yield from template.resources(kind)

    def task_definitions(self) -> Iterator[tuple[str, Template, dict[str, Any]]]:
        for template in self.all.values():
            for where, properties in template.resources("AWS::ECS::TaskDefinition"):
                yield where, template, properties

    def containers(self) -> Iterator[tuple[str, Template, dict[str, Any], dict[str, Any]]]:
        """(where, template, task definition, container)."""
        for where, template, task in self.task_definitions():
            for container in task["ContainerDefinitions"]:
                yield f"{where}.{display(container['Name'])}", template, task, container


def display(value: Any) -> str:
    return value if isinstance(value, str) else value.get("Ref", str(value))


def alternatives(node: Any) -> Iterator[Any]:
    """What a value can become: both branches of every `Fn::If`, without `AWS::NoValue`."""
    if isinstance(node, dict) and set(node) == {"Fn::If"}:
        yield from alternatives(node["Fn::If"][1])
        yield from alternatives(node["Fn::If"][2])
    elif node != NO_VALUE:
        yield node


def items(nodes: list[Any] | None) -> list[Any]:
    """The elements of a list, with all that its `Fn::If`s can become."""
    return [one for node in nodes or [] for one in alternatives(node)]


def environment(container: dict[str, Any]) -> dict[str, list[Any]]:
    """A container's variables, each with all values that it can have."""
    found: dict[str, list[Any]] = {}
    for entry in items(container.get("Environment")):
        found.setdefault(entry["Name"], []).extend(alternatives(entry["Value"]))
    return found


def walk(node: Any) -> Iterator[Any]:
    """Every value in a tree, the root first."""
    yield node
    if isinstance(node, dict):
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def imports(node: Any) -> list[str]:
    """The names that are imported below a node, as their `Fn::Sub` has them."""
    found = []
    for value in walk(node):
        if isinstance(value, dict) and "Fn::ImportValue" in value:
            name = value["Fn::ImportValue"]
            found.append(name["Fn::Sub"] if isinstance(name, dict) else name)
    return found


def texts(node: Any) -> list[str]:
    return [value for value in walk(node) if isinstance(value, str)]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def attributes(properties: dict[str, Any], key: str) -> dict[str, Any]:
    """`[{Key, Value}]` as a dictionary."""
    return {entry["Key"]: entry["Value"] for entry in properties.get(key, [])}
