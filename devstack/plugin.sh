#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# DevStack plugin, sourced in each phase: plugin.sh MODE [PHASE].

source "$(dirname "${BASH_SOURCE[0]}")/lib/aggregate_mirror"

# Nova-api loads the package, and nova-scheduler with request filters; hosts with
# neither of them do not need it.
if is_service_enabled aggregate-mirror && is_service_enabled n-api; then
    case "$1 ${2:-}" in
        "stack install")
            echo_summary "Installing nova-aggregate-mirror"
            install_aggregate_mirror
            ;;
        "stack post-config")
            echo_summary "Configuring nova-aggregate-mirror"
            configure_aggregate_mirror
            init_aggregate_mirror
            ;;
        "stack extra")
            echo_summary "Starting nova-aggregate-mirror-agent"
            start_aggregate_mirror
            ;;
        "stack test-config")
            # The compute hosts are not mapped to cells before this phase.
            echo_summary "Checking nova-aggregate-mirror"
            check_aggregate_mirror
            smoke_test_aggregate_mirror
            ;;
    esac
elif [[ "$1 ${2:-}" == "stack install" ]]; then
    # DevStack keeps nova's environment and configuration between runs, so that
    # nova-api would load what a run with this service has installed.
    echo_summary "Removing nova-aggregate-mirror"
    remove_aggregate_mirror
fi

# In any case: the service may have been disabled after it was stacked.
case "$1" in
    "unstack")
        stop_aggregate_mirror
        ;;
    "clean")
        cleanup_aggregate_mirror
        ;;
esac
