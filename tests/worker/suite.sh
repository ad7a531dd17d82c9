# shellcheck shell=bash disable=SC2034
# The worker core has threads: its program is the one with the thread sanitizer.
CC_BUILD=$CC_ROOT/build/tsan
export WORKER_FIXTURE=$CC_BUILD/worker_fixture
