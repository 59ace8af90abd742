"""The image's build steps, run without a container, and what its files say: none of it needs an engine."""

from __future__ import annotations

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from typer.main import get_command

from bot.cli.main import app
from tests.world.settings_read import known

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_script_makes_an_environment_that_starts(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(str(ROOT / ".ci/image"), str(tmp_path / "made"))
    assert await process.wait() == 0


def test_the_dockerfile_runs_the_script_with_all_that_it_needs() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "RUN .ci/image /opt/forgehand" in text
    copied = {name for line in text.splitlines() if line.startswith("COPY") for name in line.split()[1:-1]}
    assert {"requirements.lock", "pyproject.toml", "app.yml", ".ci/image", "bot", "sandbox"} <= copied
    links = [path for path in (ROOT / "bot").rglob("*") if path.is_symlink()]
    assert [path.resolve() for path in links] == [ROOT / "app.yml"], "a link to what is not copied is a broken file"


def test_the_lock_pins_what_operators_install_and_names_no_place() -> None:
    """Also E2B's SDK: sandboxes in the cloud are what production runs on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([a-z0-9._-]+)(?:\[[a-z0-9,_-]+\])?==(\S+) \\$", lock, re.MULTILINE))
    for wanted in map(
        Requirement,
        [*project["dependencies"], *(one for name in ("local", "e2b", "postgres", "s3") for one in extras[name])],
    ):
        assert wanted.specifier.contains(pinned.get(wanted.name.lower(), "0")), wanted
    assert "://" not in lock and "--index" not in lock and "WARNING" not in lock


@pytest.mark.review("security-11")
def test_nothing_is_installed_that_is_not_pinned_by_a_hash() -> None:
    """What the package is built with, too: pip fetches it unasked where a build is isolated."""
    script = (ROOT / ".ci/image").read_text(encoding="utf-8")
    fetching = [line for line in script.splitlines() if " install " in line or " wheel " in line]
    assert len(fetching) == 4
    for line in fetching:
        assert "--require-hashes" in line or "--no-index" in line or "--no-build-isolation" in line, line
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    lock = (ROOT / ".ci/build.lock").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}$", lock, re.MULTILINE))
    for one in map(Requirement, wanted):
        assert one.specifier.contains(pinned.get(one.name, "0")), one
    assert ".ci/build.lock" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def dockerfile() -> list[list[str]]:
    """Each instruction of the final stage, in words."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    last = max(number for number, line in enumerate(lines) if line[0] == "FROM")
    return lines[last:]


def said(instruction: str) -> list[list[str]]:
    return [line[1:] for line in dockerfile() if line[0] == instruction]


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"][name]
    return found


def test_the_image_and_compose_name_settings_that_are_read_and_agree() -> None:
    image = dict(pair.split("=", 1) for line in said("ENV") for pair in line)
    given: dict[str, str] = service("forgehand")["environment"]
    assert {name for name in image if name != "PATH"} | given.keys() <= known()
    assert {name: image[name] for name in given} == given, "env_file cannot move what ports and volumes rely on"
    assert said("VOLUME") == [[given["FORGEHAND_DATA_DIR"]]]
    assert said("EXPOSE") == [[given["FORGEHAND_PORT"]]]
    [check] = said("HEALTHCHECK")
    assert any("$FORGEHAND_PORT/healthz" in word for word in check)
    assert "serve" in get_command(app).commands and said("CMD") == [['["serve"]']]  # type: ignore[attr-defined]


def test_the_container_writes_to_its_volume_and_to_tmp_alone() -> None:
    found = service("forgehand")
    [run] = said("RUN")
    [[user]] = said("USER")
    assert user == "forgehand" and found["user"].split(":")[0] == run[run.index("--uid") + 1] != "0"
    assert found["read_only"] is True and found["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in found["security_opt"]
    assert [one.split(":")[0] for one in found["tmpfs"]] == ["/tmp"]
    assert [one.split(":")[1] for one in found["volumes"]] == [found["environment"]["FORGEHAND_DATA_DIR"]]
    assert int(found["stop_grace_period"].removesuffix("s")) > 15, "as long as `serve` takes to stop"
    assert all(port.startswith("127.0.0.1:") for port in found["ports"]), "what is open to all is the front"


def test_the_front_leads_to_the_service() -> None:
    front, port = service("front"), service("forgehand")["environment"]["FORGEHAND_PORT"]
    assert front["profiles"] == ["front"]
    assert front["command"].split()[-2:] == ["--to", f"forgehand:{port}"]
    assert front["read_only"] is True and front["cap_drop"] == ["ALL"]


def test_nothing_but_what_is_copied_goes_to_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = {name for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE) for name in line.split()[:-1]}
    assert lines[1] == "*", "an .env with keys, a clone's history"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
