"""What pages make of a sentence of ours: code and addresses in it, and nothing of what somebody put there."""

from __future__ import annotations

import pytest

from bot.web.pages.wording import linked, ticked


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Tick `Active` there.", "Tick <code>Active</code> there."),
        ("At https://github.com/settings/apps/it.", 'At <a href="https://github.com/settings/apps/it"{}>{}</a>.'),
        ("(http://127.0.0.1:1/a/b-c)", '(<a href="http://127.0.0.1:1/a/b-c"{}>{}</a>)'),
        ("Not https://forgehand.invalid/webhook,", "Not https://forgehand.invalid/webhook,"),
        ("Nor https://your-host/webhook.", "Nor https://your-host/webhook."),
        ("<b>&</b> `<i>`", "&lt;b&gt;&amp;&lt;/b&gt; <code>&lt;i&gt;</code>"),
        ('https://a/"onclick="x', '<a href="https://a/"{}>{}</a>&#34;onclick=&#34;x'),
    ],
)
def test_a_sentence(said: str, shown: str) -> None:
    address = shown.partition('href="')[2].partition('"')[0]
    assert linked(ticked(said)) == shown.format(' target="_blank" rel="noopener noreferrer"', address)
