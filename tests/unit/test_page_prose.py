"""The agent's markdown on a session's page: it reads well, and nothing in it is more than text."""

from __future__ import annotations

import time

import pytest

from bot.web.pages.prose import prose


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("All **three** pass:\n\n- `a`\n- b", "<p>All <strong>three</strong> pass:</p>"),
        ("- `a`\n- b", "<li><code>a</code></li>"),
        ("# What I did", "<h3>What I did</h3>"),
        ("one\ntwo", "<p>one<br />\ntwo</p>"),
        ("```py\nx < 1\n```", '<pre><code class="language-py">x &lt; 1\n</code></pre>'),
        ("[why](https://docs.example/x)", '<a href="https://docs.example/x" rel="noreferrer nofollow">why</a>'),
        ("| a | b |\n|:-:|--:|\n| 1 | 2 |", "<td>1</td>\n<td>2</td>"),
    ],
)
def test_it_reads_as_in_a_comment(text: str, html: str) -> None:
    assert html in prose(text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "![seen](https://elsewhere.example/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](JAVASCRIPT&#58;alert(1))",
        "[x](data:text/html,y)",
        "[x](/installations/1)",
        "[x](//elsewhere.example)",
        "[x](https:///installations/1)",
        "<https:/installations/1>",
        "[a]: javascript:alert(1)\n\n[a]",
        "| a |\n|:-:|\n| <b onclick=x> |",
        '```"><script>\nx\n```',
    ],
)
def test_nothing_of_it_acts_in_the_page(text: str) -> None:
    html = str(prose(text))
    assert not any(part in html for part in ("<script", "<img", "<b ", "style=", 'href="/', 'javascript:alert(1)"'))
    assert "<a " not in html or 'href="https://elsewhere.example/' in html


@pytest.mark.parametrize("part", ["[", "![", "[a](", "*a_ ", "`", "**a ", "> ", "<a", "[\\"])
def test_no_text_keeps_those_waiting_who_watch(part: str) -> None:
    began = time.thread_time()
    prose(part * (20_000 // len(part)))
    prose(part * (9_999 // len(part)))
    assert time.thread_time() - began < 0.5
