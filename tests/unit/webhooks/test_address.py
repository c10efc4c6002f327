"""Addresses that webhooks may be sent to: what is public, and every known way to name what is not."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from diptych.webhooks.address import RefusedAddress, Resolver, is_public, parts_of
from tests.support.cases import cases

PRIVATE = (
    # loopback, in every form that a resolver takes
    *(
        "127.0.0.1",
        "127.255.255.254",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "017700000001",
    ),
    *("0.0.0.0", "0", "0.1.2.3"),
    # link-local, where clouds have their metadata
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.0.1"),
    # private, shared, special and reserved
    *("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "100.64.0.1"),
    *("100.127.255.255", "192.0.0.1", "192.0.0.171", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1"),
    *("203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    # IPv6 of its own
    *("[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]"),
    *("[100::1]", "[3fff::1]", "[5f00::1]", "[4000::1]"),
    # IPv6 with an IPv4 address inside
    *("[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::10.0.0.1]", "[64:ff9b::a9fe:a9fe]"),
    *("[2002:7f00:1::]", "[2002:0a00:0001::1]", "[2001:0:4136:e378:8000:63bf:f5ff:fffe]", "[2001::1]"),
    *("[2a01:4f8::5efe:10.0.0.1]", "[::ffff:0:127.0.0.1]"),
)
PUBLIC = (
    "93.184.215.14",
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "[2606:4700:4700::1111]",
    "[::ffff:8.8.8.8]",
)
MALFORMED = (
    *("", "ftp://example.org/", "//example.org/", "example.org", "https://", "https:///path", "https://exa mple.org/"),
    *("https://user@example.org/", "https://a:b@example.org/", "https://example.org/#x", "https://example.org:0/"),
    *(
        "https://example.org:99999/",
        "https://exämple.org/",
        "https://example.org/\r\nHost: x",
        "https://example.org\\@10.0.0.1/",
    ),
    *(
        "https://[::1/",
        "https://-a.example/",
        "https://a..b/",
        "https://" + "a" * 3_000 + ".example/",
        "file:///etc/passwd",
    ),
    *("https://256.1.1.1/", "https://1.2.3.4.5.6%00/", "https://[fe80::1%25eth0]/"),
)


@cases("host", PRIVATE)
def test_no_address_behind_the_service_is_reached(host: str) -> None:
    with pytest.raises(RefusedAddress):
        asyncio.run(Resolver().resolve(parts_of(f"https://{host}/")))


def test_there_are_at_least_sixty_of_them() -> None:
    assert len({*PRIVATE}) >= 60


@cases("host", PUBLIC)
def test_public_addresses_are_reached(host: str) -> None:
    found = asyncio.run(Resolver().resolve(parts_of(f"https://{host}/")))
    assert ipaddress.ip_address(found) == ipaddress.ip_address(host.strip("[]"))


@cases("url", MALFORMED)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(RefusedAddress):
        asyncio.run(Resolver(lookup=lambda host, port: ["8.8.8.8"]).resolve(parts_of(url)))


def test_a_name_is_refused_if_any_of_its_addresses_is() -> None:
    for addresses in (["10.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["8.8.8.8", "::1"], ["8.8.8.8", "nonsense"]):
        resolver = Resolver(lookup=Mock(return_value=addresses))
        with pytest.raises(RefusedAddress):
            asyncio.run(resolver.resolve(parts_of("https://example.org/")))


def test_a_name_that_changes_its_address_is_asked_once_for_a_connection() -> None:
    answers: Iterator[list[str]] = iter((["8.8.8.8"], ["127.0.0.1"]))
    resolver = Resolver(lookup=lambda host, port: next(answers))
    assert asyncio.run(resolver.resolve(parts_of("https://example.org/"))) == "8.8.8.8"
    with pytest.raises(RefusedAddress):  # the next connection is checked anew
        asyncio.run(resolver.resolve(parts_of("https://example.org/")))


def test_without_tls_only_networks_of_the_setting_are_reached() -> None:
    with pytest.raises(RefusedAddress):
        asyncio.run(Resolver().resolve(parts_of("http://8.8.8.8/")))
    with pytest.raises(RefusedAddress):
        asyncio.run(Resolver("10.0.0.0/8").resolve(parts_of("http://8.8.8.8/")))
    assert asyncio.run(Resolver("10.0.0.0/8, 127.0.0.1").resolve(parts_of("http://10.1.2.3/"))) == "10.1.2.3"
    assert asyncio.run(Resolver("*").resolve(parts_of("http://127.0.0.1/"))) == "127.0.0.1"
    with pytest.raises(RefusedAddress):
        asyncio.run(Resolver("10.0.0.0/8").resolve(parts_of("https://127.0.0.1/")))


def test_no_special_purpose_network_is_public() -> None:
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "fc00::/7",
    ):
        network = ipaddress.ip_network(text)
        for address in (network[0], network[1], network[-1]):
            assert not is_public(address), address
