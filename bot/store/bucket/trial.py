"""Tries out a bucket before files depend on it."""

from __future__ import annotations

import uuid

from bot.settings import BucketSettings
from bot.store.bucket.client import BucketClient
from bot.store.bucket.faults import BucketTrouble

TRIAL_SECONDS = 10.0


async def try_out(settings: BucketSettings) -> None:
    """Write, read, list and remove one object; BucketTrouble if any of that is refused."""
    client = BucketClient(settings, TRIAL_SECONDS)
    key, data = f"{settings.prefix}doctor-{uuid.uuid4().hex}", b"Forgehand tries out this bucket.\n"
    try:
        await client.put(key, data)
        listed = [one.key async for page in client.objects(key) for one in page]
        uploads = [one async for page in client.uploads(key) for one in page]
        if await client.get(key, 0, len(data)) != data or listed != [key] or uploads:
            fix = "Use a service whose reads and listings show what was written before."
            raise BucketTrouble(settings.name, "does not return what was stored", fix)
        await client.delete(key)
    finally:
        await client.close()
