"""The cells file, and the tenant that a request names."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from diptych.cells.directory import Directory, read_directory
from diptych.config import Config
from diptych.errors import StartError
from diptych.setting_parsers import Issuer

HOST = 'address = "https://{tenant}.example.com"\n'
PATH = 'address = "https://example.com/t/{tenant}"\n'
CLAIM = 'address = "https://api.example.com"\nclaim = "org.id"\n'
CELLS = '[cells]\nacme = "sqlite:///acme.db"\nglobex-2 = "postgresql://db/globex"\n'
OTHERS = Config(issuers=(Issuer("https://login.example.com", "https://api.example.com"),))


def read(text: str, folder: Path, config: Config | None = None) -> Directory:
    file = folder / "cells.toml"
    file.write_text(text)
    return read_directory(file, config or Config())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cells = [", "cannot be read"),
        (HOST + 'tenants = "x"\n', "has no tenants; there are address, claim, cells"),
        ("address = 7\n", "must be a text"),
        (CELLS, "must be an https address"),
        ('address = "http://{tenant}.example.com"\n', "must be an https address"),
        ('address = "https://example.com/?t={tenant}"\n', "must be an https address"),
        ('address = "https://{tenant}.example.com/{tenant}"\n', "names the tenant twice"),
        ('address = "https://x-{tenant}.example.com"\n', "must be the whole first label"),
        ('address = "https://{tenant}"\n', "must be the whole first label"),
        ('address = "https://example.com/x-{tenant}"\n', "must be the whole last segment"),
        ('address = "https://example.com/{tenant}/api"\n', "must be the whole last segment"),
        ('address = "https://example.com"\n', "does not say how a request names its tenant"),
        (HOST + 'cells = "all"\n', "must be a table"),
        (HOST + '[cells]\nAcme = "sqlite:///a.db"\n', "'Acme' is no name"),
        (HOST + '[cells]\n"a.b" = "sqlite:///a.db"\n', "is no name of a tenant"),
        (HOST + '[cells]\n"a-" = "sqlite:///a.db"\n', "is no name of a tenant"),
        (HOST + "[cells]\nacme = 1\n", "needs a database"),
        (HOST + '[cells]\nacme = "mysql://x/y"\n', "needs a database"),
        (HOST + '[cells]\na = "sqlite:///x.db"\nb = "sqlite:///./y/../x.db"\n', "have the same database"),
        (HOST + '[cells]\na = "postgresql://db/x"\nb = "postgresql://me:word@DB:5432/x"\n', "have the same database"),
    ],
)
def test_what_is_wrong_is_said(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=sentence):
        read(text, tmp_path)


def test_tokens_of_other_issuers_need_a_claim(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="hold in every cell"):
        read(HOST + CELLS, tmp_path, OTHERS)
    directory = read(HOST.replace("\n", '\nclaim = "org"\n') + CELLS, tmp_path, OTHERS)
    (issuer,) = directory.config_of("acme", OTHERS).issuers
    assert issuer.required == {"org": "acme"}


def test_what_an_issuer_requires_is_required_in_every_cell(tmp_path: Path) -> None:
    issuer = Issuer("https://login.example.com", "https://api.example.com", required={"env": "live", "org": "other"})
    config = Config(issuers=(issuer,))
    directory = read(HOST.replace("\n", '\nclaim = "org"\n') + CELLS, tmp_path, config)
    (inside,) = directory.config_of("acme", config).issuers
    assert inside.required == {"env": "live", "org": "acme"}


@pytest.mark.parametrize(
    ("host", "tenant"),
    [
        (b"acme.example.com", "acme"),
        (b"ACME.example.com:8443", "acme"),
        (b"globex-2.example.com", "globex-2"),
        (b"nobody.example.com", None),
        (b"example.com", None),
        (b".example.com", None),
        (b"acme.example.com.evil.org", None),
        (b"acme.acme.example.com", None),
        (b"acmeexample.com", None),
        (b"", None),
        (b"acme.example.com\xff", None),
    ],
)
def test_a_host_names_its_tenant(host: bytes, tenant: str | None, tmp_path: Path) -> None:
    directory = read(HOST + CELLS, tmp_path)
    assert directory.tenant_of(b"/posts", {}, host) == tenant
    assert directory.config_of("acme", Config()).base_url == "https://acme.example.com"


@pytest.mark.parametrize(
    ("url", "tenant"),
    [
        (b"/t/acme/posts?x=/t/globex-2/", "acme"),
        (b"/t/acme", "acme"),
        (b"/t/nobody/posts", None),
        (b"/t/%61cme/posts", None),
        (b"/t//acme", None),
        (b"/x/t/acme/posts", None),
        (b"/posts", None),
        (b"/.well-known/oauth-authorization-server/t/acme", "acme"),
        (b"/.well-known/oauth-authorization-server", None),
    ],
)
def test_a_path_names_its_tenant(url: bytes, tenant: str | None, tmp_path: Path) -> None:
    directory = read(PATH + CELLS, tmp_path)
    assert directory.tenant_of(url, {}, b"acme.example.com") == tenant


def bearer(claims: object) -> bytes:
    def encoded(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"Bearer {encoded({'alg': 'RS256'})}.{encoded(claims)}.c2lnbmF0dXJl".encode()


@pytest.mark.parametrize(
    ("authorization", "tenant"),
    [
        (bearer({"org": {"id": "acme"}}), "acme"),
        (bearer({"org.id": "globex-2"}), "globex-2"),
        (bearer({"org": {"id": ["acme"]}}), None),
        (bearer({"org": "acme"}), None),
        (bearer({"org": {"id": "nobody"}}), None),
        (bearer(["acme"]), None),
        (b"Basic YWNtZQ==", None),
        (b"Bearer acme", None),
        (b"Bearer \xff.\xff.\xff", None),
        (b"", None),
    ],
)
def test_a_claim_names_its_tenant(authorization: bytes, tenant: str | None, tmp_path: Path) -> None:
    directory = read(CLAIM + CELLS, tmp_path)
    assert directory.tenant_of(b"/t/acme/posts", {b"authorization": authorization}, b"acme.example.com") == tenant
