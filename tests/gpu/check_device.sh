#!/usr/bin/env bash
# The gpu tests, then the figures of parks, on a machine that has a CUDA device and of our tools only torch, pytest and
# gguf: no Qt, so that the project's own pytest settings do not hold. About five minutes; ends with the tests' status.
#
#   tests/gpu/check_device.sh [PYTHON]
set -u
cd "$(dirname "$0")/../.."
python=${1:-python3}
export PYTHONPATH="$PWD:$PWD/tests${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=PASSIVE

timeout 300 "$python" -m pytest -c /dev/null --rootdir=. --confcutdir=. --import-mode=importlib -p no:cacheprovider \
  -o "markers=gpu: needs a CUDA device" --strict-markers -n 3 --dist loadfile --timeout 150 -q -ra --durations=8 --tb=short \
  tests/gpu
status=$?
timeout 200 "$python" tests/bench/bench_cuda_parks.py
echo "tests: $status, figures: $?"
exit $status
