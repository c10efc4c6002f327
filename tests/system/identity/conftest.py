"""The desk of the contract tests, for commands as well."""

from tests.contract.identity.conftest import new_desk, runner

__all__ = ["new_desk", "runner"]
