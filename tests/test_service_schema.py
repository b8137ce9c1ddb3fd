"""Requests made from the OpenAPI document, good ones and bad ones: no 5xx, answers as described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kimble_app.service.app import make_app
from tests.serving import serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    (method.upper(), path)
    for path, ways in make_app().openapi()["paths"].items()
    for method in ways
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(tmp_path_factory.mktemp("schema")) as url:
        yield schemathesis.openapi.from_url(f"{url}/v1/openapi.json")


def try_out(api: Any, method: str, path: str, examples: int) -> None:
    """Send that many requests that fit the document, and as many that do not."""
    operation = api[path][method]

    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        if mode == GenerationMode.NEGATIVE and path in ("/v1/health", "/v1/metrics", "/v1/models"):
            continue  # nothing in it that could be wrong

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            case.call_and_validate(checks=CHECKS, timeout=300)

        run()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_route_keeps_to_its_document(api: Any, method: str, path: str) -> None:
    try_out(api, method, path, 8)


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_route_keeps_to_its_document_for_long(api: Any, method: str, path: str) -> None:
    try_out(api, method, path, 300)
