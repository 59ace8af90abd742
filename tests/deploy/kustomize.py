"""Builds a kustomization as `kubectl kustomize` does, as far as ours go: a field that it does not know is an error."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Thing = dict[str, Any]
HEAD = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
KNOWN = {*HEAD, "namespace", "resources", "images", "configMapGenerator", "secretGenerator"}


class Unbuildable(Exception):
    """What kustomize would refuse, or what this does not know how to build."""


def build(folder: Path) -> list[Thing]:
    plan = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    if unknown := plan.keys() - KNOWN:
        raise Unbuildable(f"unknown fields: {unknown}")
    if {name: plan.get(name) for name in HEAD} != HEAD:
        raise Unbuildable("it is no Kustomization")
    things = [thing for name in plan["resources"] for thing in _resources(folder, name)]
    generated = [
        *(_config_map(folder, one) for one in plan.get("configMapGenerator", [])),
        *(_secret(folder, one) for one in plan.get("secretGenerator", [])),
    ]
    for thing in generated:
        _rename(thing, things)
    things += generated
    _require_unique(things)
    for thing in things:
        for image in plan.get("images", []):
            _set_image(thing, image)
        if thing["kind"] != "Namespace":
            thing["metadata"]["namespace"] = plan["namespace"]
    return things


def walk(thing: Any) -> Iterator[Thing]:
    """Every mapping in a thing, itself first."""
    if isinstance(thing, dict):
        yield thing
        for one in thing.values():
            yield from walk(one)
    elif isinstance(thing, list):
        for one in thing:
            yield from walk(one)


def _read(folder: Path, name: str) -> str:
    path = folder / name
    if not path.is_file():
        raise Unbuildable(f"{name} does not exist")
    return path.read_text(encoding="utf-8")


def _resources(folder: Path, name: str) -> list[Thing]:
    found = [one for one in yaml.safe_load_all(_read(folder, name)) if one]
    if not found or any("kind" not in one or "name" not in one.get("metadata", {}) for one in found):
        raise Unbuildable(f"{name} holds no objects with a kind and a name")
    return copy.deepcopy(found)


def _config_map(folder: Path, plan: Thing) -> Thing:
    _require_fields(plan, {"name", "envs"})
    lines = [line for name in plan["envs"] for line in _read(folder, name).splitlines()]
    data = dict(line.split("=", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": plan["name"]}, "data": data}


def _secret(folder: Path, plan: Thing) -> Thing:
    _require_fields(plan, {"name", "files"})
    data = {Path(name).name: base64.b64encode(_read(folder, name).encode()).decode() for name in plan["files"]}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": plan["name"]}, "data": data}


def _require_fields(plan: Thing, fields: set[str]) -> None:
    if plan.keys() != fields:
        raise Unbuildable(f"a generator has {sorted(plan)}, not {sorted(fields)}")


def _rename(generated: Thing, things: list[Thing]) -> None:
    """Add a digest of the content to the name, here and where it is named, so that a change restarts the pods."""
    old = generated["metadata"]["name"]
    digest = hashlib.sha256(json.dumps(generated["data"], sort_keys=True).encode()).hexdigest()[:10]
    generated["metadata"]["name"] = f"{old}-{digest}"
    keys = ("configMapRef", "configMap") if generated["kind"] == "ConfigMap" else ("secretRef", "secret")
    for part in (part for thing in things for part in walk(thing)):
        for key in keys:
            for field in ("name", "secretName"):
                if isinstance(part.get(key), dict) and part[key].get(field) == old:
                    part[key][field] = generated["metadata"]["name"]


def _set_image(thing: Thing, image: Thing) -> None:
    for container in (one for part in walk(thing) for one in part.get("containers") or []):
        if container["image"] == image["name"]:
            container["image"] = f"{image['newName']}:{image['newTag']}"


def _require_unique(things: list[Thing]) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in things]
    if len({*names}) != len(names):
        raise Unbuildable("two objects have the same kind and name")
