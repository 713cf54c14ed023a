#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions to save and restore the journal's database. Grenade's
# register_db_to_save restores none, and saves them only if DATABASE_TYPE is set
# in its environment.
#
# Dependencies: grenaderc, stackrc, lib/database and the plugin's settings. To be
# sourced before the commands are traced: the log must not have the password.

JOURNAL_SAVED=$SAVE_DIR/aggregate-mirror-journal.sql.$BASE_RELEASE

initialize_database_backends
if [[ "$DATABASE_TYPE" != "mysql" ]]; then
    die $LINENO "a journal in $DATABASE_TYPE cannot be saved"
fi
export MYSQL_PWD=$DATABASE_PASSWORD

function _dump_journal {
    # Nova-api may be writing. Comments have the time.
    mysqldump --user="$DATABASE_USER" --host="$MYSQL_HOST" \
        --single-transaction --skip-comments --add-drop-database \
        --databases "$AGGREGATE_MIRROR_DB" > "$1"
}

function save_journal {
    _dump_journal "$JOURNAL_SAVED"
}

# Replace the journal by the saved one, and check that nothing is missing.
function restore_journal {
    mysql --user="$DATABASE_USER" --host="$MYSQL_HOST" < "$JOURNAL_SAVED"
    _dump_journal "$JOURNAL_SAVED.restored"
    cmp "$JOURNAL_SAVED" "$JOURNAL_SAVED.restored" ||
        die $LINENO "the restored journal differs from the saved one"
}
