# SPDX-License-Identifier: Apache-2.0
"""The state file of a cloud, in which later commands find its parts."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import sys
from typing import Self

from tests.cloud import config
from tests.cloud import processes


@dataclasses.dataclass(frozen=True)
class Resource:
    """A ``database`` or ``folder`` elsewhere, which has to be removed."""

    kind: str
    where: str
    name: str


class NoCloud(Exception):
    """The directory has no cloud."""


class State:
    """The state of one cloud; each change is written to its file."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.complete = False
        self.programs = str(pathlib.Path(sys.executable).parent)
        """The directory of the clients."""
        self.config: config.Config | None = None
        self.processes: list[processes.Process] = []
        self.resources: list[Resource] = []

    @classmethod
    def create(cls, directory: pathlib.Path) -> Self:
        """Create the state of a new cloud, in a directory without files."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = {path.name for path in directory.iterdir()} - {'log'}
        if others:
            raise FileExistsError(sorted(others)[0])
        shutil.rmtree(directory / 'log', ignore_errors=True)
        begun = cls(directory)
        # Exclusive: two commands may start at the same time.
        os.close(os.open(begun._path, os.O_CREAT | os.O_EXCL, 0o600))
        begun.write()
        return begun

    @classmethod
    def read(cls, directory: pathlib.Path) -> Self:
        """Read the state of the existing cloud; raise NoCloud if none is."""
        found = cls(directory)
        try:
            values = json.loads(found._path.read_text())
        except (FileNotFoundError, ValueError) as exc:
            # The file is empty for a moment after its creation.
            raise NoCloud from exc
        found.complete = values['complete']
        found.programs = values['programs']
        if values['config']:
            found.config = config.Config.from_dict(values['config'])
        found.processes = [processes.Process(**each)
                           for each in values['processes']]
        found.resources = [Resource(**each) for each in values['resources']]
        return found

    @property
    def _path(self) -> pathlib.Path:
        return self.directory / 'state.json'

    def log(self, name: str) -> str:
        """Return the path of a process's log."""
        (self.directory / 'log').mkdir(mode=0o700, exist_ok=True)
        return str(self.directory / 'log' / ('%s.log' % name))

    def process(self, name: str) -> processes.Process:
        """Return the process with a name."""
        for each in self.processes:
            if each.name == name:
                return each
        raise LookupError('%s has no process %s' % (self.directory, name))

    def runs(self) -> bool:
        """Check whether all was started, and every process runs."""
        return self.complete and all(each.alive() for each in self.processes)

    def add(self, resource: Resource) -> None:
        """Record an object before it is created."""
        self.resources.append(resource)
        self.write()

    def start(self, process: processes.Process) -> processes.Process:
        """Start a process and record its pid."""
        if process not in self.processes:
            self.processes.append(process)
        process.start()
        self.write()
        return process

    def stop(self, process: processes.Process) -> None:
        """Stop a process for good."""
        process.stop()
        self.processes.remove(process)
        self.write()

    def write(self) -> None:
        """Replace the file atomically."""
        values = {'complete': self.complete, 'programs': self.programs,
                  'config': self.config and self.config.to_dict(),
                  'processes': [each.to_dict() for each in self.processes],
                  'resources': [dataclasses.asdict(each)
                                for each in self.resources]}
        draft = self.directory / 'state.json.new'
        # The file contains passwords.
        descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC,
                             0o600)
        with open(descriptor, 'w') as output:
            json.dump(values, output, indent=1)
        draft.replace(self._path)

    def forget(self, keep_logs: bool) -> None:
        """Remove everything that the cloud wrote below its directory."""
        for path in self.directory.iterdir():
            if path == self._path or (keep_logs and path.name == 'log'):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        # Last: until then, the rest can still be found and removed.
        self._path.unlink()
        if not keep_logs:
            with contextlib.suppress(OSError):
                self.directory.rmdir()
