#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Upgrade the package and its journal. Nova is already upgraded and runs with the
# old package: the two can be upgraded in any order.

set -o errexit

source "$GRENADE_DIR/grenaderc"
source "$GRENADE_DIR/functions"

# Required by DevStack's functions to identify the distribution.
GetDistro

source "$TARGET_DEVSTACK_DIR/stackrc"
source "$TARGET_DEVSTACK_DIR/lib/tls"
source "$TARGET_DEVSTACK_DIR/lib/apache"
source "$TARGET_DEVSTACK_DIR/lib/nova"
source "$TARGET_DEVSTACK_DIR/lib/database"
# This file is in the checkout of the new package: a job has it in the directory of
# the new release, and a run of grenade.sh by hand in that of the plugins only.
plugin=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$plugin/settings"
source "$plugin/lib/aggregate_mirror"
source "$plugin/upgrade/journal.sh"

set -o xtrace

install_aggregate_mirror

# Nova-api still has the old package loaded.
stop_process n-api
# The journal that is upgraded is the saved one: what nova-api has recorded since
# is lost, as after a restored backup, and repaired by the next full sync.
restore_journal
# The configuration is kept: an upgrade must not require changes to it.
migrate_aggregate_mirror
start_nova_api

start_aggregate_mirror
check_aggregate_mirror
ensure_services_started n-api aggregate-mirror
