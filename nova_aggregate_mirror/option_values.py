# SPDX-License-Identifier: Apache-2.0
"""Options whose values cannot be used: where they are, and what is expected.

The errors of oslo.config lack the section, and its texts are Python's.
"""

from collections import abc
import contextlib
import difflib
import logging
import os
import pathlib
from typing import Any

from oslo_config import cfg
from oslo_config import types

from nova_aggregate_mirror import conf as package_options
from nova_aggregate_mirror import exceptions

LOG = logging.getLogger(__name__)
InvalidConfiguration = exceptions.InvalidConfiguration
_NO_HOOK = ('delete it for the default, mirror; if nova\'s own mirroring is '
            'to stay in effect, also set mode = observe')


def override_mistakes(conf: cfg.ConfigOpts,
                      values: abc.Mapping[Any, Any] | None = None
                      ) -> abc.Mapping[Any, InvalidConfiguration]:
    """Give options with invalid values those in ``values``, or the default.

    A name that is no option is only logged. Both map section and option.
    """
    for text in unknown_names(conf):
        LOG.warning('Not used: %s', text)
    mistakes = {}
    for group, option in list_options():
        if mistake := _mistake(conf, group, option):
            mistakes[group, option.dest] = mistake
            # Nova-api reads each option again to log it, and would not start.
            value = (values or {}).get((group, option.dest), option.default)
            conf.set_override(option.dest, value, group)
    return mistakes


def check(conf: cfg.ConfigOpts) -> None:
    """Check this package's options, as ``override_mistakes``.

    :raises InvalidConfiguration: names each option with an invalid value
    """
    if mistakes := '; '.join(map(str, override_mistakes(conf).values())):
        raise InvalidConfiguration(mistakes)


def invalid_option(conf: cfg.ConfigOpts, error: cfg.Error
                   ) -> InvalidConfiguration:
    """Return the error for what oslo.config raises about any option."""
    for _file, group, name, _value in entries(conf):
        section = None if group == 'DEFAULT' else group
        try:
            (conf[section] if section else conf)[name]
        except cfg.Error as exc:
            if str(exc) == str(error):
                option = conf._get_opt_info(name, section)['opt']
                return _invalid(conf, group, option, exc)
    return InvalidConfiguration('the configuration cannot be used: %s' % error)


def unknown_names(conf: cfg.ConfigOpts) -> list[str]:
    """Describe each name in this package's sections that is no option."""
    names = {group.name: [option.name for option in options]
             for group, options in package_options.list_opts()}
    texts = []
    for file, group, name, _value in entries(conf):
        if group in names and name not in names[group]:
            similar = difflib.get_close_matches(name, names[group], 1)
            step = 'rename it to ' + similar[0] if similar else 'delete it'
            texts.append('[%s] in %s sets %s, which is no option: %s'
                         % (group, file, name, step))
    return texts


def list_options() -> abc.Iterator[tuple[str, cfg.Opt]]:
    """List this package's options, each with its section."""
    for group, options in package_options.list_opts():
        for option in options:
            yield group.name, option


def entries(conf: cfg.ConfigOpts) -> abc.Iterator[tuple[str, str, str, str]]:
    """List file, section, name and value of what is set, in nova's order."""
    # Oslo.config registers these options when it starts to read the files.
    if 'config_file' not in conf:
        return
    files = [*(conf.config_file or ())]
    for directory in conf.config_dir or ():
        files += map(str, sorted(pathlib.Path(directory).glob('*.conf')))
    for file in files:
        sections: dict[str, Any] = {}
        # What cannot be read is left out, as it was when nova read it.
        with contextlib.suppress(OSError, ValueError, cfg.Error):
            cfg.ConfigParser(file, sections).parse()
        for group, values in sections.items():
            for name in values:
                yield file, group, name, values[name][-1]


def _mistake(conf: cfg.ConfigOpts, group: str, option: cfg.Opt
             ) -> InvalidConfiguration | None:
    """Return the error for an option, if its value cannot be used."""
    try:
        value = conf[group][option.dest]
    except (cfg.Error, ValueError) as exc:
        return _invalid(conf, group, option, exc)
    # Oslo.config accepts these two, whatever the limits of the option.
    if isinstance(value, float) and str(value) in ('nan', '-0.0'):
        return _invalid(conf, group, option)
    elements = value if isinstance(value, list) else [value]
    # An empty SQL mode leaves it to the database server.
    may_be_empty = (option.default in (None, '')
                    or option.name == 'mysql_sql_mode')
    # Oslo.config reads the empty value of a number as None.
    texts = [str(element).strip() for element in elements]
    is_empty = None in elements or '' in texts
    lacks_hook = option.name == 'hooks' and not elements
    if not lacks_hook and (may_be_empty or not is_empty):
        return None
    return InvalidConfiguration(
        '%s is empty' % _place(conf, group, option)[0],
        step=_NO_HOOK if lacks_hook else 'delete it; the default then applies')


def _invalid(conf: cfg.ConfigOpts, group: str, option: cfg.Opt,
             error: Exception | None = None) -> InvalidConfiguration:
    place, value = _place(conf, group, option)
    text = ('%s cannot be used' % place if value is None or option.secret
            else '%s is "%s"' % (place, value))
    expected = _expected(option)
    if not expected and not option.secret:
        # Without the text about where oslo.config has read it.
        text += ' (%s)' % (error.__context__ if isinstance(
            error, cfg.ConfigSourceValueError) else error)
    return InvalidConfiguration(
        text, step='set it to ' + expected if expected else 'correct it')


def _place(conf: cfg.ConfigOpts, group: str, option: cfg.Opt
           ) -> tuple[str, str | None]:
    """Return the option with its file, and the value there, if any has it."""
    place = '[%s] %s' % (group, option.name)
    variable = 'OS_%s__%s' % (group.upper(), option.dest.upper())
    if variable in os.environ:
        return '%s in the environment (%s)' % (
            place, variable), os.environ[variable]
    result: tuple[str, str | None] = place, None
    for file, section, name, value in entries(conf):
        if (section, name) == (group, option.name):
            result = '%s in %s' % (place, file), value
    return result


def _expected(option: cfg.Opt) -> str:
    """Return what a value has to be; empty if only oslo.config knows."""
    kind: Any = option.type
    if isinstance(kind, types.Boolean):
        return 'true or false'
    if getattr(kind, 'choices', None):
        return 'one of ' + ', '.join(map(str, kind.choices))
    if not isinstance(kind, types.Number):
        return ''
    text = 'a whole number' if isinstance(kind, types.Integer) else 'a number'
    if option.metavar:
        text += ' of ' + option.metavar
    if kind.min is not None:
        text += ' from %g' % kind.min
    return text + (' to %g' % kind.max if kind.max is not None else '')
