# shellcheck shell=bash disable=SC2034
# How ./check runs this folder (see the top of ./check): the program as it is shipped, because builds
# with sanitizers have another allocator.
CC_BUILD=$CC_ROOT/build/release
CC_LIMITS=$CC_ROOT/tests/e2e/limits-open.conf
CC_EXTRA=$CC_ROOT/tests/canary/settings.ini
SUITE_SECONDS=600
