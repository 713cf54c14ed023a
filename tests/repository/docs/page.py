# SPDX-License-Identifier: Apache-2.0
"""The shell examples of a documentation page: pure, except for reading it.

An example is a ``console`` block. A comment of a single line may precede it::

    .. not run: why no test can run it
    .. exits 0 or 7: why it need not exit with 0
"""

from collections import abc
import dataclasses
import pathlib
import re

README = pathlib.Path(__file__).parents[3] / 'README.rst'
SOURCE = pathlib.Path(__file__).parents[3] / 'doc' / 'source'

_BLOCK = re.compile(r'^( *)\.\. code-block:: console$')
_NOT_RUN = re.compile(r'^ *\.\. not run: (.+)$')
_EXITS = re.compile(r'^ *\.\. exits ([0-9]+(?: or [0-9]+)*): (.+)$')
_TITLE = re.compile(r'^([=-])\1{2,}$')


@dataclasses.dataclass(frozen=True)
class Example:
    """A console block.

    :param line: the number of its first line in the page
    :param not_run: the reason why it is not run; empty when it is run
    :param exits: the exit statuses that each command may have
    """

    page: str
    line: int
    section: str
    commands: tuple[str, ...]
    not_run: str = ''
    exits: tuple[int, ...] = (0,)


def pages() -> list[str]:
    """List the pages that have examples, as Sphinx names them."""
    paths = [path.relative_to(SOURCE).with_suffix('')
             for path in SOURCE.rglob('*.rst')]
    return [name for name in sorted(map(str, paths)) if examples(name)]


def examples(page: str) -> list[Example]:
    """List the examples of a page, in order."""
    path = SOURCE / ('%s.rst' % page)
    return list(parse(page, path.read_text()))


def readme(section: str, *exits: int) -> Example:
    """Return the commands of a section of README, which have no prompts."""
    before, block = re.split(
        '(?<=\n%s\n)=+\n[^=]*?::\n\n' % re.escape(section),
        README.read_text(), maxsplit=1)
    commands = tuple(filter(None, _block(block.splitlines(), 0)))
    return Example('README', before.count('\n'), section, commands,
                   exits=exits)


def parse(page: str, text: str) -> abc.Iterator[Example]:
    """Parse the examples in the text of a page, in order."""
    lines = text.splitlines()
    section, not_run, exits = '', '', (0,)
    for number, line in enumerate(lines):
        where = '%s.rst:%s' % (page, number + 1)
        if _TITLE.match(line) and number and lines[number - 1]:
            section = lines[number - 1].strip()
        if found := _NOT_RUN.match(line):
            not_run = found[1]
        elif found := _EXITS.match(line):
            exits = tuple(map(int, found[1].split(' or ')))
        elif found := _BLOCK.match(line):
            block = _block(lines[number + 1:], len(found[1]))
            commands = tuple(_commands(block, where))
            yield Example(page, number + 1, section, commands, not_run, exits)
            not_run, exits = '', (0,)
        elif line and (not_run or exits != (0,)):
            raise ValueError('%s: the comment above is not followed '
                             'by a console block' % where)


def _block(lines: list[str], indent: int) -> list[str]:
    """Return the lines of a block, without their common indentation."""
    block = []
    for line in lines:
        if line.strip() and _indent(line) <= indent:
            break
        block.append(line)
    depth = min(map(_indent, filter(None, block)))
    return [line[depth:] for line in block]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _commands(block: list[str], where: str) -> abc.Iterator[str]:
    """Return the commands after prompts, with their continuation lines."""
    command: list[str] = []
    for line in block:
        if command and command[-1].endswith('\\'):
            command.append(line)
        elif line.startswith(('$ ', '# ')):
            if command:
                yield '\n'.join(command)
            command = [line[2:]]
        elif not command and line:
            raise ValueError('%s: %r has no prompt' % (where, line))
    if not command:
        raise ValueError('%s: there is no command' % where)
    yield '\n'.join(command)
