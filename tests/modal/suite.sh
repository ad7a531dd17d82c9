# shellcheck shell=bash
# The same as for the other clouds; a folder of its own, so that both run at the same time.
# shellcheck source=tests/clouds/suite.sh
source tests/clouds/suite.sh
