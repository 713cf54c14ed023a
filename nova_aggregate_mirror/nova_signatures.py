# SPDX-License-Identifier: Apache-2.0
"""Comparison of functions with the parameters that their callers rely on."""

from collections import abc
import inspect

from nova_aggregate_mirror import exceptions


def check(expected: abc.Mapping[type, abc.Mapping[str, abc.Sequence[str]]],
          other_differences: abc.Iterable[str] = ()) -> None:
    """Check that functions of classes exist and take these parameters.

    :param expected: class and function to the names of all parameters
    :param other_differences: of the installed nova, which are also reported
    :raises UnexpectedNova: lists all differences
    """
    differences = []
    for owner, functions in expected.items():
        for name, parameters in functions.items():
            function = getattr(owner, name, None)
            if not callable(function):
                differences.append('%s has no %s' % (owner.__name__, name))
                continue
            actual = list(inspect.signature(function).parameters)
            if actual != list(parameters):
                differences.append('%s.%s takes (%s) instead of (%s)' % (
                    owner.__name__, name, ', '.join(actual),
                    ', '.join(parameters)))
    differences += other_differences
    if differences:
        raise exceptions.UnexpectedNova('; '.join(differences))
