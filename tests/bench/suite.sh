# shellcheck shell=bash disable=SC2034
# How ./check bench runs this folder (see the top of ./check).
CC_BUILD=$CC_ROOT/build/release
CC_LIMITS=$CC_ROOT/tests/e2e/limits-open.conf
CC_EXTRA=$CC_ROOT/tests/bench/settings.ini
SUITE_INSTANCE=yes
