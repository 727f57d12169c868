"""Validates documents: pairs of arguments, SCHEMA DOCUMENT. Prints what does not fit, and ends with 1 then.

Schemas are open, for readers have to pass over fields that they do not know. Here they are closed: a field that no schema
names is an error of the schema.
"""

import json
import sys

from jsonschema import Draft202012Validator


def closed(schema):
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # `properties` and `$defs` are maps of schemas, and no schemas.
    parts = {
        key: {name: closed(part) for name, part in value.items()}
        if key in ("properties", "$defs", "patternProperties")
        else closed(value)
        for key, value in schema.items()
    }
    if "properties" in parts:
        parts.setdefault("additionalProperties", False)
    return parts


wrong = 0
pairs = sys.argv[1:]
for path, document in zip(pairs[::2], pairs[1::2]):
    with open(path) as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    with open(document) as file:
        found = json.load(file)
    for error in Draft202012Validator(closed(schema)).iter_errors(found):
        wrong += 1
        print(f"{path}: {error.json_path}: {error.message[:300]}")
sys.exit(wrong > 0)
