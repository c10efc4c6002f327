"""A software bill of materials from a lock file: CycloneDX 1.6 as JSON.

The lock has each package with its version, and in `# via` comments who needs it. From these come the components and the
graph of dependencies. Licenses are those that the installed packages declare. Same input, same bytes.

    cryptography==50.0.2 \\               →  {"name": "cryptography", "version": "50.0.2", "purl": "pkg:pypi/…"}
        --hash=sha256:… \\
        # via diptych (pyproject.toml)     →  {"ref": "pkg:pypi/diptych@…", "dependsOn": ["pkg:pypi/cryptography@…"]}
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]+?))? ?\\?$")
_VIA = re.compile(r" +# +(?:via )?([A-Za-z0-9._-]+)(?: \(pyproject\.toml\))?$")


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of a lock."""

    name: str
    version: str
    marker: str
    needed_by: tuple[str, ...]


def pins(lock: str) -> Iterator[Pin]:
    """The packages of a lock file."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock):
        first, *lines = block.splitlines()
        if found := _PIN.match(first):
            needed_by = tuple(via[1] for line in lines if (via := _VIA.match(line)) and via[1] != "via")
            yield Pin(found[1], found[2], found[3] or "", needed_by)


def sbom(name: str, version: str, license_id: str, lock: str, date: str) -> str:
    """The bill of materials of a project with what its lock pins, as JSON."""
    found = sorted(pins(lock), key=lambda pin: pin.name)
    refs = {pin.name: _purl(pin.name, pin.version) for pin in found} | {name: _purl(name, version)}
    needs: dict[str, list[str]] = {each: [] for each in refs}
    for pin in found:
        for parent in pin.needed_by:
            needs[parent].append(refs[pin.name])
    root = _component("application", name, version, {"licenses": [{"license": {"id": license_id}}]})
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, refs[name] + lock)}",
        "version": 1,
        "metadata": {"timestamp": f"{date}T00:00:00Z", "component": root},
        "components": [_component("library", pin.name, pin.version, _about(pin)) for pin in found],
        "dependencies": [{"ref": refs[each], "dependsOn": sorted(needs[each])} for each in sorted(refs)],
    }
    return json.dumps(document, indent=2) + "\n"


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"


def _component(kind: str, name: str, version: str, more: dict[str, Any]) -> dict[str, Any]:
    purl = _purl(name, version)
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}


def _about(pin: Pin) -> dict[str, Any]:
    """What else is known of a package: its license, and where it is needed."""
    about: dict[str, Any] = {}
    if license_text := _license(pin.name):
        about["licenses"] = [{"expression": license_text}]
    if pin.marker:
        about["properties"] = [{"name": "python:environment-marker", "value": pin.marker}]
    return about


def _license(name: str) -> str:
    """The license expression of an installed package; none if it is not installed, or tells none (PEP 639)."""
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    return str((metadata.get_all("License-Expression") or [""])[0])
