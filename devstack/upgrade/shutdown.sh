#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stop the agent of the old release and save its journal. Nova's own script stops
# nova-api later, which has the old package loaded.

set -o errexit

source "$GRENADE_DIR/grenaderc"
source "$GRENADE_DIR/functions"

source "$BASE_DEVSTACK_DIR/functions"
source "$BASE_DEVSTACK_DIR/stackrc"
source "$BASE_DEVSTACK_DIR/lib/tls"
source "$BASE_DEVSTACK_DIR/lib/apache"
source "$BASE_DEVSTACK_DIR/lib/nova"
source "$BASE_DEVSTACK_DIR/lib/database"
source "$BASE_RELEASE_DIR/nova-aggregate-mirror/devstack/settings"
source "$BASE_RELEASE_DIR/nova-aggregate-mirror/devstack/lib/aggregate_mirror"
source "$(dirname "${BASH_SOURCE[0]}")/journal.sh"

set -o xtrace

stop_aggregate_mirror
ensure_services_stopped aggregate-mirror

save_journal
