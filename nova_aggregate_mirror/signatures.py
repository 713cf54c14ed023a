# SPDX-License-Identifier: Apache-2.0
"""Comparison of functions with the parameters that their callers rely on."""

from collections import abc
import inspect


def differences(owner: type, expected: abc.Mapping[str, abc.Sequence[str]]
                ) -> list[str]:
    """List the functions of a class that are missing or take others."""
    texts = []
    for name, parameters in expected.items():
        function = getattr(owner, name, None)
        if not callable(function):
            texts.append('%s has no %s' % (owner.__name__, name))
            continue
        actual = list(inspect.signature(function).parameters)
        if actual != parameters:
            texts.append('%s.%s takes (%s) instead of (%s)' % (
                owner.__name__, name, ', '.join(actual),
                ', '.join(parameters)))
    return texts
