"""Write the TypeScript client from the service's description: ``python docs/typescript.py``.

``docs/front-ends/kimble.ts`` is made from ``docs/openapi.json``: an interface for every schema, and
a method for every path. ``--check`` changes nothing and fails if the file is stale;
tests/test_front_ends.py does the same, type-checks it and uses it against a running service.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "openapi.json"
TARGET = ROOT / "front-ends" / "kimble.ts"

HEAD = """\
// Made from docs/openapi.json by docs/typescript.py: change those, not this.
// A typed client of `kimble serve` for browsers, Node 18 or newer, Deno and Bun; no dependencies.

/** What the service says when something is wrong. */
export class KimbleError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly field: string | null,
  ) {
    super(message);
  }
}
"""

CLIENT = """
export class Kimble {
  /** @param base address of the service  @param key access key, where the operator asks for one */
  constructor(
    readonly base: string = "http://127.0.0.1:8000",
    readonly key?: string,
  ) {}

  private async ask(
    method: string, path: string, query: object | undefined, body: object | undefined,
    secret?: string,
  ): Promise<Response> {
    const url = new URL(path, this.base);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    if (this.key !== undefined) headers["x-kimble-key"] = this.key;
    if (secret !== undefined) headers["authorization"] = `Bearer ${secret}`;
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const answer = await fetch(url, init);
    if (answer.ok) return answer;
    const text = await answer.text();
    let told: Partial<ErrorBody> = {};
    try {
      told = JSON.parse(text) as ErrorBody;
    } catch {
      told = { message: text };
    }
    throw new KimbleError(
      answer.status, told.code ?? "unknown", told.message ?? "no message", told.field ?? null,
    );
  }
"""


def type_of(schema: dict[str, Any]) -> str:
    """Return the TypeScript type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        parts = dict.fromkeys(type_of(part) for part in schema["anyOf"])
        return " | ".join(parts)
    kind = schema.get("type")
    if kind == "array":
        inner = type_of(schema.get("items", {}))
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object":
        return _record(schema)
    words = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean",
             "null": "null"}  # fmt: skip
    return words.get(str(kind), "unknown")


def _record(schema: dict[str, Any]) -> str:
    more = schema.get("additionalProperties", True)
    inner = type_of(more) if isinstance(more, dict) else "unknown"
    names = schema.get("propertyNames", {})
    if "enum" in names:
        return f"Partial<Record<{type_of(names)}, {inner}>>"
    return f"Record<string, {inner}>"


def comment(text: str | None, indent: str = "") -> str:
    """Return a text as a comment of its own lines, or nothing."""
    words = " ".join(str(text or "").split()).replace("*/", "* /")
    if not words:
        return ""
    lines, line = [], ""
    for word in words.split(" "):
        if line and len(indent) + len(line) + len(word) + 8 > 100:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    lines.append(line)
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    inner = "".join(f"{indent} * {text}\n" for text in lines)
    return f"{indent}/**\n{inner}{indent} */\n"


def interface(name: str, schema: dict[str, Any]) -> str:
    """Return the interface of a schema that is an object."""
    required = set(schema.get("required", ()))
    out = "\n" + comment(schema.get("description")) + f"export interface {name} {{\n"
    for field, inner in schema.get("properties", {}).items():
        mark = "" if field in required else "?"
        out += comment(inner.get("description"), "  ") + f"  {field}{mark}: {type_of(inner)};\n"
    if schema.get("additionalProperties") is True:
        out += "  [more: string]: unknown;\n"
    return out + "}\n"


def _camel(text: str) -> str:
    first, *rest = text.split("_")
    return first + "".join(word.capitalize() for word in rest)


def method(path: str, verb: str, operation: dict[str, Any]) -> str:
    """Return the method for one path: its name is that of the function behind it."""
    of_game = path.startswith("/v1/games")
    name = _camel(operation["operationId"].partition("_v1_")[0]) + ("Game" if of_game else "")
    given: list[str] = []
    query: list[str] = []
    place = path
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            given.append(f"{parameter['name']}: {type_of(parameter['schema'])}")
            place = place.replace(f"{{{parameter['name']}}}", f"${{{parameter['name']}}}")
        elif parameter["in"] == "query":
            query.append(f"{parameter['name']}?: {type_of(parameter['schema'])}")
    body = operation.get("requestBody")
    if body is not None:
        given.append(f"body: {type_of(body['content']['application/json']['schema'])}")
    if query:
        given.append(f"query: {{ {'; '.join(query)} }} = {{}}")
    if of_game:
        given.append("secret?: string")
    good = next(v for k, v in operation["responses"].items() if k.startswith("2"))
    content = good.get("content", {})
    as_json = "application/json" in content
    answer = type_of(content["application/json"]["schema"]) if as_json else "string"
    words = [json.dumps(verb.upper()), f"`{place}`", "query" if query else "undefined",
             "body" if body is not None else "undefined"]  # fmt: skip
    words += ["secret"] if of_game else []
    read = f"(await answer.json()) as {answer}" if as_json else "await answer.text()"
    return (
        "\n" + comment(operation.get("description"), "  ")
        + f"  async {name}({', '.join(given)}): Promise<{answer}> {{\n"
        f"    const answer = await this.ask({', '.join(words)});\n"
        f"    return {read};\n  }}\n"
    )  # fmt: skip


def client(document: dict[str, Any]) -> str:
    """Return the whole file for a description in OpenAPI."""
    out = HEAD
    for name, schema in document["components"]["schemas"].items():
        if schema.get("type") == "object":
            out += interface(name, schema)
        else:
            out += "\n" + comment(schema.get("description"))
            out += f"export type {name} = {type_of(schema)};\n"
    out += CLIENT
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            out += method(path, verb, operation)
    return out + "}\n"


def main() -> int:
    """Write the file, or with ``--check`` only tell whether it is fresh."""
    text = client(json.loads(SOURCE.read_text(encoding="utf-8")))
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv:
        print(f"{TARGET.name} is stale: python docs/typescript.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET.name} renewed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
