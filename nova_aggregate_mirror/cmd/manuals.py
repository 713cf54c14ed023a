# SPDX-License-Identifier: Apache-2.0
"""What ``--help`` of each program prints first: commands with examples."""

AGENT = '''\
usage: nova-aggregate-mirror-agent [OPTION]...

Mirror host aggregates to placement until SIGTERM: the operations in the
journal every second, and all of nova at an interval.

  nova-aggregate-mirror-agent
      with the configuration files that nova finds
  nova-aggregate-mirror-agent --config-file /etc/nova/nova.conf
      with this file only

SIGHUP reloads the configuration. SIGUSR2 writes a guru meditation report.
'''

MANAGE = '''\
usage: nova-aggregate-mirror-manage [OPTION]... COMMAND ...

Commands:
  placement sync_aggregates  Make placement's aggregates equal to nova's
      nova-aggregate-mirror-manage placement sync_aggregates --dry-run
  placement wait             Wait until placement has hosts in all aggregates
      nova-aggregate-mirror-manage placement wait --host cmp-1
  placement audit_servers    List servers on hosts that contradict the request
      nova-aggregate-mirror-manage placement audit_servers --zone az-1
  report                     Write an HTML page with the differences
      nova-aggregate-mirror-manage report --html /var/lib/nova/report.html
  scheduling explain         Explain which hosts a server can be scheduled to
      nova-aggregate-mirror-manage scheduling explain --flavor m1.large
  journal list               List the operations in the journal
      nova-aggregate-mirror-manage journal list --format json
  journal retry              Make the agent retry failed rows immediately
      nova-aggregate-mirror-manage journal retry
  journal forget             Delete rows although they are not mirrored
      nova-aggregate-mirror-manage journal forget \\
          1d9b1dca-0b0a-4d8a-8b5f-2a4e9a3c9a55
  db sync                    Create or upgrade the journal's tables
      nova-aggregate-mirror-manage db sync
  db version                 Print the version of the journal's tables
      nova-aggregate-mirror-manage db version

"COMMAND --help" has the arguments and exit statuses of a command. The options
below precede the command.
'''

STATUS = '''\
usage: nova-aggregate-mirror-status [OPTION]... COMMAND ...

Commands:
  upgrade check  Check the deployment, and print commands that repair it
      nova-aggregate-mirror-status upgrade check
      nova-aggregate-mirror-status upgrade check --format json

"upgrade --help" has the arguments. The options below precede the command.
'''
