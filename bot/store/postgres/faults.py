"""Translates PostgreSQL's errors into ours, by their SQLSTATE."""

from __future__ import annotations

import psycopg

from bot.errors import BotError, StoreError, TransientError

_LOST = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
"""The connection is gone, the server stops or starts, or it ended a session that stood still."""
_BUSY = ("40001", "40P01", "55P03", "57014")
_FULL = ("53",)
_STANDBY = ("25006",)
_DENIED = ("42501", "28")


def state_of(error: BaseException) -> str:
    """Return the SQLSTATE; empty if the server named none: the connection broke, or was never made."""
    return getattr(error, "sqlstate", None) or ""


def is_lost(error: BaseException) -> bool:
    """Where the server has said a state, the class of the error does not count: that of 25P03 is InternalError."""
    if state := state_of(error):
        return state.startswith(_LOST)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def may_pass(error: BaseException) -> bool:
    """Tell whether the same transaction may succeed a moment later."""
    return is_lost(error) or state_of(error) in _BUSY


def translate(error: BaseException) -> BaseException:
    """Return our error for a fault of the database or the network; a broken constraint or a bug stays as it is."""
    if isinstance(error, BotError) or not isinstance(error, psycopg.Error):
        return error
    state = state_of(error)
    if is_lost(error):
        return TransientError("PostgreSQL cannot be reached at the moment.", retry_after=5.0)
    if state in _BUSY:
        return TransientError("PostgreSQL is busy with other writers.", retry_after=5.0)
    if state.startswith(_FULL):
        return TransientError("PostgreSQL has no room or no connections left.", retry_after=30.0)
    if state in _STANDBY:
        return TransientError("PostgreSQL is read-only: a standby, or one that is being switched.", retry_after=10.0)
    if state.startswith(_DENIED):
        return StoreError("PostgreSQL refuses Forgehand's user. It must own the schemas bot and dbos.")
    return error
