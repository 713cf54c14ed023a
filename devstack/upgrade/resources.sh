#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Grenade resource: a mirrored aggregate that must survive the upgrade.

set -o errexit

source "$GRENADE_DIR/grenaderc"
source "$GRENADE_DIR/functions"

source "$TOP_DIR/openrc" admin admin

set -o xtrace

NAME=aggregate_mirror_grenade

function members {
    openstack --os-placement-api-version 1.29 resource provider list \
        --member-of "$1" -f value -c uuid
}

# Wait until placement has the wanted number of providers in the aggregate.
function wait_for_members {
    local uuid=$1
    local wanted=$2
    local found providers until
    until=$((SECONDS + SERVICE_TIMEOUT))
    while true; do
        found='an unknown number of'
        if providers=$(members "$uuid"); then
            found=$(wc -w <<< "$providers")
            if [[ $found -eq $wanted ]]; then
                return
            fi
        fi
        if [[ $SECONDS -gt $until ]]; then
            die $LINENO "placement has $found providers in aggregate $uuid"
        fi
        sleep 1
    done
}

function create {
    local host uuid
    host=$(openstack compute service list --service nova-compute \
        -f value -c Host | sort | sed -n 1p)
    uuid=$(openstack aggregate create "$NAME" -f value -c uuid)
    resource_save aggregate_mirror host "$host"
    resource_save aggregate_mirror uuid "$uuid"
    openstack aggregate add host "$NAME" "$host"
}

function verify {
    wait_for_members "$(resource_get aggregate_mirror uuid)" 1
}

# Check while nova-api is stopped that the saved journal knows the aggregate.
function verify_noapi {
    local uuid
    uuid=$(resource_get aggregate_mirror uuid)
    grep -q "$uuid" "$SAVE_DIR/aggregate-mirror-journal.sql.$BASE_RELEASE" ||
        die $LINENO "the saved journal does not have aggregate $uuid"
}

function destroy {
    openstack aggregate remove host "$NAME" \
        "$(resource_get aggregate_mirror host)"
    wait_for_members "$(resource_get aggregate_mirror uuid)" 0
    openstack aggregate delete "$NAME"
}

case $1 in
    "create")
        create
        ;;
    "verify")
        verify
        ;;
    "verify_noapi")
        verify_noapi
        ;;
    "destroy")
        destroy
        ;;
    "force_destroy")
        set +o errexit
        destroy
        ;;
esac
