#!/usr/bin/env bash
# Regenerates src/frontend/onnx/generated/onnx_pb.ts from the schema that the PyPI package `onnx` ships
# (onnx/onnx-ml.proto, Apache-2.0). Everything is downloaded into a temporary folder. As upstream's own
# gen_proto.py does, the proto2 file is turned into proto3 (no presence, open enums) by dropping `optional`;
# comments are dropped too, the documentation is upstream's. Lists of numbers become lists of bytes, which is what
# their packed form is on the wire: they are read from there straight to where they belong (packed-list.ts).
set -euo pipefail
onnx=1.23.2
protobuf=2.13.0
buf=1.75.0
target="$(cd "$(dirname "$0")/.." && pwd)/src/frontend/onnx/generated"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
pip download --quiet --no-deps "onnx==$onnx" -d wheel
unzip -q -o wheel/*.whl onnx/onnx-ml.proto -d wheel
mkdir proto
sed -E -e 's|//.*$||' -e 's/syntax = "proto2"/syntax = "proto3"/' -e 's/^([[:space:]]*)optional /\1/' \
  -e 's/repeated (float|double|int32|int64|uint64) (floats|ints|[a-z0-9]+_data) /repeated bytes \2 /' \
  -e 's/ *\[packed = true\]//' -e '/^[[:space:]]*$/d' -e '/option optimize_for/d' wheel/onnx/onnx-ml.proto > proto/onnx.proto
cat > package.json <<'JSON'
{ "private": true, "type": "module" }
JSON
npm install --silent --ignore-scripts "@bufbuild/protoc-gen-es@$protobuf" "@bufbuild/buf@$buf"
cat > buf.yaml <<'YAML'
version: v2
modules: [{ path: proto }]
YAML
cat > buf.gen.yaml <<'YAML'
version: v2
plugins:
  - local: ./node_modules/.bin/protoc-gen-es
    out: out
    opt: [target=ts, import_extension=none]
YAML
./node_modules/.bin/buf generate
mkdir -p "$target"
{
  printf '/**\n * Generated: do not edit. The messages of the ONNX wire format (ModelProto and what it holds).\n'
  printf ' * Source: onnx-ml.proto of the PyPI package onnx %s (Copyright ONNX Project Contributors, Apache-2.0)\n' "$onnx"
  printf ' * as proto3, lists of numbers as packed bytes.\n'
  printf ' * Regenerate with scripts/generate-onnx-schema.sh (protoc-gen-es %s).\n */\n' "$protobuf"
  # The comments only repeat the declarations. Enums become constant objects (erasable syntax only).
  sed -E -e '/^ *\/\*\*$/,/^ *\*\/$/d' -e '/^\/\* eslint/d' -e '/^$/d' out/onnx_pb.ts |
    awk '/^export enum/ { name = $3; print "export const " name " = {"; next }
         name != "" && /^}/ { print "} as const;\nexport type " name " = (typeof " name ")[keyof typeof " name "];"; name = ""; next }
         name != "" { sub(/ = /, ": ") }
         { print }'
} > "$target/onnx_pb.ts"
