"""`forgehand`, and `python -m bot`."""

from __future__ import annotations

from bot.cli.main import app


def main() -> None:
    app()


if __name__ == "__main__":
    main()
