"""Where webhooks may go: the settings' hosts, and nothing that only looks like them."""

from __future__ import annotations

import re

import pytest

from rowlock.errors import InvalidJob
from rowlock.jobs.webhook import check_webhook, webhook_pattern
from rowlock.settings import Settings

HOSTS = ["hooks.example.com", "*.corp", "10.0.0.?", "::1"]


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com",
        "https://HOOKS.example.com/a?b=c#d",
        "http://hooks.example.com:65535/",
        "http://a.b.corp/hook",
        "http://10.0.0.7:80?x",
        "http://[::1]:8080/hook",
    ],
)
def test_an_address_on_an_allowed_host_is_taken(url):
    assert check_webhook(url, Settings(webhook_hosts=HOSTS)) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "https://hooks-example.com/",
        "https://hooks.example.com.evil.org/",
        "https://hooks.example.com@evil.org/",
        "https://user:word@hooks.example.com/",
        "https://evil.org/hooks.example.com",
        "https://evil.org#.corp",
        "https://evil.org:80.corp/",
        "https://evil.org\\.corp/",
        "http://hooks.example.com:65536/",
        "http://hooks.example.com:0/",
        "http://10.0.0.77/",
        "http://[::2]/",
        "ftp://hooks.example.com/",
        "http://hooks.example.com/\n",
        "http://hooks.example.com/ x",
        "http://",
        "http://[",
        "",
    ],
)
def test_nothing_else_is(url):
    with pytest.raises(InvalidJob) as caught:
        check_webhook(url, Settings(webhook_hosts=HOSTS))
    assert [one.pointer for one in caught.value.problems] == ["/webhookUrl"]


def test_without_hosts_there_is_nowhere_to_go():
    with pytest.raises(InvalidJob, match="ROWLOCK_WEBHOOK_HOSTS"):
        check_webhook("http://127.0.0.1/", Settings())
    assert not re.search(webhook_pattern([]), "http://127.0.0.1/")
