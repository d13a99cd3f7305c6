"""What went wrong on a network is told in our words, whichever library it comes from."""

from __future__ import annotations

import errno

import httpx
import pytest

from studio.services.network_faults import network_fault

ASKED = httpx.Request("GET", "http://127.0.0.1:9")


class ConnectError(Exception):
    """As of another httpx than ours."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ReadTimeout("timed out"), "nothing came for a while"),
        (httpx.ConnectError("All connection attempts failed"), "it cannot be reached"),
        (ConnectError("All connection attempts failed"), "it cannot be reached"),
        (httpx.RemoteProtocolError("peer closed connection"), "the connection was lost"),
        (
            httpx.HTTPStatusError("Client error", request=ASKED, response=httpx.Response(404)),
            "it answered with status 404",
        ),
        (OSError(errno.ECONNREFUSED, "Connection refused"), "nobody listens there"),
        (ValueError("Repo id must be"), "what came is not what was asked for"),
    ],
)
def test_no_word_of_a_librarys_is_passed_on(error: Exception, words: str) -> None:
    assert network_fault(error) == words
