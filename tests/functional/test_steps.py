# SPDX-License-Identifier: Apache-2.0
"""The next steps of failures, each of which the fault matrix follows."""

import ast
from collections import abc
import pathlib
import re

import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror import causes
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database
from tests.functional import test_fault_matrix
from tests.unit import servers

ROOT = pathlib.Path(nova_aggregate_mirror.__file__).parent
CHECKS = 'journal', 'nova', 'placement', 'runner'
"""Modules with checks of the mirror; others read nova's aggregates."""
FINDINGS = {'failure': 0, 'warning': 0}
"""The argument of a finding that has the step; what it announces follows."""

CLIENT = 'of the openstack client, whose user the matrix does not change: '
LISTS = 'it lists more, and cures nothing'
PACKAGES = 'the tests have this package: '
USERS = 'needs the files of two users: tests.unit.journal.db.test_sqlite'
AGENT = 'the matrix runs no agent of its own: tests.unit.checks.test_journal'
LIMITED = 'needs other users: tests.functional.test_journal_databases'
SET = 'what nova-scheduler is set to: tests.unit.checks.test_nova'
CLOUD = 'followed on a real cloud: tests.cloud.situations.cases.'
UNFOLLOWED = {
    'Correct the name, reinstall': SET, 'For each provider, list': SET,
    'Run:': SET, 'Set, ': SET,
    'change the request, or the metadata': CLOUD + 'aggregates',
    'delete ports, or add a subnet': CLOUD + 'networks',
    'see nova-compute.log of the host': 'tests.functional.test_explain',
    'start nova-compute on that host': CLIENT + 'it has rows for each cause',
    'connect each placement that': 'tests.unit.reconcile.test_full_sync',
    'on %s, let the user in %s connect': LIMITED,
    'raise max_user_connections on %s': LIMITED,
    'on %s, raise that limit of the user': LIMITED,
    'raise the connection limit of the database': LIMITED,
    'run "mysqladmin flush-hosts" on %s': LIMITED,
    'In nova-api\'s environment, run': PACKAGES + 'tests.unit.checks',
    'In nova-scheduler\'s environment': PACKAGES + 'tests.unit.checks',
    'find it with "fuser -v %s"': LISTS,
    'make room in %s': 'needs a full disk: tests.unit.journal.db.test_sqlite',
    'run "chmod u+rwX %s"': 'tests.unit.checks.test_nova',
    'run this as its owner, user %s': USERS,
    'Run nova-api, the agent and the commands as %s, then run': USERS,
    'run the program as the user of nova-api': 'tests.unit.cmd.test_program',
    'Restart nova-api on each controller': 'tests.unit.checks.test_journal',
    'Set this for all of nova\'s services': 'tests.functional.test_galera',
    'Start an agent': AGENT, 'Start one with the': AGENT,
    'To list the reason of each, run': LISTS,
    'Upgrade placement to 2.0.0': PACKAGES + 'tests.unit.checks',
    'make room on %s': 'needs a disk that is full',
    'raise max_connections': 'the other tests use the same server',
    'raise [aggregate_mirror] inline_timeout': 'tests.functional.test_budget',
    'correct its uuid in the table': 'tests.functional.test_odd_columns',
    'give its properties with': 'tests.functional.test_explain_command',
    'give the user a role': CLIENT + 'tests.functional.test_api_source',
    'correct the argument, or': 'tests.functional.test_manage',
    'delete it; the default then applies': 'tests.unit.test_option_values',
    'correct the clock of this host': 'tests.unit.checks.test_placement',
    'see the kernel log of this host': LISTS,
    'run this again': 'tests.functional.test_api_source',
    'run "nova-manage db sync"': 'a cell has its tables before nova runs',
    'complete this section': 'the status check has the lines',
    'run "openstack aggregate add host': 'tests.unit.console.test_wait_run',
    'run "%s" once': 'the status check has it as a command',
    'see which session': 'tests.functional.test_row_locks',
    'let this host reach': 'needs a network with several hosts',
    'let %s agree with the TLS settings': 'tests.unit.limits.test_engines',
    'raise the limit of open files': 'tests.unit.limits.test_driver_failures',
    'raise max_overflow': 'tests.functional.test_budget',
    'correct scheme and port': 'tests.unit.http.test_transport',
    'let this process create': USERS,
    'give your user a role': CLIENT + 'diff writes nothing',
    'use nova 19.0 (Stein)': CLIENT + 'tests.functional.test_api_source',
    'install the package': PACKAGES + 'tests.unit.limits.test_driver_failures',
    'correct the row that has NULL': 'tests.functional.test_odd_columns',
}
"""Beginnings of steps that no row has: what follows them, or why none does."""

Names = abc.Mapping[str, ast.expr]


def assigned(tree: ast.AST, prefix: str = '') -> dict[str, ast.expr]:
    """Map the names of constants, also of classes, to their values."""
    return {prefix + target.id: node.value for node in ast.walk(tree)
            if isinstance(node, ast.Assign) for target in node.targets
            if isinstance(target, ast.Name)}


def texts(node: ast.expr, names: Names) -> list[str]:
    """List the texts that an expression may be, with their placeholders."""
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.Name() | ast.Attribute() if ast.unparse(node) in names:
            return texts(names[ast.unparse(node)], {})
        case ast.BinOp(left=left, op=ast.Mod()):
            return texts(left, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [first + second for first in texts(left, names) or ['%s']
                    for second in texts(right, names) or ['%s']]
        case ast.IfExp(body=body, orelse=other):
            return texts(body, names) + texts(other, names)
        case ast.BoolOp(values=values):
            return [text for value in values for text in texts(value, names)]
    return []


def announced(call: ast.Call, names: Names) -> abc.Iterator[str]:
    """List the steps of a finding: its last sentence, and the first line."""
    place = FINDINGS[call.func.attr]
    lines = call.args[place + 1:]
    if not lines:
        # It has none, or that of its error.
        return
    for text in (texts(call.args[place], names) if call.args[place:] else ()):
        sentence = text.rpartition('. ')[2]
        [first, *_others] = texts(lines[0], names) or ['']
        yield sentence + ('\n  ' + first if first else '')


def steps() -> abc.Iterator[str]:
    """List the texts of all steps: those of errors, and those of checks."""
    constants = [value for value in vars(causes).values()
                 if isinstance(value, causes.Cause)]
    for cause in (*constants,
                  *map(causes.module_missing, ('MySQLdb', 'pymysql', 'x')),
                  *(causes.certificate_refused(code, '')
                    for code in (0, 9, 18, 62)), causes.OUT_OF_TIME.in_call()):
        # What is a step of the party alone is below.
        template = re.sub('{[a-z]+}', '%s', cause.step)
        yield from filter(None, [template if template != '%s' else ''])
    accounts = [auth.party(servers.make_conf(
        auth_type=kind, username='mirror'), 'placement')
        for kind in ('password', 'v3applicationcredential')]
    for party in *accounts, causes.openstack_client('placement'):
        yield from (party.tokens, party.role)
    for party in engine.PARTY, connections.PARTY, causes.cell('one'):
        yield party.schema
    yield from (source.RESTART, result.NO_PROVIDER, database.MAP,
                database.MAP_AGAIN, database.REMOVE,
                re.sub('{[a-z]+}', '%s', database.RENAME),
                api.UNLISTED[1], result.NODE_UUID)
    trees = {path: ast.parse(path.read_text())
             for path in sorted(ROOT.rglob('*.py'))}
    everywhere = {}
    for path, tree in trees.items():
        module = path.parent if path.stem == '__init__' else path
        everywhere |= assigned(tree, module.stem + '.')
    # Of what gives access to placement, as its clients have it.
    everywhere['placement.options'] = ast.Constant(
        'region_name or valid_interfaces of [placement] in nova.conf')
    for path, tree in trees.items():
        names = {**everywhere, **assigned(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == 'step':
                yield from filter(None, (
                    re.sub('{[a-z]+}', '%s', text)
                    for text in texts(node.value, names)))
            elif isinstance(node, ast.Call) and path.stem in CHECKS and (
                    getattr(node.func, 'attr', '') in FINDINGS):
                yield from announced(node, names)


def is_followed(step: str) -> bool:
    """Check whether the advice of a row is this step, or begins it."""
    pattern = re.sub('%[sdg]', '.*', re.escape(step))
    advices = [advice for table in test_fault_matrix.TABLES
               for row in table.values() for advice in (row.step, row.line)]
    return any(re.search(pattern, advice) or advice.strip() in step
               for advice in filter(None, advices))


class TestSteps(testtools.TestCase):

    def test_a_failure_advises_one_thing(self) -> None:
        """A step is one sentence, or a part of one, and checks nothing."""
        for text in steps():
            for several in '. ', 'Check ', 'check ':
                self.assertNotIn(several, text)

    def test_each_step_is_followed(self) -> None:
        """By the matrix, after which the fault is gone; others say why not."""
        remaining = {step for step in steps() if not is_followed(step)}
        for beginning in UNFOLLOWED:
            steps_of = {step for step in remaining
                        if step.startswith(beginning)}
            self.assertNotEqual(set(), steps_of, beginning)
            remaining -= steps_of
        self.assertEqual(set(), remaining)
