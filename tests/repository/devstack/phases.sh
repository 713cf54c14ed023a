#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plays the nova and plugin parts of stack.sh, unstack.sh or clean.sh, with the
# functions of a DevStack checkout and in the order of its scripts.

function phase {
    local before
    before=$(cat "$NOVA_CONF" 2> /dev/null || true)
    echo "phase $*" >> "$SANDBOX/commands"
    run_phase "$@"
    echo "phase" >> "$SANDBOX/commands"
    # DevStack writes nova.conf in the background at the same time.
    [[ "$(cat "$NOVA_CONF" 2> /dev/null || true)" == "$before" ]] ||
        die $LINENO "the plugin changed nova.conf"
}

function play_stack {
    initialize_database_backends
    define_database_baseurl
    async_init
    phase stack pre-install
    if is_service_enabled openstack-cli-server; then
        PYTHON=$DEVSTACK_VENV/bin/python3 install_openstack_cli_server
    fi
    configure_nova
    if is_service_enabled n-api; then
        configure_placement
        configure_placement_nova_compute
    fi
    phase stack install
    init_nova
    phase stack post-config
    if is_service_enabled n-api; then
        start_nova_api
        start_placement
    fi
    phase stack extra
    service_check
    phase stack test-config
    mkdir -p "$SANDBOX/etc/bash_completion.d"
    touch "$SANDBOX/etc/bash_completion.d/osc.bash_completion"
}

function play_unstack {
    phase unstack
    stop_nova
    cleanup_nova
}

function play_clean {
    phase clean
    sudo rm -rf "$NOVA_CONF_DIR"
}

source "$TOP_DIR/functions"
source "$TOP_DIR/lib/stack"
GetDistro
source "$TOP_DIR/stackrc"
for library in database rpc_backend apache tls keystone nova placement; do
    source "$TOP_DIR/lib/$library"
done
run_phase source

set -o errexit
"play_$1"
