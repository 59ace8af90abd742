"""The demo's private package: the shop's setup installs it through the gateway, and a check needs it."""

from __future__ import annotations

from bot.simulation.registries import SimulatedRegistries, archives
from bot.simulation.scenarios import discount

REGISTRY = "acme"
KIND = "pypi"
PACKAGE, MODULE = "acme-prices", "acme_prices"
SETUP = f"python3 -m pip install --quiet --target . {PACKAGE}"
CHECK = f"python3 -c 'import {MODULE}'"
FILES = {
    **discount.FILES,
    ".gitignore": f"__pycache__/\n{MODULE}*/\n",
    ".github/forgehand.yml": (
        f"registries: [{REGISTRY}]\nsetup:\n  - {SETUP}\nchecks:\n  - python3 -m unittest -q\n  - {CHECK}\n"
    ),
}


def stock(registries: SimulatedRegistries) -> None:
    registries.shelf(KIND).put(archives.wheel(PACKAGE, "2.1.0"))
